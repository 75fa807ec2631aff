import { z } from 'zod';

/** Something that a command left in the workspace and that a program outside of the sandbox would obey later. */
export const leftBehindSchema = z.strictObject({
  path: z.string().describe('absolute'),
  done: z
    .enum(['shut', 'restored', 'told'])
    .describe(
      'shut: it was taken away from where it would be obeyed; restored: what was there before is there again; told: nothing was done, because a person starts it or because nothing could be done',
    ),
  program: z.string().describe('who obeys it'),
  reason: z.string().describe('why it matters, or why nothing could be done: half a sentence'),
  settings: z
    .array(z.string())
    .readonly()
    .optional()
    .describe('of a configuration file: what of it, as key=value; absent: all of it'),
  kept: z.string().optional().describe('what sandbox-run kept restore takes'),
});

/** @see leftBehindSchema */
export type LeftBehind = Readonly<z.infer<typeof leftBehindSchema>>;
