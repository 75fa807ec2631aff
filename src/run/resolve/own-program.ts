import { accessSync, constants, existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { refuseShortage } from '../../base/errors/shortage.ts';
import { orElse } from '../../base/or-else.ts';
import { hostLibc, installedAddons } from '../../confine/native/addon-locations.ts';
import { packageDirectory } from '../../confine/native/load.ts';
import type { PathLookup } from '../../confine/plan/path-lookup.ts';

/** What npm links to in `.bin`. */
const PROGRAMS = ['sandbox-run', 'sandbox-sh'];
/** What is run of a checkout, where the rest is a person's work. */
const RUN_OF_CHECKOUT = ['dist', 'build', 'package.json'];

/**
 * What the next start of this program runs, unconfined, and obeys: its package, the packages that it loads, Node itself,
 * and the names by which it is started. Absolute; those packages only if `writable`, where commands can write, is near them.
 */
export function ownProgram(writable: readonly string[]): readonly string[] {
  const node = process.execPath;
  const started = process.argv[1];
  const others = [
    ...(canBeChanged(node) ? [node] : []),
    // By its name, not resolved: the symbolic links on the way have to be protected.
    ...(started !== undefined && isOurs(started) ? [started] : []),
  ];
  const root = realPath(packageDirectory());
  // An installed package loads others from where it is installed, a checkout from within.
  const modules = modulesAround(root);
  const home = modules.length === 0 ? root : dirname(modules[modules.length - 1] ?? root);
  if (!writable.some((grant) => isBeneath(home, grant) || isBeneath(grant, home))) return others;
  const own = modules.length === 0 ? RUN_OF_CHECKOUT.map((name) => join(root, name)) : [root];
  const addons = installedAddons(root, process.arch, hostLibc()).map(({ path }) => dirname(path));
  const names = [...modules, join(root, 'node_modules')].flatMap((directory) => [
    join(directory, 'sandbox-run'),
    ...PROGRAMS.map((name) => join(directory, '.bin', name)),
  ]);
  return [
    ...new Set([...own, ...[...addons, ...names].filter(existsSync), ...dependencies(root), ...others]),
  ];
}

/** Only what belongs to this package: the library is loaded by the programs of others. */
function isOurs(program: string): boolean {
  return isBeneath(realPath(program), realPath(packageDirectory()));
}

/** The `node_modules` that a package lies in, innermost first. */
function modulesAround(root: string): readonly string[] {
  const found: string[] = [];
  for (let at = root; at !== dirname(at); at = dirname(at)) {
    if (basename(dirname(at)) === 'node_modules') found.push(dirname(at));
  }
  return found;
}

/** The packages that one loads, and those that they load: by their names, which may be links. */
function dependencies(root: string): readonly string[] {
  const found = new Set<string>();
  const pending = [root];
  for (let from = pending.pop(); from !== undefined; from = pending.pop()) {
    for (const name of namesOfDependencies(from)) {
      const path = findPackage(from, name);
      if (path === undefined || found.has(path)) continue;
      found.add(path);
      pending.push(realPath(path));
    }
  }
  return [...found];
}

function namesOfDependencies(directory: string): readonly string[] {
  try {
    const manifest = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
    return ['dependencies', 'optionalDependencies', 'peerDependencies'].flatMap((key) =>
      Object.keys(manifest[key] ?? {}),
    );
  } catch (error) {
    refuseShortage(error);
    // No package: it loads nothing.
    return [];
  }
}

/** Where `require()` finds a package first. */
function findPackage(from: string, name: string): string | undefined {
  for (let at = from; ; at = dirname(at)) {
    const path = join(at, 'node_modules', name);
    if (existsSync(path)) return path;
    if (at === dirname(at)) return undefined;
  }
}

/** Whether a process of this user can change a file or take its name away. Root can. */
function canBeChanged(path: string): boolean {
  for (let at = realPath(path); ; at = dirname(at)) {
    if (isChangeable(at)) return true;
    if (at === dirname(at)) return false;
  }
}

function isChangeable(path: string): boolean {
  try {
    if (statSync(path).uid === process.geteuid?.()) return true;
    accessSync(path, constants.W_OK);
    // In such a directory (/tmp) only the owner takes a name away.
    return (statSync(path).mode & 0o1000) === 0;
  } catch {
    return false;
  }
}

/** A path without links, or as it is where it does not exist. With a `lookup` nothing is looked at twice. */
export function realPath(path: string, lookup?: PathLookup): string {
  if (lookup !== undefined) {
    const { kind, canonical } = lookup.resolve(path);
    return kind === 'missing' ? path : canonical;
  }
  return orElse(() => realpathSync(path), path);
}
