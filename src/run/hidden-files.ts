import { type BigIntStats, type Dirent, lstatSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { directoriesBetween, isBeneath } from '../base/absolute-path.ts';
import { errnoOf } from '../base/errno-of.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { readOr, refuseShortage } from '../base/errors/shortage.ts';
import { matchesName, type NamePattern, readNamePattern } from '../base/name-pattern.ts';
import { bytesOfPath, pathOf, textOfPath } from '../base/path-text.ts';
import { visibleLine } from '../base/visible-text.ts';
import type { HiddenFiles } from '../confine/plan/grant.ts';
import type { PathLookup } from '../confine/plan/path-lookup.ts';
import { problemOfHidePattern } from '../model/index.ts';
import { createPathLookup } from '../workspace/index.ts';

/** What holds for one look; a look that would take more is refused, and so is the command. */
const LIMITS = {
  directories: 50_000,
  names: 2_000_000,
  /** Each is a mount. */
  hidden: 1000,
};
/** No path of this length is entered: what is hidden in it could not be named. */
const LONGEST_PATH = 2000;
/** A directory may have changed twice in one tick of a clock that may be another machine's. */
const SETTLED_MS = 2000;

/**
 * Of these only what a pattern names by their name is looked at: what package managers put there is not the user's, is read
 * by programs (certificates, say), and is most of what there is. Nothing in a workspace can add to them.
 */
const BULK = new Set(['.git', 'node_modules', '.venv', 'venv', '.tox', '.nox', '__pycache__']);

/** What lies in these is no file of the user, whatever is granted around them. */
const NO_FILES = new Set(['/proc', '/sys', '/dev']);

/** Where commands can read, and which patterns are meant there. */
interface HideRoots {
  /** Canonical. Patterns with a slash are relative to it. */
  readonly workspace: string;
  /** What the policy lets be read by name, the workspace among it: patterns without a slash are meant there too. */
  readonly own: readonly string[];
  /** All that can be read. */
  readonly all: readonly string[];
  readonly home: string;
}

/** `**`: any directories. */
type Part = '**' | NamePattern;
interface Pattern {
  readonly id: number;
  readonly parts: readonly Part[];
  readonly directoriesOnly: boolean;
  readonly start: 'anywhere' | 'workspace' | 'root';
}
/** Parts of patterns that the next name is compared with. */
type State = readonly [pattern: Pattern, at: number];
const keyOf = ([{ id }, at]: State): string => `${id}.${at}`;
interface Entry {
  readonly name: string;
  readonly kind: 'directory' | 'link' | 'other';
}
interface Listing {
  readonly stamp: string;
  readonly isSettled: boolean;
  readonly entries: readonly Entry[];
  /** The entries that may match, by the states with which they were compared: most entries match nothing. */
  readonly compared: Map<string, readonly Compared[]>;
}
/** An entry that matches, or in which something may. */
interface Compared {
  readonly entry: Entry;
  readonly matched: 'any' | 'directory' | undefined;
  readonly next: readonly State[];
}

/** What matches, and of each path which file is there and when it was changed, so that a later look can be compared. */
export interface Looked {
  readonly files: HiddenFiles;
  readonly states: readonly string[];
}

/** Looks for what `filesystem.hide` matches, before each command: what has not changed is not read again. */
export class HiddenFinder {
  readonly #patterns: readonly Pattern[];
  readonly #roots: HideRoots;
  /** By directory: what was read of it. */
  #listings = new Map<string, Listing>();
  readonly #limits: typeof LIMITS;

  /** @throws {SandboxError} `policy.invalid` for a pattern that is none. */
  constructor(patterns: readonly string[], roots: HideRoots, limits = LIMITS) {
    this.#roots = roots;
    this.#limits = limits;
    this.#patterns = patterns
      .flatMap((text) => patternsOf(text, roots.home))
      .map((pattern, id) => ({ ...pattern, id }));
  }

  /**
   * What matches now.
   * @throws {SandboxError} `confinement.failed` where it cannot be known or is too much; `policy.invalid` where it is the workspace.
   */
  look(): Looked {
    const look = this.#look(this.#listings, []);
    this.#listings = look.read;
    const files = look.found();
    return { files, states: files.paths.map((path) => stateOf(path)) };
  }

  /**
   * What matches in the workspace with layers over it, the topmost first. It names all that matches in any of them: what one of
   * them removed is not there to be hidden.
   * @throws as `look`.
   */
  lookOnLayers(layers: readonly string[]): HiddenFiles {
    return layers.length === 0 ? this.look().files : this.#look(new Map(), layers).found();
  }

  #look(before: ReadonlyMap<string, Listing>, layers: readonly string[]): Look {
    const look = new Look(this.#roots, before, this.#limits, layers);
    for (const root of this.#roots.all) look.begin(root, this.#patterns);
    look.findOtherNames();
    return look;
  }
}

/** @throws {SandboxError} `policy.invalid`. */
function patternsOf(text: string, home: string): readonly Omit<Pattern, 'id'>[] {
  const problem = problemOfHidePattern(text);
  if (problem !== undefined)
    throw new SandboxError('policy.invalid', `filesystem.hide: ${JSON.stringify(text)} ${problem}`);
  const isFromRoot = text.startsWith('/') || text.startsWith('~/');
  const whole = text.startsWith('~/') ? `${escaped(home)}${text.slice(1)}` : text;
  const names = whole.split('/').filter((name) => name !== '' && name !== '.');
  let directoriesOnly = text.endsWith('/');
  // Everything, as in .gitignore: any directories alone are no name that could be compared.
  if (names.every(isAnyDirectories)) names.splice(0, names.length, '**', '*');
  // All that is in a directory: it is hidden itself.
  while (names.length > 1 && isAnyDirectories(names.at(-1) ?? '')) {
    names.pop();
    directoriesOnly = true;
  }
  const parts = names.map(partOf);
  const start = isFromRoot ? 'root' : text.replace(/\/+$/, '').includes('/') ? 'workspace' : 'anywhere';
  const pattern = { parts, directoriesOnly, start } as const;
  if (start === 'anywhere' || (start === 'workspace' && parts[0] === '**'))
    return [{ ...pattern, parts: parts[0] === '**' ? parts : ['**', ...parts], start: 'anywhere' }];
  // By what its beginning leads to as well: paths are compared without links.
  const fixed = names.findIndex((name) => /[*?[\]{}\\]/.test(name));
  if (start === 'workspace') return [pattern];
  const end = fixed === -1 ? names.length - 1 : fixed;
  const named = `/${names.slice(0, end).join('/')}`;
  const { canonical } = createPathLookup().resolve(named);
  if (canonical === named) return [pattern];
  const led = canonical.split('/').filter((name) => name !== '');
  return [pattern, { ...pattern, parts: [...led.map((name) => partOf(escaped(name))), ...parts.slice(end)] }];
}

const escaped = (path: string) => path.replace(/[*?[\]{}\\!]/g, '\\$&');

const isAnyDirectories = (name: string) => /^\*\*+$/.test(name);

function partOf(name: string): Part {
  if (isAnyDirectories(name)) return '**';
  const read = readNamePattern(name);
  if (typeof read === 'string') throw new SandboxError('policy.invalid', `filesystem.hide: ${name} ${read}`);
  return read;
}

/** One look through all that can be read. */
class Look {
  readonly read = new Map<string, Listing>();
  readonly #roots: HideRoots;
  readonly #before: ReadonlyMap<string, Listing>;
  readonly #limits: typeof LIMITS;
  readonly #layers: readonly string[];
  readonly #lookup: PathLookup;
  readonly #hits = new Set<string>();
  readonly #visited = new Set<string>();
  #elsewhere: readonly string[] = [];
  #entries = 0;

  constructor(
    roots: HideRoots,
    before: ReadonlyMap<string, Listing>,
    limits: typeof LIMITS,
    layers: readonly string[],
  ) {
    this.#roots = roots;
    this.#before = before;
    this.#limits = limits;
    this.#layers = layers;
    this.#lookup = createPathLookup([], (path) => this.#whereIs(path));
  }

  found(): HiddenFiles {
    const isOutermost = (path: string) =>
      !directoriesBetween(path, '/').some((directory) => this.#hits.has(directory));
    const paths = [...this.#hits].filter(isOutermost).sort();
    const over = paths.find((path) => isBeneath(this.#roots.workspace, path));
    if (over !== undefined)
      throw new SandboxError(
        'policy.invalid',
        `filesystem.hide would hide the workspace itself (${visibleLine(over, 200)}); name what in it is not to be seen`,
      );
    if (paths.length > this.#limits.hidden)
      throw failed(
        `${count(paths.length)} paths match filesystem.hide, and at most ${count(this.#limits.hidden)} can be hidden; name the directory that they are in`,
      );
    return { paths, elsewhere: this.#elsewhere };
  }

  /** Looks through something that can be read, with the patterns that are meant there. */
  begin(root: string, patterns: readonly Pattern[]): void {
    const isOwn = this.#roots.own.includes(root);
    const here = patterns.flatMap((pattern): readonly State[] => {
      if (pattern.start === 'root') return [];
      if (pattern.start === 'workspace') return root === this.#roots.workspace ? [[pattern, 0]] : [];
      return isOwn ? [[pattern, 0]] : [];
    });
    // A file that is granted by itself has a name as well.
    const { kind } = this.#lookup.resolve(root);
    if (kind === 'other' && this.#step(here, basename(root)).matched !== undefined) this.#hits.add(root);
    let fromRoot: readonly State[] = patterns.flatMap((pattern) =>
      pattern.start === 'root' ? [[pattern, 0]] : [],
    );
    let at = '';
    for (const name of root.split('/').filter((part) => part !== '')) {
      at = `${at}/${name}`;
      const { matched, next } = this.#step(fromRoot, name);
      if (matched === 'any' || (matched === 'directory' && (at !== root || kind === 'directory')))
        this.#hits.add(at);
      fromRoot = next;
    }
    if (kind === 'directory') this.#visit(root, [...here, ...fromRoot]);
  }

  /** What a name is by the patterns, and with which parts of them what is in it is to be compared. */
  #step(states: readonly State[], name: string): Omit<Compared, 'entry'> {
    let matched: 'any' | 'directory' | undefined;
    const next = new Map<string, State>();
    const add = (state: State) => next.set(keyOf(state), state);
    for (const [pattern, from] of states) {
      for (let at = from; at < pattern.parts.length; at++) {
        const part = pattern.parts[at];
        if (part === undefined) break;
        if (part === '**') {
          if (!BULK.has(name)) add([pattern, at]);
          continue;
        }
        if (matchesName(part, name)) {
          if (at < pattern.parts.length - 1) add([pattern, at + 1]);
          else if (!pattern.directoriesOnly) matched = 'any';
          else matched ??= 'directory';
        }
        break;
      }
    }
    return { matched, next: [...next.values()] };
  }

  #visit(top: string, with_: readonly State[]): void {
    const pending: (readonly [string, readonly State[]])[] = [[top, with_]];
    for (let one = pending.pop(); one !== undefined; one = pending.pop()) {
      const [directory, states] = one;
      const of = states.map(keyOf).sort().join();
      const key = `${directory}\0${of}`;
      if (states.length === 0 || this.#visited.has(key) || NO_FILES.has(directory)) continue;
      this.#visited.add(key);
      for (const { entry, matched, next } of this.#compared(directory, states, of)) {
        const path = join(directory, entry.name);
        const led =
          entry.kind === 'link' ? this.#follow(path) : { path, isDirectory: entry.kind === 'directory' };
        if (led === undefined) continue;
        if (matched === 'any' || (matched === 'directory' && led.isDirectory)) this.#hits.add(led.path);
        else if (led.isDirectory) pending.push([led.path, next]);
      }
    }
  }

  /** `of`: the states as text. */
  #compared(directory: string, states: readonly State[], of: string): readonly Compared[] {
    const listing = this.#list(directory);
    if (listing === undefined) return [];
    const known = listing.compared.get(of);
    if (known !== undefined) return known;
    const compared = listing.entries.flatMap((entry): readonly Compared[] => {
      const step = this.#step(states, entry.name);
      const isOfInterest = step.matched !== undefined || (step.next.length > 0 && entry.kind !== 'other');
      return isOfInterest ? [{ entry, ...step }] : [];
    });
    listing.compared.set(of, compared);
    return compared;
  }

  /**
   * Where a link leads, if that can be read because of the user: then it is what the link's name stands for, wherever it
   * lies. Nothing can be mounted on a link.
   */
  #follow(path: string): { readonly path: string; readonly isDirectory: boolean } | undefined {
    const { canonical, kind } = this.#lookup.resolve(path);
    if (kind === 'missing' || !this.#roots.own.some((root) => isBeneath(canonical, root))) return undefined;
    return { path: canonical, isDirectory: kind === 'directory' };
  }

  /** Where something can be looked at that commands see at a path: the topmost layer that has it, or the path itself. */
  #whereIs(path: string): string {
    return this.#inLayers(path).find((at) => statOf(at) !== undefined) ?? path;
  }

  #inLayers(path: string): readonly string[] {
    const { workspace } = this.#roots;
    if (this.#layers.length === 0 || !isBeneath(path, workspace)) return [];
    return this.#layers.map((layer) => `${layer}${path.slice(workspace.length)}`);
  }

  /** What is in a directory, in each of its layers; `undefined`: it went, or cannot be looked into, and then it is hidden as a whole. */
  #list(directory: string): Listing | undefined {
    const known = this.read.get(directory);
    if (known !== undefined) return known;
    const own = this.#listAt(directory, directory);
    const over = this.#inLayers(directory).flatMap((at) => this.#listAt(directory, at) ?? []);
    if (over.length === 0) {
      if (own !== undefined) this.read.set(directory, own);
      return own;
    }
    // By name, the topmost last.
    const entries = new Map<string, Entry>();
    for (const listing of [...(own === undefined ? [] : [own]), ...over.toReversed()])
      for (const entry of listing.entries) entries.set(entry.name, entry);
    const merged = { stamp: '', isSettled: false, entries: [...entries.values()], compared: new Map() };
    this.read.set(directory, merged);
    return merged;
  }

  /** `at`: where a directory is, or a layer of it. */
  #listAt(directory: string, at: string): Listing | undefined {
    if (this.read.size >= this.#limits.directories || this.#entries > this.#limits.names)
      throw tooMuch(this.#limits);
    if (bytesOfPath(directory).length > LONGEST_PATH) return this.#hideWhole(directory);
    try {
      const looked = Date.now();
      const info = lstatSync(pathOf(at), { bigint: true });
      if (!info.isDirectory()) return undefined;
      const stamp = `${info.dev}:${info.ino}:${info.ctimeNs}`;
      const before = this.#before.get(directory);
      const listing =
        before?.isSettled === true && before.stamp === stamp
          ? before
          : {
              stamp,
              isSettled: looked - Number(info.ctimeMs) > SETTLED_MS,
              entries: entriesOf(at),
              compared: new Map(),
            };
      this.#entries += listing.entries.length;
      return listing;
    } catch (error) {
      if (error instanceof SandboxError) throw error;
      refuseShortage(error);
      const errno = errnoOf(error);
      return errno === 'ENOENT' || errno === 'ENOTDIR' ? undefined : this.#hideWhole(directory);
    }
  }

  #hideWhole(directory: string): undefined {
    this.#hits.add(directory);
  }

  /**
   * A file that is hidden, itself or by the directory that it is in, can have other names (hard links), by which it would be
   * read. They are hidden too; those that are not found are told: they may lie where commands cannot read.
   */
  findOtherNames(): void {
    const wanted = new Map<string, { readonly names: bigint; readonly found: Set<string> }>();
    for (const hit of this.#hits) {
      for (const top of [hit, ...this.#inLayers(hit)]) {
        for (const [path, info] of filesIn(bytesOfPath(top), this.#limits)) {
          if (info.nlink < 2n) continue;
          const id = idOf(info);
          const { found } = wanted.get(id) ?? { found: new Set() };
          wanted.set(id, { names: info.nlink, found: found.add(path.toString('latin1')) });
        }
      }
    }
    const missing = () => [...wanted.values()].filter(({ names, found }) => BigInt(found.size) < names);
    if (missing().length === 0) return;
    for (const path of this.#everyFile()) {
      const at = this.#whereIs(path);
      const info = statOf(at);
      const other = info === undefined ? undefined : wanted.get(idOf(info));
      const known = bytesOfPath(at).toString('latin1');
      if (other === undefined || other.found.has(known)) continue;
      other.found.add(known);
      this.#hits.add(path);
    }
    this.#elsewhere = missing().flatMap(({ found }) =>
      [...found].slice(0, 1).map((path) => textOfPath(Buffer.from(path, 'latin1'))),
    );
  }

  /** Also in what is otherwise not looked through, but not in what is hidden. */
  *#everyFile(): Generator<string> {
    const pending = [...this.#roots.own];
    const seen = new Set<string>();
    for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
      if (this.#hits.has(path)) continue;
      if (seen.has(path) || statOf(this.#whereIs(path))?.isDirectory() !== true) {
        if (!seen.has(path)) yield path;
        seen.add(path);
        continue;
      }
      seen.add(path);
      for (const { name, kind } of this.#list(path)?.entries ?? []) {
        if (kind === 'directory' && !NO_FILES.has(join(path, name))) pending.push(join(path, name));
        else if (kind === 'other') yield join(path, name);
      }
    }
  }
}

/**
 * Another one for as long as the clock of the file system could not tell a change. A mount does not keep the number of what it
 * lies over: when that is deleted, the mount goes, and another file may get the number and the name.
 */
function stateOf(path: string): string {
  const info = statOf(path);
  if (info === undefined) return 'gone';
  const { ino, dev, birthtimeNs, ctimeNs, ctimeMs } = info;
  const now = Date.now();
  return `${dev}:${ino}:${birthtimeNs}:${ctimeNs}${now - Number(ctimeMs) > SETTLED_MS ? '' : ` at ${now}`}`;
}

const idOf = ({ dev, ino }: BigIntStats) => `${dev}:${ino}`;

/**
 * A file, or all in a directory, whatever their names: nothing in it need be named. What may not be looked into is left out:
 * commands may not either.
 */
function* filesIn(top: Buffer, limits: typeof LIMITS): Generator<readonly [path: Buffer, info: BigIntStats]> {
  const pending = [top];
  let [directories, names] = [0, 0];
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    const at = path;
    const info = statOf(at);
    if (info === undefined) continue;
    if (!info.isDirectory()) {
      yield [at, info];
      continue;
    }
    const inside = readOr(() => readdirSync(at, 'buffer'), []);
    directories += 1;
    names += inside.length;
    if (directories > limits.directories || names > limits.names)
      throw failed(
        `${visibleLine(top.toString(), 200)} has more than ${count(limits.directories)} directories or ${count(limits.names)} names, too many to look whether a file of it has another name (a hard link) that commands can read; move it out of what they can read`,
      );
    for (const name of inside) pending.push(Buffer.concat([at, Buffer.from('/'), name]));
  }
}

function statOf(path: string | Buffer): BigIntStats | undefined {
  const at = typeof path === 'string' ? pathOf(path) : path;
  return readOr(() => lstatSync(at, { bigint: true, throwIfNoEntry: false }), undefined);
}

function entriesOf(directory: string): readonly Entry[] {
  const found = readdirSync(pathOf(directory), {
    withFileTypes: true,
    encoding: 'buffer',
  }) as unknown as Dirent<Buffer>[];
  return found.map((entry): Entry => {
    const name = textOfPath(entry.name);
    if (entry.isDirectory()) return { name, kind: 'directory' };
    return { name, kind: entry.isSymbolicLink() ? 'link' : 'other' };
  });
}

const failed = (message: string) => new SandboxError('confinement.failed', message);

const count = (number: number) => number.toLocaleString('en-US');

const tooMuch = ({ directories, names }: typeof LIMITS) =>
  failed(
    `more than ${count(directories)} directories or ${count(names)} names have to be looked through for filesystem.hide; name the directories where they are (config/*.pem in place of *.pem), or take less into filesystem.read and filesystem.write`,
  );
