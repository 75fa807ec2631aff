import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { z } from 'zod';
import { SandboxError } from '../../../base/errors/sandbox-error.ts';
import { visibleText } from '../../../base/visible-text.ts';
import { APPROVAL_SCOPES } from '../../../base/words.ts';
import { answerRequest, scopeSentence, scopesOf, viewOf, watchPending } from '../../../gate/index.ts';
import type { ApprovalStore, StoredApproval } from '../../../model/index.ts';
import type { Surroundings } from '../../../workspace/index.ts';
import { Entrance } from '../../core/entrance.ts';
import { text as STYLE } from './browser/page.css?text';
import { text as FRAME } from './browser/page.html?text';
import { text as SCRIPT } from './browser/page.ts?text';
import { ChangesForPage, changeRequestSchema } from './changes-for-page.ts';
import {
  CHANGE_REQUESTS,
  type PendingRequest,
  type PendingRequests,
  TOKEN_HEADER,
  type WaitingChanges,
} from './page-messages.ts';

/** A running server. */
export interface ApprovalServer {
  /** Where it can be reached: a path or an address. */
  readonly address: string;
  /** Ends it and every connection. */
  close(): Promise<void>;
}

/** What a web server works with. */
interface ApprovalWebOptions {
  readonly store: ApprovalStore;
  /** Where the call comes from that serves it. */
  readonly around: Surroundings;
  /** 0: one that is free. */
  readonly port: number;
  readonly patience?: RequestPatience;
}

const ADDRESS = '127.0.0.1';
/**
 * Admitted: that showed the token. Enough of the others that, however fast somebody makes new ones, a browser has sent its
 * request before its turn comes to be given up.
 */
const CONNECTIONS = { admitted: 64, waiting: 512 };
/** A path may take four characters for each byte, and a backslash two in JSON. */
const LONGEST_BODY = 64 * 1024;
/** Milliseconds that a request may take. */
export interface RequestPatience {
  /** Its head, from when its connection is made. */
  readonly headers: number;
  readonly request: number;
  /** How often late ones are looked for. */
  readonly check: number;
}
const PATIENCE: RequestPatience = { headers: 5_000, request: 10_000, check: 1_000 };
/** So that the page notices soon that we are gone. */
const HEARTBEAT_MS = 5_000;

const answerSchema = z.discriminatedUnion('approved', [
  z.strictObject({
    id: z.string().max(100).describe('of the request'),
    approved: z.literal(true),
    scope: z.enum(APPROVAL_SCOPES).describe('how long it is good for'),
  }),
  z.strictObject({ id: z.string().max(100).describe('of the request'), approved: z.literal(false) }),
]);

/**
 * Serves the page that lists what waits, to this machine only. Its address ends in a token behind `#`, which browsers
 * send to nobody; the page takes it out of the address and sends it in a header. There is no cookie: those are not
 * kept apart by port, and would go to every other server on this machine, one of a sandboxed command included.
 * @throws {SandboxError} `gate.unusable`.
 */
export async function serveApprovalPage({
  store,
  around,
  port: wanted,
  patience = PATIENCE,
}: ApprovalWebOptions): Promise<ApprovalServer> {
  const token = randomBytes(32).toString('base64url');
  const over = new AbortController();
  const changes = new ChangesForPage(around);
  const entrance = new Entrance<Socket>(CONNECTIONS, (socket) => socket.destroy());
  let port = 0;

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    if (!isFromHere(request, port))
      return end(response, 403, 'This server is used under its own address only.');
    switch (request.url?.split('?')[0]) {
      case '/':
        if (request.method !== 'GET') return end(response, 403, 'The page is only to be read.');
        response.setHeader('Content-Security-Policy', PAGE_POLICY);
        response.setHeader('Content-Type', 'text/html; charset=utf-8');
        response.end(PAGE);
        return;
      case '/events':
        if (request.method !== 'GET' || !hasToken(request.headers[TOKEN_HEADER], token))
          return end(
            response,
            403,
            'The token is missing or wrong: open the address that the server printed.',
          );
        if (!entrance.admit(request.socket)) return end(response, 503, TOO_MANY);
        return sendEvents(response, { store, changes }, over.signal);
      case '/answer':
      case CHANGE_REQUESTS.diff:
      case CHANGE_REQUESTS.apply:
      case CHANGE_REQUESTS.discard:
        if (request.method !== 'POST' || !isFromOurPage(request, token))
          return end(response, 403, 'Only the page itself may answer.');
        if (!entrance.admit(request.socket)) return end(response, 503, TOO_MANY);
        return request.url === '/answer'
          ? answer(request, response, store)
          : answerAboutChanges(request, response, changes);
      default:
        return end(response, 404, 'There is nothing here.');
    }
  }

  const limits = {
    maxHeaderSize: 8 * 1024,
    headersTimeout: patience.headers,
    requestTimeout: patience.request,
    connectionsCheckingInterval: patience.check,
  };
  const server = createServer(limits, (request, response) => {
    response.on('error', () => response.destroy());
    respond(request, response).catch(() => {
      if (response.headersSent) response.destroy();
      else end(response, 500, 'That failed.');
    });
  });
  server.on('connection', (socket) => {
    entrance.enter(socket);
    socket.on('close', () => entrance.leave(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        new SandboxError('gate.unusable', `port ${wanted} of ${ADDRESS} cannot be used: ${error.message}`),
      ),
    );
    server.listen(wanted, ADDRESS, resolve);
  });
  const bound = server.address();
  port = typeof bound === 'object' && bound !== null ? bound.port : wanted;
  return {
    address: `http://${ADDRESS}:${port}/#${token}`,
    async close() {
      over.abort();
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

const TOO_MANY = 'Too many pages are open: close some.';

const HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Content-Type': 'text/plain; charset=utf-8',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
};

function end(response: ServerResponse, status: number, sentence: string): void {
  response.statusCode = status;
  response.setHeader('Connection', 'close');
  response.end(`${sentence}\n`);
}

/** Server-sent events: `pending` with all requests that wait and `changes` with all changes, whenever they are others. */
function sendEvents(
  response: ServerResponse,
  { store, changes }: { readonly store: ApprovalStore; readonly changes: ChangesForPage },
  over: AbortSignal,
): Promise<void> {
  const closed = new AbortController();
  response.on('close', () => closed.abort());
  response.setHeader('Content-Type', 'text/event-stream; charset=utf-8');
  response.flushHeaders();
  const heartbeat = setInterval(() => response.write(': here\n\n'), HEARTBEAT_MS);
  const signal = AbortSignal.any([over, closed.signal]);
  const tell = (event: string, data: PendingRequests | WaitingChanges) =>
    response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  const told = Promise.all([
    watchPending(
      store,
      ({ pending }) => void tell('pending', { now: Date.now(), requests: pending.map(requestForPage) }),
      { signal },
    ),
    changes.watch((sets) => void tell('changes', { sets }), signal),
  ]);
  return told
    .then(() => {})
    .finally(() => {
      // The other one has nobody to tell any more.
      closed.abort();
      clearInterval(heartbeat);
      response.end();
    });
}

function requestForPage({ id, expiresAt, request }: StoredApproval): PendingRequest {
  const view = viewOf(request);
  return {
    id,
    expiresAt,
    ...view,
    scopes: scopesOf(request).map((scope) => {
      const rule = scope === 'always' ? ofRule(id, request) : '';
      return { scope, meaning: `${scopeSentence(scope, view)}${rule}` };
    }),
  };
}

/** "Always" on the page writes no policy rule: anybody who knows the page's address can answer, which is too weak a proof for that. */
function ofRule(id: string, { connection, rule }: StoredApproval['request']): string {
  if (connection !== undefined) return '';
  const where = rule === undefined ? '' : `; on a terminal, sandbox-run approvals approve ${id} --rule does`;
  return ` It writes no rule${where}.`;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  store: ApprovalStore,
): Promise<void> {
  const wanted = answerSchema.safeParse(await readJson(request));
  if (!wanted.success) return end(response, 400, 'That is not an answer.');
  const { id, ...personal } = wanted.data;
  try {
    await answerRequest(store, id, personal, 'web page');
    end(response, 200, personal.approved ? `Approved: ${personal.scope}.` : 'Denied.');
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    end(response, error.code === 'state.unusable' ? 500 : 409, error.message);
  }
}

async function answerAboutChanges(
  request: IncomingMessage,
  response: ServerResponse,
  changes: ChangesForPage,
): Promise<void> {
  const what = (['diff', 'apply', 'discard'] as const).find((name) => CHANGE_REQUESTS[name] === request.url);
  const wanted = changeRequestSchema.safeParse(await readJson(request));
  if (what === undefined || !wanted.success) return end(response, 400, 'That is no request about changes.');
  try {
    end(response, 200, await changes.answer(what, wanted.data));
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    end(response, error.code === 'state.unusable' ? 500 : 409, visibleText(error.message));
  }
}

/** `undefined` for anything but JSON of a bearable length. */
async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) return undefined;
    length += chunk.length;
    if (length > LONGEST_BODY) return undefined;
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    return undefined;
  }
}

const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** Nothing runs and nothing is loaded but what the page brings; it cannot be framed; text cannot become markup. */
const PAGE_POLICY = [
  "default-src 'none'",
  `script-src ${hash(SCRIPT)}`,
  `style-src ${hash(STYLE)}`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** The page, in one piece: its policy lets it load nothing. It is the same for everybody: there is no secret in it. */
export const PAGE = FRAME.replace(
  '<link rel="stylesheet" href="page.css">',
  () => `<style>${STYLE}</style>`,
).replace('<script src="page.js"></script>', () => `<script>${SCRIPT}</script>`);

/**
 * True if a request names this server by its own address: another name that was made to point here (DNS rebinding) is
 * refused, and so is what another page sends.
 */
function isFromHere({ headers }: IncomingMessage, port: number): boolean {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  const { host, origin } = headers;
  if (host === undefined || !hosts.includes(host)) return false;
  if (origin !== undefined && origin !== `http://${host}`) return false;
  // `none`: typed, or opened from a bookmark.
  const site = headers['sec-fetch-site'];
  return site === undefined || site === 'same-origin' || site === 'none';
}

/** True if a request comes from our page: by origin, by token and with JSON. */
function isFromOurPage({ headers }: IncomingMessage, token: string): boolean {
  return (
    headers.origin !== undefined &&
    headers['content-type'] === 'application/json' &&
    hasToken(headers[TOKEN_HEADER], token)
  );
}

/** Compared in a time that says nothing about the token. */
function hasToken(given: string | string[] | undefined, token: string): boolean {
  const bytes = Buffer.from(typeof given === 'string' ? given : '');
  const right = Buffer.from(token);
  return bytes.length === right.length && timingSafeEqual(bytes, right);
}
