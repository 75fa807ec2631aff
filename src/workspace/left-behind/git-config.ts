import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { orElse } from '../../base/or-else.ts';
import { shownPath, textOfPath } from '../../base/path-text.ts';
import {
  EMPTY_GIT_CONFIG,
  editGitConfig,
  type GitConfigFile,
  type GitEdit,
  type GitSetting,
  parseGitConfig,
  valuesByKey,
} from '../host/git/config-file.ts';
import { effectOfKey } from '../host/git/config-keys.ts';
import { CONFIG_BYTES } from '../host/git/repositories.ts';
import {
  inDirectoryOf,
  inWritableDirectoryOf,
  readRegular,
  takeLock,
  withSuffix,
} from '../host/held-directory.ts';

const { O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;

/** Where a configuration file is. */
interface ConfigPlace {
  readonly workspace: string;
  readonly path: string;
}

/** What a command changed in a configuration file. */
interface JudgedChange {
  /** Edits of settings that only name things. */
  readonly over: readonly GitEdit[];
  /** Settings that run, include or redirect something, or are unknown. `restore`: the earlier values of these keys. */
  readonly aside: readonly GitSetting[];
  readonly restore: readonly GitEdit[];
  /** Why it matters, of the first of them. */
  readonly reason: string;
}

/** Sections that go as a whole when the thing they name goes: taking a key of theirs away runs nothing. */
const OF_ONE_THING = /^(remote|branch|submodule)\..+\./s;

/** Compares two states of a configuration file, key by key. */
export function judgeChange(before: GitConfigFile, after: GitConfigFile, place: ConfigPlace): JudgedChange {
  const was = valuesByKey(before.settings);
  const is = valuesByKey(after.settings);
  const over: GitEdit[] = [];
  const aside: GitSetting[] = [];
  const restore: GitEdit[] = [];
  let reason = '';
  for (const key of new Set([...was.keys(), ...is.keys()])) {
    const old = was.get(key) ?? [];
    const values = is.get(key) ?? [];
    if (old.length === values.length && old.every((value, at) => value === values[at])) continue;
    const [wasSet, isSet] = [new Set(old), new Set(values)];
    const added = values.filter((value) => !wasSet.has(value)).map((value) => ({ key, value }));
    const gone = old.filter((value) => !isSet.has(value)).map((value) => ({ key, value }));
    // A submodule that is moved (`git mv`) says another place.
    const isMoved = (setting: GitSetting) =>
      key === 'core.worktree' && values.length === 1 && mayGoOver(setting, place);
    const refused = [
      ...added.filter((setting) => !mayGoOver(setting, place)),
      ...(OF_ONE_THING.test(key) ? [] : gone.filter((setting) => !mayGo(setting) && !isMoved(setting))),
    ];
    if (refused.length === 0) {
      over.push({ key, values });
      continue;
    }
    reason ||= effectOfKey(refused[0] ?? { key, value: undefined }).reason;
    aside.push(...added);
    restore.push({ key, values: old });
  }
  return { over, aside, restore, reason };
}

function mayGoOver(setting: GitSetting, { workspace, path }: ConfigPlace): boolean {
  if (setting.key === 'core.worktree') {
    // A submodule's says where its files are, from the directory of the file on. Not where a checkout would bring programs
    // that git runs.
    const worktree = resolve(dirname(path), textOfPath(Buffer.from(setting.value ?? '', 'latin1')));
    return (
      worktree !== workspace &&
      isBeneath(worktree, workspace) &&
      !relative(workspace, worktree).split('/').includes('.git')
    );
  }
  return effectOfKey(setting).effect === 'names';
}

/** Settings without which git reads the repository differently, or not at all: commands may not remove them. */
const OF_FORMAT =
  /^(core\.(repositoryformatversion|bare|filemode|ignorecase|symlinks|logallrefupdates|precomposeunicode)|extensions\.(?!worktreeconfig$).*)$/;

/** A setting that a person made to run something stays until that person removes it. */
function mayGo(setting: GitSetting): boolean {
  const { effect } = effectOfKey(setting);
  return (effect === 'names' && !OF_FORMAT.test(setting.key)) || effect === 'unknown';
}

/** Reads a file that a command may have written; `unreadable` where git would stop at it, or it is none. */
export function readGitConfig({ workspace, path }: ConfigPlace): GitConfigFile | 'missing' | 'unreadable' {
  const content = inDirectoryOf(workspace, path, (at) => {
    if (lstatSync(at, { throwIfNoEntry: false }) === undefined) return 'missing';
    return readRegular(at, CONFIG_BYTES) ?? 'unreadable';
  });
  if (content === undefined) return 'missing';
  return typeof content === 'string' ? content : (parseGitConfig(content) ?? 'unreadable');
}

/**
 * Changes a configuration file under git's own lock. `edits`: from what is there now. Returns why it could not be done, or
 * `undefined`.
 */
export function changeGitConfig(
  { workspace, path }: ConfigPlace,
  edits: (current: GitConfigFile) => readonly GitEdit[],
): string | undefined {
  const problem = inWritableDirectoryOf(workspace, path, (at) => {
    const info = lstatSync(at, { throwIfNoEntry: false });
    if (info !== undefined && !info.isFile()) return 'it is not a file any more';
    const mode = (info?.mode ?? 0o644) & 0o777;
    const lockFile = withSuffix(at, '.lock');
    const lock = takeLock(lockFile, mode);
    if (lock === undefined) return `${shownPath(path)}.lock is there; if no git is running, remove it`;
    let isRenamed = false;
    try {
      const current =
        info === undefined
          ? EMPTY_GIT_CONFIG
          : parseGitConfig(readRegular(at, CONFIG_BYTES) ?? Buffer.from('\0'));
      if (current === undefined) return 'git cannot read it';
      const changed = editGitConfig(current, edits(current));
      writeSync(lock, changed);
      fsyncSync(lock);
      if (info === undefined || info.nlink > 1 || !overwrite(at, changed)) {
        renameSync(lockFile, at);
        isRenamed = true;
      }
      return '';
    } finally {
      closeSync(lock);
      if (!isRenamed) unlinkSync(lockFile);
    }
  });
  return problem === '' ? undefined : (problem ?? 'it is not there any more');
}

/**
 * Gives a file another content and leaves it the same file: what is mounted over it for commands that still run goes when
 * another file takes its place. A process that reads it meanwhile finds at most empty lines at its end.
 */
function overwrite(path: Buffer, content: Buffer): boolean {
  const file = orElse(() => openSync(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK), undefined);
  if (file === undefined) return false;
  try {
    const { size } = fstatSync(file);
    const filled = Buffer.concat([content, Buffer.alloc(Math.max(0, size - content.length), '\n')]);
    if (writeSync(file, filled, 0, filled.length, 0) !== filled.length) return false;
    ftruncateSync(file, content.length);
    fsyncSync(file);
    return true;
  } catch {
    return false;
  } finally {
    closeSync(file);
  }
}
