// Types of the denied calls that the addon reports.

declare module '../../confine/native/contract.ts' {
  interface NativeEffects {
    /** Present where calls are observed. */
    readonly denials?: NativeDenials;
  }
}

/** One denied call, or several of the same kind. */
export interface NativeDenial {
  readonly operation: 'read' | 'write' | 'create' | 'remove' | 'execute' | 'connect' | 'signal';
  /** With `create`: the call makes a directory. */
  readonly isDirectory?: boolean | undefined;
  /**
   * What refused the call, in the order of the values: no Landlock rule grants it; the mount is read-only; a mount point cannot
   * be moved; the path is not in the view; the object is another user’s, and root has no capabilities; the network namespace
   * leads nowhere; signals end at the Landlock domain; seccomp refuses the socket. `nothing`: it was not denied (`observed: uses`).
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
  /** The path or endpoint as the program named it. */
  readonly asked: string;
  /**
   * The resolved object: a path; for a connection HOST:PORT, with /udp for UDP; for a signal the process; for a socket its
   * family, `inet` or `unix`.
   */
  readonly path: string;
  /** What is not in the view: by what it would be found there, with the links outside that lead to it. Otherwise the path. */
  readonly named: string;
  /** The process of the first such call. */
  readonly pid: number;
  /** The name of that process, as it set it itself. */
  readonly program: string;
  /** Milliseconds since the epoch. */
  readonly firstMs: number;
  readonly count: number;
}

/** Each kind of denial once, at most 64 (20,000 with `observed: uses`), and how many more there were. */
export interface NativeDenials {
  readonly told: readonly NativeDenial[];
  readonly untold: number;
  /** Calls and denials that could not be looked at for want of descriptors or memory. */
  readonly unseen: number;
}
