import { join } from 'node:path';
import { shellWords } from '../../util/shell-quote.ts';
import { CLAUDE_CODE_TOOLS } from '../hooks/claude-code.ts';
import type { HookOptions } from '../hooks/hook-adapter.ts';
import { operatorWords } from '../hooks/rewrite.ts';
import type { HookInstaller, SettingsChange, WantedHook } from './hook-settings.ts';

/** Seconds; a reviewer of the policy may take some. What is not answered by then is let through by old versions. */
const TIMEOUT_SECONDS = 120;

const WORD = "'(?:[^']|'\\\\'')*'";
/** A command that this program has written: its own words, quoted as it quotes them. */
const OURS = new RegExp(`^${WORD} ${WORD} 'hook' 'claude-code'(?: ${WORD})*(?: \\|\\| exit 2)?$`);

/**
 * Claude Code: `~/.claude/settings.json`, or `.claude/settings.local.json` of the project. The hooks name where programs are
 * on this machine and block every command where they are not, so they are nothing for `settings.json`, which is shared.
 */
export const claudeCodeInstaller: HookInstaller = {
  agent: 'claude-code',
  fileOf: (scope, { home, project }) =>
    scope === 'user' ? join(home, '.claude/settings.json') : join(project, '.claude/settings.local.json'),
  changeOf: (options): SettingsChange => ({
    isOurs: (command) => OURS.test(command),
    wanted: options === undefined ? [] : wantedHooks(options),
  }),
};

function wantedHooks(options: HookOptions): readonly WantedHook[] {
  const { program, mode, sandbox } = options;
  const limit = sandbox.timeout === undefined ? [] : ['--timeout', String(sandbox.timeout / 1000)];
  const command = shellWords([
    ...program,
    ...['hook', 'claude-code', '--mode', mode],
    ...operatorWords(sandbox),
    ...limit,
  ]);
  const group = (matcher: string, line: string) => ({
    matcher,
    // A hook that does not start, or dies, has any status but 2, and only that one stops the call; versions that know
    // onFailure treat the other ways to fail the same.
    hooks: [{ type: 'command', command: line, timeout: TIMEOUT_SECONDS, onFailure: 'block' }],
  });
  // Nothing is blocked where the model is told less.
  const start = { hooks: [{ type: 'command', command, timeout: TIMEOUT_SECONDS }] };
  const after = group(CLAUDE_CODE_TOOLS.after, `${command} || exit 2`);
  return [
    { event: 'PreToolUse', group: group(CLAUDE_CODE_TOOLS.before, `${command} || exit 2`) },
    { event: 'PostToolUse', group: after },
    { event: 'PostToolUseFailure', group: after },
    { event: 'SessionStart', group: start },
  ];
}
