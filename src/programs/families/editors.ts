import type { Use } from '../behaviour.ts';
import { type Finding, finding, type ProgramRow, programs } from '../behaviour.ts';

/** `+!id`, `+:q`: a command of the editor may run a program. */
function inspectEditor({ command }: Use): readonly Finding[] {
  return command.words
    .slice(1)
    .flatMap(({ value, source }) =>
      value !== undefined && /^\+(?!\d*$)/.test(value)
        ? [finding('executes', 'editor_command', 'runs a command of the editor', source)]
        : [],
    );
}

/** Editors, which run commands and write any file they are asked to. */
export const EDITORS: readonly ProgramRow[] = [
  ...programs('vi vim nvim view ex vimdiff gvim rvim rview', 'medium', 'unknown', {
    grammar: {
      open: true,
      flags: 'R n e E s b d m M N C Z es',
      values: 'T w W',
      executes: 'c cmd',
      loads: 'S u U i',
    },
    operands: 'writes',
    code: 'editor',
    inspect: inspectEditor,
  }),
  ...programs('ed red emacs emacsclient nano pico micro joe jed mcedit kak hx helix', 'medium', 'unknown', {
    grammar: {
      open: true,
      flags: 'Q nw batch q s',
      executes: 'eval execute e s speller',
      loads: 'l load script rcfile f funcall',
    },
    operands: 'writes',
    code: 'editor',
  }),
];
