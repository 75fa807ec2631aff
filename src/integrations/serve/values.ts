import { constants } from 'node:os';
import { z } from 'zod';
import { TAINTS } from '../../model/decision.ts';
import { SERVE_LIMITS } from './serve-limits.ts';

/** A year; what is longer is a mistake. */
const MAX_MILLISECONDS = 365 * 24 * 3600 * 1000;

/** Text that a program or the kernel can be given: no NUL, and no half of a pair, which would become another character. */
const text = z.string().regex(/^[^\0\ud800-\udfff]*$/u, 'must be Unicode text without NUL');

export const commandValue = z
  .union([text.min(1), z.tuple([text], text)])
  .describe('A shell string (bash), or an array: the program and its arguments.');

export const cwdValue = text
  .min(1)
  .optional()
  .describe('Absolute, or relative to the workspace. Default: the workspace.');

const variableName = z
  .string()
  .regex(/^[^\0=\ud800-\udfff]+$/u, 'a name of a variable must not be empty or contain "="');

export const changedVariables = z
  .record(variableName, text.nullable())
  .optional()
  .describe('Variables for this command; null takes one away.');

export const variables = z
  .record(variableName, text)
  .optional()
  .describe('Variables, besides those of every command.');

export const approvedValue = z
  .boolean()
  .optional()
  .describe(
    'Somebody looked at exactly this command and wants it to run: where the policy asks, that is the answer. What it ' +
      'refuses stays refused. To be set by the application, never by a model.',
  );

export const taintsValue = z
  .array(z.enum(TAINTS))
  .optional()
  .describe('What the session of the agent was exposed to.');

export const timeoutValue = z
  .number()
  .min(0)
  .max(MAX_MILLISECONDS)
  .optional()
  .describe('Milliseconds; 0: none. Default: that of the server.');

export const encodingValue = z
  .enum(['utf8', 'base64'])
  .optional()
  .describe('`utf8` (default): text, invalid bytes become U+FFFD. `base64`: the bytes as they are.');

export const escapesValue = z
  .enum(['keep', 'neutralize'])
  .optional()
  .describe(
    '`neutralize`: escape sequences and control characters are taken out of text, what deceives readers becomes ' +
      'visible: for models. `keep`: as it is. Default: `neutralize`, on a terminal `keep`; bytes are always kept.',
  );

export const dataValue = z
  .strictObject({
    data: z.string().describe('In the encoding that is named.'),
    encoding: encodingValue,
  })
  .refine(({ data, encoding }) => encoding !== 'base64' || isBase64(data), 'data is not base64');

const bytes = z.number().int().min(0).max(SERVE_LIMITS.outputBytes);

export const maxOutputValue = z
  .union([bytes, z.strictObject({ head: bytes, tail: bytes })])
  .refine(
    (given) => typeof given === 'number' || given.head + given.tail <= SERVE_LIMITS.outputBytes,
    `must be ${SERVE_LIMITS.outputBytes} together at most`,
  )
  .optional()
  .describe('Bytes kept of each stream, half from its beginning and half from its end, or so many of each.');

export const terminalSize = z.strictObject({
  cols: z.number().int().min(1).max(65535),
  rows: z.number().int().min(1).max(65535),
});

export const signalValue = z
  .custom<NodeJS.Signals>(
    (value) => typeof value === 'string' && Object.hasOwn(constants.signals, value),
    'must be the name of a signal, such as "SIGINT"',
  )
  .meta({ type: 'string', pattern: '^SIG[A-Z0-9]+$' });

/** What the server calls something of the connection. */
export const idValue = z.string().min(1).max(128);

function isBase64(data: string): boolean {
  return data.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(data);
}
