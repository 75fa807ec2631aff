// What of the addon answers for the network of commands, where it is listed.

declare module '../../confine/native/contract.ts' {
  interface NativeAddon {
    /** Answers a question about a name, by a message of DNS. False: the command has ended. */
    answerName(id: number, query: number, message: Uint8Array): boolean;
    /**
     * Answers a connection: the 16 bytes that it is to be connected to, and what it has to be (''; anything); or `undefined`, and
     * the errno that the command gets, 0 for the usual one. False: the command has ended.
     */
    answerConnection(
      id: number,
      question: number,
      address: Uint8Array | undefined,
      errno: number,
      inside: NativeAddressRow['inside'],
    ): boolean;
    /** Answers whether a connection may be for a host. `rule`: what decided; '': nothing. False: the command has ended. */
    answerHost(id: number, question: number, allowed: boolean, rule: string): boolean;
    /** Further addresses that commands of the confinement may connect to, for so long. */
    allowAddresses(
      confinement: NativeConfinement,
      rows: readonly NativeAddressRow[],
      lifetimeMs: number,
    ): void;
    /** What is said of a connection to 16 bytes; `undefined`: nothing is listed. */
    judgeAddress(
      confinement: NativeConfinement,
      address: Uint8Array,
      port: number,
      udp: boolean,
    ): { readonly allowed: boolean; readonly rule: string } | undefined;
  }
  interface NativeEvents {
    readonly 'name-asked': NativeNameAsked;
    readonly 'connection-asked': NativeConnectionAsked;
    readonly 'host-asked': NativeHostAsked;
  }
  interface NativeEffects {
    /** Where the network is listed. */
    readonly connections?: NativeConnections;
  }
}

/** A connection that a command asked for, or several alike. */
export interface NativeConnection {
  /** Of the first one. */
  readonly pid: number;
  /** As the process calls itself. */
  readonly program: string;
  /** 16 bytes. */
  readonly address: Uint8Array;
  readonly port: number;
  /** Of a unix socket, and then address and port say nothing; `@NAME`: an abstract one. */
  readonly path?: string;
  readonly udp: boolean;
  readonly allowed: boolean;
  /** '': none speaks of it. */
  readonly rule: string;
  /** What the command was told; 0: connected, or on its way. */
  readonly errno: number;
  /** When the first one was asked for, in milliseconds since the epoch. */
  readonly firstMs: number;
  readonly count: number;
  /** The host that it asked for, where that was looked for; '': none. */
  readonly name: string;
  /** In a few words, what was sent instead of a name; '': nothing is wrong. */
  readonly flaw: string;
}

/** Each kind of connection once, 256 of them at most, and how many others there were. */
export interface NativeConnections {
  readonly told: readonly NativeConnection[];
  readonly untold: number;
}

/** Where the network is listed: the command asks for a name, by a message of DNS. To be answered by `answerName`. */
export interface NativeNameAsked {
  readonly kind: 'name-asked';
  readonly query: number;
  readonly message?: Buffer;
}

/**
 * The same: the command wants to connect to what no rule speaks of, where somebody is asked about that. The connection waits
 * until it is answered by `answerConnection`.
 */
export interface NativeConnectionAsked {
  readonly kind: 'connection-asked';
  readonly question: number;
  readonly connection: NativeConnection;
}

/** A connection to a port asks for a host. To be answered by `answerHost`. */
export interface NativeHostAsked {
  readonly kind: 'host-asked';
  readonly question: number;
  readonly host: string;
  readonly port: number;
}
