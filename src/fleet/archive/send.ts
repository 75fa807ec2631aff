import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { directoriesBetween } from '../../base/absolute-path.ts';
import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { Digest, type Manifest, type ManifestEntry } from '../../model/fleet.ts';
import { hiddenIn } from '../../run/index.ts';
import type { Blobs } from './blobs.ts';
import { AT_ONCE, forEach, readFileAt, readTree } from './tree.ts';

const GIT = 'git:';
const OBJECT = 'object:';

/**
 * Sends what a job is to work on, unless it is in the object store: a directory without what the policy hides, what is committed in a git
 * repository (`git:PATH[@REVISION]`), or nothing where it was sent before (`object:DIGEST`). Gives the digest of the manifest.
 * @throws {SandboxError} `file.unusable`, `usage.invalid`, and what the connection throws.
 */
export async function sendWorkspace(blobs: Blobs, from: string): Promise<string> {
  if (from.startsWith(OBJECT)) return digestOf(from.slice(OBJECT.length));
  const entries = from.startsWith(GIT)
    ? await sendCommit(blobs, from.slice(GIT.length))
    : await sendDirectory(blobs, from);
  return sendManifest(blobs, entries);
}

/** Sends the list of what is in a workspace. */
export function sendManifest(blobs: Blobs, entries: readonly ManifestEntry[]): Promise<string> {
  const manifest: Manifest = { version: 1, entries };
  return blobs.put(Buffer.from(JSON.stringify(manifest)));
}

function digestOf(text: string): string {
  const digest = Digest.safeParse(text);
  if (digest.success) return digest.data;
  throw new SandboxError(
    'usage.invalid',
    `${OBJECT}${visibleLine(text, 80)} names nothing: ${OBJECT} stands before a SHA-256 in hexadecimal`,
  );
}

async function sendDirectory(blobs: Blobs, directory: string): Promise<readonly ManifestEntry[]> {
  const root = await realpath(directory).catch((error: unknown) => {
    throw new SandboxError(
      'workspace.missing',
      `${directory} cannot be sent: ${visibleLine(errorMessage(error), 200)}`,
    );
  });
  // Commands here do not see it, and those of a worker may have another policy.
  const hidden = new Set(await hiddenIn(root));
  const isHidden = (path: string) =>
    hidden.size > 0 &&
    (hidden.has(path) || directoriesBetween(path, root).some((around) => hidden.has(around)));
  const entries = await readTree(root, { isWanted: ({ path }) => !isHidden(join(root, path)) });
  await sendFiles(blobs, entries, (path) => readFileAt(join(root, path)));
  return entries;
}

/** Sends the contents of files that are not there. */
export async function sendFiles(
  blobs: Blobs,
  entries: readonly ManifestEntry[],
  open: (path: string) => Readable,
  signal?: AbortSignal,
): Promise<void> {
  const files = new Map(
    entries.flatMap((entry) => (entry.kind === 'file' ? [[entry.digest, entry.path]] : [])),
  );
  const send = async ([digest, path]: readonly [string, string]) => {
    await blobs.putAs(digest, () => open(path));
  };
  await forEach([...files], AT_ONCE, send, signal);
}

const run = promisify(execFile);
/** What a partial clone has not is asked for by programs that its configuration names: it is missing. */
const env = { ...process.env, GIT_NO_LAZY_FETCH: '1', GIT_ALLOW_PROTOCOL: 'none' };
const MOST_LISTED = 256 * 1024 ** 2;

/** What `git ls-tree -z` says of a file: its mode, kind and name for git. */
const LISTED = /^(\d{6}) (\w+) ([0-9a-f]+)\t(.+)$/s;

/** Sends what a revision has; submodules are left out. */
async function sendCommit(blobs: Blobs, named: string): Promise<readonly ManifestEntry[]> {
  const at = named.lastIndexOf('@');
  const [path, revision] = at === -1 ? [named, 'HEAD'] : [named.slice(0, at), named.slice(at + 1)];
  const repository = path === '' ? '.' : path;
  if (revision.startsWith('-'))
    throw new SandboxError(
      'usage.invalid',
      `git:${visibleLine(named, 80)}: a revision cannot begin with "-"`,
    );
  const listed = await run('git', ['-C', repository, 'ls-tree', '-r', '-z', '--full-tree', revision], {
    maxBuffer: MOST_LISTED,
    env,
  }).catch((error: unknown) => {
    const why = visibleLine(String(Reflect.get(error as object, 'stderr') ?? errorMessage(error)), 200);
    throw new SandboxError('file.unusable', `git:${visibleLine(named, 80)} cannot be sent: ${why}`);
  });
  const objects = listed.stdout.split('\0').flatMap((line) => {
    const [, mode, kind, name, file] = LISTED.exec(line) ?? [];
    return kind !== 'blob' || name === undefined || file === undefined ? [] : [{ mode, name, file }];
  });
  const contents = await readObjects(repository, [...new Set(objects.map(({ name }) => name))], blobs);
  const entries = objects.map(({ mode, name, file }): ManifestEntry => {
    const content = contents.get(name);
    if (content === undefined) throw new SandboxError('file.unusable', `git has no content for ${file}`);
    if (mode === '120000') return { kind: 'link', path: file, target: content.text.toString('utf8') };
    const { digest, size } = content;
    return { kind: 'file', path: file, mode: mode === '100755' ? 0o755 : 0o644, size, digest };
  });
  return withDirectories(entries);
}

/** Objects of git by name; each is sent, and of short ones the content is kept for links. */
async function readObjects(
  repository: string,
  names: readonly string[],
  blobs: Blobs,
): Promise<ReadonlyMap<string, { readonly digest: string; readonly size: number; readonly text: Buffer }>> {
  const found = new Map<string, { digest: string; size: number; text: Buffer }>();
  const git = spawn('git', ['-C', repository, 'cat-file', '--batch'], {
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  git.on('error', () => {});
  git.stdin.on('error', () => {});
  git.stdin.end(names.map((name) => `${name}\n`).join(''));
  let rest: Buffer = Buffer.alloc(0);
  const pieces = git.stdout[Symbol.asyncIterator]();
  /** Reads on until so much is there; put together once, as a large content comes in many pieces. */
  const have = async (bytes: number) => {
    if (rest.length >= bytes) return;
    const all = [rest];
    for (let length = rest.length; length < bytes; ) {
      const next = await pieces.next();
      if (next.done === true) throw new SandboxError('file.unusable', 'git ended before all files were read');
      all.push(next.value as Buffer);
      length += (next.value as Buffer).length;
    }
    rest = Buffer.concat(all);
  };
  try {
    for (const name of names) {
      while (!rest.includes(0x0a)) await have(rest.length + 1);
      const end = rest.indexOf(0x0a);
      const size = Number(rest.subarray(0, end).toString().split(' ')[2]);
      rest = rest.subarray(end + 1);
      if (!Number.isSafeInteger(size))
        throw new SandboxError('file.unusable', `git cannot read the object ${name}`);
      await have(size + 1);
      const content = Buffer.from(rest.subarray(0, size));
      rest = rest.subarray(size + 1);
      const digest = createHash('sha256').update(content).digest('hex');
      await blobs.putAs(digest, () => Readable.from([content]));
      found.set(name, { digest, size, text: size <= 4096 ? content : Buffer.alloc(0) });
    }
  } finally {
    // Where it stopped in the middle nobody reads the rest, for which git would wait.
    git.kill();
  }
  return found;
}

/** With the directories that lead to files, each before what is in it. */
export function withDirectories(entries: readonly ManifestEntry[]): readonly ManifestEntry[] {
  const all = new Map<string, ManifestEntry>();
  for (const entry of [...entries].sort((one, other) => (one.path < other.path ? -1 : 1))) {
    const parts = entry.path.split('/');
    for (let depth = 1; depth < parts.length; depth += 1) {
      const path = parts.slice(0, depth).join('/');
      if (!all.has(path)) all.set(path, { kind: 'directory', path, mode: 0o755 });
    }
    all.set(entry.path, entry);
  }
  return [...all.values()];
}
