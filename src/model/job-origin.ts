import { z } from 'zod';
import { text, type Value } from './value.ts';

/** The job of a fleet that a command is run for. */
export const JobOrigin = z.strictObject({
  queue: text,
  id: text.describe('as submit printed it'),
  worker: text.describe('which runs it'),
});
export type JobOrigin = Value<typeof JobOrigin>;
