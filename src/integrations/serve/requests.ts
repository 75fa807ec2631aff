import { isJSONRPCRequest, type JSONRPCResponse, JSONRPCServer } from 'json-rpc-2.0';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { Call, RequestId } from './client.ts';
import { describeIssue, errorResponse, responseToError } from './errors.ts';
import type { ConnectionHandlers, Handlers } from './handlers.ts';
import { CANCEL, cancelParams, METHODS, type MethodName, type ParamsOf } from './method-table.ts';
import type { ServeLimits } from './serve-limits.ts';

/** Answers the requests of one connection. */
export interface Requests {
  /** `null`: there is nothing to say. `afterwards` is to be called once the response was sent. */
  answer(
    message: unknown,
    bytes: number,
    afterwards: (work: () => void) => void,
  ): Promise<JSONRPCResponse | null>;
  /** Settles when every request has its answer. */
  settled(): Promise<void>;
}

/** What they are answered with. */
export interface RequestParts extends Pick<ConnectionHandlers, 'handlers' | 'isInitialized'> {
  readonly limits: ServeLimits;
  readonly gone: AbortSignal;
  /** Told what went wrong in a handler, for the log. */
  readonly onFailure: (error: unknown) => void;
}

const KEYS: readonly string[] = ['jsonrpc', 'id', 'method', 'params'];
const LONGEST_ID = 256;

/** @see Requests */
export function createRequests({ handlers, isInitialized, limits, gone, onFailure }: RequestParts): Requests {
  const pending = new Map<RequestId, AbortController>();
  const answers = new Set<Promise<unknown>>();
  let pendingBytes = 0;
  const server = rpcServer(handlers, onFailure);

  async function begin(
    request: { readonly id: RequestId; readonly method: string },
    bytes: number,
    afterwards: Call['afterwards'],
  ) {
    const controller = new AbortController();
    pending.set(request.id, controller);
    pendingBytes += bytes;
    const signal = AbortSignal.any([controller.signal, gone]);
    try {
      return await server.receive({ jsonrpc: '2.0', ...request }, { id: request.id, signal, afterwards });
    } finally {
      pending.delete(request.id);
      pendingBytes -= bytes;
    }
  }

  return {
    answer: async (message, bytes, afterwards) => {
      const read = readRequest(message);
      if (read.kind === 'invalid') return errorResponse(null, 'protocol.invalid', read.problem);
      if (read.kind === 'notification') {
        const canceled = read.method === CANCEL ? cancelParams.safeParse(read.params) : undefined;
        if (canceled?.success === true) pending.get(canceled.data.id)?.abort();
        return null;
      }
      const { request } = read;
      const { id, method } = request;
      // Two answers with one id: nobody could tell them apart, so this one has none.
      if (pending.has(id))
        return errorResponse(
          null,
          'protocol.invalid',
          'the id of a request is in use: another one with it has no answer yet',
        );
      if (!isInitialized() && method !== 'initialize')
        return errorResponse(id, 'protocol.uninitialized', 'the first request has to be initialize');
      if (pending.size >= limits.requests || pendingBytes + bytes > limits.requestBytes)
        return errorResponse(
          id,
          'protocol.busy',
          'too many requests of this connection have no answer yet; wait for some',
        );
      const answer = begin(request, bytes, afterwards);
      answers.add(answer);
      return answer.finally(() => answers.delete(answer));
    },
    settled: async () => {
      await Promise.allSettled(answers);
    },
  };
}

type Read =
  | { readonly kind: 'invalid'; readonly problem: string }
  | { readonly kind: 'notification'; readonly method: string; readonly params: unknown }
  | {
      readonly kind: 'request';
      readonly request: { readonly id: RequestId; readonly method: string; readonly params: unknown };
    };

function readRequest(message: unknown): Read {
  const invalid = (problem: string): Read => ({ kind: 'invalid', problem });
  if (typeof message !== 'object' || message === null || Array.isArray(message))
    return invalid('a message has to be an object');
  if (!isJSONRPCRequest(message)) return invalid('a message has to be a request of JSON-RPC 2.0');
  if (Object.keys(message).some((key) => !KEYS.includes(key)))
    return invalid('a request has only jsonrpc, id, method and params');
  const { id, method, params } = message;
  if (id === undefined) return { kind: 'notification', method, params };
  const isId = (typeof id === 'string' && id.length <= LONGEST_ID) || Number.isSafeInteger(id);
  if (id === null || !isId)
    return invalid(
      `the id of a request has to be a whole number or a string of at most ${LONGEST_ID} characters`,
    );
  return { kind: 'request', request: { id, method, params } };
}

function rpcServer(handlers: Handlers, onFailure: (error: unknown) => void): JSONRPCServer<Call> {
  // Its own listener would write to the console.
  const server = new JSONRPCServer<Call>({ errorListener: () => {} });
  server.mapErrorToJSONRPCErrorResponse = (id, error) => {
    if (!(error instanceof SandboxError)) onFailure(error);
    return responseToError(id, error);
  };
  server.handleMethodNotFound = async ({ id = null }) =>
    errorResponse(
      id,
      'protocol.unknown_method',
      'there is no such method; initialize says which there are',
      -32601,
    );
  const add = <M extends MethodName>(name: M) =>
    server.addMethod(name, (params, call) => handlers[name](readParams(name, params), call));
  for (const name of Object.keys(METHODS) as MethodName[]) add(name);
  return server;
}

function readParams<M extends MethodName>(name: M, params: unknown): ParamsOf<M> {
  const read = METHODS[name].params.safeParse(params);
  if (read.success) return read.data as ParamsOf<M>;
  throw new SandboxError('usage.invalid', describeIssue(name, read.error.issues[0]));
}
