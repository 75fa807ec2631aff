import { SandboxError } from '../errors/sandbox-error.ts';
import { errnoOf } from '../util/errno-of.ts';
import { errorMessage } from '../util/error-message.ts';

const WHY: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full; make room',
  EDQUOT: 'the disk quota is used up; make room',
  EROFS: 'the file system is read-only; mount it writable or set XDG_STATE_HOME',
  EACCES: 'it may not be written; look at its owner and mode, or set XDG_STATE_HOME',
  EPERM: 'it may not be written; look at its owner and attributes, or set XDG_STATE_HOME',
  ENOENT: 'its directory is gone',
  ELOOP: 'it is a symbolic link; move that away',
  EIO: 'reading or writing it failed; look at the disk',
  EMFILE: 'this process has too many open files',
  ENFILE: 'this machine has too many open files',
};

/** What every failure to write becomes: one line that says what, where and what to do. */
export function auditFailure(path: string, error: unknown): SandboxError {
  if (error instanceof SandboxError) return error;
  const code = errnoOf(error) ?? '';
  const why = WHY[code] ?? errorMessage(error);
  return new SandboxError('audit.failed', `the audit trail ${path} cannot be written: ${why}`, {
    cause: error,
  });
}
