import { accessSync, constants, readdirSync, statSync } from 'node:fs';
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { orElse } from '../../base/or-else.ts';
import { pathOf, textOfPath } from '../../base/path-text.ts';
import type { PathRule } from '../../confine/plan/grant.ts';
import type { PathLookup } from '../../confine/plan/path-lookup.ts';
import { holdsSecretAt, OF_A_PROJECT, type Places, whyNotByPath } from '../proposals.ts';
import { realPath } from './own-program.ts';

/** Places that are granted anyway, or private to each command. */
const ELSEWHERE = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/nix/store',
  '/gnu/store',
  '/snap',
  '/tmp',
  '/proc',
  '/dev',
];
/** More links than this in one directory are not followed. */
const MOST_LINKS = 1_000;

/**
 * The programs of the user that PATH finds, in the home and in /opt, with what belongs to them: the prefix that they were
 * installed in (`~/miniconda3`, `/opt/venv`), and where links lead (`~/.local/lib/node_modules`). What no proposal may open
 * (credentials, settings, state, a home as a whole) is not granted with them.
 */
export function programsOnPath(
  places: Places,
  granted: readonly PathRule[],
  lookup: PathLookup,
): readonly PathRule[] {
  const found: string[] = [];
  const home = realPath(places.home, lookup);
  const elsewhere = ELSEWHERE.filter((root) => !isBeneath(home, root));
  const isKnown = (real: string) =>
    [...elsewhere, places.workspace, ...found].some((root) => isBeneath(real, root)) ||
    granted.some((rule) => rule.access !== 'data' && isBeneath(real, rule.path));
  const isOpen = (one: string) => whyNotByPath(one, places, 'filesystem.read') === undefined;
  const add = (directory: string, itself: string) => {
    const real = homeOf(directory, isOpen) ?? (isOpen(itself) ? itself : undefined);
    if (real !== undefined && !isKnown(real)) found.push(real);
  };
  for (const named of new Set((places.env.PATH ?? '').split(delimiter))) {
    if (!isAbsolute(named)) continue;
    const directory = realPath(named, lookup);
    if (elsewhere.some((root) => isBeneath(directory, root))) continue;
    const entries = orElse(
      () => readdirSync(pathOf(directory), { withFileTypes: true, encoding: 'buffer' }),
      undefined,
    );
    if (entries === undefined) continue;
    if (!isKnown(directory)) add(directory, directory);
    for (const entry of entries.filter((one) => one.isSymbolicLink()).slice(0, MOST_LINKS)) {
      const target = realPath(`${directory}/${textOfPath(entry.name)}`, lookup);
      if (!isKnown(target) && isProgram(target)) add(dirname(target), target);
    }
  }
  return found.map((real) => ({
    path: real,
    access: 'read',
    required: false,
    reason: 'programs of the user (PATH)',
  }));
}

const isProgram = (path: string): boolean =>
  orElse(() => {
    accessSync(pathOf(path), constants.X_OK);
    return statSync(pathOf(path)).isFile();
  }, false);

/** The widest directory around a directory of programs that may be granted: its installation prefix, or itself; `undefined`: none. */
function homeOf(directory: string, isOpen: (path: string) => boolean): string | undefined {
  const at = directory.indexOf('/node_modules/');
  // Packages use each other, and where they lie nothing else does.
  const packages = directory.slice(0, at + '/node_modules'.length);
  if (at >= 0) return isOpen(packages) ? packages : undefined;
  const prefix = dirname(directory);
  if (PROGRAM_DIRECTORIES.has(basename(directory)) && isOpen(prefix) && holdsPrograms(prefix, OF_A_PREFIX))
    return prefix;
  return isOpen(directory) && holdsPrograms(directory) ? directory : undefined;
}

const PROGRAM_DIRECTORIES: ReadonlySet<string> = new Set(['bin', 'sbin', 'libexec', 'shims', 'Scripts']);
/** Names of which an installation prefix has at least one. */
const OF_A_PREFIX = [
  'lib',
  'lib64',
  'libexec',
  'share',
  'include',
  'jre',
  'conf',
  'pkg',
  'versions',
  'pyvenv.cfg',
];
/** A directory with more files than this is not searched for secrets, and so never granted as a whole. */
const MOST_FILES = 50;

/** Whether a directory holds programs: it is not a project, and no file directly in it is a secret. `beside`: names of which it must have one. */
function holdsPrograms(directory: string, beside?: readonly string[]): boolean {
  const entries = orElse(() => readdirSync(pathOf(directory), { withFileTypes: true }), []);
  const hasOne = (names: readonly string[]) => entries.some((entry) => names.includes(entry.name));
  if (hasOne(OF_A_PROJECT) || (beside !== undefined && !hasOne(beside))) return false;
  const files = entries.filter((entry) => entry.isFile());
  return files.length <= MOST_FILES && !files.some(({ name }) => holdsSecretAt(join(directory, name)));
}
