import { userInfo } from 'node:os';
import { isAbsolute } from 'node:path';
import { SandboxError } from '../errors/sandbox-error.ts';

/**
 * The user's home directory: `HOME`, or what the user database says. A relative or empty `HOME` is passed over: state and
 * policy would be looked for in the workspace, where a command can put them.
 * @throws {SandboxError} `home.unknown` if neither names one, as for a user without an entry.
 */
export function homeDirectory(): string {
  const { HOME } = process.env;
  if (HOME !== undefined && isAbsolute(HOME)) return HOME;
  try {
    const { homedir } = userInfo();
    if (isAbsolute(homedir)) return homedir;
  } catch {
    // ENOENT: no entry for this user.
  }
  throw new SandboxError(
    'home.unknown',
    `HOME is ${HOME === undefined ? 'not set' : 'not an absolute path'} and user ${process.getuid?.()} has no home in the user database (/etc/passwd); set HOME to an absolute path`,
  );
}
