import { lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { directoriesBetween } from '../../base/absolute-path.ts';
import { orElse } from '../../base/or-else.ts';
import { pathOf, textOfPath } from '../../base/path-text.ts';
import { readRegular } from '../host/held-directory.ts';

/** How many manifests are read before the first command; what the others said is not known. */
const MOST_MANIFESTS = 50;
/** A larger file is told. */
const MOST_BYTES = 1024 * 1024;
/** How many files of a directory are compared at most. */
const MOST_COMPARED = 200;

/**
 * Keys of a package.json by which nothing runs, and by which no tool is told what to run. Packages that it depends on do run when
 * they are installed, which a person starts knowing that they are what the project asks for.
 */
const NAMES_ONLY = new Set([
  ...['name', 'version', 'description', 'keywords', 'homepage', 'bugs', 'license', 'author', 'contributors'],
  ...['maintainers', 'funding', 'files', 'main', 'module', 'browser', 'type', 'types', 'typings', 'exports'],
  ...[
    'imports',
    'bin',
    'man',
    'directories',
    'repository',
    'private',
    'publishConfig',
    'sideEffects',
    'engines',
  ],
  ...['os', 'cpu', 'libc', 'dependencies', 'devDependencies', 'peerDependencies', 'peerDependenciesMeta'],
  ...['optionalDependencies', 'bundleDependencies', 'bundledDependencies', 'browserslist'],
]);

/** What `npm init` writes. */
const NO_TESTS = 'echo "Error: no test specified" && exit 1';

/** What a package.json has run, as text; '': nothing; `undefined`: it cannot be known. */
function whatRuns(content: Buffer | undefined): string | undefined {
  const parsed: unknown = orElse(() => JSON.parse(content?.toString() ?? ''), undefined);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return undefined;
  const rest = Object.entries(parsed).flatMap(([key, value]) => {
    if (NAMES_ONLY.has(key)) return [];
    if (key !== 'scripts' || typeof value !== 'object' || value === null) return [[key, value]];
    const scripts = Object.entries(value as object).filter(
      ([name, script]) => name !== 'test' || script !== NO_TESTS,
    );
    return scripts.length === 0 ? [] : [[key, scripts.sort()]];
  });
  return rest.length === 0 ? '' : JSON.stringify(rest.sort());
}

/** Files that commands are expected to leave, so that they are not reported although a program obeys them. */
export class Expected {
  readonly #ran = new Map<string, string | undefined>();

  /** `manifests`: those that are there. */
  constructor(manifests: readonly string[]) {
    for (const path of manifests.slice(0, MOST_MANIFESTS)) this.#ran.set(path, whatRuns(read(path)));
  }

  /** Whether what a package.json has run is nothing, or what it had run before. */
  runsNothingNew(path: string): boolean {
    const before = this.#ran.get(path);
    const now = whatRuns(read(path));
    this.#ran.set(path, now);
    return now === '' || (now !== undefined && now === before);
  }

  /**
   * Whether it is in a worktree that came, and is what lies at the same place of the worktree around it. `came`: what was not there
   * before; `changed`: that and what was changed.
   */
  isCopyInWorktree(
    path: string,
    root: string,
    came: ReadonlySet<string>,
    changed: ReadonlySet<string>,
  ): boolean {
    const around = [root, ...directoriesBetween(path, root)].toReversed();
    const worktree = around.find((directory) => came.has(join(directory, '.git')));
    if (worktree === undefined) return false;
    const main = around.find(
      (directory) =>
        directory.length < worktree.length &&
        lstatSync(pathOf(join(directory, '.git')), { throwIfNoEntry: false }) !== undefined,
    );
    if (main === undefined) return false;
    const twin = `${main}${path.slice(worktree.length)}`;
    const isUntouched = [twin, ...directoriesBetween(twin, main)].every((one) => !came.has(one));
    if (!isUntouched) return false;
    let left = MOST_COMPARED;
    const isSame = (copy: string, original: string): boolean => {
      if (left-- <= 0 || changed.has(original)) return false;
      const [is, was] = [copy, original].map((one) => lstatSync(pathOf(one), { throwIfNoEntry: false }));
      if (is?.isDirectory() === true && was?.isDirectory() === true) {
        const names = readdirSync(pathOf(copy), 'buffer').map(textOfPath);
        return names.every((name) => isSame(join(copy, name), join(original, name)));
      }
      if (is?.isSymbolicLink() === true && was?.isSymbolicLink() === true)
        return readlinkSync(pathOf(copy), 'buffer').equals(readlinkSync(pathOf(original), 'buffer'));
      const [now, before] = [read(copy), read(original)];
      return now !== undefined && before !== undefined && now.equals(before);
    };
    return orElse(() => isSame(path, twin), false);
  }
}

const read = (path: string): Buffer | undefined =>
  orElse(() => readRegular(pathOf(path), MOST_BYTES), undefined);

/** Whether the name of a file is that of a package's manifest. */
export const isManifest = (path: string): boolean =>
  basename(path) === 'package.json' && dirname(path) !== path;
