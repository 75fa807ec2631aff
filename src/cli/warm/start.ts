import {
  accessSync,
  appendFileSync,
  constants,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { isObject } from '../../base/is-object.ts';
import { orElse } from '../../base/or-else.ts';
import { parsedJson } from '../../base/parsed-json.ts';
import { builtAddon, hostLibc, installedAddons, unfitFor } from '../../confine/native/addon-locations.ts';
import { packageDirectory } from '../../confine/native/load.ts';
import { endedBy, stateDirectory } from '../../run/index.ts';
import { ensureStateDirectory } from '../../workspace/index.ts';
import { ENDING, onSignals } from '../shared/signals.ts';

/** A session that an agent begins, for which a server is warmed up. */
export interface Rehearsed {
  /** The arguments of the subcommand `hook`. */
  readonly args: readonly string[];
  /** The agent's ID of the session. */
  readonly session: string;
  readonly cwd: string;
}

/**
 * A variable that native/client sets if no server has accepted the call: where the server for such calls listens, or would listen.
 */
const SERVER_ADDRESS = 'SANDBOX_RUN_WARM_SERVER';

/** Where the server for a call like this one listens, or would listen. */
export interface ServerAddress {
  readonly path: string;
  /** A server listens there, and has not accepted this call. */
  readonly isThere: boolean;
  /** This program itself had asked that server by {@link handOver}: asking it again is of no use. */
  readonly wasAsked: boolean;
}

/** A variable that tells native/client which server to ask: its path, or `?` for the server of calls like this one. */
const ASKED_ADDRESS = 'SANDBOX_RUN_WARM_AT';

/**
 * The server that has not accepted this call; `undefined`: the call did not come by native/client. Removes the variable from the
 * environment, because no command and no server must inherit it.
 */
export function takeServerAddress(): ServerAddress | undefined {
  const said = process.env[SERVER_ADDRESS];
  delete process.env[SERVER_ADDRESS];
  if (said === undefined) return undefined;
  const wasAsked = said.startsWith('?');
  const isThere = wasAsked || said.startsWith('!');
  return { path: said.slice(isThere ? 1 : 0), isThere, wasAsked };
}

/** Which server gets a call, and what happens to its output. */
interface HandOver {
  /** The path of the server's socket; `undefined`: that of the server for calls like this one. */
  readonly path: string | undefined;
  /** Standard output: `own` is this process's stream, `captured` returns it as text. */
  readonly output: 'own' | 'captured';
}

/** Without what a server cannot be told exactly, and takes no call with (`OLDPWD` of a shell that was in such a directory). */
const sayable = (env: NodeJS.ProcessEnv) =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => value?.includes('\uFFFD') !== true));

/**
 * Has a server perform a call of this program, and waits until it has ended. Signals to this process are passed on. If the server
 * does not accept the call, the client runs it in a new process, in which `wasAsked` is true.
 * @throws {SandboxError} `service.unusable` where the client is missing.
 */
export async function handOver(
  words: readonly string[],
  { path, output }: HandOver,
): Promise<{ readonly status: number; readonly stdout: string }> {
  const { program, client } = ownWords();
  if (client === undefined)
    throw new SandboxError(
      'service.unusable',
      'no supervisor can be asked: the program sandbox-run-client is missing beside the addon. Build or install the addon again',
    );
  const { spawn } = await import('node:child_process');
  const child = spawn(client, [...program, ...words], {
    stdio: ['inherit', output === 'own' ? 'inherit' : 'pipe', 'inherit'],
    // What asks about everything has no use for a directory, nor what starts nothing for variables.
    ...(output === 'captured' ? { cwd: '/' } : {}),
    env: { ...(words[0] === 'up' ? process.env : sayable(process.env)), [ASKED_ADDRESS]: path ?? '?' },
  });
  using _ = onSignals(ENDING, (signal) => void child.kill(signal));
  let stdout = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  return new Promise((done, fail) => {
    child.once('error', fail);
    child.once('close', (code, signal) => done({ status: code ?? endedBy(signal ?? 'SIGKILL'), stdout }));
  });
}

/** The path of sandbox-run-client, which lies beside the addon. Does not load the addon. `undefined`: the program is missing. */
function clientProgram(): string | undefined {
  const root = packageDirectory();
  const places = [builtAddon(root), ...installedAddons(root, process.arch, hostLibc())];
  return places
    .filter((place) => existsSync(place.path) && unfitFor(place) === undefined)
    .map(({ path }) => join(dirname(path), 'sandbox-run-client'))
    .find((path) => existsSync(path));
}

/**
 * The words that start this program again, without arguments, and the client that hands calls over to a warm server. Links are
 * resolved now, because they may lead elsewhere when the words are used.
 */
export function ownWords(): { readonly program: readonly string[]; readonly client: string | undefined } {
  const client = clientProgram();
  return {
    program: [process.execPath, realpathSync.native(process.argv[1] ?? '')],
    client: client && realpathSync.native(client),
  };
}

/**
 * Starts a server in the background unless one is there, and does not wait for it. If another server listens already by then, the new
 * one ends at once. `rehearsed`: a session for whose calls the server warms itself up.
 */
export async function startServer(
  { path, isThere }: Pick<ServerAddress, 'path' | 'isThere'>,
  rehearsed?: Rehearsed,
): Promise<void> {
  if (isThere) return;
  // The server creates the directory, too, but the end of a session may have to be noted there earlier.
  orElse(() => ensureStateDirectory(dirname(path)), undefined);
  const more = rehearsed === undefined ? [] : [JSON.stringify(rehearsed)];
  const [program = '', ...words] = [...ownWords().program, 'warm', path, ...more];
  // Imported only where it is needed: loading this module takes as long as a whole call that starts no server.
  const { spawn } = await import('node:child_process');
  const server = spawn(program, words, { detached: true, stdio: 'ignore', cwd: '/' });
  // A failure is ignored on purpose: the next call finds no server and tries again.
  server.once('error', () => {});
  server.unref();
}

/** Time for a server to say that it is there. */
const ANSWER_MS = 1_000;

/** Whether a connection to a socket comes so far. */
async function comesTo(sign: 'connect' | 'data', path: string): Promise<boolean> {
  if (path === '') return false;
  const { createConnection } = await import('node:net');
  return new Promise<boolean>((done) => {
    const socket = createConnection(path);
    const end = (isThere: boolean) => {
      socket.destroy();
      done(isThere);
    };
    socket.once(sign, () => end(true));
    socket.once('error', () => end(false));
    socket.setTimeout(ANSWER_MS, () => end(false));
  });
}

/** Whether a server listens on a socket. */
const isListening = (path: string) => comesTo('connect', path);
/** Whether a server answers at a socket: one that is suspended, or too busy, does not. */
export const isAnswering = (path: string) => comesTo('data', path);

/** The file name of a server's socket, as native/client builds it. */
const SOCKET = /^warm-[0-9a-f]+\.sock$/;

/** The paths of the sockets at which servers of this user listen. */
export async function listeningServers(): Promise<readonly string[]> {
  const directory = stateDirectory();
  const found = orElse(() => readdirSync(directory), [])
    .filter((name) => SOCKET.test(name))
    .map((name) => join(directory, name));
  const isThere = await Promise.all(found.map(isListening));
  return found.filter((_, index) => isThere[index]);
}

/** Bytes of the path of a socket that are left for the state directory (unix(7)). */
const LONGEST_STATE = 107 - '/sandbox-run/warm-0123456789abcdef.sock'.length;

/** The path of the socket for this caller would be too long, or has no beginning. */
export const noPlaceForServer = () =>
  new SandboxError(
    'service.unusable',
    `the supervisor of services has no place for its socket: set HOME, or XDG_STATE_HOME to an absolute path of at most ${LONGEST_STATE} bytes`,
  );

/** Milliseconds in which a server must listen after its start. */
const START_MS = 20_000;

/**
 * Starts a server if there is none, and waits until it listens.
 * @throws {SandboxError} `service.unusable` if it does not listen in time; `state.unusable`, `state.untrusted`.
 */
export async function ensureServer(address: Pick<ServerAddress, 'path' | 'isThere'>): Promise<void> {
  const directory = ensureStateDirectory(dirname(address.path));
  // It could not say why it does not start.
  if (!orElse(() => accessSync(directory, constants.W_OK) === undefined, false))
    throw new SandboxError(
      'state.unusable',
      `the state directory ${directory} cannot be written; make it writable or set XDG_STATE_HOME`,
    );
  await startServer(address);
  for (const end = performance.now() + START_MS; performance.now() < end; ) {
    if (await isListening(address.path)) return;
    await new Promise((done) => setTimeout(done, 20));
  }
  throw new SandboxError(
    'service.unusable',
    `the supervisor of services did not start within ${START_MS / 1000} s: see sandbox-run doctor`,
  );
}

/** Milliseconds for which an ended session is remembered: late hooks of it may come, and a server for it may still be starting. */
const REMEMBERED_MS = 600_000;

/**
 * The file that lists ended sessions. A server that is starting or suspended reads it later, and no server is started for a
 * session that it names.
 */
const endsFile = (path: string) =>
  join(dirname(path), `ended-${basename(path, '.sock').replace(/^warm-/, '')}`);

/** A session that has ended. */
interface EndedSession {
  readonly session: string;
  /** The agent keeps running with another session, and so do its background commands. */
  readonly agentGoesOn: boolean;
  /** When the end was noted: milliseconds since 1970. */
  readonly at: number;
}

/** Writes down that a session has ended. */
export function noteEnd(path: string, { session, agentGoesOn }: Omit<EndedSession, 'at'>): void {
  forgetEnds(path, []);
  // A failure needs no message: where this file cannot be written, no server can listen either.
  orElse(
    () => appendFileSync(endsFile(path), endLine({ session, agentGoesOn, at: Date.now() }), { mode: 0o600 }),
    undefined,
  );
}

/** The sessions that have ended within the last ten minutes. */
export function notedEnds(path: string): readonly EndedSession[] {
  const text = orElse(() => readFileSync(endsFile(path), 'utf8'), '');
  return text
    .split('\n')
    .map(parsedJson)
    .filter(isEndedSession)
    .filter(({ at }) => Date.now() - at <= REMEMBERED_MS);
}

const isEndedSession = (value: unknown): value is EndedSession =>
  isObject(value) && typeof value.session === 'string' && typeof value.at === 'number';

/** Removes the ends of `sessions`, which were begun again, and old ones. */
export function forgetEnds(path: string, sessions: readonly string[]): void {
  const text = orElse(() => readFileSync(endsFile(path), 'utf8'), '');
  if (text === '') return;
  const left = notedEnds(path).filter(({ session }) => !sessions.includes(session));
  const kept = left.map(endLine).join('');
  if (kept === text) return;
  if (kept === '') rmSync(endsFile(path), { force: true });
  else orElse(() => writeFileSync(endsFile(path), kept, { mode: 0o600 }), undefined);
}

const endLine = (ended: EndedSession) => `${JSON.stringify(ended)}\n`;
