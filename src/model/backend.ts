/**
 * THE backends, strongest first, and so the ladder that `auto` goes down:
 * - `landlock`: Landlock and seccomp, with namespaces where the host has them.
 * - `namespaces`: a root, a network and a user of its own (mount, network and user namespaces) and seccomp.
 * - `firejail`: the set-uid program of that name.
 * - `application`: no shell; only programs and paths that are understood, and nothing that the kernel would hold.
 */
export const BACKEND_IDS = ['landlock', 'namespaces', 'firejail', 'application'] as const;

/** The stable name of a backend. */
export type BackendId = (typeof BACKEND_IDS)[number];

/** Whether a backend is as strong as another, or stronger. */
export function isAtLeast(backend: BackendId, minimum: BackendId): boolean {
  return BACKEND_IDS.indexOf(backend) <= BACKEND_IDS.indexOf(minimum);
}

/** A backend that was not used, although a stronger one than the one that was. */
export interface PassedOver {
  readonly backend: BackendId;
  /** One sentence: what this host or the policy has against it. */
  readonly reason: string;
}
