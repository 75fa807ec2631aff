import { z } from 'zod';
import type { ExceededLimit, ResourceUsage } from '../../model/execution-result.ts';
import { leftBehindSchema } from '../../model/left-behind.ts';
import {
  approvalAnswer,
  count,
  decision,
  errorCode,
  forModel,
  names,
  processTree,
  report,
  text,
  texts,
} from './common.ts';

const cpu = z.strictObject({ userMs: z.number(), systemMs: z.number() });

const limit = z.strictObject({
  name: names<ExceededLimit['name']>('memory', 'processes', 'cpu', 'tmp', 'idle', 'file-size'),
  value: z.number().describe('what the policy allows: bytes, processes and threads, or seconds'),
  used: z.number().optional().describe('what was seen, in the same unit'),
  by: names<ExceededLimit['by']>('cgroup', 'sampling', 'rlimit', 'clock'),
});

const error = z.strictObject({
  code: errorCode,
  message: text,
  stage: text.optional().describe('the step of the launch that failed'),
  errno: text.optional(),
  path: text.optional(),
});

const base = {
  argv: texts,
  cwd: text,
  stdout: text,
  stderr: text,
  truncated: z.strictObject({ stdout: count, stderr: count }).describe('bytes that are not shown'),
  spilled: z
    .strictObject({ stdout: text, stderr: text.optional(), incomplete: text.optional() })
    .optional()
    .describe('files with the whole output'),
  outputBytes: z
    .strictObject({ stdout: count.optional(), stderr: count.optional() })
    .describe('bytes that the command wrote'),
  durationMs: z.number(),
  cpu,
  peakMemoryBytes: count.optional(),
  usage: z.strictObject({
    by: names<ResourceUsage['by']>('cgroup', 'sampling', 'rusage'),
    peakMemoryBytes: count.optional(),
    peakProcesses: count.optional(),
    cpu,
    readBytes: count,
    writtenBytes: count,
  }),
  treeEnded: z.boolean(),
  processTree: z.strictObject({ tier: processTree, ended: z.boolean() }),
  outputHeld: z.boolean(),
  leftBehind: z
    .array(leftBehindSchema)
    .describe('what programs outside would obey of what the command left, and what was done about it'),
  warnings: texts,
  report,
  decision: decision.optional(),
  approval: approvalAnswer.optional(),
};

const exitCode = z.number().int();

/** Each status with what only results of that status have; `more`: what all of them have besides. */
function resultWith(more: z.core.$ZodLooseShape) {
  const all = { ...base, ...more };
  return z.discriminatedUnion('status', [
    z.strictObject({ ...all, status: z.literal('exited'), exitCode }),
    z.strictObject({ ...all, status: z.literal('signaled'), signal: text }),
    z.strictObject({
      ...{ ...all, status: z.literal(['timed-out', 'canceled']), messageForModel: forModel },
      ...{ exitCode: exitCode.optional(), signal: text.optional() },
    }),
    z.strictObject({
      ...{ ...all, status: z.literal('limit-exceeded'), messageForModel: forModel },
      ...{ exitCode: exitCode.optional(), signal: text.optional(), limit, error },
    }),
    z.strictObject({
      ...{ ...all, status: z.literal(['denied', 'setup-failed']), messageForModel: forModel },
      error,
    }),
  ]);
}

/** `sandbox-run --json`. */
export const runResult = resultWith({});

/** `sandbox-run session run --json`. */
export const sessionRunResult = resultWith({
  cwdAfter: text.describe('where the shell is now'),
  restarted: z.boolean().describe('a new shell goes on'),
});
