import { z } from 'zod';

/** Bytes of a message, its line break not counted. */
export const MAX_MESSAGE_BYTES = 256 * 1024;
/** Bytes of a command. */
export const MAX_COMMAND_BYTES = 128 * 1024;
const MAX_REASON_CHARACTERS = 2000;

const ID = /^[A-Za-z0-9_.-]{1,128}$/;
const id = z.string().regex(ID, 'must be 1 to 128 letters, digits, "_", "." or "-"');

const requestSchema = z.strictObject({
  type: z.literal('security:bash_check').describe('The only question there is.'),
  request_id: id.describe('Chosen by the client, not used twice; the answer has it too.'),
  command: z
    .string()
    .min(1, 'must not be empty')
    .refine((text) => !text.includes('\0'), 'must not contain NUL')
    // Half of a pair would become another character on its way into a file.
    .refine((text) => !/\p{Surrogate}/u.test(text), 'must be Unicode text')
    .refine((text) => Buffer.byteLength(text) <= MAX_COMMAND_BYTES, 'must have at most 128 KiB')
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

const responseSchema = z.strictObject({
  request_id: id.describe('Of the request that is answered.'),
  decision: z.enum(['allow', 'deny']),
  reason: z.string().max(MAX_REASON_CHARACTERS).optional().describe('One sentence for whoever asked.'),
});

/** What a client asks. */
export type GateMessage = z.infer<typeof requestSchema>;

/** What it is told. */
export type GateResponse = z.infer<typeof responseSchema>;

/** A message that could be read, or why it is refused. */
export type Decoded<T> =
  | { readonly ok: true; readonly message: T }
  | {
      readonly ok: false;
      /** What is wrong, in one sentence; quotes nothing but names of ours. */
      readonly problem: string;
      /** Of a message that has a usable one, so that it can be told. */
      readonly requestId: string | undefined;
    };

/** True for a text that may be a `request_id`. */
export function isId(text: unknown): text is string {
  return typeof text === 'string' && ID.test(text);
}

export function decodeRequest(bytes: Uint8Array): Decoded<GateMessage> {
  return decode(bytes, requestSchema);
}

export function decodeResponse(bytes: Uint8Array): Decoded<GateResponse> {
  return decode(bytes, responseSchema);
}

/** One line, with its line break. */
export function encodeRequest(message: GateMessage): string {
  return `${JSON.stringify(message)}\n`;
}

/** One line, with its line break. A reason that is too long is cut. */
export function encodeResponse({ request_id, decision, reason }: GateResponse): string {
  const told = reason === undefined ? {} : { reason: reason.slice(0, MAX_REASON_CHARACTERS) };
  return `${JSON.stringify({ request_id, decision, ...told })}\n`;
}

// A byte order mark stays, and is then no JSON.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decode<T extends object>(bytes: Uint8Array, schema: z.ZodType<T>): Decoded<T> {
  if (bytes.length > MAX_MESSAGE_BYTES) return refuse('the message is longer than 256 KiB');
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return refuse('the message is not UTF-8');
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return refuse('the message is not JSON');
  }
  const read = schema.safeParse(value);
  if (!read.success) return refuse(describeIssue(read.error.issues[0]), value);
  // Another parser might take the first of two members of the same name, and judge something else than was asked. All
  // values are strings, so each member accounts for exactly two.
  const strings = text.match(/"(?:[^"\\]|\\.)*"/g)?.length;
  if (strings !== 2 * Object.keys(read.data).length) return refuse('a key is there twice', value);
  return { ok: true, message: read.data };
}

function refuse(problem: string, value?: unknown): Decoded<never> {
  const named = typeof value === 'object' && value !== null && 'request_id' in value ? value.request_id : '';
  return { ok: false, problem, requestId: isId(named) ? named : undefined };
}

/** Without what the sender wrote: it ends up in logs, and in the answer. */
function describeIssue(issue: z.core.$ZodIssue | undefined): string {
  if (issue === undefined) return 'the message does not follow the protocol';
  if (issue.code === 'unrecognized_keys') return 'there are keys that the protocol does not have';
  const where = issue.path.map(String).join('.');
  return where === '' ? 'the message is not an object' : `${where}: ${issue.message}`;
}
