import { appendFileSync, existsSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { orElse } from '../../base/or-else.ts';
import { parsedJson } from '../../base/parsed-json.ts';
import { builtAddon, hostLibc, installedAddons, unfitFor } from '../../confine/native/addon-locations.ts';
import { packageDirectory } from '../../confine/native/load.ts';
import { ensureStateDirectory } from '../../workspace/index.ts';

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

/** Where the server of a call like this one listens, or would. */
export interface ServerAddress {
  readonly path: string;
  /** One is there, which did not take this call. */
  readonly isThere: boolean;
}

/** Where a server did not take this call; `undefined`: nowhere. No command and no server is to see it. */
export function takeServerAddress(): ServerAddress | undefined {
  const said = process.env[SERVER_ADDRESS];
  delete process.env[SERVER_ADDRESS];
  if (said === undefined) return undefined;
  const isThere = said.startsWith('!');
  return { path: said.slice(isThere ? 1 : 0), isThere };
}

/** The program that hands calls over to a warm server, which lies beside the addon; without loading that. `undefined`: none. */
function clientProgram(): string | undefined {
  const root = packageDirectory();
  const places = [builtAddon(root), ...installedAddons(root, process.arch, hostLibc())];
  return places
    .filter((place) => existsSync(place.path) && unfitFor(place) === undefined)
    .map(({ path }) => join(dirname(path), 'sandbox-run-client'))
    .find((path) => existsSync(path));
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
 * Starts a server in the background, unless one is there. It ends at once where one listens already, and is not waited for. `rehearsed`: whose
 * calls it makes itself ready for.
 */
export async function startServer({ path, isThere }: ServerAddress, rehearsed?: Rehearsed): Promise<void> {
  if (isThere) return;
  // It makes it as well, but an end may have to be noted before.
  orElse(() => ensureStateDirectory(dirname(path)), undefined);
  const more = rehearsed === undefined ? [] : [JSON.stringify(rehearsed)];
  const [program = '', ...words] = [...ownWords().program, 'warm', path, ...more];
  // Only here: loading it takes as long as a start that needs none.
  const { spawn } = await import('node:child_process');
  const server = spawn(program, words, { detached: true, stdio: 'ignore', cwd: '/' });
  // What cannot be started is not there the next time, either.
  server.once('error', () => {});
  server.unref();
}

/** A hook may come so long after the end of its session, and a server may be on its way. */
const REMEMBERED_MS = 600_000;

/** Where it is noted which sessions have ended, for servers that are on their way, stopped, or would be started for them. */
const endsOf = (path: string) =>
  join(dirname(path), `ended-${basename(path, '.sock').replace(/^warm-/, '')}`);

/** Notes that a session has ended. */
export function noteEnd(path: string, session: string): void {
  forgetEnds(path, []);
  // Where that cannot be, no server listens, either.
  orElse(
    () => appendFileSync(endsOf(path), endLine({ at: Date.now(), session }), { mode: 0o600 }),
    undefined,
  );
}

/** Sessions that have ended, and when that was noted. */
export function notedEnds(path: string): readonly { readonly at: number; readonly session: string }[] {
  const text = orElse(() => readFileSync(endsOf(path), 'utf8'), '');
  return text.split('\n').flatMap((line) => {
    const at = Number(line.slice(0, line.indexOf(' ')));
    return line === '' || Date.now() - at > REMEMBERED_MS
      ? []
      : [{ at, session: String(parsedJson(line.slice(line.indexOf(' ') + 1))) }];
  });
}

/** Forgets that sessions have ended, which go on, and what is long ago. */
export function forgetEnds(path: string, sessions: readonly string[]): void {
  const text = orElse(() => readFileSync(endsOf(path), 'utf8'), '');
  if (text === '') return;
  const left = notedEnds(path).filter(({ session }) => !sessions.includes(session));
  const kept = left.map(endLine).join('');
  if (kept === text) return;
  if (kept === '') rmSync(endsOf(path), { force: true });
  else orElse(() => writeFileSync(endsOf(path), kept, { mode: 0o600 }), undefined);
}

const endLine = ({ at, session }: { readonly at: number; readonly session: string }) =>
  `${at} ${JSON.stringify(session)}\n`;
