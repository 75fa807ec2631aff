/** A kernel facility: usable, or the reason why not. */
export type Facility = { readonly available: true } | { readonly available: false; readonly reason: string };

/** What this host's kernel offers to the user who runs us. */
export interface HostFeatures {
  readonly kernelRelease: string;
  readonly architecture: 'x64' | 'arm64';
  readonly landlock: Facility;
  /** ABI version as the kernel reports it; 0 without Landlock. */
  readonly landlockAbi: number;
  /** Bit set of fixed errata. */
  readonly landlockErrata: number;
  readonly seccomp: Facility;
  /** Mount, network and IPC namespaces for a view of the sandbox's own; found out by making them. */
  readonly namespaces: Facility;
  /** A user namespace is needed for them (we have no CAP_SYS_ADMIN). */
  readonly needsUserNamespace: boolean;
  /** Whole process trees can be ended through a signal scope. */
  readonly signalScope: boolean;
}
