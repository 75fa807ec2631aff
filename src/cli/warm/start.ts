import { realpathSync } from 'node:fs';
import { clientProgram } from '../../native/load.ts';

/** Set by native/client: where the server for calls like this one would listen. There is none, or it did not take this one. */
const SERVER_ADDRESS = 'SANDBOX_RUN_WARM_SERVER';

/** Where a server is missed; `undefined`: nowhere. No command and no server is to see it. */
export function takeServerAddress(): string | undefined {
  const path = process.env[SERVER_ADDRESS];
  delete process.env[SERVER_ADDRESS];
  return path;
}

/**
 * What starts this program again, without arguments: by the client, which hands calls over to a warm server, where that is
 * installed. As it is on the disk: a link to it may lead elsewhere by then.
 */
export function ownWords(): readonly string[] {
  const cold = [process.execPath, realpathSync(process.argv[1] ?? '')];
  const client = clientProgram();
  return client === undefined ? cold : [realpathSync(client), ...cold];
}

/** Starts a server in the background. It ends at once where one listens already, and is not waited for. */
export async function startServer(path: string): Promise<void> {
  const [program = '', ...words] = [process.execPath, realpathSync(process.argv[1] ?? ''), 'warm', path];
  // Only here: loading it takes as long as a start that needs none.
  const { spawn } = await import('node:child_process');
  const server = spawn(program, words, { detached: true, stdio: 'ignore', cwd: '/' });
  // What cannot be started is not there the next time, either.
  server.once('error', () => {});
  server.unref();
}
