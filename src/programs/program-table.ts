import type { Program, ProgramRow } from './behaviour.ts';
import { ARCHIVES } from './families/archives.ts';
import { BUILD } from './families/build.ts';
import { BUILTINS } from './families/builtins.ts';
import { CLOUD } from './families/cloud.ts';
import { DANGEROUS } from './families/dangerous.ts';
import { DATA } from './families/data.ts';
import { DEBUGGING } from './families/debugging.ts';
import { EDITORS } from './families/editors.ts';
import { FILES } from './families/files.ts';
import { GIT } from './families/git.ts';
import { JAVASCRIPT } from './families/javascript.ts';
import { LANGUAGES } from './families/languages.ts';
import { NETWORK } from './families/network.ts';
import { PACKAGES } from './families/packages.ts';
import { PYTHON } from './families/python.ts';
import { READERS } from './families/readers.ts';
import { RUNNERS } from './families/runners.ts';
import { SEARCH } from './families/search.ts';
import { SED_AND_AWK } from './families/sed-and-awk.ts';
import { SYSTEM } from './families/system.ts';
import { TEXT } from './families/text.ts';

/** Every family of programs. A new family is a file and a line here. */
const FAMILIES: readonly (readonly ProgramRow[])[] = [
  BUILTINS,
  FILES,
  READERS,
  TEXT,
  SEARCH,
  SED_AND_AWK,
  ARCHIVES,
  GIT,
  JAVASCRIPT,
  PYTHON,
  LANGUAGES,
  BUILD,
  PACKAGES,
  RUNNERS,
  NETWORK,
  CLOUD,
  DATA,
  DEBUGGING,
  EDITORS,
  SYSTEM,
  DANGEROUS,
];

const ROWS: ReadonlyMap<string, ProgramRow> = new Map(
  FAMILIES.flatMap((family) =>
    family.flatMap((row) => row.names.split(' ').map((name) => [name, row] as const)),
  ),
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

/** What the tables say about a program; `undefined`: it is not listed. */
export function findProgram(name: string): Program | undefined {
  const exact = programOf(name);
  if (exact !== undefined) return exact;
  const general = VERSIONED.exec(name)?.[1];
  return general === undefined ? undefined : programOf(general);
}

/** The names of all programs, for tests and documentation. */
export function programNames(): readonly string[] {
  return [...ROWS.keys()];
}
