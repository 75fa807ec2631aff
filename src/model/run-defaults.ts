import { z } from 'zod';
import { count, type Value } from '../base/value.ts';
import { Autonomy } from './decision.ts';

/** What holds for a command that is given nothing else. */
export const RunDefaults = z.strictObject({
  timeout: z.number().describe('milliseconds; 0: none'),
  maxOutput: count.describe('bytes kept of each output stream'),
  autonomy: Autonomy.describe(
    'the level in force: contained is supervised where the sandbox holds too little',
  ),
});
export type RunDefaults = Value<typeof RunDefaults>;
