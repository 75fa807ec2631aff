import { z } from 'zod';
import { text, texts, type Value } from '../base/value.ts';

const MUST = 'a shell string or an array of strings, the program first';

// As JSON Schema a list with at least one item, which every validator understands; to the compiler a tuple.
const argv = texts.min(1, MUST) as unknown as z.ZodType<[string, ...string[]]>;

/** What to run: a shell string (under bash) or an argument vector, never joined into a string. */
export const Command = z
  .union([text, argv], MUST)
  .describe('a shell string (bash), or an array: the program and its arguments');
export type Command = Value<typeof Command>;

/** A value in a template of `run`: one argument, or a part of one; an array is several arguments. */
export type TemplateValue = string | number | readonly (string | number)[];

/** The job of a fleet that a command is run for. */
export const JobOrigin = z.strictObject({
  queue: text,
  id: text.describe('as submit printed it'),
  worker: text.describe('which runs it'),
});
export type JobOrigin = Value<typeof JobOrigin>;
