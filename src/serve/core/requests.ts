import type { ErrorCode } from '../../base/errors/codes.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { ConnectionLimits } from '../protocol/limits.ts';
import { CANCEL, cancelParams, METHODS, type MethodName, type ParamsOf } from '../protocol/tables.ts';
import { describeIssue, errorResponse, type RequestId, type Response, responseToError } from './errors.ts';
import type { Call, Handler, RefusalCode } from './offer.ts';

/** The parts with which requests are answered. */
interface RequestParts {
  readonly handlers: { readonly [M in MethodName]?: Handler<M> };
  readonly isInitialized: () => boolean;
  readonly limits: ConnectionLimits;
  /** @see Offer */
  readonly strangers: boolean;
  readonly gone: AbortSignal;
  /** Told what went wrong in a handler, for the log. */
  readonly onFailure: (error: unknown) => void;
  /** Told of what no handler looks at. */
  readonly onRefused: (code: RefusalCode, message: string, id: RequestId | undefined) => void;
}

const KEYS: readonly string[] = ['jsonrpc', 'id', 'method', 'params'];
const LONGEST_ID = 256;
/** What strangers may call a request: it ends up in logs, and in the audit trail. */
const PLAIN_ID = /^[A-Za-z0-9_.-]{1,128}$/;

/** Answers the requests of one connection. */
export class Requests {
  readonly #parts: RequestParts;
  readonly #pending = new Map<RequestId, AbortController>();
  readonly #answers = new Set<Promise<unknown>>();
  #pendingBytes = 0;

  constructor(parts: RequestParts) {
    this.#parts = parts;
  }

  /** How many have no answer yet. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Settles when every request has its answer. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#answers);
  }

  /** `null`: there is nothing to say. `afterwards` is to be called once the response was sent. */
  async answer(message: unknown, bytes: number, afterwards: Call['afterwards']): Promise<Response | null> {
    const read = readRequest(message);
    if ('problem' in read) return this.#refuse(null, 'protocol.invalid', read.problem);
    if ('id' in read) {
      const refused = this.#refusalOf(read, bytes);
      if (refused !== undefined) return refused;
      const answer = this.#begin(read, bytes, afterwards);
      this.#answers.add(answer);
      return answer.finally(() => this.#answers.delete(answer));
    }
    const canceled = read.method === CANCEL ? cancelParams.safeParse(read.params) : undefined;
    if (canceled?.success === true) this.#pending.get(canceled.data.id)?.abort('the request was withdrawn');
    return null;
  }

  /** Why no handler looks at a request; `undefined`: one does. */
  #refusalOf({ id, method }: Request, bytes: number): Response | undefined {
    const { strangers, isInitialized, limits, onRefused } = this.#parts;
    if (strangers && !PLAIN_ID.test(String(id)))
      return this.#refuse(
        null,
        'protocol.invalid',
        'the id of a request has to be 1 to 128 letters, digits, "_", "." or "-"',
      );
    const before = this.#pending.get(id);
    if (before !== undefined) {
      if (strangers) before.abort('its id was used twice');
      // Two answers with one id: nobody could tell them apart, so this one has none.
      const problem = 'the id of a request is in use: another one with it has no answer yet';
      onRefused('duplicate_id', problem, id);
      return errorResponse(null, 'protocol.invalid', problem);
    }
    if (!isInitialized() && method !== 'initialize')
      return this.#refuse(id, 'protocol.uninitialized', 'the first request has to be initialize');
    if (this.pending >= limits.requests || this.#pendingBytes + bytes > limits.requestBytes)
      return errorResponse(
        id,
        'protocol.busy',
        'too many requests of this connection have no answer yet; wait for some',
      );
    return undefined;
  }

  async #begin(
    { id, method, params }: Request,
    bytes: number,
    afterwards: Call['afterwards'],
  ): Promise<Response> {
    const controller = new AbortController();
    this.#pending.set(id, controller);
    this.#pendingBytes += bytes;
    const signal = AbortSignal.any([controller.signal, this.#parts.gone]);
    try {
      return await this.#call(method as MethodName, params, { id, signal, afterwards });
    } finally {
      this.#pending.delete(id);
      this.#pendingBytes -= bytes;
    }
  }

  async #call<M extends MethodName>(method: M, params: unknown, about: Call): Promise<Response> {
    const { handlers, onFailure } = this.#parts;
    const { id } = about;
    const handler = Object.hasOwn(handlers, method) ? (handlers[method] as Handler<M>) : undefined;
    if (handler === undefined)
      return this.#refuse(
        id,
        'protocol.unknown_method',
        'there is no such method; initialize says which there are',
      );
    const read = METHODS[method].params.safeParse(params);
    if (!read.success) return this.#refuse(id, 'usage.invalid', describeIssue(method, read.error.issues[0]));
    try {
      return { jsonrpc: '2.0', id, result: await handler(read.data as ParamsOf<M>, about) };
    } catch (error) {
      if (!(error instanceof SandboxError)) onFailure(error);
      return responseToError(id, error);
    }
  }

  #refuse(id: RequestId | null, code: ErrorCode, message: string): Response {
    this.#parts.onRefused('malformed', message, id ?? undefined);
    return errorResponse(id, code, message);
  }
}

interface Request {
  readonly id: RequestId;
  readonly method: string;
  readonly params: unknown;
}

/** A request; without an id a notification; or what is wrong. */
function readRequest(message: unknown): Request | Omit<Request, 'id'> | { readonly problem: string } {
  if (typeof message !== 'object' || message === null || Array.isArray(message))
    return { problem: 'a message has to be an object' };
  const { jsonrpc, id, method, params } = message as Readonly<Record<string, unknown>>;
  if (jsonrpc !== '2.0' || typeof method !== 'string')
    return { problem: 'a message has to be a request of JSON-RPC 2.0' };
  if (Object.keys(message).some((key) => !KEYS.includes(key)))
    return { problem: 'a request has only jsonrpc, id, method and params' };
  if (id === undefined) return { method, params };
  if (typeof id === 'string' && id.length <= LONGEST_ID) return { id, method, params };
  if (typeof id === 'number' && Number.isSafeInteger(id)) return { id, method, params };
  return {
    problem: `the id of a request has to be a whole number or a string of at most ${LONGEST_ID} characters`,
  };
}
