import type { Word } from '../model/command-line.ts';
import type { Application, Call, Grammar, Program, ProgramRow, Runs } from './behaviour.ts';
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
import { runsOf, runsSomething } from './runs.ts';

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

const ROWS: ReadonlyMap<string, ProgramRow> = new Map(
  PROGRAM_ROWS.flatMap((row) => row.names.split(' ').map((name) => [name, row] as const)),
);

/** Made at the first use of each: loading the tables stays cheap. */
const programs = new Map<string, Program>();

function programOf(name: string): Program | undefined {
  const known = programs.get(name);
  if (known !== undefined) return known;
  const row = ROWS.get(name);
  if (row === undefined) return undefined;
  const program: Program = { ...row, name };
  programs.set(name, program);
  return program;
}

/** `python3.12`, `gcc-13`, `clang++-17`, `mkfs.ext4`: the program without its version or kind. */
const VERSIONED =
  /^(python|pip|node|perl|ruby|php|lua|gcc|g\+\+|clang|clang\+\+|clang-format|clang-tidy|java|pypy|vim|nc|mkfs|mount|awk)(?:[-.]?[\d.]+|\.(?:[a-z]+\d?|fat|vfat))$/;

/** The dynamic loader, under the names that systems give it. */
const LOADER = /^ld(?:-linux|-musl|-[0-9.]+|64)?[A-Za-z0-9_.-]*\.so(?:\.[0-9]+)*$/;

/** What the tables say about a program; `undefined`: it is not listed. */
export function findProgram(name: string): Program | undefined {
  const exact = programOf(name);
  if (exact !== undefined) return exact;
  const general = LOADER.test(name) ? 'ld.so' : VERSIONED.exec(name)?.[1];
  return general === undefined ? undefined : programOf(general);
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
  const row = ROWS.get(name);
  if (row?.application === undefined) return undefined;
  const { names = row.names, words } = row.application;
  const program = { ...row, ...row.application, name, application: row.application };
  const isClosed = program.grammar !== undefined && program.grammar.open !== true;
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
): ((words: readonly Word[], input: string | undefined) => Runs) | undefined {
  const callOf = (words: readonly Word[], input: string | undefined, grammar: Grammar = {}): Call => ({
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
  return runs ? (words, input) => runsOf(program, callOf(words, input, program.grammar)) : undefined;
}
