import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { SandboxError } from '../errors/sandbox-error.ts';
import { errnoOf } from '../util/errno-of.ts';

const SHORTEST = 32;
const LONGEST = 64 * 1024;

/**
 * The secret that signs records: all bytes of a file that only its owner, who is us or root, can use.
 * @throws {SandboxError} `audit.failed`.
 */
export function loadAuditKey(path: string): Uint8Array {
  let fd: number | undefined;
  try {
    fd = openSync(path, 'r');
    const info = fstatSync(fd);
    if (!info.isFile()) refuse(path, 'is not a file');
    if (info.uid !== 0 && info.uid !== process.geteuid?.())
      refuse(path, `belongs to user ${info.uid}; it must be yours or root's`);
    if ((info.mode & 0o077) !== 0)
      refuse(path, `can be used by others (mode ${(info.mode & 0o777).toString(8)}); chmod 600 it`);
    const buffer = Buffer.alloc(LONGEST + 1);
    const length = readSync(fd, buffer, 0, buffer.length, 0);
    if (length < SHORTEST)
      refuse(path, `has ${length} bytes; at least ${SHORTEST} are needed (openssl rand -hex 32)`);
    if (length > LONGEST) refuse(path, `has more than ${LONGEST} bytes`);
    return buffer.subarray(0, length);
  } catch (error) {
    if (error instanceof SandboxError) throw error;
    const code = errnoOf(error) ?? String(error);
    throw new SandboxError('audit.failed', `the key of the audit trail ${path} cannot be read (${code})`, {
      cause: error,
    });
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function refuse(path: string, why: string): never {
  throw new SandboxError('audit.failed', `the key of the audit trail ${path} ${why}`);
}
