import type { Word } from '../../model/command-line.ts';
import { type ProgramRow, programs, type Runs } from '../behaviour.ts';
import { NOTHING } from '../runs.ts';

/** Builtins of bash. Which of them may run at all is the parser's business. */
export const BUILTINS: readonly ProgramRow[] = [
  ...programs('echo printf', 'low', 'local', { operands: 'none' }),
  ...programs(
    'true false : exit return break continue shift wait jobs umask getopts local times',
    'low',
    'local',
    {
      operands: 'none',
    },
  ),
  ...programs(
    'export declare typeset readonly unset set shopt type let read mapfile readarray',
    'low',
    'local',
    {
      operands: 'none',
    },
  ),
  ...programs('test [ [[', 'low', 'local', { operands: 'guess' }),
  ...programs('cd pushd popd dirs', 'low', 'local', { grammar: { flags: 'L P e' }, operands: 'reads' }),
  ...programs('pwd', 'low', 'local', {
    grammar: { flags: 'L P logical physical' },
    operands: 'none',
    strict: ({ command }) =>
      command.words.length === 1
        ? []
        : [
            {
              effect: 'invalid',
              code: 'arguments',
              message: 'takes no arguments here',
              words: sources(command.words),
            },
          ],
  }),
  ...programs('eval', 'medium', 'unknown', {
    operands: 'guess',
    builtin: true,
    runs: ({ args }) => inThisShell(args[0]?.value === '--' ? args.slice(1) : args),
  }),
  ...programs('trap', 'medium', 'unknown', {
    operands: 'guess',
    builtin: true,
    runs: ({ args: [action] }) =>
      action === undefined || /^(?:-.*|)$/.test(action.value ?? '')
        ? NOTHING
        : inThisShell([action], 'unknown'),
  }),
  // Code that is not seen, history, and what outlives the command.
  ...programs('source . enable bind complete compgen history fc hash alias unalias', 'medium', 'unknown', {
    operands: 'guess',
  }),
  ...programs('disown suspend fg bg', 'medium', 'local', { operands: 'none' }),
  ...programs('ulimit', 'low', 'local', { operands: 'none' }),
  ...programs('kill killall pkill', 'high', 'local', { operands: 'none', signals: true }),
];

function sources(words: readonly { readonly source: string }[]): readonly string[] {
  return words.slice(1).map((word) => word.source);
}

/** A text that the shell reads which reads the command. */
function inThisShell(text: readonly Word[], directory?: 'unknown'): Runs {
  if (text.length === 0) return NOTHING;
  const run = { kind: 'text', text, dialect: 'bash', sameShell: true } as const;
  return { runs: [directory === undefined ? run : { ...run, directory }] };
}
