import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import type { ErrorCode } from '../../base/errors/codes.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';

const LONGEST = 64 * 1024;

/** What a file with a secret is, for the message of what is wrong with it. */
interface PrivateFile {
  /** Such as "the key of the audit trail". */
  readonly what: string;
  readonly code: ErrorCode;
  /** Bytes that it has at least. */
  readonly shortest?: number;
  /** How one is made that is long enough. */
  readonly made?: string;
}

/**
 * All bytes of a file with a secret, which only its owner, who is us or root, can use; at most 64 KiB.
 * @throws {SandboxError} with the code that is given.
 */
export function readPrivateFile(path: string, { what, code, shortest = 1, made }: PrivateFile): Buffer {
  const refuse = (why: string): never => {
    throw new SandboxError(code, `${what} ${path} ${why}`);
  };
  let fd: number | undefined;
  try {
    fd = openSync(path, 'r');
    const info = fstatSync(fd);
    if (!info.isFile()) refuse('is not a file');
    if (info.uid !== 0 && info.uid !== process.geteuid?.())
      refuse(`belongs to user ${info.uid}; it must be yours or root's`);
    if ((info.mode & 0o077) !== 0)
      refuse(`can be used by others (mode ${(info.mode & 0o777).toString(8)}); chmod 600 it`);
    const buffer = Buffer.alloc(LONGEST + 1);
    const length = readSync(fd, buffer, 0, buffer.length, 0);
    if (length < shortest)
      refuse(`has ${length} bytes; at least ${shortest} are needed${made === undefined ? '' : ` (${made})`}`);
    if (length > LONGEST) refuse(`has more than ${LONGEST} bytes`);
    return buffer.subarray(0, length);
  } catch (error) {
    if (error instanceof SandboxError) throw error;
    const reason = errnoOf(error) ?? String(error);
    throw new SandboxError(code, `${what} ${path} cannot be read (${reason})`, { cause: error });
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/**
 * The secret that signs records.
 * @throws {SandboxError} `audit.failed`.
 */
export function loadAuditKey(path: string): Uint8Array {
  return readPrivateFile(path, {
    what: 'the key of the audit trail',
    code: 'audit.failed',
    shortest: 32,
    made: 'openssl rand -hex 32',
  });
}
