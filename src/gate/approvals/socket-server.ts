import { createServer, type Server, type Socket } from 'node:net';
import { z } from 'zod';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { APPROVAL_SCOPES } from '../../model/words.ts';
import { peerOf } from '../peer.ts';
import { createEntrance } from '../server/connection/entrance.ts';
import type { ApprovalStore } from '../state/state.ts';
import { answerRequest, type PersonalAnswer } from './answer-request.ts';
import type { ApprovalServer } from './approval-server.ts';
import { isMoreConfined } from './peer-confinement.ts';
import { requestAsJson } from './request-json.ts';
import { listenAt } from './socket-path.ts';
import { watchPending } from './watch-pending.ts';

/** What a socket server works with. */
export interface ApprovalSocketOptions {
  readonly store: ApprovalStore;
  readonly path: string;
  /** Who connected a Unix socket, by its descriptor: see `NativeAddon.peerCredentials`. */
  readonly peerCredentials: (fd: number) => { readonly pid: number; readonly uid: number };
}

/** No message is longer; what is longer is no message. */
const LONGEST_MESSAGE = 64 * 1024;
/** Admitted: that have sent a message. */
const CONNECTIONS = { admitted: 64, waiting: 64 };
/** How long somebody has to read why the connection ends. */
const LINGER_MS = 1_000;

const messageSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('list') }).describe('asks for the requests that wait'),
  z.strictObject({ type: z.literal('watch') }).describe('asks to be told of requests as they come and go'),
  z
    .strictObject({
      type: z.literal('answer'),
      id: z.string().max(100).describe('of the request'),
      approved: z.boolean().describe('false: it is denied'),
      scope: z.enum(APPROVAL_SCOPES).optional().describe('how long a yes is good for; once, unless given'),
    })
    .describe('answers a request'),
]);
type Message = z.infer<typeof messageSchema>;

/**
 * Serves programs of this user: JSON objects, one per line. `{"type": "list"}` gives `{"type": "list", "requests"}`;
 * `{"type": "watch"}` gives `{"type": "pending", "request"}` and `{"type": "settled", "id", "state"}` from then on;
 * `{"type": "answer", "id", "approved", "scope"?}` gives `{"type": "answered", "id", "approved"}` or
 * `{"type": "error", "code", "message"}`. After anything else there is an error, and the connection ends.
 * @throws {SandboxError} `gate.unusable`.
 */
export async function serveApprovalSocket({
  store,
  path,
  peerCredentials,
}: ApprovalSocketOptions): Promise<ApprovalServer> {
  const over = new AbortController();
  const sockets = new Set<Socket>();
  const entrance = createEntrance<Socket>(CONNECTIONS, (socket) => socket.destroy());
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => {
      sockets.delete(socket);
      entrance.leave(socket);
    });
    socket.on('error', () => socket.destroy());
    const peer = peerOf(socket, peerCredentials);
    if (peer === undefined || peer.uid !== process.geteuid?.() || isMoreConfined(peer.pid)) {
      socket.destroy();
      return;
    }
    entrance.enter(socket);
    const by = `socket (process ${peer.pid})`;
    converse({ socket, store, by, over: over.signal, admit: () => entrance.admit(socket) });
  });
  await listenAt(server, path);
  return {
    address: path,
    async close() {
      over.abort();
      for (const socket of sockets) socket.destroy();
      await closed(server);
    },
  };
}

/** Ends when no connection is left; the socket's file is gone then. */
function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

interface ConversationParts {
  readonly socket: Socket;
  readonly store: ApprovalStore;
  /** Who answers, for whoever asked. */
  readonly by: string;
  readonly over: AbortSignal;
  /** False: too many others are served. */
  readonly admit: () => boolean;
}

function converse({ socket, store, by, over, admit }: ConversationParts): void {
  const ended = new AbortController();
  const signal = AbortSignal.any([over, ended.signal]);
  socket.on('close', () => ended.abort());
  const send = (value: object) => {
    if (socket.writable) socket.write(`${JSON.stringify(value)}\n`);
  };
  const fail = (code: string, message: string) => {
    if (socket.writable) socket.end(`${JSON.stringify({ type: 'error', code, message })}\n`);
    // What follows is not heard, and not for long.
    socket.removeAllListeners('data');
    socket.resume();
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
    ended.abort();
  };
  let watching = false;

  async function serve(message: Message): Promise<void> {
    switch (message.type) {
      case 'list':
        send({ type: 'list', requests: (await store.list('pending')).map(requestAsJson) });
        return;
      case 'watch':
        if (watching) return;
        watching = true;
        void watchPending(
          store,
          ({ come, gone }) => {
            for (const request of come) send({ type: 'pending', request: requestAsJson(request) });
            for (const { id, state } of gone) send({ type: 'settled', id, state });
          },
          { signal },
        ).catch((error: unknown) => fail('state.unusable', messageOf(error)));
        return;
      case 'answer':
        await answerRequest(store, message.id, personalAnswer(message), by);
        send({ type: 'answered', id: message.id, approved: message.approved });
        return;
    }
  }

  // One after the other: answers come in the order of the messages.
  let last = Promise.resolve();
  readLines(socket, {
    onLine(line) {
      last = last.then(async () => {
        if (signal.aborted) return;
        const message = parse(line);
        if (message === undefined) return fail('usage.invalid', 'that is not a message');
        if (!admit())
          return fail('protocol.busy', `at most ${CONNECTIONS.admitted} programs are served at once`);
        await serve(message).catch((error: unknown) =>
          error instanceof SandboxError
            ? send({ type: 'error', code: error.code, message: error.message })
            : fail('state.unusable', messageOf(error)),
        );
      });
    },
    onTooLong: () => fail('usage.invalid', `a message has at most ${LONGEST_MESSAGE} bytes`),
  });
}

function personalAnswer({ approved, scope = 'once' }: Extract<Message, { type: 'answer' }>): PersonalAnswer {
  return approved ? { approved, scope } : { approved };
}

interface LineEvents {
  readonly onLine: (line: string) => void;
  readonly onTooLong: () => void;
}

function readLines(socket: Socket, { onLine, onTooLong }: LineEvents): void {
  let rest = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      if (end > LONGEST_MESSAGE) return onTooLong();
      onLine(rest.toString('utf8', 0, end));
      rest = rest.subarray(end + 1);
    }
    if (rest.length > LONGEST_MESSAGE) onTooLong();
  });
}

function parse(line: string): Message | undefined {
  try {
    return messageSchema.parse(JSON.parse(line));
  } catch {
    return undefined;
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
