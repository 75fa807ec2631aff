import { isBeneath } from '../base/absolute-path.ts';
import { errorOf } from '../gate/index.ts';
import type { ExecutionResult, RunOptions } from '../model/index.ts';
import {
  argumentVector,
  type BackgroundJob,
  DEFAULT_MODEL_OUTPUT,
  messageForModel,
  notRun,
  type Sandbox,
} from '../run/index.ts';
import { createPathLookup } from '../workspace/index.ts';

export { DEFAULT_MODEL_OUTPUT };

/** Characters of a command: the kernel takes no longer one (MAX_ARG_STRLEN), and judging takes time. */
export const LONGEST_COMMAND = 128 * 1024 - 1;

/** A day: longer than any command of a model, and shorter than what `run()` takes for a mistake. */
const LONGEST_TIME = 24 * 3600 * 1000;

/**
 * What a model may say about a command that it wants to be run. Whatever would grant something (approval, autonomy, paths,
 * environment) is not among it: that is the operator's.
 */
interface ToolCall {
  readonly command: string;
  /** Absolute, or relative to the workspace. One that does not lie in the workspace, links followed, is refused. */
  readonly cwd?: string | undefined;
  /** Milliseconds; never more than the sandbox's own. What is not above 0 is as if it was not said. */
  readonly timeout?: number | undefined;
  /** Milliseconds, from the adapter: a limit below the sandbox's own. */
  readonly longest?: number | undefined;
  /** Bytes of each stream; never more than the sandbox's own. Default: {@link DEFAULT_MODEL_OUTPUT}. */
  readonly maxOutput?: number | undefined;
  /** Its changes wait for the user. A model may say so: it grants nothing. */
  readonly effect?: 'preview' | undefined;
  /** The id of changes that wait, which the command sees. */
  readonly on?: string | undefined;
  /** From the adapter: the model was told beforehand what is allowed. Default: whether a refusal said it. */
  readonly knowsBoundaries?: boolean;
}

/** The outcome of a call: the result, and text for a model where something is not as it may think. */
export interface ToolOutcome {
  readonly result: ExecutionResult;
  /** `undefined`: nothing was stopped, and there is nothing else to say. */
  readonly message: string | undefined;
}

/** What an adapter, and never a model, may add to a call. */
type AdapterOptions = Pick<RunOptions, 'approved' | 'signal' | 'onOutput' | 'taints' | 'combined' | 'env'>;

/** Runs a call of a model: the one way in which adapters run commands. Its output is text without escape sequences. */
export async function runForModel(
  sandbox: Sandbox,
  call: ToolCall,
  more: AdapterOptions = {},
): Promise<ToolOutcome> {
  const cwd = placeOf(sandbox.workspace, call.cwd);
  if (cwd === undefined) return outcomeOf(sandbox, call, misplaced(sandbox, call));
  const most = timeWithin(call.longest, sandbox.defaults.timeout) ?? 0;
  const timeout = timeWithin(call.timeout, most);
  const result = await sandbox.run(call.command, {
    ...outputOf(sandbox, call),
    // The directory that was looked at, not again what leads there.
    cwd,
    timeout,
    ...(call.effect === undefined ? {} : { effect: call.effect }),
    ...(call.on === undefined ? {} : { on: call.on }),
    ...more,
  });
  return outcomeOf(sandbox, call, result, lessTime(call.timeout, most));
}

/**
 * The same in the background: a job once it runs, or the result if it does not.
 * @param longest milliseconds after which a job is ended whatever the call says; 0: never.
 */
export async function startForModel(
  sandbox: Sandbox,
  call: ToolCall,
  longest: number,
  more: AdapterOptions = {},
): Promise<BackgroundJob | ToolOutcome> {
  const cwd = placeOf(sandbox.workspace, call.cwd);
  if (cwd === undefined) return outcomeOf(sandbox, call, misplaced(sandbox, call));
  const job = await sandbox.run(call.command, {
    ...outputOf(sandbox, call),
    // The directory that was looked at, not again what leads there.
    cwd,
    timeout: timeWithin(call.timeout, longest) ?? longest,
    ...more,
    background: true,
  });
  return (await job.launched) ? job : outcomeOf(sandbox, call, await job.wait());
}

/** The directory of a call: canonical. `undefined`: it does not lie in the workspace. */
export function placeOf(workspace: string, cwd = '.'): string | undefined {
  if (cwd.includes('\0')) return undefined;
  const path = cwd.startsWith('/') ? cwd : `${workspace}/${cwd}`;
  const { canonical } = createPathLookup().resolve(path);
  return isBeneath(canonical, workspace) ? canonical : undefined;
}

/** Why a directory is refused, in a sentence. */
export const outsideWorkspace = (workspace: string): string =>
  `the working directory has to lie in the workspace ${workspace}; leave it out, or give one relative to that`;

function misplaced(sandbox: Sandbox, { command }: ToolCall): ExecutionResult {
  const { workspace, plan } = sandbox;
  const context = {
    ...{ argv: argumentVector(command), cwd: workspace, warnings: [], report: plan.report },
    ...{ decision: undefined, approval: undefined },
  };
  const error = errorOf('cwd.unusable', outsideWorkspace(workspace));
  return notRun(context, { status: 'setup-failed', error });
}

function outputOf({ defaults }: Sandbox, { maxOutput = DEFAULT_MODEL_OUTPUT }: ToolCall) {
  const asked = maxOutput >= 0 ? Math.floor(maxOutput) : DEFAULT_MODEL_OUTPUT;
  return { escapes: 'neutralize', maxOutput: Math.min(asked, defaults.maxOutput) } as const;
}

/** Sandboxes whose boundaries a refusal has already told the model. Each sandbox belongs to one session. */
const introduced = new WeakSet<Sandbox>();

function outcomeOf(
  sandbox: Sandbox,
  { command, knowsBoundaries = introduced.has(sandbox) }: ToolCall,
  result: ExecutionResult,
  remark?: string,
): ToolOutcome {
  if (result.status !== 'exited' && result.status !== 'signaled') introduced.add(sandbox);
  const said = [messageForModel(result, sandbox.plan, { command, knowsBoundaries }), remark];
  const lines = said.filter((line) => line !== undefined);
  return { result, message: lines.length === 0 ? undefined : lines.join('\n') };
}

/** Says that a call got less time than it asked for; `undefined`: it did not. Both in milliseconds; `most` 0: no limit. */
export function lessTime(asked: number | undefined, most: number): string | undefined {
  const limit = most === 0 ? LONGEST_TIME : Math.min(most, LONGEST_TIME);
  if (asked === undefined || asked <= limit) return undefined;
  return `Sandbox: the time limit here is ${limit / 1000} s; the ${asked / 1000} s of the call do not hold.`;
}

/**
 * The shorter of two times in milliseconds; `undefined`: neither is one. For `run()` 0 means no time-out at all, which is
 * not a model's to say.
 */
export function timeWithin(asked: number | undefined, most: number): number | undefined {
  const times = [Math.ceil(asked ?? 0), most].filter((time) => time > 0);
  return times.length === 0 ? undefined : Math.min(...times, LONGEST_TIME);
}
