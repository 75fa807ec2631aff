import type { Word } from '../../model/command-line.ts';
import { type Argument, type PathUse, type ProgramRow, programs, type Runs, type Use } from '../behaviour.ts';
import { argumentOf } from '../options.ts';
import { plainPaths } from '../plain-paths.ts';
import { NOTHING } from '../runs.ts';

/** Builtins of bash. Which of them may run at all is the parser's business. */
export const BUILTINS: readonly ProgramRow[] = [
  ...programs('echo printf', 'low', 'local', { operands: 'none', application: { words: 'any' } }),
  ...programs(
    'true false : exit return break continue shift wait jobs umask getopts local times',
    'low',
    'local',
    {
      operands: 'none',
      application: { names: 'true false', words: 'any' },
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
  ...programs('test [ [[', 'low', 'local', {
    operands: 'guess',
    application: { names: 'test [', words: 'expression', paths: pathsOfTest },
  }),
  ...programs('cd pushd popd dirs', 'low', 'local', { grammar: { flags: 'L P e' }, operands: 'reads' }),
  ...programs('pwd', 'low', 'local', {
    grammar: { source: 'coreutils 9.1', flags: 'L P logical physical' },
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
    application: {},
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

/** Behind an operator that asks about a file, or beside one that compares two. */
function pathsOfTest({ command: { words } }: Use): readonly PathUse[] {
  const found = words.flatMap((word, index): readonly Argument[] => {
    if (index === 0) return [];
    const around = `${words[index - 1]?.value} ${words[index + 1]?.value}`;
    const asked = /^-[a-hkLprsuwxGOSN] /.test(around) || /^-(?:nt|ot|ef) | -(?:nt|ot|ef)$/.test(around);
    return asked ? [argumentOf(word)] : [];
  });
  return plainPaths(found, 'reads');
}

/** A text that the shell reads which reads the command. */
function inThisShell(text: readonly Word[], directory?: 'unknown'): Runs {
  if (text.length === 0) return NOTHING;
  const run = { kind: 'text', text, dialect: 'bash', sameShell: true } as const;
  return { runs: [directory === undefined ? run : { ...run, directory }] };
}
