import type { WordPart } from '../model/command-line.ts';
import type { SyntaxNode } from './syntax.ts';

/** What a construct is called where it is refused, and what to write instead. */
interface Named {
  readonly name: string;
  readonly instead: string;
}

const WRITE_OUT = 'write the commands out, or run a program directly';

/** Syntax that is no simple command. */
export const NAMES_OF_NODES: Readonly<Record<Exclude<SyntaxNode['kind'], 'simple'>, Named>> = {
  list: { name: 'A list inside a list', instead: WRITE_OUT },
  'and-or': { name: 'A list inside a list', instead: WRITE_OUT },
  pipeline: { name: 'A pipeline inside a pipeline', instead: WRITE_OUT },
  group: { name: 'A group, ( … ) or { …; },', instead: 'write its commands without brackets' },
  redirected: {
    name: 'A redirect of a group or loop',
    instead: 'give each command a redirect of its own (>> adds to a file)',
  },
  if: { name: 'An if', instead: 'use && and ||' },
  loop: { name: 'A loop', instead: WRITE_OUT },
  case: { name: 'A case', instead: WRITE_OUT },
  function: { name: 'A function', instead: WRITE_OUT },
  expression: { name: '[[ … ]] or (( … ))', instead: 'use the program test' },
};

/** What makes a word unknown before it runs. */
export const NAMES_OF_PARTS: Readonly<Record<Exclude<WordPart['kind'], 'literal'>, Named>> = {
  glob: { name: 'A pattern for file names', instead: 'write the names out, or quote it if it is text' },
  tilde: { name: 'A tilde', instead: 'write the path out' },
  parameter: { name: 'A variable', instead: 'write its value out, or quote it singly if it is text' },
  brace: { name: 'A brace expansion', instead: 'write the words out' },
  arithmetic: { name: 'Arithmetic', instead: 'write the result' },
  'command-substitution': {
    name: 'A command substitution',
    instead: 'run that command first and write its output',
  },
  'process-substitution': { name: 'A process substitution', instead: 'write to a file first' },
  input: { name: 'A word that a program adds', instead: WRITE_OUT },
};

/** For builtins that are not programs too. */
export const INSTEAD_OF_BUILTIN: Readonly<Record<string, string>> = {
  ':': 'write true',
  exit: 'leave it out: the status is that of the last command',
  set: 'leave it out and use &&',
  shopt: 'leave it out',
  export: 'give variables with the request',
  unset: 'leave it out',
  declare: 'write values out',
  local: 'write values out',
  readonly: 'write values out',
  source: 'run the programs that the file would run',
  '.': 'run the programs that the file would run',
  eval: 'write the command itself',
  exec: 'write the command itself',
  command: 'write the command itself; which says where a program is',
  builtin: 'write the command itself',
  type: 'use which',
  hash: 'use which',
  wait: 'leave it out: every command is waited for',
  pushd: 'write cd DIRECTORY && before the command',
  popd: 'write cd DIRECTORY && before the command',
  read: 'use head or sed on a file',
};
