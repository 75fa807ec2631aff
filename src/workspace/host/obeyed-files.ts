import { type Dirent, lstatSync, readdirSync } from 'node:fs';
import { directoriesBetween, isBeneath } from '../../base/absolute-path.ts';
import { errnoOf } from '../../base/errno-of.ts';
import { pathOf, shownPath, textOfPath } from '../../base/path-text.ts';
import type { LookAtObeyed, ObeyedState } from '../../model/index.ts';
import { parseGitConfig } from './git/config-file.ts';
import { effectOfKey } from './git/config-keys.ts';
import { CONFIG_BYTES } from './git/repositories.ts';
import { readRegular } from './held-directory.ts';

/*
 * What programs read in a workspace without being told to, where nothing holds them (backend `application`): a link among it leads
 * them out of the workspace, and a setting starts a program. Looked at before they start.
 */

/** Entries of directories; more take longer than a command is worth. */
const MOST_ENTRIES = 100_000;

/** Parts of a repository that the verbs which read do not go into. */
const NOT_READ = new Set(['modules', 'lfs', 'hooks', 'worktrees']);

/** Files of a repository that lead to other places. */
const ELSEWHERE = ['commondir', 'objects/info/alternates', 'objects/info/http-alternates'];

/** What git itself cannot be told to leave: filters run for files that changed, hooks of newer versions, files that are included. */
const NOT_TURNED_OFF =
  /^(?:filter|hook|include|includeif)\.|^extensions\.partialclone$|^remote\..*\.(?:promisor|partialclonefilter)$/s;

const IGNORE_FILES = new Set(['.gitignore', '.ignore', '.rgignore']);

/** Looks at what programs obey that are started in a workspace, of which the canonical path is given. */
export function createLookAtObeyed(workspace: string): LookAtObeyed {
  return (files, directory) => {
    try {
      if (!isBeneath(directory, workspace)) return 'would run outside of the workspace';
      return files === 'repository' ? repositoryOf(directory, workspace) : ignoreFilesOf(workspace);
    } catch (error) {
      return `obeys files of the workspace that cannot be looked at (${errnoOf(error) ?? 'unknown error'})`;
    }
  };
}

function repositoryOf(from: string, workspace: string): ObeyedState {
  const around = [from, ...directoriesBetween(from, workspace), workspace];
  const worktree = around.find((one) => kindOf(`${one}/.git`) !== 'missing');
  if (worktree === undefined) return 'finds no repository in the workspace';
  const directory = `${worktree}/.git`;
  if (kindOf(directory) !== 'directory')
    return `would obey ${shownPath(directory)}, which is no directory and leads elsewhere`;
  const other = ELSEWHERE.find((name) => kindOf(`${directory}/${name}`) !== 'missing');
  if (other !== undefined)
    return `would read another repository, which ${shownPath(directory)}/${other} names`;
  const odd = findEntry(directory, (entry, path) =>
    path === directory && NOT_READ.has(nameOf(entry)) ? 'leave' : !entry.isFile() && !entry.isDirectory(),
  );
  if (odd !== undefined)
    return odd === TOO_MANY
      ? `would read ${TOO_MANY} in .git; git gc makes them fewer`
      : `would follow ${odd}`;
  for (const name of ['config', 'config.worktree']) {
    const problem = problemOfSettings(`${directory}/${name}`);
    if (problem !== undefined) return problem;
  }
  return { repository: { directory, worktree } };
}

function problemOfSettings(path: string): string | undefined {
  if (kindOf(path) === 'missing') return undefined;
  const content = readRegular(pathOf(path), CONFIG_BYTES);
  const read = content === undefined ? undefined : parseGitConfig(content);
  if (read === undefined) return `would obey ${shownPath(path)}, which cannot be read`;
  const setting = read.settings.find((one) => {
    return NOT_TURNED_OFF.test(one.key) || /^(?:unknown|includes)$/.test(effectOfKey(one).effect);
  });
  return setting === undefined
    ? undefined
    : `would obey the setting ${setting.key} in ${shownPath(path)}, which cannot be turned off or is not known`;
}

/** Ignore files in the workspace and above it, ignored ones too, because a search with other options reads them. */
function ignoreFilesOf(workspace: string): ObeyedState {
  for (const directory of [...directoriesBetween(workspace, '/'), '/']) {
    const above = [...IGNORE_FILES].map((name) => `${directory === '/' ? '' : directory}/${name}`);
    const odd = above.find((path) => !/^(?:file|missing)$/.test(kindOf(path)));
    if (odd !== undefined) return `would follow ${shownPath(odd)}`;
  }
  const odd = findEntry(workspace, (entry) => IGNORE_FILES.has(nameOf(entry)) && !entry.isFile());
  if (odd === undefined) return {};
  return odd === TOO_MANY
    ? `obeys ignore files among ${TOO_MANY}; give --no-ignore`
    : `would follow ${odd}, which says what is ignored; give --no-ignore`;
}

const TOO_MANY = `more than ${MOST_ENTRIES} files`;

const nameOf = (entry: Dirent<Buffer>) => textOfPath(entry.name);

/** The path of an entry at any depth for which it is true, for people; `leave`: what is beneath it does not count. */
function findEntry(
  root: string,
  isWanted: (entry: Dirent<Buffer>, directory: string) => boolean | 'leave',
): string | undefined {
  const pending = [root];
  let count = 0;
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop())
    for (const entry of readdirSync(pathOf(directory), { withFileTypes: true, encoding: 'buffer' })) {
      if (++count > MOST_ENTRIES) return TOO_MANY;
      const wanted = isWanted(entry, directory);
      if (wanted === true) return shownPath(`${directory}/${nameOf(entry)}`);
      if (wanted === false && entry.isDirectory()) pending.push(`${directory}/${nameOf(entry)}`);
    }
  return undefined;
}

function kindOf(path: string): 'file' | 'directory' | 'other' | 'missing' {
  const info = lstatSync(pathOf(path), { throwIfNoEntry: false });
  if (info === undefined) return 'missing';
  return info.isFile() ? 'file' : info.isDirectory() ? 'directory' : 'other';
}
