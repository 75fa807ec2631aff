import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, readlink, realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { directoriesBetween, isBeneath } from '../../base/absolute-path.ts';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';

/** What commands can write, and plug-ins therefore must not lie in. Absolute; need not exist. */
export interface Writable {
  readonly workspace: string;
  readonly writable: readonly string[];
}

/** A plug-in that was examined. */
export interface TrustedFile {
  readonly path: string;
  readonly content: Buffer;
  /** Hexadecimal. */
  readonly sha256: string;
}

const MAX_SIZE = 1024 * 1024;
const GROUP_OR_OTHERS_WRITE = 0o022;
const STICKY = 0o1000;

/**
 * Reads a plug-in that nobody but root and the user can have written, or whose content the policy names.
 * @throws {SandboxError} `hook.unusable`
 */
export async function readTrusted(
  { path, sha256 }: { readonly path: string; readonly sha256?: string | undefined },
  where: Writable,
): Promise<TrustedFile> {
  await examinePlace(path, where);
  if (sha256 === undefined) await examineDirectories(path);
  const content = await readExamined(path, sha256 !== undefined);
  const found = createHash('sha256').update(content).digest('hex');
  if (sha256 !== undefined && found !== sha256)
    throw unusable(`its content has the SHA-256 ${found} and not that of the policy`);
  return { path, content, sha256: found };
}

/** Nothing that commands can write, nor reached through it. */
async function examinePlace(path: string, { workspace, writable }: Writable): Promise<void> {
  const canonical = join(await canonicalDirectory(dirname(path)), basename(path));
  // What leads there could be changed as well as what is there.
  if (canonical !== path) throw unusable(`its real place is ${canonical}: name that`);
  for (const root of [workspace, ...writable]) {
    const real = await realpath(root).catch(() => root);
    if ([root, real].some((place) => isBeneath(path, place)))
      throw unusable(`commands could write it, as it lies in ${root}`);
  }
}

/** Hard links are accepted here: programs of the system have several names, all in this directory. */
const SYSTEM = '/usr';
/** The most symbolic links that the kernel follows on the way to one file. */
const MOST_LINKS = 40;

/**
 * Examines a program that runs unconfined, and each file that its arguments name, as a script for an interpreter: nobody but
 * root and the user can have written them, or what leads there.
 * @throws {SandboxError} `hook.unusable`
 */
export async function requireTrustedProgram(argv: readonly string[], where: Writable): Promise<void> {
  const [program = '', ...args] = argv;
  if (!program.startsWith('/')) throw unusable(`${program} is not an absolute path`);
  await examineProgramFile(program, where);
  for (const argument of args) {
    // It is started in the root directory.
    const path = resolve('/', argument);
    const info = await lstat(path).catch(() => undefined);
    // A file after an option's equals sign is not checked: the author of the policy is responsible for it.
    if (info?.isFile() || info?.isSymbolicLink()) await examineProgramFile(path, where);
  }
}

async function examineProgramFile(named: string, where: Writable): Promise<void> {
  try {
    let path = named;
    for (let links = 0; links < MOST_LINKS; links += 1) {
      await examinePlace(path, where);
      await examineDirectories(path);
      const info = await lstat(path);
      if (!info.isSymbolicLink()) {
        if (!info.isFile()) throw unusable('it is not a regular file');
        examineFile(info, isBeneath(path, SYSTEM));
        return;
      }
      const target = resolve(dirname(path), await readlink(path));
      path = join(await canonicalDirectory(dirname(target)), basename(target));
    }
    throw unusable('too many links lead to it');
  } catch (error) {
    const why = error instanceof SandboxError ? error.message : `it cannot be read (${codeOf(error)})`;
    throw unusable(`${named}: ${why}`);
  }
}

async function canonicalDirectory(directory: string): Promise<string> {
  try {
    return await realpath(directory);
  } catch (error) {
    throw unusable(`its directory cannot be resolved (${codeOf(error)})`);
  }
}

/** Checks every directory above the file: a user who can write one of them can replace the file. */
async function examineDirectories(path: string): Promise<void> {
  for (const directory of ['/', ...directoriesBetween(path, '/')]) {
    const info = await lstat(directory);
    // In a sticky directory, as /tmp, nobody moves what belongs to others.
    const isWritable = (info.mode & GROUP_OR_OTHERS_WRITE) !== 0 && (info.mode & STICKY) === 0;
    if (isForeign(info) || isWritable)
      throw unusable(`others own or can write ${directory}: change that, or pin its SHA-256`);
  }
}

async function readExamined(path: string, pinned: boolean): Promise<Buffer> {
  let file: FileHandle | undefined;
  try {
    // A pipe would never end, and a link lead somewhere else.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    // Of what was opened, not of the name: nothing can be put in its place in between.
    const info = await file.stat();
    if (!info.isFile()) throw unusable('it is not a regular file');
    if (info.size > MAX_SIZE) throw unusable(`it is larger than ${MAX_SIZE} bytes`);
    if (!pinned) examineFile(info);
    return await file.readFile();
  } catch (error) {
    if (error instanceof SandboxError) throw error;
    const code = codeOf(error);
    throw unusable(code === 'ELOOP' ? 'it is a symbolic link' : `it cannot be read (${code})`);
  } finally {
    await file?.close();
  }
}

function examineFile(info: Stats, isSystem = false): void {
  if (isForeign(info)) throw unusable('somebody else than root and the user owns it');
  if ((info.mode & GROUP_OR_OTHERS_WRITE) !== 0)
    throw unusable('others than its owner can write it: change that, or pin its SHA-256');
  // Commands may be able to write the file by its other name.
  if (info.nlink > 1 && !isSystem)
    throw unusable('it has a second name (a hard link): copy it, or pin its SHA-256');
}

function isForeign({ uid }: Stats): boolean {
  return uid !== 0 && uid !== process.geteuid?.();
}

function codeOf(error: unknown): string {
  return errnoOf(error) ?? String(error);
}

function unusable(why: string): SandboxError {
  return new SandboxError('hook.unusable', why);
}
