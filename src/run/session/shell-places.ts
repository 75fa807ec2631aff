import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { ensureStateDirectory } from '../../workspace/index.ts';
import { stateDirectory } from '../state.ts';

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
const SUFFIX = '.sock';

/**
 * Where the socket of a session is: in the state directory, which no command can reach.
 * @throws {SandboxError} `session.invalid`, `state.unusable`, `state.untrusted`.
 */
export function shellSocket(name: string): string {
  if (!NAME.test(name))
    throw new SandboxError(
      'session.invalid',
      `${JSON.stringify(name)} cannot be the name of a session; it takes letters, digits, ".", "_" and "-", at most 64`,
    );
  return join(shellsDirectory(), `${name}${SUFFIX}`);
}

function shellsDirectory(): string {
  return ensureStateDirectory(join(ensureStateDirectory(stateDirectory()), 'shells'));
}

/** The names of all sessions of this user, also of those whose servers are dead. */
export function shellNames(): readonly string[] {
  return readdirSync(shellsDirectory())
    .filter((name) => name.endsWith(SUFFIX))
    .map((name) => name.slice(0, -SUFFIX.length));
}
