import { as, type Draft, loss } from './draft.ts';
import type { Place } from './importer.ts';
import type { Table } from './place.ts';

/**
 * What the Anthropic sandbox runtime never lets be written in the workspace (DANGEROUS_FILES, DANGEROUS_DIRECTORIES), as
 * far as no profile protects it already.
 */
const NEVER_WRITTEN = ['.gitconfig', '.gitmodules', '.ripgreprc'];
const KEY = 'mandatoryDenySearchDepth';

/** Protects what the runtime keeps from being written without being told, and says what cannot be. */
export function protectBuiltIn(draft: Draft, settings: Table, at: Place, isInForce: boolean): void {
  const leaf = { place: [...at, KEY], value: settings[KEY] ?? '(the default)' };
  if (!isInForce || draft.profile === 'read-only') {
    if (settings[KEY] !== undefined) draft.note(leaf, as('nothing of it can be written, or nothing is kept'));
    return;
  }
  draft.protect.push(...NEVER_WRITTEN);
  draft.note(
    leaf,
    loss(
      'wider',
      'files that others run or obey (.gitconfig, .bashrc, .vscode, .git/hooks, …) cannot be written there in any directory; here, those at the top of the workspace that are there are protected, and a program can make or change the others',
      'name those in directories of the workspace in filesystem.protect, or use profile = "read-only"',
    ),
  );
}
