import { accessSync, constants, existsSync, lstatSync, mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { absoluteOr } from '../../base/absolute-path.ts';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';

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

/**
 * Where private directories of commands are made in a directory that others share: in one of this user alone with a fixed name, which
 * can be hidden from commands that are granted the shared one. It need not exist. `usable: false`: something else has that name.
 */
export function privateParentIn(directory: string): {
  readonly path: string;
  readonly exists: boolean;
  readonly usable: boolean;
} {
  const user = process.geteuid?.() ?? 0;
  // As in native/sys/files.cc, which makes it. With a dot, as a nested launcher leaves it in the /tmp of a command.
  const path = join(directory, `.sandbox-run-${user}`);
  return stateOf(path, user) ?? stateOf(`${path}-inner`, user) ?? { path, exists: true, usable: false };
}

/**
 * Whether the private directory at a path is usable. `undefined`: it belongs to a launcher outside of the sandbox or user namespace in
 * which this process runs, so another name has to be tried.
 */
function stateOf(path: string, user: number): ReturnType<typeof privateParentIn> | undefined {
  try {
    const info = lstatSync(path);
    const isOurs = info.isDirectory() && info.uid === user && (info.mode & 0o077) === 0;
    // What hides it in a sandbox that was granted the shared directory is read-only.
    return (isOurs && isReadOnly(path)) || isOutside(info)
      ? undefined
      : { path, exists: true, usable: isOurs };
  } catch (error) {
    return { path, exists: false, usable: errnoOf(error) === 'ENOENT' };
  }
}

/** Whether it belongs to a user who has no number in the user namespace of this process (user_namespaces(7)). */
function isOutside({ uid }: { readonly uid: number }): boolean {
  const OVERFLOW = 65_534;
  return uid === OVERFLOW && !/^\s*0\s+0\s+4294967295\s*$/.test(readFileSync('/proc/self/uid_map', 'utf8'));
}

function isReadOnly(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return false;
  } catch (error) {
    return errnoOf(error) === 'EROFS';
  }
}

function refuse(path: string, why: string): never {
  throw new SandboxError('state.untrusted', `the state directory ${path} ${why}`);
}
