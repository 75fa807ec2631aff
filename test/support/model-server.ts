import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What the server was asked. */
export interface SeenRequest {
  readonly path: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: Readonly<Record<string, unknown>>;
}

/** A real server on loopback in the place of the Messages API. */
export interface ModelServer {
  readonly url: string;
  readonly seen: readonly SeenRequest[];
  /** Settles when nobody waits for an answer any more. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

export type Answering = (response: ServerResponse, request: SeenRequest) => void;

export async function startModelServer(answer: Answering): Promise<ModelServer> {
  const seen: SeenRequest[] = [];
  let open = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    open += 1;
    response.on('close', () => {
      open -= 1;
    });
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString() || '{}');
      const one = { path: request.url, headers: request.headers, body };
      seen.push(one);
      answer(response, one);
    });
    response.on('error', () => {});
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    async idle() {
      while (open > 0) await new Promise((done) => setTimeout(done, 10));
    },
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

/** A message as the API gives it. */
export function message(text: string, more: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'model-1',
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
    ...more,
  });
}

export function sendJson(response: ServerResponse, body: string | Buffer, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(body);
}
