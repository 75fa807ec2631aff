import type { z } from 'zod';
import type { ErrorCode } from '../../base/errors/codes.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';

/** The id that a client gave a request. */
export type RequestId = string | number;

/** The numbers of JSON-RPC 2.0. */
export const RPC_ERROR = {
  unreadable: -32700,
  invalid: -32600,
  unknownMethod: -32601,
  params: -32602,
  failed: -32603,
  /** Free for servers: `data` says more. */
  ours: -32000,
} as const;

/** The number that a code of ours goes with, where JSON-RPC has one. */
const NUMBERS: Readonly<Partial<Record<ErrorCode, number>>> = {
  'protocol.invalid': RPC_ERROR.invalid,
  'protocol.unknown_method': RPC_ERROR.unknownMethod,
  'protocol.failed': RPC_ERROR.failed,
  'usage.invalid': RPC_ERROR.params,
};

/** What a request is answered with. */
export type Response = { readonly jsonrpc: '2.0' } & (
  | { readonly id: RequestId; readonly result: unknown }
  | {
      readonly id: RequestId | null;
      readonly error: {
        readonly code: number;
        readonly message: string;
        readonly data: { readonly code: ErrorCode; readonly message: string };
      };
    }
);

/** An error as it is sent. */
export function errorResponse(
  id: RequestId | null,
  code: ErrorCode,
  message: string,
  number: number = NUMBERS[code] ?? RPC_ERROR.ours,
): Response {
  return { jsonrpc: '2.0', id, error: { code: number, message, data: { code, message } } };
}

/** What a handler threw: of a mistake of ours the text is not for the client. */
export function responseToError(id: RequestId | null, error: unknown): Response {
  return error instanceof SandboxError
    ? errorResponse(id, error.code, error.message)
    : errorResponse(id, 'protocol.failed', 'the server failed; its log says why');
}

/** Without what the sender wrote. */
export function describeIssue(method: string, issue: z.core.$ZodIssue | undefined): string {
  if (issue === undefined) return `${method}: the params are wrong`;
  const where = issue.path.map(String).join('.');
  const what =
    issue.code === 'unrecognized_keys' ? 'has keys that the protocol does not have' : issue.message;
  return `${method}: ${where === '' ? 'params' : where}: ${what}`;
}
