import {
  createJSONRPCErrorResponse,
  JSONRPCErrorCode,
  type JSONRPCErrorResponse,
  type JSONRPCID,
} from 'json-rpc-2.0';
import type { z } from 'zod';
import type { ErrorCode } from '../../errors/codes.ts';
import { SandboxError } from '../../errors/sandbox-error.ts';

/** Of JSON-RPC: free for servers. */
const OURS = -32000;

/** The number of JSON-RPC that a code of ours goes with, where that has one. */
const NUMBERS: Readonly<Partial<Record<ErrorCode, number>>> = {
  'protocol.invalid': JSONRPCErrorCode.InvalidRequest,
  'usage.invalid': JSONRPCErrorCode.InvalidParams,
};

/** An error as it is sent. */
export function errorResponse(
  id: JSONRPCID,
  code: ErrorCode,
  message: string,
  number: number = NUMBERS[code] ?? OURS,
): JSONRPCErrorResponse {
  return createJSONRPCErrorResponse(id, number, message, { code, message });
}

/** What a handler threw. `undefined`: it is a mistake of ours, and its text is not for the client. */
export function responseToError(id: JSONRPCID, error: unknown): JSONRPCErrorResponse {
  if (error instanceof SandboxError) return errorResponse(id, error.code, error.message);
  return errorResponse(
    id,
    'protocol.failed',
    'the server failed; its log says why',
    JSONRPCErrorCode.InternalError,
  );
}

/** Without what the sender wrote. */
export function describeIssue(method: string, issue: z.core.$ZodIssue | undefined): string {
  if (issue === undefined) return `${method}: the params are wrong`;
  const where = issue.path.map(String).join('.');
  const what =
    issue.code === 'unrecognized_keys' ? 'has keys that the protocol does not have' : issue.message;
  return `${method}: ${where === '' ? 'params' : where}: ${what}`;
}
