import { accessSync, constants } from 'node:fs';
import { constants as systemConstants } from 'node:os';
import { dirname } from 'node:path';
import { SandboxError } from '../errors/sandbox-error.ts';
import { errnoOf } from '../util/errno-of.ts';
import { errorMessage } from '../util/error-message.ts';

/** Result codes of SQLite (sqlite.org/rescode.html); the lower eight bits of an extended one. */
export const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_CANTOPEN = 14;
const COULD_BE_READ_ONLY: ReadonlySet<number> = new Set([SQLITE_READONLY, SQLITE_CANTOPEN]);
const FULL = 'the disk is full; make room';
const DAMAGED = 'it is damaged; move it away, approvals and taints in it are lost';
const WHY: Readonly<Record<number, string>> = {
  // Of our statements none is wrong: tables are missing, or there already.
  1: DAMAGED,
  [SQLITE_BUSY]: 'another process keeps it locked; end that one (fuser shows it)',
  [SQLITE_READONLY]: 'it cannot be written; make it writable or set XDG_STATE_HOME',
  10: 'reading or writing it failed; look at the disk',
  11: DAMAGED,
  13: FULL,
  [SQLITE_CANTOPEN]: 'it cannot be opened; look at its owner and mode',
  26: 'it is not a database; move it away',
};

/** SQLite's own code of an error; `undefined`: it is none of SQLite. */
export function resultCode(error: unknown): number | undefined {
  const code = error instanceof Error && 'errcode' in error ? error.errcode : undefined;
  return typeof code === 'number' ? code & 0xff : undefined;
}

function why(path: string, error: unknown): string {
  const code = resultCode(error) ?? 0;
  // The file beside it that is shared memory is not written but made longer, which SQLite calls an error of the disk.
  const { ENOSPC, EDQUOT } = systemConstants.errno;
  const number = systemError(error);
  if (number === ENOSPC || number === EDQUOT) return FULL;
  // SQLite tries to read what it may not make, and then finds nothing.
  if (number === systemConstants.errno.EROFS || (COULD_BE_READ_ONLY.has(code) && isReadOnly(dirname(path))))
    return 'its file system is read-only; make it writable or set XDG_STATE_HOME';
  return WHY[code] ?? errorMessage(error);
}

/** The number of the system's error behind one of SQLite or of Node. */
function systemError(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('systemErrno' in error) return Number(error.systemErrno);
  // Node counts them downwards.
  return 'errno' in error ? -Number(error.errno) : undefined;
}

function isReadOnly(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return false;
  } catch (error) {
    return errnoOf(error) === 'EROFS';
  }
}

/** What every failure of the database becomes: one line that says what, where and what to do. */
export function unusable(path: string, error: unknown): SandboxError {
  if (error instanceof SandboxError) return error;
  return new SandboxError(
    'state.unusable',
    `the state database ${path} cannot be used: ${why(path, error)}`,
    { cause: error },
  );
}
