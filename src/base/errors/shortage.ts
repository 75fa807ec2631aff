import { SandboxError } from './sandbox-error.ts';

/** THE table of what a host may run short of, by errno: what is short, and what to raise. */
const SHORTAGES: Readonly<Record<string, string>> = {
  EMFILE:
    'too many files are open for one more command; run fewer at a time, or raise the limit (`ulimit -n`)',
  ENFILE:
    'too many files are open on this machine for one more command; end what holds them, or raise fs.file-max (sysctl)',
  EAGAIN:
    'no further process or thread can be made; run fewer at a time, or raise the limit (`ulimit -u`, or pids.max of the container)',
  ENOMEM:
    'there is not enough memory; run fewer at a time, or raise the limit (`ulimit -v`, or memory.max of the container)',
};

/** One sentence for an errno's name that says nothing but that there is too little of something for now; else undefined. */
export function shortageOf(errno: unknown): string | undefined {
  return typeof errno === 'string' && Object.hasOwn(SHORTAGES, errno) ? SHORTAGES[errno] : undefined;
}

/** The same with a full or read-only disk, for what a system call of Node's threw; `undefined`: it is something else. */
export function describeShortage(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error)) return undefined;
  const { code } = error;
  const short = shortageOf(code);
  if (short !== undefined) return `${short} (${code})`;
  if (code !== 'ENOSPC' && code !== 'EDQUOT' && code !== 'EROFS') return undefined;
  const where = 'path' in error && typeof error.path === 'string' ? ` at ${error.path}` : '';
  return `nothing can be written${where} (${code}); make room, or set TMPDIR or XDG_STATE_HOME to a place that has some`;
}

/**
 * For what is taken as missing if it cannot be read: what cannot be read for now is not missing, and nothing may hold less
 * because of it.
 * @throws {SandboxError} `launch.failed` for a shortage.
 */
export function refuseShortage(error: unknown): void {
  const short = describeShortage(error);
  if (short !== undefined) throw new SandboxError('launch.failed', short, { cause: error });
}

/**
 * What `read` gives, and `missing` for what cannot be read.
 * @throws {SandboxError} `launch.failed` for a shortage.
 */
export function readOr<T, U>(read: () => T, missing: U): T | U {
  try {
    return read();
  } catch (error) {
    refuseShortage(error);
    return missing;
  }
}

/**
 * The same for the errno of a native failure.
 * @throws {SandboxError} `launch.failed` for a shortage, for want of which `what` cannot be tried.
 */
export function refuseShortageOf(errno: string, what?: string): void {
  const short = shortageOf(errno);
  if (short === undefined) return;
  const wanted = what === undefined ? '' : `${what} cannot be tried now: `;
  throw new SandboxError('launch.failed', `${wanted}${short} (${errno})`);
}
