import { existsSync, lstatSync, mkdirSync, realpathSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { SandboxError } from '../errors/sandbox-error.ts';
import { absoluteOr } from '../util/absolute-path.ts';
import { errnoOf } from '../util/errno-of.ts';

/**
 * The user's home directory: `HOME`, or what the user database says. A relative or empty `HOME` is passed over: state and
 * policy would be looked for in the workspace, where a command can put them.
 * @throws {SandboxError} `home.unknown` if neither names one, as for a user without an entry.
 */
export function homeDirectory(): string {
  const { HOME } = process.env;
  if (HOME !== undefined && isAbsolute(HOME)) return HOME;
  const known = homeInDatabase();
  if (known !== undefined) return known;
  throw new SandboxError(
    'home.unknown',
    `HOME is ${HOME === undefined ? 'not set' : 'not an absolute path'} and user ${process.getuid?.()} has no home in the user database (/etc/passwd); set HOME to an absolute path`,
  );
}

/** What the user database says; `undefined`: no entry for this user, or no absolute path in it. */
export function homeInDatabase(): string | undefined {
  try {
    const { homedir } = userInfo();
    return isAbsolute(homedir) ? homedir : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Where approvals, budget, sessions and the audit trail are kept: `$XDG_STATE_HOME/sandbox-run`, or beneath
 * `~/.local/state`. A relative XDG_STATE_HOME is to be ignored (XDG Base Directory Specification). The directory need not
 * exist.
 */
export function stateDirectoryPath(home: string, stateHome: string | undefined): string {
  return join(absoluteOr(stateHome, join(home, '.local/state')), 'sandbox-run');
}

/**
 * Makes the state directory, or one inside it, if it is not there, and makes sure that it is ours alone: a user who could
 * write in it could answer for the user. Returns the canonical path.
 * @throws {SandboxError} `state.unusable` if it cannot be made, `state.untrusted` if it belongs to another user, can be
 * used by others, or is a symbolic link.
 */
export function ensureStateDirectory(path: string): string {
  try {
    makeDirectories(path);
    const info = lstatSync(path);
    if (info.isSymbolicLink())
      refuse(path, 'is a symbolic link; put a directory in its place, or set XDG_STATE_HOME');
    if (!info.isDirectory()) refuse(path, 'is not a directory; move it away');
    if (info.uid !== process.geteuid?.())
      refuse(path, `belongs to user ${info.uid}; it must be yours (or set XDG_STATE_HOME)`);
    if ((info.mode & 0o077) !== 0)
      refuse(path, `can be used by others (mode ${(info.mode & 0o777).toString(8)}); chmod 700 it`);
    return realpathSync(path);
  } catch (error) {
    if (error instanceof SandboxError) throw error;
    const code = errnoOf(error) ?? String(error);
    throw new SandboxError(
      'state.unusable',
      `the state directory ${path} cannot be made or read (${code}); make it writable or set XDG_STATE_HOME`,
      { cause: error },
    );
  }
}

/**
 * Makes a directory, and those that lead to it, for their owner alone; one by one, because mkdir's own `recursive` never
 * ends where a parent cannot exist, as in /proc.
 */
export function makeDirectories(path: string): void {
  const parent = dirname(path);
  if (parent !== path && !existsSync(parent)) makeDirectories(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Often it is there, and another process may be making it.
    if (errnoOf(error) !== 'EEXIST') throw error;
  }
}

function refuse(path: string, why: string): never {
  throw new SandboxError('state.untrusted', `the state directory ${path} ${why}`);
}
