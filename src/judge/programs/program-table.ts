import type { SimpleCommand, Word } from '../../model/index.ts';
import type {
  Application,
  Argument,
  Behaviour,
  Call,
  Grammar,
  OptionUse,
  Program,
  ProgramRow,
  Runs,
  Use,
} from './behaviour.ts';
import { ARCHIVES } from './families/archives.ts';
import { AWK } from './families/awk.ts';
import { BUILD } from './families/build.ts';
import { DANGEROUS } from './families/dangerous.ts';
import { DEBUGGING } from './families/debugging.ts';
import { FILES } from './families/files.ts';
import { JAVASCRIPT } from './families/javascript.ts';
import { LANGUAGES } from './families/languages.ts';
import { LAUNCHERS, runsOfProcName } from './families/launchers.ts';
import { NETWORK } from './families/network.ts';
import { PACKAGES } from './families/packages.ts';
import { PYTHON } from './families/python.ts';
import { READERS } from './families/readers.ts';
import { SEARCH } from './families/search.ts';
import { SED } from './families/sed.ts';
import { BUILTINS, SHELLS } from './families/shells.ts';
import { SYSTEM } from './families/system.ts';
import { TEXT } from './families/text.ts';
import { GIT } from './git/git.ts';
import { grammarOf } from './grammars.ts';
import { hasOption, NOTHING, optionValue, parseOptions, readOptions, refused, runWords } from './options.ts';

/** Every family of programs. A new family is a file and a line here. */
const FAMILIES: readonly (readonly ProgramRow[])[] = [
  BUILTINS,
  FILES,
  READERS,
  TEXT,
  SEARCH,
  SED,
  AWK,
  ARCHIVES,
  GIT,
  JAVASCRIPT,
  PYTHON,
  LANGUAGES,
  BUILD,
  PACKAGES,
  LAUNCHERS,
  SHELLS,
  NETWORK,
  DEBUGGING,
  SYSTEM,
  DANGEROUS,
];

/** THE table: every row, family by family. */
export const PROGRAM_ROWS: readonly ProgramRow[] = FAMILIES.flat();

const WITH_MORE_NAMES = PROGRAM_ROWS.filter(({ alsoCalled }) => alsoCalled !== undefined);

/** Cache of looked-up programs: a start needs few names, so a table of all would cost more than it saves. */
const programs = new Map<string, Program | undefined>();

function programOf(name: string): Program | undefined {
  if (!programs.has(name)) {
    const row = PROGRAM_ROWS.find(({ names }) => isAmong(name, names));
    programs.set(name, row && { ...row.behaviour(), name, risk: row.risk, reach: row.reach });
  }
  return programs.get(name);
}

/** Whether a name is one of those that are separated by blanks. */
function isAmong(name: string, names: string): boolean {
  if (name === '' || name.includes(' ')) return false;
  for (let at = names.indexOf(name); at !== -1; at = names.indexOf(name, at + 1)) {
    const end = at + name.length;
    if ((at === 0 || names[at - 1] === ' ') && (end === names.length || names[end] === ' ')) return true;
  }
  return false;
}

/** What the tables say about a program; `undefined`: it is not listed. */
export function findProgram(name: string): Program | undefined {
  const exact = programOf(name);
  if (exact !== undefined) return exact;
  for (const { alsoCalled, names } of WITH_MORE_NAMES) {
    const found = alsoCalled?.exec(name);
    if (found) return programOf(found[1] ?? names.split(' ')[0] ?? '');
  }
  return undefined;
}

/** A program that the application backend runs. */
export type ApplicationProgram = Program & { readonly application: Application };

const forApplication = new Map<string, ApplicationProgram | undefined>();

/** A program as the application backend takes it; `undefined`: its words alone say too little. */
export function findForApplication(name: string): ApplicationProgram | undefined {
  if (!forApplication.has(name)) forApplication.set(name, asApplicationTakesIt(name));
  return forApplication.get(name);
}

function asApplicationTakesIt(name: string): ApplicationProgram | undefined {
  const known = programOf(name);
  if (known?.application === undefined) return undefined;
  const { names = name, words } = known.application;
  const program = { ...known, ...known.application, application: known.application };
  const isClosed = program.grammar !== undefined && grammarOf(program)?.open !== true;
  return names.split(' ').includes(name) && (isClosed || words !== undefined) ? program : undefined;
}

/** Names in /proc and /dev/fd of programs that stand elsewhere. */
const PROC_NAME = /^\/+(?:proc\/|dev\/fd\/)/;

/** Which programs run what stands in their words, by name. */
const running = new Map<string, boolean>();

/**
 * Says what a call of this name runs, from its words and the text on its standard input; `undefined`: it runs nothing
 * that stands there. `inShell`: a shell looks the name up, so that builtins count.
 */
export function runnerOf(
  name: string,
  inShell: boolean,
): ((words: readonly Word[], input: Word | undefined) => Runs) | undefined {
  const callOf = (words: readonly Word[], input: Word | undefined, grammar: Grammar = {}): Call => ({
    name: base,
    words,
    args: words.slice(1),
    grammar,
    outer: [],
    input,
  });
  const base = name.slice(name.lastIndexOf('/') + 1);
  if (PROC_NAME.test(name)) return (words, input) => runsOfProcName(callOf(words, input));
  const program = findProgram(base);
  if (program === undefined || (program.builtin === true && (!inShell || base !== name))) return undefined;
  const runs = running.get(base) ?? runsSomething(program);
  running.set(base, runs);
  return runs ? (words, input) => runsOf(program, callOf(words, input, grammarOf(program))) : undefined;
}

/** What a program of the tables runs when it is called so. */
function runsOf(behaviour: Behaviour, call: Call): Runs {
  if (behaviour.launches !== undefined) return launch(behaviour.launches, call);
  const otherwise = () => behaviour.runs?.(call) ?? NOTHING;
  if (!Object.values(behaviour.verbs ?? {}).some(runsSomething)) return otherwise();
  const before = readOptions(call.args, call.grammar);
  if (!before.ok) {
    // The options may belong to another verb, and verbs that run no command are not refused for them.
    return call.args.some(({ value }) => value === undefined || runsSomething(verbOf(behaviour, value)))
      ? refused(`${call.name}: ${before.message}`, before.word)
      : otherwise();
  }
  const [verb, ...args] = before.rest;
  if (verb !== undefined && verb.value === undefined)
    return refused(`${call.name}: the verb ${verb.source} must be written out.`, verb);
  const inner = verbOf(behaviour, verb?.value);
  return runsSomething(inner)
    ? runsOf(inner, { ...call, args, grammar: grammarOf(inner) ?? {}, outer: before.options })
    : otherwise();
}

/** True if the program, or a verb of it, runs what stands in its words. */
export function runsSomething(behaviour: Behaviour | undefined): behaviour is Behaviour {
  if (behaviour === undefined) return false;
  const { runs, launches, verbs = {} } = behaviour;
  return runs !== undefined || launches !== undefined || Object.values(verbs).some(runsSomething);
}

function verbOf({ verbs }: Behaviour, name: string | undefined): Behaviour | undefined {
  return verbs !== undefined && name !== undefined && Object.hasOwn(verbs, name) ? verbs[name] : undefined;
}

/** The command behind options and operands. */
function launch(launches: NonNullable<Behaviour['launches']>, call: Call): Runs {
  const read = readOptions(call.args, call.grammar);
  if (!read.ok) return refused(`${call.name}: ${read.message}`, read.word);
  if (launches.inert !== undefined && hasOption(read, launches.inert)) return NOTHING;
  const operands = read.rest.slice(0, launches.operands ?? 0);
  const dynamic = operands.find(({ value }) => value === undefined);
  if (dynamic !== undefined) {
    return refused(
      `${call.name}: ${dynamic.source} must be written out, or it is not clear what runs.`,
      dynamic,
    );
  }
  const behind = readOptions(
    read.rest.slice(operands.length),
    launches.optionsBehind === true ? call.grammar : {},
  );
  if (!behind.ok) return refused(`${call.name}: ${behind.message}`, behind.word);
  const directory = optionValue([...call.outer, ...read.options], launches.directory ?? '');
  return runWords(behind.rest, launches.elsewhere === true ? 'unknown' : directory);
}

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
  let grammar = grammarOf(program);
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
    grammar = grammarOf(inner) ?? (program.optionsAnywhere === true ? grammarOf(program) : undefined);
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

/** What a command means to the program that the application backend runs for it; `undefined`: it runs none of that name. */
export function useForApplication(
  command: SimpleCommand,
): (Use & { readonly program: ApplicationProgram }) | undefined {
  const name = programName(command);
  const program = name === undefined ? undefined : findForApplication(name);
  return program === undefined ? undefined : { ...describeAs(command, program), program };
}
