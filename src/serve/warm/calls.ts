import { closeSync, fstatSync, readSync } from 'node:fs';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { resolve } from 'node:path';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { deferred } from '../../base/deferred.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import { type Listener, listenOn } from '../core/listener.ts';
import { descriptorOf, isOurs, type Peer } from '../core/peer.ts';
import type { Caller } from './caller.ts';
import { inheritedDifference, isWhereThisProcessIs, peerProcess, processesAbove } from './peer-process.ts';

/** A call of this program that a client wants to hand over. */
export interface Call {
  readonly args: readonly string[];
  /** Whose call it is; what is done for it is done on behalf of that one. */
  readonly caller: Caller;
  /** The client has a controlling terminal, on which its user could be asked. */
  readonly hasTerminal: boolean;
  /** As `processesAbove` the client, which lives until it is answered. */
  readonly above: () => readonly string[];
}

/** A call that is taken; given up when it is disposed of, whether it was done or not. */
export interface Work extends Disposable {
  /** Does it, and says with which status it ended. */
  do(): Promise<number>;
}

/** How a server of calls listens. */
interface CallsOptions {
  readonly path: string;
  readonly addon: NativeAddon;
  /** Milliseconds without any call after which `ended` settles. */
  readonly unusedTimeout: number;
  /** Does work for a caller, with everything that it starts. */
  readonly onBehalfOf: <T>(caller: Caller, work: () => T) => T;
  /** What is to be done for a call; `undefined`: the client does it itself, as nothing has begun. */
  readonly take: (call: Call) => Promise<Work | undefined>;
  /** Calls that start nothing for their caller: it may be unlike the server in what commands would inherit. */
  readonly startsNothing: (args: readonly string[]) => boolean;
  /** Whether the server is of use without calls. */
  readonly isNeeded: () => boolean;
}

/** The other end of native/client/main.cc, which has the protocol. */
const SAID = { here: 0x48, cold: 0x43, taken: 0x41, output: 0x4f, error: 0x45, exit: 0x58 } as const;
/** Its request is there when it connects, or in no time. */
const PATIENCE_MS = 1_000;
/** Turns of the event loop in which it is looked for before a timer, which takes longer, comes in between. */
const TURNS_BEFORE_PAUSE = 50;
/** More than the kernel takes for arguments and environment of a program. */
const MOST_REQUEST_BYTES = 16 * 1024 * 1024;
/** What was to be said to a client that reads nothing ends it when it is more than this. */
const MOST_UNREAD_BYTES = 64 * 1024 * 1024;
/** The replacement character. Text with it may come from invalid UTF-8, of which only the client has the exact bytes (workspace/host/exact-text.ts). */
const LOST = '\uFFFD';

/** Listens for calls of this user's clients. @throws {SandboxError} `gate.unusable`. */
export function listenForCalls(options: CallsOptions): Promise<Listener> {
  const { path, addon, unusedTimeout, isNeeded } = options;
  const claim = { path, name: 'the warm server', sharedDirectory: false, admits: isOurs, pauses: true };
  return listenOn({ ...claim, addon, unusedTimeout, isNeeded }, (socket, peer) => {
    const over = deferred<void>();
    void serveCall(socket, peer, options)
      .catch(() => {})
      .finally(() => {
        socket.end();
        over.resolve();
      });
    return {
      ended: over.promise,
      end: () => {
        socket.destroy();
        return over.promise;
      },
    };
  });
}

async function serveCall(
  socket: Socket,
  peer: Peer,
  { addon, onBehalfOf, take, startsNothing }: CallsOptions,
): Promise<void> {
  socket.write(Uint8Array.of(SAID.here));
  const [request, ...stdio] = await descriptorsOf(socket, addon);
  try {
    const asked = request === undefined ? undefined : readRequest(request);
    const process = peerProcess(peer.pid);
    const conversation = new Conversation(socket);
    const isServed =
      process !== undefined &&
      (inheritedDifference(peer.pid, process, addon) === undefined ||
        (startsNothing(asked?.args ?? []) && isWhereThisProcessIs(process)));
    if (asked === undefined || !isServed) {
      await conversation.say(SAID.cold);
      return;
    }
    const [input = -1, output = -1, error = -1] = stdio;
    const caller: Caller = {
      env: asked.env,
      cwd: () => asked.cwd,
      stdio: [input, output, error],
      write: (fd, bytes) => conversation.frame(fd === 1 ? SAID.output : SAID.error, bytes),
      onSignals: (signals, handle) => conversation.onSignals(signals, handle),
      // The client stops its own process.
      stop: () => {},
      unread: () => socket.writableLength,
      gone: conversation.gone,
    };
    const { hasTerminal } = process;
    const above = () => processesAbove(peer.pid);
    const call: Call = { args: asked.args, caller, hasTerminal, above };
    await onBehalfOf(caller, async () => {
      using work = await take(call);
      const isSaid = await conversation.say(work === undefined ? SAID.cold : SAID.taken);
      // A client that has not got the word does the call itself.
      if (work === undefined || !isSaid) return;
      conversation.frame(SAID.exit, Uint8Array.of(await work.do()));
    });
  } finally {
    for (const fd of [request, ...stdio]) if (fd !== undefined) closeSync(fd);
  }
}

async function descriptorsOf(socket: Socket, addon: NativeAddon): Promise<readonly number[]> {
  const end = performance.now() + PATIENCE_MS;
  let soon = TURNS_BEFORE_PAUSE;
  while (performance.now() < end) {
    const fd = descriptorOf(socket);
    const found = fd === undefined ? null : addon.receiveCall(fd);
    if (found !== undefined) return found ?? [];
    // The client sends right after it connects.
    await (soon-- > 0 ? nextTurn() : pause(1));
  }
  return [];
}

interface Request {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

function readRequest(fd: number): Request | undefined {
  const { size } = fstatSync(fd);
  if (size > MOST_REQUEST_BYTES) return undefined;
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size; ) {
    const count = readSync(fd, bytes, at, size - at, at);
    if (count === 0) return undefined;
    at += count;
  }
  const text = bytes.toString();
  if (text.includes(LOST) || !text.endsWith('\0')) return undefined;
  const [cwd = '', number = '', ...words] = text.slice(0, -1).split('\0');
  const count = Number(number);
  const env: Record<string, string> = Object.create(null);
  for (const entry of words.slice(count)) {
    const at = entry.indexOf('=');
    // Of two with one name the first counts, as for getenv(3).
    if (at > 0) env[entry.slice(0, at)] ??= entry.slice(at + 1);
  }
  const args = words.slice(0, count);
  if ([...args, ...Object.values(env)].some((word) => isOfItsProcess(word, cwd))) return undefined;
  return { args, cwd, env };
}

/** Names what is another thing in each process, such as its descriptors: here it would be ours (`--policy <(…)`). */
function isOfItsProcess(word: string, cwd: string): boolean {
  const named = word.startsWith('-') ? word.slice(word.indexOf('=') + 1) : word;
  return named.includes('/') && OF_A_PROCESS.test(resolve(cwd, named));
}

const OF_A_PROCESS = /^\/(?:dev\/(?:fd|std(?:in|out|err))|proc\/(?:self|thread-self))(?:\/|$)/;

/** What is said to a client, and what it says after its call. */
class Conversation {
  readonly #socket: Socket;
  readonly #handlers = new Set<{
    readonly of: readonly NodeJS.Signals[];
    handle(signal: NodeJS.Signals): void;
  }>();
  readonly #gone = new AbortController();
  readonly gone: AbortSignal = this.#gone.signal;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (bytes: Buffer) => {
      for (const byte of bytes) this.#hear(byte);
    });
    const leave = () => this.#gone.abort();
    socket.on('end', leave);
    socket.on('close', leave);
    socket.resume();
  }

  /** Whether the kernel has taken it for the client, who can read it from then on whatever becomes of us. */
  say(byte: number): Promise<boolean> {
    return new Promise((resolve) => {
      this.#socket.write(Uint8Array.of(byte), (error) => resolve(error === undefined || error === null));
    });
  }

  /** False: nobody reads it. */
  frame(type: number, bytes: Uint8Array): boolean {
    if (!this.#socket.writable || this.#gone.signal.aborted) return false;
    if (this.#socket.writableLength > MOST_UNREAD_BYTES) {
      this.#socket.destroy();
      return false;
    }
    // What the caller does with its bytes from now on is its own.
    const frame = Buffer.alloc(5 + bytes.length);
    frame.writeUInt8(type, 0);
    frame.writeUInt32LE(bytes.length, 1);
    frame.set(bytes, 5);
    this.#hold();
    this.#socket.write(frame);
    // With it the call is over, and the server may end with it.
    if (type === SAID.exit) this.#socket.uncork();
    return true;
  }

  /** What is said in the same turn is one write, so that the client is woken once. */
  #hold(): void {
    if (this.#socket.writableCorked > 0) return;
    this.#socket.cork();
    process.nextTick(() => this.#socket.uncork());
  }

  onSignals(signals: readonly NodeJS.Signals[], handle: (signal: NodeJS.Signals) => void): Disposable {
    const handler = { of: signals, handle };
    this.#handlers.add(handler);
    return { [Symbol.dispose]: () => void this.#handlers.delete(handler) };
  }

  #hear(byte: number): void {
    const found = Object.entries(constants.signals).find(([, number]) => number === byte);
    if (found === undefined) return;
    const signal = found[0] as NodeJS.Signals;
    for (const { of, handle } of [...this.#handlers]) if (of.includes(signal)) handle(signal);
  }
}
