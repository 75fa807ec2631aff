import type { CgroupPlace } from './launch-plan.ts';

/** A kernel facility: usable, or the reason why not. */
export type Facility = { readonly available: true } | { readonly available: false; readonly reason: string };

/** A Firejail that can be trusted and used. */
export interface FirejailFacility {
  readonly path: string;
  /** The version that it reports, as numbers. */
  readonly version: readonly number[];
}

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
  /** False once the kernel refused to mount a symbolic link over a file of a view. */
  readonly linkMounts?: false;
  /** Why no layer of a preview can lie in the state directory; `undefined`: nothing is known that is in the way. */
  readonly layersRefused?: string | undefined;
  /** A user namespace is needed for them (we have no CAP_SYS_ADMIN). */
  readonly needsUserNamespace: boolean;
  /** Where control groups (v2) for commands can be made, or why nowhere; found out by making one. */
  readonly cgroup: CgroupPlace | { readonly path: undefined; readonly reason: string };
  /** Memory of the host, in bytes. */
  readonly memoryBytes: number;
  /** /proc shows running processes: for limits without control groups, and process trees without a signal scope. */
  readonly processList: Facility;
  /** Whole process trees can be ended through a signal scope. */
  readonly signalScope: boolean;
  /** A filter can ask us about a call (seccomp's listeners, one per process tree); found out with the first sandbox. */
  readonly seccompListener: boolean;
  /** `undefined` until it was asked for, which only its backend does. */
  readonly firejail?: FirejailFacility | undefined;
}
