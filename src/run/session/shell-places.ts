import { randomBytes } from 'node:crypto';
import { readdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { ServerMessage } from '../../gate/shells/messages.ts';
import { connectToShell, type ShellConnection } from '../../gate/shells/shell-client.ts';
import { ensureStateDirectory } from '../../host/state-directory.ts';
import type { ShellInfo } from '../../model/session.ts';
import { stateDirectory } from '../state.ts';

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
const SUFFIX = '.sock';
/** A server that does not say what it is within this time hangs, and is left alone. */
const PATIENCE_MS = 2_000;

/** A name that was not chosen by a person. */
export function newShellName(): string {
  return randomBytes(4).toString('hex');
}

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

/** The sessions whose servers answer. Sockets that dead servers left behind are taken away. */
export async function listShells(): Promise<readonly ShellInfo[]> {
  const directory = shellsDirectory();
  const names = readdirSync(directory).filter((name) => name.endsWith(SUFFIX));
  const found = await Promise.all(names.map((name) => askForInfo(join(directory, name))));
  return found.filter((info) => info !== undefined).sort((one, other) => one.lastUsedAt - other.lastUsedAt);
}

async function askForInfo(path: string): Promise<ShellInfo | undefined> {
  return new Promise<ShellInfo | undefined>((done) => {
    const late = setTimeout(() => done(undefined), PATIENCE_MS);
    const settle = (info: ShellInfo | undefined) => {
      clearTimeout(late);
      done(info);
    };
    void connectOrRemove(
      path,
      (message) => {
        if (message.type === 'info') settle(message.info);
      },
      () => settle(undefined),
    ).then(
      (connection) => {
        if (connection === undefined) return settle(undefined);
        connection.send({ type: 'info' });
        const close = () => connection.close();
        setTimeout(close, PATIENCE_MS).unref();
      },
      () => settle(undefined),
    );
  });
}

/**
 * Connects to a session of this user.
 * @throws {SandboxError} `session.invalid` if there is none of that name.
 */
export async function connectToSession(
  name: string,
  onMessage: (message: ServerMessage) => void,
  onEnd: () => void,
): Promise<ShellConnection> {
  const found = await connectOrRemove(shellSocket(name), onMessage, onEnd);
  if (found !== undefined) return found;
  throw new SandboxError(
    'session.invalid',
    `there is no shell session ${name} (sandbox-run session list shows them)`,
  );
}

/** If no server listens, it was killed: what it left behind is removed. */
async function connectOrRemove(
  path: string,
  onMessage: (message: ServerMessage) => void,
  onEnd: () => void,
): Promise<ShellConnection | undefined> {
  const found = await connectToShell(path, onMessage, onEnd);
  if (found === undefined) {
    try {
      unlinkSync(path);
    } catch {
      // Another process did it.
    }
  }
  return found;
}
