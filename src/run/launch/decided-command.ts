import { createHash } from 'node:crypto';
import { directoryPath } from '../../base/directory-path.ts';
import type { Decided, DecisionRequest } from '../../gate/index.ts';
import type { Command, ExecutionResult, ShellFacts, SpawnOptions } from '../../model/index.ts';

/** What is decided about: a command with the options that make a difference. */
export function requestOf(
  command: Command,
  options: SpawnOptions,
  more: {
    /** Its bytes, or a name for what is not known yet. */
    readonly input?: Uint8Array | string | undefined;
    readonly shell?: ShellFacts;
    readonly signal: () => AbortSignal;
  },
): DecisionRequest {
  const { cwd, env, approved, taints, pty, effect, on, job } = options;
  const { input, shell, signal } = more;
  // Not the time limit: it says nothing of what the command does.
  const details = () => [
    ...(pty === undefined ? [] : ['terminal']),
    ...(effect === 'preview' ? [`preview${on === undefined ? '' : ` on ${on}`}`] : []),
    ...(input === undefined ? [] : [`input ${nameOf(input)}`]),
    ...(shell === undefined ? [] : [`shell ${JSON.stringify(shell)}`]),
  ];
  return {
    ...{ command, cwd: directoryPath(cwd), env, approved, taints, shell, signal, effect, job },
    details,
  };
}

const nameOf = (input: Uint8Array | string) =>
  typeof input === 'string' ? input : createHash('sha256').update(input).digest('hex');

/** The result, completed after the end: the action is counted and recorded, hooks are informed, and warnings are added. */
export async function followed(
  ended: (Decided & { readonly allowed: true })['ended'],
  result: ExecutionResult,
  launched: boolean,
): Promise<ExecutionResult> {
  const started = launched && result.status !== 'setup-failed';
  const warnings = (await ended?.({ result, started })) ?? [];
  return warnings.length === 0 ? result : { ...result, warnings: [...result.warnings, ...warnings] };
}
