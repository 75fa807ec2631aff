import { randomBytes } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, resolve } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { O_PATH } from './held-directory.ts';
import { homeDirectory } from './user-directories.ts';

const { O_DIRECTORY, O_NOFOLLOW } = constants;
/** As many links as the kernel follows (path_resolution(7)). */
const MOST_LINKS = 40;

/** Directories of the system whose links are the administrator's, even for root, whose commands run as root. */
const SYSTEM_DIRECTORIES = [
  ...['/', '/etc', '/home', '/media', '/mnt', '/opt', '/run', '/srv', '/usr', '/usr/local', '/var'],
];

/** How a file is written that a user names. */
export interface WriteOptions {
  /** Directories that commands may write: no link in or beneath them is followed. */
  readonly commandsWrite: readonly string[];
  /** Makes directories that are missing on the way, with this mode. */
  readonly directoryMode?: number;
}

/** The real place of a file that a user names, with its directory held open, so that later renames above it do not matter. */
export interface WritePlace {
  /** The name to use: its directory stays the same one. Valid while the place is held. */
  readonly at: string;
  /** The path for messages: with the user's own links followed. */
  readonly path: string;
}

/**
 * Calls `use` with the place of a path. Links that only the user can have made are followed, such as those of a home that
 * lead to its dotfiles; any other could be a command's, which would choose the file that we write, and is refused: on the way
 * and at the end. Returns `undefined` where a directory on the way is missing, and none are made.
 * @throws {SandboxError} `file.unusable` for such a link.
 */
export function atPlaceOf<T>(
  path: string,
  { commandsWrite, directoryMode }: WriteOptions,
  use: (place: WritePlace) => T,
): T | undefined {
  const trusts = trustedLinks(commandsWrite);
  const pending = componentsOf(resolve(path)).reverse();
  let held = openSync('/', O_PATH | O_DIRECTORY);
  let links = 0;
  const step = (name: string) => {
    let next: number;
    try {
      next = openSync(inside(held, name), O_PATH | O_DIRECTORY | O_NOFOLLOW);
    } catch (error) {
      throw unusable(path, `${visibleLine(name, 300)} on the way is no directory (${errnoOf(error)})`);
    }
    closeSync(held);
    held = next;
  };
  const startAgain = () => {
    closeSync(held);
    held = openSync('/', O_PATH | O_DIRECTORY);
  };
  try {
    for (;;) {
      const name = pending.pop();
      // A link can end with `..`.
      if (name === undefined) throw unusable(path, 'it is a directory');
      const found = lstatSync(inside(held, name), { throwIfNoEntry: false });
      if (found?.isSymbolicLink() === true) {
        const directory = readlinkSync(`/proc/self/fd/${held}`);
        const link = directory === '/' ? `/${name}` : `${directory}/${name}`;
        links += 1;
        if (links > MOST_LINKS || !trusts(directory))
          throw unusable(path, `${visibleLine(link, 300)} is a link that a command could have made`);
        const target = readlinkSync(inside(held, name));
        pending.push(...componentsOf(target).reverse());
        if (target.startsWith('/')) startAgain();
        continue;
      }
      if (pending.length === 0 && name !== '..') {
        const directory = readlinkSync(`/proc/self/fd/${held}`);
        return use({ at: inside(held, name), path: directory === '/' ? `/${name}` : `${directory}/${name}` });
      }
      if (found === undefined && name !== '..') {
        if (directoryMode === undefined) return undefined;
        // Another process may make it, too.
        orElse(() => mkdirSync(inside(held, name), { mode: directoryMode }), undefined);
      }
      step(name);
    }
  } finally {
    closeSync(held);
  }
}

const inside = (directory: number, name: string) => `/proc/self/fd/${directory}/${name}`;

const componentsOf = (path: string) => path.split('/').filter((name) => name !== '' && name !== '.');

const unusable = (path: string, why: string) =>
  new SandboxError(
    'file.unusable',
    `${visibleLine(path, 300)} is left as it is: ${why}; look at that, and name the place itself`,
  );

/** Whether links in a directory are the user's or the administrator's. What is not known to be is a command's. */
function trustedLinks(commandsWrite: readonly string[]): (directory: string) => boolean {
  const real = (place: string) => orElse(() => realpathSync.native(place), place);
  const home = real(homeDirectory());
  const roots = commandsWrite.map(real);
  return (directory) => {
    if (roots.some((root) => isBeneath(directory, root))) return false;
    if (SYSTEM_DIRECTORIES.includes(directory) || directory === home) return true;
    // Directories of settings. A workspace has a name that is shown.
    if (isBeneath(directory, home)) return directory.charAt(home.length + 1) === '.';
    return !canWrite(directory);
  };
}

const canWrite = (directory: string) =>
  orElse(() => {
    accessSync(directory, constants.W_OK);
    return true;
  }, false);

/** What a file is made with. */
export interface NewFile {
  readonly mode: number;
  /** Looks once more before the file gets its name; false: it is given up. */
  readonly isStill?: () => boolean;
}

/**
 * Makes a file anew at a held place, all of it or nothing: what is there under that name is replaced and never written
 * through, be it a link, a second name of another file or a pipe. False: `isStill` said no.
 */
export function replaceAt({ at }: WritePlace, content: string, { mode, isStill }: NewFile): boolean {
  const directory = at.slice(0, at.lastIndexOf('/'));
  const beside = `${directory}/.${basename(at).slice(0, 60)}.${randomBytes(6).toString('hex')}`;
  const isThere = lstatSync(at, { throwIfNoEntry: false }) !== undefined;
  try {
    writeExclusively(beside, content, mode, isThere);
    if (isStill?.() === false) return false;
    renameSync(beside, at);
    return true;
  } finally {
    rmSync(beside, { force: true });
  }
}

/** Makes a file at a held place where there is nothing yet. @throws EEXIST for anything that is there, a link included. */
export function makeAt({ at }: WritePlace, content: string, { mode }: NewFile): void {
  writeExclusively(at, content, mode, false);
}

/** `isExact`: whatever the umask, as of the file that it replaces. */
function writeExclusively(at: string, content: string, mode: number, isExact: boolean): void {
  const file = openSync(at, 'wx', mode);
  try {
    writeFileSync(file, content);
    if (isExact) fchmodSync(file, mode);
    fsyncSync(file);
  } catch (error) {
    rmSync(at, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
}

/** Changes the mode of the file at a path, and of nothing that a link there leads to. */
export function chmodItself(path: string | Buffer, mode: number): void {
  const held = openSync(path, O_PATH | O_NOFOLLOW);
  try {
    if (fstatSync(held).isSymbolicLink()) throw unusable(path.toString(), 'it is a link now');
    chmodSync(`/proc/self/fd/${held}`, mode);
  } finally {
    closeSync(held);
  }
}
