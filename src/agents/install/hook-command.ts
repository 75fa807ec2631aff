import { existsSync } from 'node:fs';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { shellWord, shellWords } from '../../base/shell-quote.ts';
import type { HookOptions } from '../hooks/hook-adapter.ts';
import { callWords, operatorWords } from '../hooks/rewrite.ts';
import type { SettingsChange } from './hook-settings.ts';

/** Seconds that agents give a hook; a reviewer of the policy may take some. */
export const HOOK_TIMEOUT_SECONDS = 120;
/** Seconds after which a hook is ended by its own line. Agents let a call run whose hook takes longer than theirs. */
export const HOOK_DEADLINE_SECONDS = HOOK_TIMEOUT_SECONDS - 10;

/** Where coreutils and busybox are. No search path is used: `npx` puts a directory of the project on it. */
const TIMEOUT_PROGRAMS = ['/usr/bin/timeout', '/bin/timeout', '/run/current-system/sw/bin/timeout'];

/** Whatever the hook did not say, the call is blocked: agents take a failure without a reason as no objection. */
const OR_BLOCK =
  '"$@" || { echo "sandbox-run: the hook failed or took too long, so the command was not run" >&2; exit 2; }';

const WORD = "'(?:[^']|'\\\\'')*'";

/** The words that answer an agent's hooks: this program with the operator's options. */
export function hookWords(agent: string, options: HookOptions): readonly string[] {
  const { mode, sandbox } = options;
  const limit = sandbox.timeout === undefined ? [] : ['--timeout', String(sandbox.timeout / 1000)];
  return [...callWords(options), 'hook', agent, '--mode', mode, ...operatorWords(sandbox), ...limit];
}

/**
 * The line of a hook for agents that let a call run when its hook fails in any way but status 2 with a reason, or is late.
 * Plain words for any shell: some agents use the user's own, and one that cannot read the line has failed, too.
 * @throws {SandboxError} `usage.invalid` where there is no program that ends it in time.
 */
function blockingHookLine(agent: string, options: HookOptions): string {
  const timeout = TIMEOUT_PROGRAMS.find((path) => existsSync(path));
  if (timeout === undefined)
    throw new SandboxError(
      'usage.invalid',
      `a hook needs one of ${TIMEOUT_PROGRAMS.join(', ')}, which ends it before the agent stops waiting; install coreutils`,
    );
  const deadline = [timeout, '-s', 'KILL', String(HOOK_DEADLINE_SECONDS)];
  return shellWords(['/bin/sh', '-c', OR_BLOCK, 'sandbox-run', ...deadline, ...hookWords(agent, options)]);
}

/** Whether a line is one of {@link blockingHookLine}. */
function isBlockingHookLine(agent: string, line: string): boolean {
  const start = shellWords(['/bin/sh', '-c', OR_BLOCK, 'sandbox-run']);
  if (!line.startsWith(`${start} `)) return false;
  return new RegExp(`^(?: ${WORD})* 'hook' ${shellWord(agent)}(?: ${WORD})*$`).test(line.slice(start.length));
}

/**
 * Such hooks in settings in the format of Claude Code: one for each event, of the tools that the pattern names (`undefined`:
 * the event has none). `fields`: what else stands in each.
 */
export function blockingHooks(
  agent: string,
  options: HookOptions | undefined,
  events: Readonly<Record<string, string | undefined>>,
  fields: Readonly<Record<string, unknown>>,
): SettingsChange {
  const isOurs = (command: string) => isBlockingHookLine(agent, command);
  if (options === undefined) return { isOurs, wanted: [] };
  const hooks = [{ type: 'command', ...fields, command: blockingHookLine(agent, options) }];
  const wanted = Object.entries(events).map(([event, matcher]) => ({
    event,
    group: matcher === undefined ? { hooks } : { matcher, hooks },
  }));
  return { isOurs, wanted };
}

/** The pattern for tools of these names, each of which may be one itself. */
export const toolPattern = (tools: readonly string[]) => `^(?:${tools.join('|')})$`;
