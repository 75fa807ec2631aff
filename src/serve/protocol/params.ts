import { constants } from 'node:os';
import { z } from 'zod';
import { maxOutput, RunOptions } from '../../model/index.ts';
import { SERVE_LIMITS } from './limits.ts';

/* What clients of serve say: the options of the library in JSON, with texts that a program or the kernel can be given. */

/** No NUL, and no half of a pair, which would become another character. */
const text = z.string().regex(/^[^\0\ud800-\udfff]*$/u, 'must be Unicode text without NUL');

export const shellString = text.min(1);

const commandValue = z
  .union([shellString, z.tuple([text], text)])
  .describe('A shell string (bash), or an array: the program and its arguments.');

const variableName = z
  .string()
  .regex(/^[^\0=\ud800-\udfff]+$/u, 'a name of a variable must not be empty or contain "="');

export const variables = z
  .record(variableName, text)
  .optional()
  .describe('Variables, besides those of every command.');

const { taints, timeout, effect } = RunOptions.shape;

/** Where and how a command starts, and what the policy is to know. */
export const commandParams = {
  command: commandValue,
  cwd: text.min(1).optional().describe('Absolute, or relative to the workspace. Default: the workspace.'),
  env: z
    .record(variableName, text.nullable())
    .optional()
    .describe('Variables for this command; null takes one away.'),
  approved: z
    .boolean()
    .optional()
    .describe(
      'A person looked at exactly this command and wants it to run: where the policy asks, that is the answer. What it ' +
        'refuses stays refused. To be set by the application, never by a model.',
    ),
  taints,
};

export const timeoutValue = timeout.describe('Milliseconds; 0: none. Default: that of the server.');

/** Where the changes of a command go. */
export const effectParams = {
  effect,
  on: text
    .max(64)
    .optional()
    .describe(
      'The id of changes that wait; the command sees the workspace with them, and is a preview (`effect: "preview"`), too.',
    ),
};

/** Names what a preview changed. */
export const changesId = text.min(1).max(64).describe('`changes.id` of a result, or from `changes.list`.');

export const pathInChanges = text.min(1).max(4096);

export const encodingValue = z
  .enum(['utf8', 'base64'])
  .optional()
  .describe('`utf8` (default): text, invalid bytes become U+FFFD. `base64`: the bytes as they are.');

export const escapesValue = RunOptions.shape.escapes.describe(
  '`neutralize`: escape sequences and control characters are taken out of text, what deceives readers becomes ' +
    'visible: for models. `keep`: as it is. Default: `neutralize`, on a terminal `keep`; bytes are always kept.',
);

export const dataValue = z
  .strictObject({
    data: z.string().describe('In the encoding that is named.'),
    encoding: encodingValue,
  })
  .refine(({ data, encoding }) => encoding !== 'base64' || isBase64(data), 'data is not base64');

export const maxOutputValue = maxOutput(SERVE_LIMITS.outputBytes)
  .optional()
  .describe('Bytes kept of each stream, half from its beginning and half from its end, or so many of each.');

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

/** Bytes of a command of a session that lives on: what the parser reads at most. */
const MAX_SHELL_COMMAND = 64 * 1024;

/** Why a command is not even sent to such a session; `undefined`: it is. */
export function refusedCommand(command: string): string | undefined {
  const size = Buffer.byteLength(command);
  return size <= MAX_SHELL_COMMAND
    ? undefined
    : `the command has ${size} bytes, and a session takes ${MAX_SHELL_COMMAND}: put it into a file and run that`;
}

/** Bytes of a command that a gate is asked about. */
const MAX_GATE_COMMAND = 128 * 1024;

/** What a gate is asked. */
export const gateQuestion = z.strictObject({
  command: shellString
    .refine((command) => Buffer.byteLength(command) <= MAX_GATE_COMMAND, 'must have at most 128 KiB')
    .describe('The shell string that is about to be run.'),
  session: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/, 'must be 1 to 128 letters, digits, "_", "." or "-"')
    .optional()
    .describe('Session of the agent; belongs to whoever used it first.'),
  tool: z
    .string()
    .regex(/^[A-Za-z0-9_.:/-]{1,128}$/, 'must be 1 to 128 letters, digits, or "_.:/-"')
    .optional()
    .describe('Name of the tool that would run it.'),
});
