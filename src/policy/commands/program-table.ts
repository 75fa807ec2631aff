import type { Program, ProgramRow } from './behaviour.ts';
import { ARCHIVES } from './programs/archives.ts';
import { BUILD } from './programs/build.ts';
import { BUILTINS } from './programs/builtins.ts';
import { CLOUD } from './programs/cloud.ts';
import { DANGEROUS } from './programs/dangerous.ts';
import { DATA } from './programs/data.ts';
import { DEBUGGING } from './programs/debugging.ts';
import { EDITORS } from './programs/editors.ts';
import { FILES } from './programs/files.ts';
import { GIT } from './programs/git.ts';
import { JAVASCRIPT } from './programs/javascript.ts';
import { LANGUAGES } from './programs/languages.ts';
import { NETWORK } from './programs/network.ts';
import { PACKAGES } from './programs/packages.ts';
import { PYTHON } from './programs/python.ts';
import { READERS } from './programs/readers.ts';
import { RUNNERS } from './programs/runners.ts';
import { SEARCH } from './programs/search.ts';
import { SED_AND_AWK } from './programs/sed-and-awk.ts';
import { SYSTEM } from './programs/system.ts';
import { TEXT } from './programs/text.ts';

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
