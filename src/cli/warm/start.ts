import { readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { ensureStateDirectory } from '../../host/user-directories.ts';
import { clientProgram } from '../../native/load.ts';
import { orElse } from '../../util/or-else.ts';

/** The session of an agent that begins, for which a server is made ready. */
export interface Rehearsed {
  /** Behind `hook`. */
  readonly args: readonly string[];
  /** The agent's id of it. */
  readonly session: string;
  readonly cwd: string;
}

/** Set by native/client: where the server for calls like this one would listen. There is none, or it did not take this one. */
const SERVER_ADDRESS = 'SANDBOX_RUN_WARM_SERVER';

/** Where a server is missed; `undefined`: nowhere. No command and no server is to see it. */
export function takeServerAddress(): string | undefined {
  const path = process.env[SERVER_ADDRESS];
  delete process.env[SERVER_ADDRESS];
  return path;
}

/**
 * What starts this program again, without arguments, and what hands calls of it over to a warm server. As they are on the
 * disk: a link may lead elsewhere by then.
 */
export function ownWords(): { readonly program: readonly string[]; readonly client: string | undefined } {
  const client = clientProgram();
  return {
    program: [process.execPath, realpathSync.native(process.argv[1] ?? '')],
    client: client && realpathSync.native(client),
  };
}

/**
 * Starts a server in the background. It ends at once where one listens already, and is not waited for. `rehearsed`: whose
 * calls it makes itself ready for.
 */
export async function startServer(path: string, rehearsed?: Rehearsed): Promise<void> {
  // It makes it as well, but an end may have to be noted before.
  orElse(() => ensureStateDirectory(dirname(path)), undefined);
  if (rehearsed !== undefined) takeEnd(path, rehearsed.session);
  const more = rehearsed === undefined ? [] : [JSON.stringify(rehearsed)];
  const [program = '', ...words] = [...ownWords().program, 'warm', path, ...more];
  // Only here: loading it takes as long as a start that needs none.
  const { spawn } = await import('node:child_process');
  const server = spawn(program, words, { detached: true, stdio: 'ignore', cwd: '/' });
  // What cannot be started is not there the next time, either.
  server.once('error', () => {});
  server.unref();
}

/** Where it is noted that a session has ended. */
const endOf = (path: string) => `${path}.ended`;

/** Notes that a session ended while no server listened: one that was started for it may be on its way. */
export function noteEnd(path: string, session: string): void {
  // Where that cannot be, no server listens, either.
  orElse(() => writeFileSync(endOf(path), session, { mode: 0o600 }), undefined);
}

/** Whether that is noted of the session; it is no longer then. */
export function takeEnd(path: string, session: string): boolean {
  const isNoted = orElse(() => readFileSync(endOf(path), 'utf8'), undefined) === session;
  if (isNoted) rmSync(endOf(path), { force: true });
  return isNoted;
}
