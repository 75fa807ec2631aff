import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { HookOptions } from './hook-adapter.ts';

/** Linux takes 128 KiB of one argument (MAX_ARG_STRLEN); a byte is left for its end. */
const LONGEST_ARGUMENT = 128 * 1024 - 1;

/** A command as the operator wants it to run. */
interface RewrittenCommand {
  readonly command: string;
  readonly workspace: string;
  readonly session: string;
  /** What the agent calls its tool, where a plug-in is to be told; else `undefined`. */
  readonly tool: string | undefined;
  /** Proof that plug-ins were asked, so that the run does not ask them again; `undefined`: they were not, or there are none. */
  readonly asked: string | undefined;
  readonly timeoutMs: number;
  /** The agent reads the output while the command runs. */
  readonly isBackground: boolean;
  /** For one that is run only after somebody was asked; with the search path that it was judged with. */
  readonly approval: { readonly ticket: string; readonly path: string } | undefined;
}

/**
 * What an agent's shell runs in place of a command, behind {@link callWords}: the operator's options, and the command as one word. There is no such thing as a command that is ours already: whatever a model writes is a command like any other.
 * @throws {SandboxError} `usage.invalid` for one that is too long to be an argument.
 */
export function rewrittenWords(
  { command, workspace, session, tool, asked, timeoutMs, isBackground, approval }: RewrittenCommand,
  options: HookOptions,
): readonly string[] {
  if (Buffer.byteLength(command) > LONGEST_ARGUMENT)
    throw new SandboxError(
      'usage.invalid',
      'the command is longer than an argument may be (128 KiB); put it into a file and run that',
    );
  return [
    ...['--for-model', ...(isBackground ? ['--live'] : [])],
    ...['--workspace', workspace, '--session', session],
    ...(tool === undefined ? [] : ['--tool', tool]),
    ...(asked === undefined ? [] : ['--asked', asked]),
    ...operatorWords(options.sandbox),
    ...['--timeout', String(timeoutMs / 1000)],
    ...(approval === undefined ? [] : ['--env', `PATH=${approval.path}`, '--approval', approval.ticket]),
    ...['-c', command],
  ];
}

/** What a call of this program begins with: a hook's, or that of a rewritten command. */
export const callWords = ({ client, program }: HookOptions): readonly string[] =>
  client === undefined ? program : [client, ...program];

/** The operator's options but the time limit, as words. */
export function operatorWords({
  profile,
  policy,
  backend,
  autonomy,
  audit,
}: HookOptions['sandbox']): readonly string[] {
  const given = { profile, policy: typeof policy === 'string' ? policy : undefined, backend, autonomy };
  return [
    ...Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value])),
    ...(audit === true ? ['--audit'] : []),
  ];
}
