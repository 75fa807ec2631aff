import {
  appendFileSync,
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
  /** This program had the client ask just that one: asking it again is of no use. */
  readonly wasAsked: boolean;
}

/** Says to native/client which server is to take a call, or `?`: that of calls like it. */
const ASKED_ADDRESS = 'SANDBOX_RUN_WARM_AT';

/** Where a server did not take this call; `undefined`: nowhere. No command and no server is to see it. */
export function takeServerAddress(): ServerAddress | undefined {
  const said = process.env[SERVER_ADDRESS];
  delete process.env[SERVER_ADDRESS];
  if (said === undefined) return undefined;
  const wasAsked = said.startsWith('?');
  const isThere = wasAsked || said.startsWith('!');
  return { path: said.slice(isThere ? 1 : 0), isThere, wasAsked };
}

/** How a call is handed to one server. */
interface HandOver {
  /** Where it listens; `undefined`: where a server for calls like this one would. */
  readonly path: string | undefined;
  /** Where its output goes: to this process’s own, or into the result. */
  readonly output: 'own' | 'captured';
}

/**
 * Has a server do a call of this program, and waits for its end. What this process was told by a signal is told to it. If the
 * server does not take it, the call is made as a process of its own, which finds `wasAsked`.
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
      'sandbox-run-client is missing, which hands calls over to a supervisor; build or install the addon',
    );
  const { spawn } = await import('node:child_process');
  const child = spawn(client, [...program, ...words], {
    stdio: ['inherit', output === 'own' ? 'inherit' : 'pipe', 'inherit'],
    env: { ...process.env, [ASKED_ADDRESS]: path ?? '?' },
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
export async function startServer(
  { path, isThere }: Pick<ServerAddress, 'path' | 'isThere'>,
  rehearsed?: Rehearsed,
): Promise<void> {
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

/** Whether a server listens on a socket. */
async function isListening(path: string): Promise<boolean> {
  const { createConnection } = await import('node:net');
  return new Promise<boolean>((done) => {
    const socket = createConnection(path);
    socket.once('connect', () => {
      socket.destroy();
      done(true);
    });
    socket.once('error', () => done(false));
  });
}

/** The name of a server’s socket, as native/client gives it. */
const SOCKET = /^warm-[0-9a-f]+\.sock$/;

/** Where the servers of this user listen. */
export async function listeningServers(): Promise<readonly string[]> {
  const directory = stateDirectory();
  const found = orElse(() => readdirSync(directory), [])
    .filter((name) => SOCKET.test(name))
    .map((name) => join(directory, name));
  const isThere = await Promise.all(found.map(isListening));
  return found.filter((_, index) => isThere[index]);
}

/** A server that is started makes itself ready for so long at most. */
const START_MS = 20_000;

/**
 * Starts one if there is none, and waits until it listens.
 * @throws {SandboxError} `service.unusable` if it does not.
 */
export async function startedServer(address: Pick<ServerAddress, 'path' | 'isThere'>): Promise<void> {
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

/** A hook may come so long after the end of its session, and a server may be on its way. */
const REMEMBERED_MS = 600_000;

/** Where it is noted which sessions have ended, for servers that are on their way, stopped, or would be started for them. */
const endsOf = (path: string) =>
  join(dirname(path), `ended-${basename(path, '.sock').replace(/^warm-/, '')}`);

/** A session that has ended. */
interface EndedSession {
  readonly session: string;
  /** Its agent runs on, and what it runs in the background. */
  readonly agentGoesOn: boolean;
  /** When that was noted: milliseconds since 1970. */
  readonly at: number;
}

/** Notes that a session has ended. */
export function noteEnd(path: string, { session, agentGoesOn }: Omit<EndedSession, 'at'>): void {
  forgetEnds(path, []);
  // Where that cannot be, no server listens, either.
  orElse(
    () => appendFileSync(endsOf(path), endLine({ session, agentGoesOn, at: Date.now() }), { mode: 0o600 }),
    undefined,
  );
}

/** Sessions that have ended not long ago. */
export function notedEnds(path: string): readonly EndedSession[] {
  const text = orElse(() => readFileSync(endsOf(path), 'utf8'), '');
  return text
    .split('\n')
    .map(parsedJson)
    .filter(isEndedSession)
    .filter(({ at }) => Date.now() - at <= REMEMBERED_MS);
}

const isEndedSession = (value: unknown): value is EndedSession =>
  isObject(value) && typeof value.session === 'string' && typeof value.at === 'number';

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

const endLine = (ended: EndedSession) => `${JSON.stringify(ended)}\n`;
