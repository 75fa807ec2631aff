import type { SimpleCommand, Word } from '../model/command-line.ts';
import type { Argument, Behaviour, Grammar, OptionUse, Program, Use } from './behaviour.ts';
import { parseOptions } from './options.ts';
import { findProgram } from './program-table.ts';

/** True if a name stands for a file of the workspace, which is never a program of the tables. */
export type IsForeign = (name: string) => boolean;

/** Where programs of the system live. Anything else with a slash is a file like any other. */
const SYSTEM_DIRECTORIES: ReadonlySet<string> = new Set([
  '/bin',
  '/sbin',
  '/usr/bin',
  '/usr/sbin',
  '/usr/local/bin',
  '/usr/local/sbin',
  '/snap/bin',
  '/opt/homebrew/bin',
  '/home/linuxbrew/.linuxbrew/bin',
]);

/** What is not in the tables: may do anything, but only what the kernel lets it. */
function unlisted(name: string): Program {
  return { name, risk: 'medium', reach: 'unknown', unlisted: true };
}

/** The name by which a command's program is looked up; `undefined` if it is a file of its own. */
export function programName(command: SimpleCommand, isForeign?: IsForeign): string | undefined {
  const name = command.words[0]?.value;
  if (name === undefined || name === '') return undefined;
  const slash = name.lastIndexOf('/');
  if (slash >= 0) {
    return SYSTEM_DIRECTORIES.has(name.slice(0, slash)) ? name.slice(slash + 1) : undefined;
  }
  // Whatever is found on such a PATH, it need not be the program of that name.
  if (command.assignments.some((assignment) => assignment.name === 'PATH')) return undefined;
  return isForeign?.(name) === true ? undefined : name;
}

/** What a command means to its program; `undefined` for assignments and redirects alone. */
export function describeCommand(command: SimpleCommand, isForeign?: IsForeign): Use | undefined {
  const first = command.words[0];
  if (first === undefined) return undefined;
  const name = programName(command, isForeign);
  return describeAs(
    command,
    (name === undefined ? undefined : findProgram(name)) ?? unlisted(name ?? first.source),
  );
}

/** What a command means to a program, whatever its first word says. */
export function describeAs(command: SimpleCommand, program: Program): Use {
  const options: OptionUse[] = [];
  const operands: Argument[] = [];
  const unknown: Word[] = [];
  const openEnded: Word[] = [];
  const path: string[] = [];
  let behaviour: Behaviour = program;
  let grammar: Grammar | undefined = program.grammar;
  let { risk, reach } = program;
  let index = 1;
  let afterDashes = 0;

  for (;;) {
    const parsed = parseOptions(
      command.words,
      index,
      grammar,
      grammar?.stopAtOperand === true || behaviour.verbs !== undefined,
    );
    options.push(...parsed.options);
    operands.push(...parsed.operands);
    if (grammar !== undefined && grammar.open !== true) unknown.push(...parsed.unknown);
    openEnded.push(...parsed.openEnded);
    afterDashes = parsed.afterDashes;
    index = parsed.next;
    const verb = behaviour.verbs === undefined ? undefined : command.words[index]?.value;
    const inner =
      verb !== undefined && behaviour.verbs !== undefined && Object.hasOwn(behaviour.verbs, verb)
        ? behaviour.verbs[verb]
        : undefined;
    if (verb === undefined || inner === undefined) break;
    path.push(verb);
    index++;
    behaviour = inner;
    grammar = inner.grammar ?? (program.optionsAnywhere === true ? program.grammar : undefined);
    risk = inner.risk ?? risk;
    reach = inner.reach ?? reach;
  }
  // The rest of a command that reads no options behind its first operand, or whose verb is not known.
  for (; index < command.words.length; index++) {
    const word = command.words[index];
    if (word === undefined) break;
    operands.push({ word, start: 0, text: word.value ?? '', complete: word.value !== undefined });
  }
  return {
    command,
    program,
    verbs: path,
    risk,
    reach,
    options,
    operands,
    afterDashes,
    unknown,
    openEnded,
  };
}
