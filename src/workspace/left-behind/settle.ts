import { accessSync, constants, lstatSync } from 'node:fs';
import { basename } from 'node:path';
import { directoriesBetween, isBeneath } from '../../base/absolute-path.ts';
import { errnoOf } from '../../base/errno-of.ts';
import { orElse } from '../../base/or-else.ts';
import { pathOf, shownPath } from '../../base/path-text.ts';
import type { NativeEffects } from '../../confine/native/contract.ts';
import type { LeftBehind } from '../../model/index.ts';
import type { ObeyedFile } from '../../policy/index.ts';
import {
  EMPTY_GIT_CONFIG,
  type GitConfigFile,
  type GitSetting,
  parseGitConfig,
} from '../host/git/config-file.ts';
import { effectOfKey } from '../host/git/config-keys.ts';
import { programsIn } from '../host/git/repositories.ts';
import type { NativeChangedCopy, NativeChangedEntry } from '../host/native-index.ts';
import { createPathLookup } from '../host/resolve-path.ts';
import type { Baseline } from './baseline.ts';
import { type Expected, isManifest } from './expected.ts';
import { changeGitConfig, judgeChange } from './git-config.ts';
import type { HookCopies, HooksPathChange } from './hook-copies.ts';
import { type Kept, Shutter, told } from './kept.ts';
import type { NestedRepositories } from './nested-repositories.ts';
import type { ObeyedNames } from './obeyed-names.ts';
import { GitSettler } from './settle-git.ts';

/** What is known of a workspace when its commands begin. */
interface SettlerParts {
  /** Canonical. */
  readonly workspace: string;
  /** The directories that are looked through, as far as commands can write them, the workspace among them. Canonical. */
  readonly roots: readonly string[];
  /** Paths that are obeyed if they come, with the reason. Absolute. */
  readonly obeyed: ReadonlyMap<string, string>;
  /** Names that are obeyed in any directory. */
  readonly names: ObeyedNames;
  /**
   * Whether commands cannot change the path because something is mounted there. `lost`: it was, and a process outside put
   * something else there meanwhile, which takes a mount away.
   */
  readonly holdOf: (path: string) => 'held' | 'lost' | 'open';
  readonly expected: Expected;
  /** Whether it is, or lies in, what is protected. */
  readonly isShut: (path: string) => boolean;
  /** What was there before, of what is not held. */
  readonly baseline: Baseline;
  /** Repositories that are content of the workspace. */
  readonly nested: NestedRepositories;
  readonly kept: Kept;
  readonly hooks: HookCopies;
}

/** Looks at what a command left behind, and shuts what a trusted program would run by itself. */
export type Settler = (effects: NativeEffects) => readonly LeftBehind[];

/** Most likely the user's own work, which is not taken from them. */
const REPLACED = 'it was replaced while a command ran, which could have changed it from then on';

const unsettled = (path: string, reason: string): LeftBehind =>
  told(path, `${reason}; git or an editor may run what is in it`);

const NOTHING: readonly LeftBehind[] = [];

/** @see Settler */
export function createSettler(parts: SettlerParts): Settler {
  const settlement = new Settlement(parts);
  return (effects) => {
    const found = parts.hooks.explain(settlement.settle(effects));
    if (found.length === 0) return found;
    const makings = new Map(effects.makings?.map(({ path, program }) => [path, program]));
    return found.map((one) => {
      const by = makings.get(one.path);
      // From here on it is only told: the record of what is kept has the path itself.
      return { ...one, path: shownPath(one.path), ...(by === undefined ? {} : { madeBy: by }) };
    });
  };
}

/** Whatever a command made of one path, the others are settled. */
function trying(path: string, settle: () => readonly LeftBehind[]): readonly LeftBehind[] {
  try {
    return settle();
  } catch (error) {
    return [unsettled(path, `it could not be looked at or shut (${errnoOf(error) ?? String(error)})`)];
  }
}

class Settlement {
  readonly #parts: SettlerParts;
  readonly #shutter: Shutter;
  readonly #git: GitSettler;
  /** What was not there when the command began. */
  #came: ReadonlySet<string> = new Set();
  /** What was seen of paths since the command ended. */
  #lookup = createPathLookup();
  /** What the command made of core.hooksPath, if that is kept for the next one. */
  #hooksPath: HooksPathChange | undefined;
  /** What is not what it was then, or was not there. */
  #changed: ReadonlySet<string> = new Set();

  constructor(parts: SettlerParts) {
    const { roots, holdOf, baseline, nested, kept } = parts;
    this.#parts = parts;
    this.#shutter = new Shutter(roots, kept);
    this.#git = new GitSettler(this.#shutter, {
      isHeld: (path) => holdOf(path) === 'held',
      configOf: (path) => {
        const content = baseline.contentOf(path);
        if (content !== undefined) return parseGitConfig(content);
        const moved = nested.wasAt(path);
        const before = moved === undefined ? undefined : baseline.contentOf(moved);
        return before && withoutRelativePrograms(parseGitConfig(before));
      },
      isMovedFile: (path) => this.#isMovedFile(path),
    });
  }

  settle(effects: NativeEffects): readonly LeftBehind[] {
    const found: LeftBehind[] = [];
    found.push(...trying(this.#parts.workspace, () => this.#git.settleOutOfSight()));
    this.#hooksPath = undefined;
    for (const copy of effects.copies ?? []) found.push(...trying(copy.source, () => this.#settleCopy(copy)));
    found.push(
      ...trying(this.#parts.workspace, () =>
        this.#parts.hooks.settle(effects.changedDirectories ?? [], this.#hooksPath),
      ),
    );
    if (effects.leftBehind === undefined && effects.copies === undefined) return found;
    found.push(...trying(this.#parts.workspace, () => this.#git.settleLeading()));
    // What is around goes first: what lies in it goes with it.
    const entries = [...(effects.leftBehind?.entries ?? []), ...seenBeyond(effects)].sort((a, b) =>
      a.path < b.path ? -1 : 1,
    );
    const settled = new Set<string>();
    // A path that is set aside as a whole is named once.
    const said = new Set(found.flatMap(({ path, settings }) => (settings === undefined ? path : [])));
    this.#lookup = createPathLookup();
    this.#changed = new Set(entries.map(({ path }) => path));
    this.#came = new Set(entries.flatMap(({ path, change }) => (change === 'appeared' ? path : [])));
    for (const entry of entries) {
      if (
        [entry.path, ...directoriesBetween(entry.path, this.#shutter.rootOf(entry.path))].some((path) =>
          settled.has(path),
        )
      )
        continue;
      for (const one of trying(entry.path, () => this.#settleEntry(entry))) {
        if (one.settings === undefined && said.has(one.path)) continue;
        found.push(one);
        if (one.settings !== undefined) continue;
        said.add(one.path);
        if (one.done !== 'told') settled.add(one.path);
      }
    }
    const { spent = false, unreadable = [] } = effects.leftBehind ?? {};
    if (spent)
      found.push(
        told(
          this.#parts.workspace,
          'there are too many new directories to look at all of them for what git or an editor would run',
        ),
      );
    for (const path of unreadable)
      found.push(
        told(
          path,
          'it cannot be looked into for what git or an editor would run; look at what is in it as soon as it is readable (chmod u+rwx), before git does',
        ),
      );
    return found;
  }

  #settleEntry(entry: NativeChangedEntry): readonly LeftBehind[] {
    const { path } = entry;
    const { nested } = this.#parts;
    const hold = this.#parts.holdOf(path);
    if (hold === 'held' || (hold === 'lost' && entry.change === 'vanished')) return NOTHING;
    const isNested = nested.covers(path);
    if (isNested && entry.change === 'vanished' && nested.isGoneAsAWhole(path)) return NOTHING;
    if (this.#parts.baseline.isTooMuch(path) && isNested)
      return this.#shutter.shut(path, 'git', 'git obeys it, and what it was could not be remembered');
    if (this.#parts.baseline.isTooMuch(path))
      return [unsettled(path, 'it changed, and was too large, or of a kind, to be remembered and put back')];
    const isConfig = /^config(\.worktree)?$/.test(basename(path));
    // A configuration file is settled by key, whatever it was.
    if (!(isConfig && entry.kind === 'file') && this.#parts.baseline.covers(path))
      return this.#parts.baseline.restore(path, this.#shutter);
    if (entry.change === 'vanished') return NOTHING;
    const byGit = this.#git.settleEntry(entry);
    if (byGit !== undefined) return byGit;
    const row = this.#parts.names.rowFor(path);
    const reason = this.#parts.obeyed.get(path);
    if (this.#isMovedFile(path)) return NOTHING;
    if (hold === 'lost') return [told(path, REPLACED, row?.tool ?? 'git')];
    if (row?.treatment !== 'shut' && reason === undefined) {
      const leadsTo = entry.kind === 'link' ? this.#leadsAstray(path) : undefined;
      if (leadsTo !== undefined) return [told(path, leadsTo, 'what writes there')];
      if (row === undefined) return NOTHING;
      return this.#isExpected(entry, row) ? NOTHING : [told(path, row.reason, row.tool)];
    }
    if (row !== undefined) return this.#shutter.shut(path, row.tool, row.reason);
    return reason === undefined ? NOTHING : this.#shutter.shut(path, 'git', reason);
  }

  /** Whether it is what it was before its repository was moved here as a whole. */
  #isMovedFile(path: string): boolean {
    const { nested, baseline } = this.#parts;
    const moved = nested.wasAt(path);
    return moved !== undefined && baseline.isFileFrom(moved, path, this.#shutter);
  }

  #isExpected({ path, kind, change }: NativeChangedEntry, row: ObeyedFile): boolean {
    // Each file in it is told by itself.
    if (row.isWhole === true && kind === 'directory') return true;
    if (this.#isInstalled(path, row)) return true;
    const { expected } = this.#parts;
    if (isManifest(path) && kind === 'file' && expected.runsNothingNew(path)) return true;
    return (
      change === 'appeared' &&
      expected.isCopyInWorktree(path, this.#shutter.rootOf(path), this.#came, this.#changed)
    );
  }

  /**
   * Why a link deserves a look: whoever writes to its name, which looks like a file of the project, writes somewhere else.
   * Nothing is said where the user could not write.
   */
  #leadsAstray(path: string): string | undefined {
    const { canonical, kind } = this.#lookup.resolve(path);
    const shown = shownPath(canonical);
    if (this.#shutter.looksAt(canonical)) {
      const row = this.#parts.names.rowFor(canonical);
      const isObeyed =
        this.#parts.isShut(canonical) || row?.treatment === 'shut' || `${canonical}/`.includes('/.git/');
      return isObeyed ? `it leads to ${shown}, which is protected` : undefined;
    }
    return isWritableTo(canonical, kind !== 'missing')
      ? `it leads out of the workspace, to ${shown}`
      : undefined;
  }

  #isInstalled(path: string, row: ObeyedFile): boolean {
    const end = path.lastIndexOf(`/${row.path}`);
    return row.cameWith !== undefined && end >= 0 && this.#came.has(`${path.slice(0, end)}/${row.cameWith}`);
  }

  #settleCopy({ source, before, after }: NativeChangedCopy): readonly LeftBehind[] {
    const place = { workspace: this.#shutter.rootOf(source), path: source };
    const changed = after === undefined ? undefined : parseGitConfig(after);
    if (changed === undefined)
      return [
        {
          path: source,
          done: 'shut',
          program: 'git',
          reason: 'what the command made of it is no configuration that git can read, and was not taken over',
        },
      ];
    const { over, aside, restore, reason } = judgeChange(
      parseGitConfig(before) ?? EMPTY_GIT_CONFIG,
      changed,
      place,
    );
    const isHooks = ({ key }: { readonly key: string }) => key === 'core.hookspath';
    const hooksPath = {
      config: source,
      values: changed.settings.filter(isHooks).map(({ value }) => value),
    };
    const isKept = restore.some(isHooks) && this.#parts.hooks.takes(hooksPath);
    if (isKept) this.#hooksPath = hooksPath;
    const problem = over.length === 0 ? undefined : changeGitConfig(place, () => over);
    const found: LeftBehind[] = [];
    if (problem !== undefined) {
      const lost = over.flatMap(({ key, values }) => values.map((value) => ({ key, value })));
      found.push(this.#shutter.settings(source, lost, `it could not be changed: ${problem}`));
    }
    const isOther = (one: { readonly key: string }) => !(isKept && isHooks(one));
    if (restore.some(isOther)) found.push(this.#shutter.settings(source, aside.filter(isOther), reason));
    return found;
  }
}

/** What names a program or a file from where the repository is means another one where it was moved to. */
function withoutRelativePrograms(file: GitConfigFile | undefined): GitConfigFile | undefined {
  if (file === undefined) return undefined;
  const isRelative = (setting: GitSetting) => {
    const { effect } = effectOfKey(setting);
    const { key, value = '' } = setting;
    if (effect === 'names') return false;
    const isPath = effect === 'includes' || key === 'core.hookspath';
    return (isPath ? [value] : programsIn(value)).some((word) => word !== '' && !/^[/~]/.test(word));
  };
  return { ...file, settings: file.settings.filter((setting) => !isRelative(setting)) };
}

/** What belongs to the system, even where root works, and what the commands had for their own. */
const OF_THE_SYSTEM = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/nix',
  '/proc',
  '/sys',
  '/dev',
  '/run',
];
/** Where everybody makes what is not there; the last two are what is around homes. */
const OF_EVERYBODY = new Set(['/tmp', '/var/tmp', '/dev/shm', '/', '/home']);

/** Whether the user could write a file outside of the sandbox, or make it. */
function isWritableTo(path: string, isThere: boolean): boolean {
  if (OF_THE_SYSTEM.some((system) => isBeneath(path, system))) return false;
  const mayWrite = (one: string) =>
    orElse(() => {
      accessSync(pathOf(one), constants.W_OK);
      return true;
    }, false);
  if (isThere) return mayWrite(path);
  const isDirectory = (one: string) =>
    orElse(() => lstatSync(pathOf(one), { throwIfNoEntry: false }), undefined)?.isDirectory() === true;
  const around = ['/', ...directoriesBetween(path, '/')].findLast(isDirectory) ?? '/';
  return !OF_EVERYBODY.has(around) && mayWrite(around);
}

/** Where there was too much to look at it all: what was seen as it was made. */
function seenBeyond({ leftBehind, makings = [] }: NativeEffects): readonly NativeChangedEntry[] {
  if (leftBehind?.spent !== true) return [];
  const known = new Set(leftBehind.entries.map(({ path }) => path));
  return makings.flatMap(({ path }): readonly NativeChangedEntry[] => {
    const info = known.has(path) ? undefined : lstatSync(pathOf(path), { throwIfNoEntry: false });
    if (info === undefined) return [];
    const kind = info.isDirectory()
      ? 'directory'
      : info.isSymbolicLink()
        ? 'link'
        : info.isFile()
          ? 'file'
          : 'other';
    return [{ path, kind, change: 'appeared' }];
  });
}
