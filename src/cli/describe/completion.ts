import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bashParts } from './bash-completion.ts';
import type { CommandDescription } from './describe-program.ts';
import { fishParts } from './fish-completion.ts';
import { zshParts } from './zsh-completion.ts';

/** THE list of shells that have a completion, each with the parts that are put into its script. */
export const COMPLETED_SHELLS = { bash: bashParts, fish: fishParts, zsh: zshParts } as const;

/** One of {@link COMPLETED_SHELLS}. */
export type CompletedShell = keyof typeof COMPLETED_SHELLS;

/** The completion script for a shell. `directory`: where `completion.SHELL` is, which has a line `# @NAME` for each part. */
export function completionScript(shell: CompletedShell, root: CommandDescription, directory: string): string {
  const parts = COMPLETED_SHELLS[shell](root);
  const frame = readFileSync(join(directory, `completion.${shell}`), 'utf8');
  return frame.replaceAll(/^( *)# @([a-z]+)$/gm, (_, indent: string, name: string) =>
    (parts[name] ?? []).map((line) => (line === '' ? '' : `${indent}${line}`)).join('\n'),
  );
}
