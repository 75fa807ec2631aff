import { randomBytes } from 'node:crypto';
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { innermostAround } from '../../base/absolute-path.ts';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import { bytesOfPath, shownPath } from '../../base/path-text.ts';
import { linkBytes } from '../../confine/link-bytes.ts';
import type { LeftBehind } from '../../model/index.ts';
import { type GitSetting, valuesByKey } from '../host/git/config-file.ts';
import {
  heldAround,
  inDirectoryOf,
  inWritableDirectoryOf,
  readRegular,
  withSuffix,
} from '../host/held-directory.ts';
import { isTimedId, timedId } from '../host/timed-id.ts';
import { ensureStateDirectory } from '../host/user-directories.ts';
import { changeGitConfig } from './git-config.ts';

/** A file larger than this stays beside its place under another name: it is not copied to another file system. */
const COPIED_BYTES = 64 * 1024 * 1024;

/** A larger file is not shown. */
const SHOWN_BYTES = 64 * 1024;

/** Something that was taken from where it would have been obeyed. */
export interface KeptItem {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly workspace: string;
  /** A path made by `textOfPath`. Its file has it in the same form: JSON can hold unpaired surrogates. */
  readonly path: string;
  readonly reason: string;
  /** Where it is now; `undefined`: in the state directory. */
  readonly movedTo?: string;
  /** Settings of a configuration file of git, as bytes in latin1; `null`: the key stood alone. */
  readonly settings?: readonly (readonly [key: string, value: string | null])[];
}

/** By hand: each command would wait for a schema to be loaded. @throws {TypeError} where it is none. */
function asItem(value: KeptItem): KeptItem {
  const { id, at, workspace, path, reason, movedTo = '', settings = [] } = value;
  const isSetting = ([key, content]: readonly unknown[]) =>
    typeof key === 'string' && (content === null || typeof content === 'string');
  const texts = [id, workspace, path, reason, movedTo];
  if (texts.every((text) => typeof text === 'string') && typeof at === 'number' && settings.every(isSetting))
    return value;
  throw new TypeError('it is not what sandbox-run wrote');
}

/** What is to be kept. */
type ToKeep = Pick<KeptItem, 'workspace' | 'path' | 'reason' | 'settings'>;

/**
 * Keeps what was taken away, so that a person can look at it and put it back: in a state directory, where nothing is made
 * before there is something to keep.
 */
export class Kept {
  private readonly stateDirectory: string;
  private readonly root: string;

  constructor(stateDirectory: string) {
    this.stateDirectory = stateDirectory;
    this.root = join(stateDirectory, 'kept');
  }

  /** Notes settings, or moves the object at the path; `undefined`: it is gone already. Returns the id. */
  keep(what: ToKeep): string | undefined {
    ensureStateDirectory(this.stateDirectory);
    ensureStateDirectory(this.root);
    const at = Date.now();
    const id = timedId(at);
    const place = join(this.root, id);
    mkdirSync(place, { mode: 0o700 });
    let movedTo: string | undefined;
    if (what.settings === undefined) {
      const moved = inWritableDirectoryOf(what.workspace, what.path, (from) =>
        moveAway(from, join(place, 'content'), id),
      );
      if (moved === undefined) {
        rmSync(place, { recursive: true });
        return undefined;
      }
      if (moved === 'beside') movedTo = `${what.path}${besideSuffix(id)}`;
    }
    const item: KeptItem = { id, at, ...what, ...(movedTo === undefined ? {} : { movedTo }) };
    writeFileSync(join(place, 'item.json'), `${JSON.stringify(item, null, 2)}\n`, { mode: 0o600 });
    return id;
  }

  list(): readonly KeptItem[] {
    let names: readonly string[];
    try {
      names = readdirSync(this.root);
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return [];
      throw unusable(this.root, error);
    }
    return names.flatMap((id) => this.read(id) ?? []).sort((a, b) => a.at - b.at);
  }

  private read(id: string): KeptItem | undefined {
    if (!isTimedId(id)) return undefined;
    const path = join(this.root, id, 'item.json');
    try {
      return asItem(JSON.parse(readFileSync(path, 'utf8')) as KeptItem);
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return undefined;
      throw unusable(path, error);
    }
  }

  /** @throws {SandboxError} `kept.unknown`. */
  find(id: string): KeptItem {
    const item = this.read(id);
    if (item !== undefined) return item;
    throw new SandboxError(
      'kept.unknown',
      `nothing is kept as ${JSON.stringify(id)}; see sandbox-run kept list`,
    );
  }

  /** The content of a small file, the target of a link, or the names in a directory; `undefined`: it cannot be shown. */
  contentOf(id: string): string | undefined {
    const path = bytesOfPath(this.find(id).movedTo ?? join(this.root, id, 'content'));
    const info = lstatSync(path, { throwIfNoEntry: false });
    if (info === undefined) return undefined;
    if (info.isSymbolicLink()) return `-> ${readlinkSync(path)}`;
    if (info.isDirectory()) return readdirSync(path, { recursive: true, encoding: 'utf8' }).join('\n');
    return readRegular(path, SHOWN_BYTES)?.toString('utf8');
  }

  /**
   * Puts it back and forgets it.
   * @throws {SandboxError} `kept.unknown`, `kept.in_the_way`, `state.unusable`.
   */
  restore(id: string): KeptItem {
    const item = this.find(id);
    if (item.settings !== undefined) restoreSettings(item, item.settings);
    else putBack(item, join(this.root, id, 'content'));
    return this.forget(id);
  }

  /** Forgets it, and removes it where it is in the state directory. */
  forget(id: string): KeptItem {
    const item = this.find(id);
    rmSync(join(this.root, id), { recursive: true });
    return item;
  }
}

const besideSuffix = (id: string) => `.kept-${id}`;

/** Gives a path another name where nothing can be kept in the state directory. Returns the name; `undefined`: that fails, too. */
function moveBeside(workspace: string, path: string): string | undefined {
  const suffix = besideSuffix(randomBytes(6).toString('hex'));
  const move = (at: Buffer) => {
    renameSync(at, withSuffix(at, suffix));
    return `${path}${suffix}`;
  };
  return orElse(() => inWritableDirectoryOf(workspace, path, move), undefined);
}

/** Where it came to; `undefined`: there was nothing. */
function moveAway(from: Buffer, to: string, id: string): 'there' | 'beside' | undefined {
  const rest = () => {
    renameSync(from, withSuffix(from, besideSuffix(id)));
    return 'beside' as const;
  };
  try {
    renameSync(from, to);
    return 'there';
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    // A directory that its owner may not write cannot go into another one.
    if (errnoOf(error) === 'EACCES' || errnoOf(error) === 'EPERM') return rest();
    if (errnoOf(error) !== 'EXDEV') throw error;
  }
  // Another file system. What would have to be copied piece by piece, while commands may run, stays under another name.
  const info = lstatSync(from);
  if (info.isSymbolicLink()) {
    symlinkSync(linkBytes(from), to);
  } else {
    const content = info.isFile() && (info.mode & 0o400) !== 0 ? readRegular(from, COPIED_BYTES) : undefined;
    if (content === undefined) return rest();
    writeFileSync(to, content, { mode: info.mode & 0o700 });
  }
  unlinkSync(from);
  return 'there';
}

function putBack(item: KeptItem, content: string): void {
  const done = inDirectoryOf(item.workspace, item.path, (target) => {
    if (lstatSync(target, { throwIfNoEntry: false }) !== undefined)
      throw new SandboxError(
        'kept.in_the_way',
        `${shownPath(item.path)} is there already; move it away first`,
      );
    const from =
      item.movedTo === undefined
        ? content
        : Buffer.concat([Buffer.from(`${heldAround(target)}/`), bytesOfPath(basename(item.movedTo))]);
    try {
      renameSync(from, target);
    } catch (error) {
      if (errnoOf(error) !== 'EXDEV') throw unusable(item.path, error);
      const info = lstatSync(from);
      if (info.isSymbolicLink()) symlinkSync(linkBytes(from), target);
      else writeFileSync(target, readFileSync(from), { flag: 'wx', mode: info.mode & 0o777 });
    }
    return true;
  });
  if (done !== true)
    throw new SandboxError(
      'kept.in_the_way',
      `${shownPath(dirname(item.path))} is not a directory any more; make it first`,
    );
}

function restoreSettings(item: KeptItem, settings: NonNullable<KeptItem['settings']>): void {
  const wanted = valuesByKey(settings.map(([key, value]) => ({ key, value: value ?? undefined })));
  const problem = changeGitConfig(item, (current) => {
    const there = valuesByKey(current.settings);
    return [...wanted].map(([key, values]) => ({ key, values: [...(there.get(key) ?? []), ...values] }));
  });
  if (problem === undefined) return;
  throw new SandboxError('kept.in_the_way', `${shownPath(item.path)} cannot be changed: ${problem}`);
}

function unusable(path: string, error: unknown): SandboxError {
  return new SandboxError(
    'state.unusable',
    `${shownPath(path)} cannot be used (${errnoOf(error) ?? String(error)})`,
    {
      cause: error,
    },
  );
}

/** Nothing was done about something: a person starts it, or nothing could be done. */
export const told = (path: string, reason: string, program = 'sandbox-run'): LeftBehind => ({
  path,
  done: 'told',
  program,
  reason,
});

/** Takes away what would be obeyed, and says so. */
export class Shutter {
  private readonly roots: readonly string[];
  private readonly kept: Kept;

  /** `roots`: the directories that are looked through. */
  constructor(roots: readonly string[], kept: Kept) {
    this.roots = roots;
    this.kept = kept;
  }

  /** The directory beneath which a path is reached without following a link. */
  rootOf(path: string): string {
    return innermostAround(path, this.roots) ?? dirname(path);
  }

  /** Whether what happens at a path is looked at. */
  looksAt(path: string): boolean {
    return innermostAround(path, this.roots) !== undefined;
  }

  /** Moves the object at the path away. Nothing to say where it is gone already. */
  shut(path: string, program: string, reason: string): readonly LeftBehind[] {
    const workspace = this.rootOf(path);
    try {
      const id = this.kept.keep({ workspace, path, reason: `${program}: ${reason}` });
      return id === undefined ? [] : [{ path, done: 'shut', program, reason, kept: id }];
    } catch (error) {
      const why = errnoOf(error) ?? String(error);
      const beside = moveBeside(workspace, path);
      return beside === undefined
        ? [told(path, `${reason}; it could not be moved away (${why})`, program)]
        : [{ path, done: 'shut', program, reason: `${reason}; it is ${shownPath(beside)} now (${why})` }];
    }
  }

  /** Keeps settings that were taken out of a file, or that did not get into it. */
  settings(path: string, settings: readonly GitSetting[], reason: string): LeftBehind {
    const shut: LeftBehind = {
      ...{ path, done: 'shut', program: 'git', reason },
      settings: settings.map(describeSetting),
    };
    if (settings.length === 0) return shut;
    try {
      const id = this.kept.keep({
        ...{ workspace: this.rootOf(path), path, reason: `git: ${reason}` },
        settings: settings.map(({ key, value }) => [key, value ?? null]),
      });
      return id === undefined ? shut : { ...shut, kept: id };
    } catch (error) {
      const why = errnoOf(error) ?? String(error);
      return { ...shut, reason: `${reason}; they could not be kept (${why})` };
    }
  }
}

/** A setting as people write it. */
function describeSetting({ key, value }: GitSetting): string {
  const text = value === undefined ? key : `${key}=${value}`;
  return Buffer.from(text, 'latin1').toString('utf8');
}
