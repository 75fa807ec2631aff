import type { Program } from './behaviour.ts';
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
const FAMILIES: readonly (readonly Program[])[] = [
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

const BY_NAME: ReadonlyMap<string, Program> = new Map(
  FAMILIES.flatMap((family) => family.map((program) => [program.name, program] as const)),
);

/** `python3.12`, `gcc-13`, `clang++-17`, `mkfs.ext4`: the program without its version or kind. */
const VERSIONED =
  /^(python|pip|node|perl|ruby|php|lua|gcc|g\+\+|clang|clang\+\+|clang-format|clang-tidy|java|pypy|vim|nc|mkfs|mount|awk)(?:[-.]?[\d.]+|\.(?:[a-z]+\d?|fat|vfat))$/;

/** What the tables say about a program; `undefined`: it is not listed. */
export function findProgram(name: string): Program | undefined {
  const exact = BY_NAME.get(name);
  if (exact !== undefined) return exact;
  const general = VERSIONED.exec(name)?.[1];
  return general === undefined ? undefined : BY_NAME.get(general);
}

/** All programs, for tests and documentation. */
export function allPrograms(): readonly Program[] {
  return [...BY_NAME.values()];
}
