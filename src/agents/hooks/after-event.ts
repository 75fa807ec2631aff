import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { secretAmong } from '../../gate/index.ts';
import type { Policy, Taint } from '../../model/index.ts';
import { type Checker, createChecker, defaultPrincipal, resolvePolicy } from '../../run/index.ts';
import { createPathLookup, currentDirectoryOf } from '../../workspace/index.ts';
import {
  AFTER_SCOPES,
  type AfterCommand,
  type AfterLook,
  type HookAnswer,
  type HookCall,
  type HookOptions,
  type ToldAfterwards,
} from './hook-adapter.ts';
import { type AgentMemory, recordOf } from './session-memory.ts';

/**
 * What has to be remembered under a policy: what a session was exposed to counts where something can reach the network. Where
 * the agent runs commands itself nothing keeps them from it.
 */
function neededAfter(
  policy: Policy,
  { mode, sandbox }: Pick<HookOptions, 'mode' | 'sandbox'>,
): Required<ToldAfterwards> {
  // A command of ours has put its own end on record.
  const ends = mode === 'decide' && (policy.audit.enabled ?? sandbox.audit ?? false);
  if (mode === 'rewrite' && policy.network.mode === 'off') return { after: 'nothing', ends };
  return { after: policy.filesystem.secret.length === 0 ? 'outside' : 'looks', ends };
}

/** Like `neededAfter`, for the installer of an agent's settings; everything if the policy cannot be read. */
export async function neededAfterIn(workspace: string, options: HookCall): Promise<ToldAfterwards> {
  const { mode, sandbox, around } = options;
  try {
    const { policy } = await resolvePolicy({ ...sandbox, workspace }, around);
    return neededAfter(policy, options);
  } catch (error) {
    if (error instanceof SandboxError) return { after: 'looks', ends: mode === 'decide' };
    throw error;
  }
}

/**
 * What is not remembered could be carried off.
 * @throws {SandboxError} `hook.unusable`: the settings that call us were written for another policy.
 */
export function requireAfter(policy: Policy, options: HookOptions): void {
  const { after, ends } = options;
  // Settings without the scope tell of everything.
  if (after === undefined) return;
  const needed = neededAfter(policy, options);
  const isTold = AFTER_SCOPES.indexOf(needed.after) <= AFTER_SCOPES.indexOf(after);
  if (isTold && (ends === true || !needed.ends)) return;
  const what = isTold
    ? 'how commands ended (audit.enabled)'
    : needed.after === 'looks'
      ? 'which files the agent reads (filesystem.secret)'
      : 'what the agent is shown from outside';
  throw new SandboxError(
    'hook.unusable',
    `the policy has sandbox-run remember ${what}, and the hooks that are installed do not tell it; run "sandbox-run install" for this agent again`,
  );
}

const NOTHING: HookAnswer = { verdict: 'none' };

/** A command that the agent ran itself has ended. One of ours has recorded that. */
export async function afterCommand(
  event: AfterCommand,
  options: HookCall,
  memory: AgentMemory,
  project: string | undefined,
): Promise<HookAnswer> {
  if (options.mode === 'rewrite') return NOTHING;
  const checker = await openCheckerAfterwards(options, project);
  try {
    await recordAfter(checker, event, memory);
    return NOTHING;
  } finally {
    await checker.close();
  }
}

/** The agent has seen something with another tool: what others wrote may instruct it, what is secret must not leave. */
export async function afterLook(
  event: AfterLook,
  options: HookCall,
  memory: AgentMemory,
  project: string | undefined,
): Promise<HookAnswer> {
  const checker = await openCheckerAfterwards(options, project);
  try {
    for (const { taint, reason } of seen(event, checker.policy.filesystem.secret, checker.workspace)) {
      await memory.taint(taint, reason);
      await recordTaint(checker, memory, taint, reason);
    }
    return NOTHING;
  } finally {
    await checker.close();
  }
}

function seen(
  { saw, tool, cwd }: AfterLook,
  secrets: readonly string[],
  workspace: string,
): readonly { readonly taint: Taint; readonly reason: string }[] {
  if (saw === 'outside')
    return [{ taint: 'corruption', reason: `the tool ${tool.slice(0, 100)} showed content from outside` }];
  const lookup = createPathLookup();
  const start = cwd ?? workspace;
  const reads = saw.paths.map(
    (path) => lookup.resolve(path.startsWith('/') ? path : `${start}/${path}`).canonical,
  );
  const nothing = { parts: [], writes: [], executes: [], patterns: [], searches: [], flags: [] };
  const secret = secretAmong({ ...nothing, reads, text: saw.paths.join('\n') }, secrets);
  if (secret === undefined) return [];
  return [{ taint: 'secret', reason: `the tool ${tool.slice(0, 100)} read ${secret} (filesystem.secret)` }];
}

/** Puts the end of a command on record that the agent ran itself. */
async function recordAfter(
  { stateful: { record } }: Checker,
  { call, exitCode, durationMs }: AfterCommand,
  memory: AgentMemory,
): Promise<void> {
  await record?.({
    ...{
      type: 'result',
      request: recordOf(memory, call),
      principal: defaultPrincipal(),
      session: memory.id,
    },
    ...{
      status: exitCode === undefined ? 'canceled' : 'exited',
      exitCode,
      signal: undefined,
      error: undefined,
    },
    ...{ durationMs, outputBytes: { stdout: undefined, stderr: undefined } },
  });
}

/** Puts on record what the agent's session was exposed to by another tool than its shell. */
async function recordTaint(
  { stateful: { record } }: Checker,
  memory: AgentMemory,
  taint: Taint,
  reason: string,
): Promise<void> {
  await record?.({
    ...{ type: 'event', code: 'session_tainted', principal: defaultPrincipal(), session: memory.id },
    ...{ message: reason, details: { taint } },
  });
}

/** For what has happened already: nobody is asked about it, nor told. */
async function openCheckerAfterwards(
  { sandbox, around, createChecker: create = createChecker }: HookCall,
  workspace: string | undefined,
): Promise<Checker> {
  const options = { ...sandbox, workspace: workspace ?? currentDirectoryOf(around) };
  return create(options, around, { kernel: 'none', records: true });
}
