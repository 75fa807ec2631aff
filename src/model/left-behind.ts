import { z } from 'zod';
import { text, texts, type Value } from '../base/value.ts';

/** Something that a command left in the workspace and that a program outside of the sandbox would obey later. */
export const LeftBehind = z.strictObject({
  path: text.describe('absolute'),
  done: z
    .enum(['shut', 'restored', 'copied', 'told'])
    .describe(
      'shut: it was taken away from where it would be obeyed; restored: what was there before is there again; copied: commands wrote a copy that only they see, and nothing was changed; told: nothing was done, because a person starts it or because nothing could be done',
    ),
  program: text.describe('what obeys it'),
  madeBy: text.optional().describe('the program that made it, as it called itself; missing: nobody saw it'),
  reason: text.describe('why it matters, or why nothing could be done: half a sentence'),
  settings: texts.optional().describe('of a configuration file: what of it, as key=value; absent: all of it'),
  kept: text.optional().describe('what sandbox-run kept restore takes'),
});
export type LeftBehind = Value<typeof LeftBehind>;
