// Run by the build, with: DIRECTORY_OF_THIS_SOURCE DIRECTORY_TO_WRITE_TO
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SHELLS } from '../help/help.ts';
import {
  type CommandDescription,
  collectPrograms,
  describeAll,
  everyCommand,
  type ValueKind,
} from './describe-programs.ts';

/** All that completions know, as `completion.sh` and `completion.fish` describe it. */
function tableRows({ path, subcommands, options, arguments: operands }: CommandDescription) {
  const rows = [
    ...subcommands.map((each) => ['sub', each.path.at(-1), '', each.summary]),
    ...options.map(({ names, value, summary }) => ['opt', names.join(' '), valueField(value), summary]),
    ...operands.map(({ name, variadic, value }, place) => [
      'arg',
      variadic ? `${place} *` : `${place}`,
      valueField(value),
      name,
    ]),
  ];
  return rows.map((row) => quoted([path.join(' '), ...row].join('|')));
}

function valueField(value: ValueKind | undefined): string {
  if (value === undefined) return '';
  return 'words' in value ? [value.kind, ...value.words].join(' ') : value.kind;
}

/** A word of which no shell expands anything, written in the same way in all of them. */
const quoted = (text: string) => `'${text.replaceAll(/['\\]/g, '’')}'`;

/** The script for a shell: what it is framed by, with the lines `# @NAME` replaced. */
function completionScript(shell: string, rows: readonly string[], sources: string): string {
  const read = (name: string) => readFileSync(join(sources, name), 'utf8').trimEnd();
  return `${read(`completion.${shell}`)}\n`
    .replace('# @walk', () => read('completion.sh'))
    .replace(/^( *)# @table$/m, (_, indent: string) => rows.map((row) => `${indent}${row} \\`).join('\n'));
}

const [sources = '', target = ''] = process.argv.slice(2);
void collectPrograms().then((programs) => {
  const rows = everyCommand(describeAll(programs)).flatMap(tableRows);
  mkdirSync(join(target, 'completions'), { recursive: true });
  for (const shell of SHELLS)
    writeFileSync(join(target, `completions/sandbox-run.${shell}`), completionScript(shell, rows, sources));
});
