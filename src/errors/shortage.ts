import { SandboxError } from './sandbox-error.ts';

/** Too little of something, for now. */
const SHORTAGES: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN']);

/** The error for something that could not be tried for want of something, which says nothing of the host; else nothing. */
export function shortageError(what: string, errno: string): SandboxError | undefined {
  return SHORTAGES.has(errno)
    ? new SandboxError(
        'launch.failed',
        `${what} cannot be tried now for want of descriptors, memory or processes (${errno}); run less at a time, or raise the limit (ulimit -n, ulimit -u)`,
      )
    : undefined;
}
