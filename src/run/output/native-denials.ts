// What of the addon tells of calls that were denied.

declare module '../../confine/native/contract.ts' {
  interface NativeEffects {
    /** Where calls are looked at. */
    readonly denials?: NativeDenials;
  }
}

/** What the sandbox kept a command from, or several alike. */
export interface NativeDenial {
  readonly operation: 'read' | 'write' | 'create' | 'remove' | 'execute' | 'connect' | 'signal';
  /** Of `create`: a directory was to be made. */
  readonly isDirectory?: boolean | undefined;
  /**
   * What held: no rule of Landlock grants it; the mount is read-only; a mount point cannot be moved; the view does not have
   * it; it is another user’s, and root has no capabilities; the network namespace leads nowhere; signals end at the domain;
   * the command gets no sockets that lead anywhere. `nothing`: it was not denied (`observed: uses`).
   */
  readonly control:
    | 'rights'
    | 'mount'
    | 'pinned'
    | 'view'
    | 'privileges'
    | 'network'
    | 'scope'
    | 'sockets'
    | 'nothing';
  /** As the program named it. */
  readonly asked: string;
  /** What that leads to; of a connection HOST:PORT, with /udp if it is one; of a signal the process; of a socket its family, `inet` or `unix`. */
  readonly path: string;
  /** What is not in the view: by what it would be found there, with the links outside that lead to it. Otherwise the path. */
  readonly named: string;
  /** Of the first one. */
  readonly pid: number;
  /** As the process calls itself. */
  readonly program: string;
  /** Milliseconds since the epoch. */
  readonly firstMs: number;
  readonly count: number;
}

/** Each kind of denial once, 64 of them at most (20,000 of uses), and how many others there were. */
export interface NativeDenials {
  readonly told: readonly NativeDenial[];
  readonly untold: number;
  /** Calls and denials that could not be looked at for want of descriptors or memory. */
  readonly unseen: number;
}
