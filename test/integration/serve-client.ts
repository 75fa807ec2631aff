import { readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { expect } from 'vitest';
import { eventually as withinSeconds } from '../support/eventually.ts';

/** On a machine that does much else a server may take long to start. */
export const eventually = (assertion: () => void | Promise<void>) => withinSeconds(assertion, 30_000);

type Json = Readonly<Record<string, unknown>>;
type Id = string | number;

/** What tests look at in params and results; the schema says which of them there are. */
interface Fields {
  readonly status: string;
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly messageForModel: string;
  readonly verdict: string;
  readonly truncated: { readonly stdout: number };
  readonly command: string;
  readonly session: string;
  readonly stream: string;
  readonly data: string;
  readonly request: Id;
  readonly question: string;
  readonly questions: readonly Fields[];
  readonly id: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly result: Fields;
  readonly workspace: string;
  readonly capabilities: { readonly methods: readonly string[]; readonly approvals: string };
}

/** A message of the server, as loosely as tests look at it. */
export interface Message {
  readonly id?: Id | null;
  readonly method?: string;
  readonly params: Fields;
  readonly result: Fields;
  readonly error: {
    readonly code: number;
    readonly message: string;
    readonly data: { readonly code: string };
  };
}

const schema = JSON.parse(readFileSync(new URL('../../dist/schemas/serve.json', import.meta.url), 'utf8'));
const ajv = new Ajv2020({ strict: false, allErrors: false }).addSchema(schema, 'serve');
const validators = new Map<string, ValidateFunction>();

/** Fails for a message that the published schema does not have. */
export function expectValid(message: unknown, definition: string): void {
  let validate = validators.get(definition);
  if (validate === undefined) {
    validate = ajv.compile({ $ref: `serve#/$defs/${definition}` });
    validators.set(definition, validate);
  }
  if (!validate(message))
    expect.fail(
      `${definition}: ${JSON.stringify(validate.errors?.[0])} in ${JSON.stringify(message).slice(0, 2000)}`,
    );
}

/** A client without any library: lines, and what came back. Everything that the server says is held against the schema. */
export class RawClient {
  readonly output: Writable;
  readonly input: Readable;
  readonly said: Message[] = [];
  readonly notifications: Message[] = [];
  ended = false;
  private readonly waiting = new Map<Id, { method: string; done: (message: Message) => void }>();
  private rest = '';
  private lastId = 0;

  constructor(output: Writable, input: Readable) {
    this.output = output;
    this.input = input;
    input.setEncoding('utf8');
    input.on('data', (text: string) => this.take(text));
    for (const event of ['end', 'close', 'error']) {
      input.on(event, () => {
        this.ended = true;
      });
    }
    output.on('error', () => {});
  }

  private take(text: string): void {
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop() ?? '';
    for (const line of lines) {
      const value = JSON.parse(line);
      expectValid(value, 'serverMessage');
      for (const message of Array.isArray(value) ? value : [value]) this.hear(message);
    }
  }

  private hear(message: Message): void {
    this.said.push(message);
    if (message.method !== undefined) {
      expectValid(message, `${message.method}.notification`);
      this.notifications.push(message);
      return;
    }
    const asked = message.id === null || message.id === undefined ? undefined : this.waiting.get(message.id);
    if (asked === undefined || message.id === null || message.id === undefined) return;
    this.waiting.delete(message.id);
    if (message.error === undefined) expectValid(message, `${asked.method}.response`);
    asked.done(message);
  }

  line(text: string | Uint8Array): void {
    this.output.write(text);
    this.output.write('\n');
  }

  message(message: unknown): void {
    this.line(JSON.stringify(message));
  }

  /** Sends a request, whatever the schema thinks of it; resolves with the response, an error or not. */
  ask(method: string, params: unknown = {}, id: Id = ++this.lastId): Promise<Message> {
    return new Promise((done) => {
      this.waiting.set(id, { method, done });
      this.message({ jsonrpc: '2.0', id, method, params });
    });
  }

  /** The same for a request that is one and succeeds. */
  async call(method: string, params: Json = {}): Promise<Message['result']> {
    const id = ++this.lastId;
    expectValid({ jsonrpc: '2.0', id, method, params }, `${method}.request`);
    const response = await this.ask(method, params, id);
    if (response.error !== undefined) expect.fail(`${method}: ${JSON.stringify(response.error)}`);
    return response.result;
  }

  initialize(more: Json = {}): Promise<Message['result']> {
    return this.call('initialize', { protocolVersion: 1, ...more });
  }

  cancel(id: Id): void {
    const message = { jsonrpc: '2.0', method: '$/cancelRequest', params: { id } };
    expectValid(message, 'cancel');
    this.message(message);
  }

  /** Waits for a notification that fits. */
  async told(method: string, fits: (params: Message['params']) => boolean = () => true) {
    let found: Message | undefined;
    await eventually(() => {
      found = this.notifications.find((one) => one.method === method && fits(one.params));
      expect(found, method).toBeDefined();
    });
    if (found === undefined) throw new Error('unreachable');
    return found.params;
  }

  /** Everything that a command has written so far. */
  outputOf(command: string, stream = 'stdout'): string {
    return this.notifications
      .filter(
        ({ method, params }) => method === 'output' && params.command === command && params.stream === stream,
      )
      .map(({ params }) => params.data)
      .join('');
  }

  async ends(): Promise<void> {
    await eventually(() => expect(this.ended).toBe(true));
  }
}

/** Connects to a server on a socket. */
export function connectTo(path: string): Promise<RawClient> {
  return new Promise((done, fail) => {
    const socket = createConnection(path);
    socket.once('error', fail);
    socket.once('connect', () => {
      socket.off('error', fail);
      socket.on('error', () => {});
      done(new RawClient(socket, socket));
    });
  });
}
