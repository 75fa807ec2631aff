import { createServer, type Socket } from 'node:net';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { ApprovalAnswer, Approver } from '../../model/approval.ts';
import type { ShellInfo } from '../../model/session.ts';
import { isMoreConfined } from '../approvals/peer-confinement.ts';
import { listenAt } from '../approvals/socket-path.ts';
import { peerOf } from '../peer.ts';
import { createLineReader } from '../server/connection/line-reader.ts';
import {
  answerOf,
  type ClientMessage,
  MAX_CLIENT_MESSAGE,
  readClientMessage,
  refusedCommand,
  type SentResult,
  type ServerMessage,
} from './messages.ts';

/** The session that is served. */
export interface ServedShell {
  run(
    command: string,
    options: {
      readonly timeout?: number;
      readonly approved?: boolean;
      readonly taints?: readonly ('corruption' | 'secret')[];
      readonly signal: AbortSignal;
      readonly onOutput?: (chunk: {
        readonly stream: 'stdout' | 'stderr';
        readonly bytes: Uint8Array;
      }) => Promise<void>;
    },
  ): Promise<SentResult>;
  readonly cwd: string;
}

/** What is served, and where. */
export interface ShellServerOptions {
  readonly path: string;
  readonly peerCredentials: (fd: number) => { readonly pid: number; readonly uid: number };
  readonly about: Pick<ShellInfo, 'id' | 'workspace'>;
  /** One line about the confinement, for clients that show results. */
  readonly confinement: string;
  /** What a model is told of a result; default: nothing. */
  readonly messageFor?: (result: SentResult, command: string) => string | undefined;
  /** Milliseconds without a command after which `ended` settles; 0: never. */
  readonly unusedTimeout: number;
  /** Milliseconds that a connection without a command may say nothing; 30 s if not set. */
  readonly mostSilence?: number;
}

/** A session that clients can use. */
export interface ShellServer {
  /** Asks the user of the client whose command runs. */
  readonly approver: Approver;
  /** Tells that client that its command waits in the queue. */
  onQueued(id: string): void;
  /** Begins to answer. */
  serve(shell: ServedShell): void;
  /** Settles when a client wants the end, or nobody has used it for long. */
  readonly ended: Promise<void>;
  /** Closes the connections and takes the socket away. */
  close(): Promise<void>;
}

const MOST_COMMANDS = 64;
/** More, so that there is always room to ask for the end. */
const MOST_CONNECTIONS = MOST_COMMANDS + 8;
const MOST_SILENCE_MS = 30_000;
/** How long somebody has to read why the connection ends. */
const LINGER_MS = 1_000;

/**
 * Listens for clients of this user: JSON objects, one per line, as in messages.ts. Whoever is more confined than this
 * process, as commands of the session are, is not heard.
 * @throws {SandboxError} `gate.unusable`.
 */
export async function listenForShell(options: ShellServerOptions): Promise<ShellServer> {
  const { path, peerCredentials, about, unusedTimeout, mostSilence = MOST_SILENCE_MS } = options;
  const startedAt = Date.now();
  let lastUsedAt = startedAt;
  let shell: ServedShell | undefined;
  /** Whose command runs. */
  let current: Client | undefined;
  let running = 0;
  let end: () => void = () => {};
  const ended = new Promise<void>((done) => {
    end = done;
  });
  let idle: NodeJS.Timeout | undefined;
  const used = () => {
    lastUsedAt = Date.now();
    clearTimeout(idle);
    if (unusedTimeout > 0 && running === 0) idle = setTimeout(end, unusedTimeout);
  };

  const clients = new Set<Client>();
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    const peer = peerOf(socket, peerCredentials);
    if (peer === undefined || peer.uid !== process.geteuid?.() || isMoreConfined(peer.pid)) {
      socket.destroy();
      return;
    }
    const client = converse(socket, mostSilence, (message) => answer(client, message));
    clients.add(client);
    socket.once('close', () => clients.delete(client));
    // Of those that want nothing the oldest makes room; there is one, because fewer can have a command.
    if (clients.size > MOST_CONNECTIONS) {
      const [oldest] = [...clients].filter(({ runs }) => !runs);
      oldest?.drop();
      if (oldest !== undefined) clients.delete(oldest);
    }
  });
  await listenAt(server, path);
  used();

  async function answer(client: Client, message: ClientMessage): Promise<void> {
    switch (message.type) {
      case 'info':
        client.send({
          type: 'info',
          info: {
            ...about,
            pid: process.pid,
            cwd: shell?.cwd ?? about.workspace,
            startedAt,
            lastUsedAt,
            running: running > 0,
            unusedTimeout,
          },
        });
        return;
      case 'run':
        await run(client, message);
        return;
      case 'stop':
        client.send({ type: 'stopped' });
        end();
        return;
      case 'interrupt':
        client.interrupt();
        return;
      case 'answer':
        client.answered(message.question, answerOf(message));
    }
  }

  async function run(client: Client, message: Extract<ClientMessage, { type: 'run' }>): Promise<void> {
    if (shell === undefined || client.runs)
      return client.fail('usage.invalid', 'one command at a time on a connection');
    const { command, timeout, approved, taints, stream, terminal } = message;
    const refused = refusedCommand(command);
    if (refused !== undefined) return client.fail('usage.invalid', refused);
    if (running >= MOST_COMMANDS)
      return client.fail('usage.invalid', `${MOST_COMMANDS} commands wait for this session already`);
    const aborted = client.begin(terminal);
    running += 1;
    used();
    try {
      const result = await turn(async (served) => {
        current = client;
        return served.run(command, {
          signal: aborted,
          ...(timeout === undefined ? {} : { timeout }),
          ...(approved === undefined ? {} : { approved }),
          ...(taints === undefined ? {} : { taints }),
          ...(stream ? { onOutput: ({ stream: name, bytes }) => client.output(name, bytes) } : {}),
        });
      }, shell);
      client.send({
        type: 'result',
        result: {
          ...result,
          ...(stream ? { stdout: '', stderr: '' } : {}),
          messageForModel: options.messageFor?.(result, command),
        },
        confinement: options.confinement,
      });
    } catch (error) {
      if (error instanceof SandboxError)
        client.send({ type: 'error', code: error.code, message: error.message });
      else client.fail('launch.failed', error instanceof Error ? error.message : String(error));
      if (error instanceof SandboxError && error.code === 'session.closed') end();
    } finally {
      client.end();
      running -= 1;
      used();
    }
  }

  // One after the other here, too, so that a question goes to the client whose command it is about.
  let last: Promise<unknown> = Promise.resolve();
  function turn<T>(work: (shell: ServedShell) => Promise<T>, served: ServedShell): Promise<T> {
    const mine = last.then(() => work(served));
    last = mine
      .catch(() => {})
      .then(() => {
        current = undefined;
      });
    return mine;
  }

  return {
    approver: {
      ask: (request, { timeoutMs, signal }) =>
        current?.ask(request, timeoutMs, signal) ??
        Promise.resolve({ approved: false, reason: 'nobody', by: 'terminal' } as const),
    },
    onQueued: (id) => current?.send({ type: 'queued', id }),
    serve: (served) => {
      shell = served;
    },
    ended,
    close: async () => {
      clearTimeout(idle);
      const closed = new Promise<void>((done) => {
        server.close(() => done());
      });
      for (const client of clients) client.close();
      await closed;
    },
  };
}

/** One connection. */
interface Client {
  readonly runs: boolean;
  send(message: ServerMessage): void;
  fail(code: string, message: string): void;
  /** A command of it runs from now on; aborted by an interrupt and by the end of the connection. */
  begin(terminal: boolean): AbortSignal;
  end(): void;
  interrupt(): void;
  output(stream: 'stdout' | 'stderr', bytes: Uint8Array): Promise<void>;
  /** `undefined`: it has no terminal. */
  ask(
    request: Parameters<Approver['ask']>[0],
    timeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<ApprovalAnswer> | undefined;
  answered(question: number, answer: ApprovalAnswer): void;
  close(): void;
  /** Closes it at once. */
  drop(): void;
}

function converse(
  socket: Socket,
  mostSilence: number,
  onMessage: (message: ClientMessage) => Promise<void>,
): Client {
  const reader = createLineReader(MAX_CLIENT_MESSAGE);
  const questions = new Map<number, (answer: ApprovalAnswer) => void>();
  let lastQuestion = 0;
  let command: AbortController | undefined;
  let hasTerminal = false;

  const client: Client = {
    get runs() {
      return command !== undefined;
    },
    send: (message) => {
      if (socket.writable) socket.write(`${JSON.stringify(message)}\n`);
    },
    fail: (code, message) => {
      if (socket.writable) socket.end(`${JSON.stringify({ type: 'error', code, message })}\n`);
      // What follows is not heard, and not for long.
      socket.removeAllListeners('data');
      socket.resume();
      setTimeout(() => socket.destroy(), LINGER_MS).unref();
    },
    begin: (terminal) => {
      hasTerminal = terminal;
      command = new AbortController();
      return command.signal;
    },
    end: () => {
      command = undefined;
      hasTerminal = false;
    },
    interrupt: () => command?.abort(),
    output: async (stream, bytes) => {
      if (!socket.writable) return;
      const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
      if (socket.write(`${JSON.stringify({ type: 'output', stream, data })}\n`)) return;
      await new Promise<void>((done) => {
        const go = () => {
          socket.off('drain', go);
          socket.off('close', go);
          done();
        };
        socket.on('drain', go);
        socket.on('close', go);
      });
    },
    ask: (request, timeout, signal) => {
      if (!hasTerminal) return undefined;
      lastQuestion += 1;
      const question = lastQuestion;
      return new Promise<ApprovalAnswer>((done) => {
        const settle = (answer: ApprovalAnswer) => {
          clearTimeout(late);
          questions.delete(question);
          done(answer);
        };
        const no = (reason: 'expired' | 'nobody') => settle({ approved: false, reason, by: 'terminal' });
        const late = setTimeout(() => no('expired'), timeout);
        signal?.addEventListener('abort', () => no('nobody'), { once: true });
        questions.set(question, settle);
        client.send({ type: 'ask', question, request, timeout });
      });
    },
    answered: (question, answer) => questions.get(question)?.(answer),
    close: () => socket.destroySoon(),
    drop: () => socket.destroy(),
  };
  // What is said and what is written is no silence; a command may take its time.
  socket.setTimeout(mostSilence, () => {
    if (command === undefined) socket.destroy();
  });
  socket.once('close', () => {
    command?.abort();
    for (const settle of questions.values()) settle({ approved: false, reason: 'nobody', by: 'terminal' });
  });
  socket.on('data', (chunk: Buffer) => {
    reader.push(chunk);
    for (let line = reader.take(); line !== undefined; line = reader.take()) {
      const message = line === 'too-long' ? undefined : readClientMessage(line);
      if (message === undefined) {
        command?.abort();
        const why = line === 'too-long' ? `a message has at most ${MAX_CLIENT_MESSAGE} bytes` : undefined;
        return client.fail('usage.invalid', why ?? 'that is not a message');
      }
      void onMessage(message);
    }
  });
  return client;
}
