import { lstatSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import {
  EMPTY_GIT_CONFIG,
  editGitConfig,
  type GitConfigFile,
  parseGitConfig,
} from '../host/git/config-file.ts';
import { isGitDirectory } from '../host/git/repositories.ts';
import { inDirectoryOf, readRegular, replaceFile } from '../host/held-directory.ts';
import type { LeftBehind } from '../model/left-behind.ts';
import type { NativeChangedEntry } from '../native/contract.ts';
import { isBeneath } from '../util/absolute-path.ts';
import { judgeChange, readGitConfig } from './git-config.ts';
import type { Shutter } from './shutter.ts';

/** Files of git that are read here are a few lines. */
const SMALL_FILE = 64 * 1024;
const TODO_BYTES = 4 * 1024 * 1024;
const LOCKED = 'a lock is left beside it';

/** What is known of git's own files from before commands could write them. */
export interface GitBefore {
  /** Whether commands cannot change the path. */
  readonly isHeld: (path: string) => boolean;
  /** What a configuration file held; `undefined`: there was none. */
  readonly configOf: (path: string) => GitConfigFile | undefined;
}

/** Settles what git would obey; `undefined`: it is none of git's. */
export function createGitSettler(shutter: Shutter, before: GitBefore) {
  const { workspace } = shutter;
  /** What configuration files were when they were last looked at: what came since is somebody else's. */
  const accepted = new Map<string, GitConfigFile>();

  const shut: Shutter['shut'] = (path, program, reason) =>
    before.isHeld(path) ? [] : shutter.shut(path, program, reason);

  function settleEntry({ path, kind, change }: NativeChangedEntry): readonly LeftBehind[] | undefined {
    const name = basename(path);
    const directory = dirname(path);
    // With each commit there is something new in it: what matters of that is noted by itself.
    if (name === '.git') return kind === 'directory' && change === 'changed' ? [] : settleDotGit(path, kind);
    if (basename(directory) === 'hooks' && isGitDirectory(dirname(directory)))
      return name.endsWith('.sample') ? [] : shut(path, 'git', 'git runs it as a hook');
    if (!isGitDirectory(directory) && name !== 'git-rebase-todo') return undefined;
    switch (name) {
      // The last of what makes a repository of a directory.
      case 'HEAD':
      case 'objects':
      case 'refs':
        return change === 'appeared' ? settleDirectory(directory) : [];
      case 'config':
      case 'config.worktree':
        return settleConfig(path);
      case 'hooks':
        return settleHooks(path);
      case 'commondir':
        return settleCommonDirectory(path);
      case 'git-rebase-todo':
        return settleTodo(path);
      case 'gitdir':
        return [];
      default:
        return undefined;
    }
  }

  function settleDotGit(path: string, kind: NativeChangedEntry['kind']): readonly LeftBehind[] {
    if (kind === 'directory') return settleDirectory(path);
    const target = kind === 'link' ? linkTarget(path) : gitFileTarget(path);
    if (target !== undefined && isBeneath(target, workspace)) return settleDirectory(target);
    return shut(path, 'git', 'it leads git to a repository outside of the workspace');
  }

  function linkTarget(path: string): string | undefined {
    return inDirectoryOf(workspace, path, (directory, name) =>
      resolve(dirname(path), readlinkSync(`${directory}/${name}`)),
    );
  }

  function gitFileTarget(path: string): string | undefined {
    const named = /^gitdir: (.*?)[\r\n]*$/s.exec(readSmall(path) ?? '')?.[1];
    return named === undefined ? undefined : resolve(dirname(path), named);
  }

  function readSmall(path: string, limit = SMALL_FILE): string | undefined {
    return inDirectoryOf(workspace, path, (directory, name) =>
      readRegular(`${directory}/${name}`, limit)?.toString('utf8'),
    );
  }

  /** A repository that came: everything in it that git obeys. */
  function settleDirectory(path: string): readonly LeftBehind[] {
    return [
      ...settleConfig(join(path, 'config')),
      ...settleConfig(join(path, 'config.worktree')),
      ...settleHooks(join(path, 'hooks')),
      ...settleCommonDirectory(join(path, 'commondir')),
    ];
  }

  function settleHooks(path: string): readonly LeftBehind[] {
    const info = inDirectoryOf(workspace, path, (directory, name) => {
      const at = `${directory}/${name}`;
      const found = lstatSync(at, { throwIfNoEntry: false });
      if (found === undefined) return undefined;
      return found.isDirectory() ? readdirSync(at) : ('no directory' as const);
    });
    if (info === undefined) return [];
    if (info === 'no directory') return shut(path, 'git', 'git runs hooks from it');
    return info
      .filter((name) => !name.endsWith('.sample'))
      .flatMap((name) => shut(join(path, name), 'git', 'git runs it as a hook'));
  }

  function settleCommonDirectory(path: string): readonly LeftBehind[] {
    const text = readSmall(path);
    if (text === undefined) {
      const isThere = inDirectoryOf(workspace, path, (at, name) =>
        lstatSync(`${at}/${name}`, { throwIfNoEntry: false }),
      );
      return isThere === undefined ? [] : shut(path, 'git', 'it leads git to other settings and hooks');
    }
    const directory = dirname(path);
    const isWorktree = basename(dirname(directory)) === 'worktrees';
    const common = resolve(directory, text.replace(/[\r\n]+$/, ''));
    if (isWorktree && common === dirname(dirname(directory))) return [];
    return shut(path, 'git', 'it leads git to other settings and hooks');
  }

  function settleConfig(path: string): readonly LeftBehind[] {
    if (before.isHeld(path)) return [];
    const place = { workspace, path };
    const after = readGitConfig(place);
    if (after === 'missing') return [];
    const last = accepted.get(path) ?? before.configOf(path);
    if (after === 'unreadable') return putBack(path, last, 'git or somebody else may read it in another way');
    const { aside, restore, reason } = judgeChange(last ?? EMPTY_GIT_CONFIG, after, place);
    const settled = parseGitConfig(editGitConfig(after, restore)) ?? after;
    // Another file, for what still runs may have this one mapped. Where a command left git's lock the whole file goes.
    if (!replaceFile(workspace, path, Buffer.from(settled.text, 'latin1'))) {
      return putBack(path, restore.length === 0 ? settled : last, reason || LOCKED);
    }
    accepted.set(path, settled);
    if (restore.length === 0) return [];
    return [shutter.settings(path, aside, reason, 'shut')];
  }

  /** Takes a whole configuration file away, and puts the last one that was good in its place: it holds what is the user's own. */
  function putBack(path: string, last: GitConfigFile | undefined, reason: string): readonly LeftBehind[] {
    const found = shut(path, 'git', reason);
    if (last === undefined || found.some(({ done }) => done === 'told')) return found;
    return writeNew(path, Buffer.from(last.text, 'latin1'))
      ? found.map((one) => ({ ...one, done: 'restored' as const }))
      : found;
  }

  function writeNew(path: string, content: string | Buffer): boolean {
    const isWritten = inDirectoryOf(workspace, path, (directory, name) => {
      writeFileSync(`${directory}/${name}`, content, { flag: 'wx', mode: 0o644 });
      return true;
    });
    return isWritten === true;
  }

  /** Lines of a to-do list that run something are made comments: git runs the list when a rebase goes on. */
  function settleTodo(path: string): readonly LeftBehind[] {
    const text = readSmall(path, TODO_BYTES);
    if (text === undefined) return shut(path, 'git', 'git rebase --continue runs it');
    const lines = text.split('\n');
    const harmless = lines.map((line) => (/^\s*(exec|x)\b/.test(line) ? `# ${line}` : line));
    if (harmless.every((line, at) => line === lines[at]))
      return replaceFile(workspace, path, text) ? [] : shut(path, 'git', 'git rebase --continue runs it');
    const found = shut(path, 'git', 'git rebase --continue runs its "exec" lines, which are comments now');
    writeNew(path, harmless.join('\n'));
    return found;
  }

  return settleEntry;
}
