import { closeSync, constants, fchmodSync, mkdirSync, openSync, symlinkSync, writeSync } from 'node:fs';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { parsedJson } from '../../base/parsed-json.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { MAX_WORKSPACE_BYTES, Manifest, type ManifestEntry } from '../../model/fleet.ts';
import { chmodItself, inDirectoryOf } from '../../workspace/index.ts';
import type { Queue } from '../queue.ts';
import { Blobs } from './blobs.ts';
import { AT_ONCE, forEach } from './tree.ts';

export const MOST_MANIFEST = 128 * 1024 ** 2;
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/**
 * Makes a workspace of a manifest in an empty directory that nobody else writes.
 * @throws {SandboxError} `file.unusable`: the manifest, or a content, is not what it has to be; `fleet.unknown`: it is not there.
 */
export async function fetchWorkspace(
  queue: Queue,
  digest: string,
  directory: string,
  signal: AbortSignal,
): Promise<void> {
  const blobs = await Blobs.open(queue);
  await unpack(blobs, await readManifest(blobs, digest), directory, signal);
}

/** Reads a manifest of somebody else. @throws {SandboxError} `file.unusable`. */
export async function readManifest(blobs: Blobs, digest: string): Promise<Manifest> {
  const read = Manifest.safeParse(parsedJson(await blobs.read(digest, MOST_MANIFEST)));
  if (!read.success) {
    const [issue] = read.error.issues;
    throw unusable(`${issue?.path.map(String).join('.')}: ${issue?.message}`);
  }
  refuseContradictions(read.data);
  return read.data;
}

const unusable = (why: string) =>
  new SandboxError('file.unusable', `the workspace that was sent is not accepted: ${visibleLine(why, 200)}`);

/** Each path once, beneath directories only: then no link, and nothing that was there before, is on the way. */
export function refuseContradictions({ entries }: Manifest): void {
  const kinds = new Map<string, ManifestEntry['kind']>();
  let bytes = 0;
  for (const entry of entries) {
    const { path, kind } = entry;
    if (kinds.has(path)) throw unusable(`${path} is there twice`);
    const parent = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : undefined;
    if (parent !== undefined && kinds.get(parent) !== 'directory')
      throw unusable(`${path} is not in a directory that stands before it`);
    kinds.set(path, kind);
    if (entry.kind === 'file') bytes += entry.size;
  }
  if (bytes > MAX_WORKSPACE_BYTES)
    throw unusable(`it has ${bytes} bytes, and at most ${MAX_WORKSPACE_BYTES} are taken`);
}

/**
 * Makes what a manifest says in an empty directory. No link is followed on the way, whatever commands that can write there do
 * meanwhile. Throws where it is given up.
 */
export async function unpack(
  blobs: Blobs,
  { entries }: Manifest,
  directory: string,
  signal?: AbortSignal,
): Promise<void> {
  const of = <Kind extends ManifestEntry['kind']>(kind: Kind) =>
    entries.filter((entry): entry is ManifestEntry & { readonly kind: Kind } => entry.kind === kind);
  // Where the directory is held, its name is a link of the kernel's.
  const root = `${directory}/.`;
  const at = <T>(path: string, use: (name: Buffer) => T): T => {
    const done = inDirectoryOf(root, `${root}/${path}`, (name) => ({ result: use(name) }));
    if (done === undefined) throw unusable(`the directory of ${path} was replaced meanwhile`);
    return done.result;
  };
  const directories = of('directory');
  for (const { path } of directories) at(path, (name) => mkdirSync(name, { mode: 0o700 }));
  const make = async ({ path, mode, digest, size }: ManifestEntry & { readonly kind: 'file' }) => {
    const file = at(path, (name) => openSync(name, NEW_FILE, 0o600));
    try {
      for await (const piece of blobs.get(digest, size)) {
        signal?.throwIfAborted();
        for (let rest = piece; rest.length > 0; ) rest = rest.subarray(writeSync(file, rest));
      }
      fchmodSync(file, mode);
    } finally {
      closeSync(file);
    }
  };
  await forEach(of('file'), AT_ONCE, make, signal);
  for (const { path, target } of of('link')) at(path, (name) => symlinkSync(target, name));
  // From within, as nothing can be made in a directory without permission.
  for (const { path, mode } of [...directories].reverse())
    at(path, (name) => chmodItself(name, mode | 0o700));
}
