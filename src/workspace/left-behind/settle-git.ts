import { lstatSync, readdirSync, type Stats, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { directoriesBetween } from '../../base/absolute-path.ts';
import { orElse } from '../../base/or-else.ts';
import { textOfPath } from '../../base/path-text.ts';
import { linkBytes } from '../../confine/link-bytes.ts';
import type { LeftBehind } from '../../model/index.ts';
import {
  EMPTY_GIT_CONFIG,
  editGitConfig,
  type GitConfigFile,
  type GitEdit,
  type GitSetting,
  parseGitConfig,
  valuesByKey,
} from '../host/git/config-file.ts';
import { repositoriesOutOfSight } from '../host/git/index-file.ts';
import { isGitDirectory, SEQUENCE_NAMES } from '../host/git/repositories.ts';
import { inDirectoryOf, readRegular, replaceFile } from '../host/held-directory.ts';
import type { NativeChangedEntry } from '../host/native-index.ts';
import { judgeChange, readGitConfig } from './git-config.ts';
import type { Shutter } from './kept.ts';

/** Files of git that are read here are a few lines. */
const SMALL_FILE = 64 * 1024;
const TODO_BYTES = 4 * 1024 * 1024;
const LOCKED = 'a lock file was left beside it';

/** Of a repository, where the index does not look (kBulk in native/index/tree_places.cc). */
const BULK = new Set(['objects', 'refs', 'logs', 'lfs', 'rr-cache', 'annex']);

/** Whether the name is one that git and others do not obey, because it was given by `keep` or `moveBeside`. */
const isBeside = (name: string) => /\.kept-[0-9a-f-]+$/.test(name);

const isHookName = (name: string) => !name.endsWith('.sample') && !isBeside(name);

/** What is known of git's own files from before commands could write them. */
interface GitBefore {
  /** Whether commands cannot change the path. */
  readonly isHeld: (path: string) => boolean;
  /** What a configuration file held; `undefined`: there was none. */
  readonly configOf: (path: string) => GitConfigFile | undefined;
  /** Whether a file is as it was before its repository was moved here as a whole. */
  readonly isMovedFile: (path: string) => boolean;
}

/** Settles what git would obey. */
export class GitSettler {
  readonly #shutter: Shutter;
  readonly #before: GitBefore;
  /** What configuration files were when they were last looked at: later changes are not the command's. */
  readonly #accepted = new Map<string, GitConfigFile>();
  /** Where `.git` files and links lead that commands made. */
  readonly #leading = new Map<string, string>();
  /** Repositories that an index names where changes are not seen. */
  readonly #outOfSight = new Set<string>();

  constructor(shutter: Shutter, before: GitBefore) {
    this.#shutter = shutter;
    this.#before = before;
  }

  /** `undefined`: it is none of git's. */
  settleEntry({ path, kind, change }: NativeChangedEntry): readonly LeftBehind[] | undefined {
    const name = basename(path);
    const directory = dirname(path);
    // With each commit there is something new in it: what matters of that is noted by itself.
    if (name === '.git')
      return kind === 'directory' && change === 'changed' ? [] : this.#settleDotGit(path, kind);
    if (name === '.gitmodules') return this.#settleModules(path, kind);
    if (basename(directory) === 'hooks' && isGitDirectory(dirname(directory)))
      return isHookName(name) ? this.#shutHook(path) : [];
    if (!isGitDirectory(directory) && !(SEQUENCE_NAMES as readonly string[]).includes(name)) return undefined;
    switch (name) {
      // The last of what makes a repository of a directory.
      case 'HEAD':
      case 'objects':
      case 'refs':
        return change === 'appeared' ? this.#settleDirectory(directory) : [];
      case 'config':
      case 'config.worktree':
        return this.#settleConfig(path);
      case 'hooks':
        return this.#settleHooks(path);
      case 'commondir':
        return this.#settleCommonDirectory(path);
      case 'git-rebase-todo':
        return this.#settleTodo(path);
      case 'strategy':
        return basename(directory) === 'rebase-merge' ? this.#settleStrategy(path) : undefined;
      case 'opts':
        return basename(directory) === 'sequencer' ? this.#settleStrategy(path) : undefined;
      case 'index':
        return this.#settleIndex(path);
      case 'gitdir':
        return [];
      default:
        return undefined;
    }
  }

  #shut(path: string, program: string, reason: string): readonly LeftBehind[] {
    return this.#before.isHeld(path) ? [] : this.#shutter.shut(path, program, reason);
  }

  #shutHook(path: string): readonly LeftBehind[] {
    return this.#before.isMovedFile(path) ? [] : this.#shut(path, 'git', 'git runs it as a hook');
  }

  #settleDotGit(path: string, kind: NativeChangedEntry['kind']): readonly LeftBehind[] {
    if (kind === 'directory') return this.#settleDirectory(path);
    const target = kind === 'link' ? this.#linkTarget(path) : this.#gitFileTarget(path);
    if (target === undefined || !this.#shutter.looksAt(target))
      return this.#shut(path, 'git', 'it leads git to a repository outside of the workspace');
    // What is settled, now and after later commands, has to be what git finds.
    if (!this.#isWatched(target))
      return this.#shut(path, 'git', 'it leads git to a repository that cannot be watched');
    this.#leading.set(path, target);
    return this.#settleDirectory(target);
  }

  /** Whether the directory exists without a symbolic link on the way, and the index enters it (TreePlaces::Enters). */
  #isWatched(target: string): boolean {
    const isDirectory = (path: string) => this.#infoOf(path)?.isDirectory() === true;
    const root = this.#shutter.rootOf(target);
    const steps = [...directoriesBetween(target, root), target].filter((path) => path !== root);
    const isEntered = (path: string) =>
      basename(path) !== 'node_modules' &&
      !(path.includes('/.git/') && BULK.has(basename(path)) && this.#infoOf(join(dirname(path), 'HEAD')));
    return (
      steps.every((path) => isDirectory(path) && isEntered(path)) &&
      this.#infoOf(join(target, 'HEAD')) !== undefined
    );
  }

  #infoOf(path: string): Stats | undefined {
    return inDirectoryOf(this.#shutter.rootOf(path), path, (at) => lstatSync(at, { throwIfNoEntry: false }));
  }

  /** `git status` runs what the configuration of a repository says that the index names, also where nothing else is looked at. */
  #settleIndex(path: string): readonly LeftBehind[] {
    for (const repository of repositoriesOutOfSight(path, (file, limit) => this.#read(file, limit)))
      this.#outOfSight.add(repository);
    return this.settleOutOfSight();
  }

  settleOutOfSight(): readonly LeftBehind[] {
    return [...this.#outOfSight].flatMap((path) =>
      this.#infoOf(path) === undefined
        ? []
        : this.#shut(path, 'git', 'git status runs what this repository says'),
    );
  }

  /** A directory that a `.git` file leads to may have become a link since. */
  settleLeading(): readonly LeftBehind[] {
    return [...this.#leading].flatMap(([path, target]) => {
      if (this.#isWatched(target)) return [];
      this.#leading.delete(path);
      return this.#infoOf(target) === undefined
        ? []
        : this.#shut(path, 'git', 'it leads git to another repository now');
    });
  }

  #linkTarget(path: string): string | undefined {
    return inDirectoryOf(this.#shutter.rootOf(path), path, (at) =>
      straight(dirname(path), textOfPath(linkBytes(at))),
    );
  }

  #gitFileTarget(path: string): string | undefined {
    const content = this.#read(path);
    const text = content === undefined ? '' : textOfPath(content);
    const named = /^gitdir: (.*?)[\r\n]*$/s.exec(text)?.[1];
    return named === undefined ? undefined : straight(dirname(path), named);
  }

  #read(path: string, limit = SMALL_FILE): Buffer | undefined {
    return inDirectoryOf(this.#shutter.rootOf(path), path, (at) => readRegular(at, limit));
  }

  /** A repository that came: everything in it that git obeys. */
  #settleDirectory(path: string): readonly LeftBehind[] {
    return [
      ...this.#settleConfig(join(path, 'config')),
      ...this.#settleConfig(join(path, 'config.worktree')),
      ...this.#settleHooks(join(path, 'hooks')),
      ...this.#settleCommonDirectory(join(path, 'commondir')),
    ];
  }

  #settleHooks(path: string): readonly LeftBehind[] {
    const info = inDirectoryOf(this.#shutter.rootOf(path), path, (at) => {
      const found = lstatSync(at, { throwIfNoEntry: false });
      if (found === undefined) return undefined;
      return found.isDirectory() ? readdirSync(at, 'buffer').map(textOfPath) : ('no directory' as const);
    });
    if (info === undefined) return [];
    if (info === 'no directory') return this.#shut(path, 'git', 'git runs hooks from it');
    return info.filter(isHookName).flatMap((name) => this.#shutHook(join(path, name)));
  }

  #settleCommonDirectory(path: string): readonly LeftBehind[] {
    const leadsAway = () => this.#shut(path, 'git', 'it leads git to other settings and hooks');
    const content = this.#read(path);
    if (content === undefined) return this.#infoOf(path) === undefined ? [] : leadsAway();
    const directory = dirname(path);
    const isWorktree = basename(dirname(directory)) === 'worktrees';
    // Only in the form that git writes: another path that looks equal may lead through a link.
    const common = textOfPath(content).replace(/[\r\n]+$/, '');
    if (isWorktree && (common === '../..' || common === dirname(dirname(directory)))) return [];
    return leadsAway();
  }

  #settleConfig(path: string): readonly LeftBehind[] {
    if (this.#before.isHeld(path)) return [];
    const place = { workspace: this.#shutter.rootOf(path), path };
    const after = readGitConfig(place);
    if (after === 'missing') return [];
    const last = this.#accepted.get(path) ?? this.#before.configOf(path);
    if (after === 'unreadable')
      return this.#putBack(path, last, 'git or another program may read it differently');
    const { aside, restore, reason } = judgeChange(last ?? EMPTY_GIT_CONFIG, after, place);
    // Another file, for what still runs may have this one mapped.
    const settled = this.#replaceConfig(path, after, restore);
    // A lock that a command left, or something in its place: then the whole file goes.
    if (settled === undefined)
      return this.#putBack(path, restore.length === 0 ? after : last, reason || LOCKED);
    this.#accepted.set(path, settled);
    if (restore.length === 0) return [];
    return [this.#shutter.settings(path, aside, reason)];
  }

  /** Git before 2.24.1 runs what it says for updates. `undefined`: what else it says is told. */
  #settleModules(path: string, kind: NativeChangedEntry['kind']): readonly LeftBehind[] | undefined {
    const reason = 'git submodule update runs it';
    if (kind !== 'file') return this.#shut(path, 'git', 'git submodule update may run what it says');
    const after = readGitConfig({ workspace: this.#shutter.rootOf(path), path });
    if (typeof after === 'string') return undefined;
    const isRun = ({ key, value = '' }: GitSetting) =>
      /^submodule\..*\.update$/s.test(key) && value.trimStart().startsWith('!');
    const aside = after.settings.filter(isRun);
    if (aside.length === 0) return undefined;
    const edits = [...valuesByKey(after.settings)].flatMap(([key, values]): readonly GitEdit[] => {
      const left = values.filter((value) => !isRun({ key, value }));
      return left.length === values.length ? [] : [{ key, values: left }];
    });
    if (this.#replaceConfig(path, after, edits) === undefined) return this.#shut(path, 'git', reason);
    return [this.#shutter.settings(path, aside, reason)];
  }

  #replaceConfig(path: string, after: GitConfigFile, edits: readonly GitEdit[]) {
    return orElse(() => {
      const content = editGitConfig(after, edits);
      return replaceFile(this.#shutter.rootOf(path), path, content) ? parseGitConfig(content) : undefined;
    }, undefined);
  }

  /** Takes a whole configuration file away, and puts the last one that was good in its place: it holds what is the user's own. */
  #putBack(path: string, last: GitConfigFile | undefined, reason: string): readonly LeftBehind[] {
    const found = this.#shut(path, 'git', reason);
    if (last === undefined || found.some(({ done }) => done === 'told')) return found;
    return this.#writeNew(path, Buffer.from(last.text, 'latin1'))
      ? found.map((one) => ({ ...one, done: 'restored' as const }))
      : found;
  }

  #writeNew(path: string, content: Buffer): boolean {
    const isWritten = inDirectoryOf(this.#shutter.rootOf(path), path, (at) => {
      writeFileSync(at, content, { flag: 'wx', mode: 0o644 });
      return true;
    });
    return isWritten === true;
  }

  /** Lines of a to-do list that run something are made comments: git runs the list when a rebase goes on. */
  #settleTodo(path: string): readonly LeftBehind[] {
    const text = this.#read(path, TODO_BYTES)?.toString('latin1');
    if (text === undefined) return this.#shut(path, 'git', 'git rebase --continue runs it');
    const lines = text.split('\n');
    const harmless = lines.map((line) => (/^\s*(exec|x)\b/.test(line) ? `# ${line}` : line));
    if (harmless.every((line, at) => line === lines[at]))
      return replaceFile(this.#shutter.rootOf(path), path, Buffer.from(text, 'latin1'))
        ? []
        : this.#shut(path, 'git', 'git rebase --continue runs it');
    const found = this.#shut(
      path,
      'git',
      'git rebase --continue runs its "exec" lines, which are comments now',
    );
    this.#writeNew(path, Buffer.from(harmless.join('\n'), 'latin1'));
    return found;
  }

  /** git runs `git-merge-NAME`, in the directory `git-merge-…` of the project if there is a slash in it. */
  #settleStrategy(path: string): readonly LeftBehind[] {
    const text = this.#read(path)?.toString();
    const named = basename(path) === 'opts' ? strategyOf(text) : text;
    return named === undefined || named.includes('/')
      ? this.#shut(path, 'git', 'a program that goes on with a rebase or cherry-pick')
      : [];
  }
}

/** What the options of a cherry-pick or revert that goes on name, which are written as settings are. */
function strategyOf(text: string | undefined): string | undefined {
  const options = text === undefined ? undefined : parseGitConfig(Buffer.from(text));
  return options?.settings.map(({ key, value }) => (key === 'options.strategy' ? value : '')).join('');
}

/** Where a path leads from a directory; `undefined`: it goes up behind a name, which may be a link, and then leads elsewhere. */
function straight(directory: string, path: string): string | undefined {
  const parts = path.split('/');
  const isName = (part: string) => part !== '' && part !== '.' && part !== '..';
  const first = parts.findIndex(isName);
  return first >= 0 && parts.slice(first).includes('..') ? undefined : resolve(directory, path);
}
