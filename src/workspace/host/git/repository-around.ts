import { lstatSync, readdirSync, realpathSync, type Stats } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isBeneath } from '../../../base/absolute-path.ts';
import { readOr } from '../../../base/errors/shortage.ts';
import { pathOf, shownPath, textOfPath } from '../../../base/path-text.ts';
import { readRegular } from '../held-directory.ts';
import { parseGitConfig } from './config-file.ts';
import { CONFIG_BYTES, readPointer } from './repositories.ts';

/** What of a workspace's git repository lies outside of it. All canonical. */
export interface RepositoryAround {
  /** The working tree that the workspace is a directory of; `undefined`: the workspace is a whole working tree. */
  readonly top: string | undefined;
  /**
   * Where git keeps what it writes: the `.git` of the repository, the common directory of a worktree, that of a submodule.
   * `undefined`: in the workspace.
   */
  readonly directory: string | undefined;
  /** The index of this working tree, in that directory. */
  readonly index?: string | undefined;
  /** In that directory: what belongs to other working trees, as far as these do not lie in the workspace. */
  readonly ofOthers: readonly string[];
  /** The `.git` files of these: git forgets a working tree (git-worktree(1), prune) of which it does not see that. */
  readonly filesOfOthers: readonly string[];
}

/** `found`: what git finds from the workspace, and may be granted; `refused`: why nothing is, a sentence, where it helps to say so. */
export interface RepositorySearch {
  readonly found?: RepositoryAround;
  readonly refused?: string;
}

/** The reason for which commands can read that working tree, as plans say it. */
export const TREE_AROUND = 'the working tree of git that the workspace lies in';

const NOTHING: RepositorySearch = {};

/**
 * The repository that a workspace (canonical) is a part of. Git is not run: it is found by what the files of git name, and
 * believed where both sides name each other, because a `.git` file may come from an archive, or from a command. All of it
 * must belong to this user, as git itself wants it, and no link may be on the way. `isTooMuch`: a directory that is never granted,
 * such as a home.
 */
export function findRepository(workspace: string, isTooMuch: (path: string) => boolean): RepositorySearch {
  const top = topAround(workspace);
  if (top === undefined) return NOTHING;
  const { path, info } = top;
  const dotGit = join(path, '.git');
  if (info.isDirectory()) {
    // All that git writes lies in the workspace already.
    if (path === workspace)
      return {
        found: { top: undefined, directory: undefined, ...othersIn(dotGit, dotGit, workspace), ofOthers: [] },
      };
    if (isTooMuch(path) || !isRepository(dotGit) || !isOwn(path) || !isOwn(dotGit)) return NOTHING;
    // Its files are those of another directory, or none.
    const { worktree, isBare } = worktreeOf(dotGit);
    if (isBare || (worktree !== undefined && worktree !== path)) return NOTHING;
    return {
      found: {
        ...{ top: path, directory: dotGit, index: join(dotGit, 'index') },
        ...othersIn(dotGit, dotGit, workspace),
      },
    };
  }
  if (!info.isFile())
    return info.isSymbolicLink()
      ? refused(
          dotGit,
          'is a link, which is not followed',
          'if it is yours, grant the directory that it leads to with the option writable',
        )
      : NOTHING;
  const own = pointerIn(dotGit, /^gitdir: (.+)$/s, path);
  if (own === undefined || isBeneath(own, workspace)) return NOTHING;
  if (path !== workspace && (isTooMuch(path) || !isOwn(path))) return NOTHING;
  const directory = directoryOf(own, dotGit);
  if (typeof directory !== 'string') return directory;
  // Never a directory around the workspace or in it.
  if (isBeneath(workspace, directory) || isBeneath(directory, workspace)) return NOTHING;
  if (isTooMuch(directory) || !isRepository(directory) || !isOwn(directory)) return NOTHING;
  return {
    found: {
      top: path === workspace ? undefined : path,
      directory,
      index: join(own, 'index'),
      ...othersIn(directory, own, workspace),
    },
  };
}

const refused = (path: string, why: string, instead: string): RepositorySearch => ({
  refused: `${shownPath(path)} ${why}, so git does not find its files in the sandbox; ${instead}`,
});

/** The next `.git` above, as git looks for it; not on another file system. */
function topAround(workspace: string): { readonly path: string; readonly info: Stats } | undefined {
  const device = infoOf(workspace)?.dev;
  for (let path = workspace; path !== '/'; path = dirname(path)) {
    if (infoOf(path)?.dev !== device) return undefined;
    const info = infoOf(join(path, '.git'));
    if (info !== undefined) return { path, info };
  }
  return undefined;
}

/** The directory to grant for a `.git` file that leads to `own`, or why there is none. */
function directoryOf(own: string, dotGit: string): string | RepositorySearch {
  const top = dirname(dotGit);
  if (!isStraight(own) || !isOwn(dotGit) || !isOwn(own))
    return refused(
      dotGit,
      `leads to ${shownPath(own)}, which is not there, not reached without links or another user’s`,
      '`git worktree repair` in the main working tree may mend it',
    );
  if (infoOf(join(own, 'commondir')) === undefined) {
    if (worktreeOf(own).worktree === top) return own;
    return refused(
      dotGit,
      `leads to ${shownPath(own)}, whose settings do not name ${shownPath(top)}`,
      `if it is yours, run outside: git -C ${quoted(top)} config core.worktree ${quoted(top)}`,
    );
  }
  const common = dirname(dirname(own));
  const isOfWorktree =
    basename(dirname(own)) === 'worktrees' &&
    ['../..', common].includes(readPointer(join(own, 'commondir')) ?? '') &&
    isOwn(join(own, 'gitdir')) &&
    pointerIn(join(own, 'gitdir'), /^(.+)$/s, own) === dotGit;
  if (isOfWorktree) return common;
  return refused(
    dotGit,
    `leads to ${shownPath(own)}, which does not lead back to it`,
    'if it is yours, run `git worktree repair` in it, outside',
  );
}

/** A path as one shell word. */
const quoted = (path: string) =>
  /^[\w@%+=:./-]+$/.test(path) ? path : `'${shownPath(path).replaceAll("'", "'\\''")}'`;

function infoOf(path: string): Stats | undefined {
  return readOr(() => lstatSync(pathOf(path), { throwIfNoEntry: false }), undefined);
}

/** Whether it is this user's. Git obeys no repository of another one (`safe.directory` of git-config(1)). */
function isOwn(path: string): boolean {
  return infoOf(path)?.uid === process.geteuid?.();
}

/** Whether a directory is where its path says. A policy's paths are text. */
function isStraight(path: string): boolean {
  if (shownPath(path) !== path || infoOf(path)?.isDirectory() !== true) return false;
  return readOr(() => realpathSync.native(path) === path, false);
}

/** Whether git accepts a directory as a git directory that is complete in itself. */
function isRepository(directory: string): boolean {
  const isDirectory = (name: string) => infoOf(join(directory, name))?.isDirectory() === true;
  return (
    isStraight(directory) &&
    infoOf(join(directory, 'HEAD')) !== undefined &&
    isDirectory('objects') &&
    isDirectory('refs')
  );
}

/** The path that a file names, from a directory on; its text alone says what `..` in it means, so links have to be looked for. */
function pointerIn(file: string, form: RegExp, from: string): string | undefined {
  const [, named] = form.exec(readPointer(file) ?? '') ?? [];
  return named === undefined ? undefined : resolve(from, named);
}

/** What the settings of a repository say about its working tree. */
function worktreeOf(directory: string): { readonly worktree: string | undefined; readonly isBare: boolean } {
  const settings = ['config', 'config.worktree'].flatMap((name) => {
    const file = join(directory, name);
    const content = isOwn(file)
      ? readOr(() => readRegular(pathOf(file), CONFIG_BYTES), undefined)
      : undefined;
    return (content && parseGitConfig(content)?.settings) ?? [];
  });
  const lastOf = (wanted: string) => settings.findLast(({ key }) => key === wanted)?.value;
  const named = lastOf('core.worktree');
  return {
    worktree: named && resolve(directory, textOfPath(Buffer.from(named, 'latin1'))),
    isBare: /^(?:true|yes|on|1)$/i.test(lastOf('core.bare') ?? ''),
  };
}

/** The other working trees of a repository, as far as they do not lie in the workspace. `own`: git's directory of this one. */
function othersIn(
  directory: string,
  own: string,
  workspace: string,
): Pick<RepositoryAround, 'ofOthers' | 'filesOfOthers'> {
  const worktrees = join(directory, 'worktrees');
  const names = readOr(() => readdirSync(pathOf(worktrees), 'buffer').map(textOfPath), []);
  const others = names
    .map((name) => join(worktrees, name))
    .map((path) => ({ path, dotGit: pointerIn(join(path, 'gitdir'), /^(.+)$/s, path) }))
    .filter(({ path, dotGit }) => path !== own && (dotGit === undefined || !isBeneath(dotGit, workspace)));
  // In the shared directory, HEAD and index belong to the main working tree, the rest to all.
  const ofMain = own === directory ? [] : ['HEAD', 'index'].map((name) => join(directory, name));
  return {
    ofOthers: [
      ...others.map(({ path }) => path),
      ...ofMain.filter((path) => infoOf(path)?.isFile() === true),
    ],
    // A command can have written what `gitdir` says. What a file that leads back says is no secret.
    filesOfOthers: others.flatMap(({ path, dotGit }) =>
      dotGit !== undefined &&
      basename(dotGit) === '.git' &&
      isStraight(dirname(dotGit)) &&
      isOwn(dotGit) &&
      pointerIn(dotGit, /^gitdir: (.+)$/s, dirname(dotGit)) === path
        ? [dotGit]
        : [],
    ),
  };
}
