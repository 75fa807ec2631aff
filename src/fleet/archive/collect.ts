import { join } from 'node:path';
import { assertNever } from '../../base/assert-never.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { matchesAll, matchesName, type NamePattern, readNamePattern } from '../../base/name-pattern.ts';
import type { ManifestEntry, WorkspaceChange } from '../../model/fleet.ts';
import type { Queue } from '../queue.ts';
import { Blobs } from './blobs.ts';
import { readManifest } from './fetch.ts';
import { sendFiles, sendManifest, withDirectories } from './send.ts';
import { readFileAt, readTree } from './tree.ts';

/** Whether something is another thing than before. Its owner has all permissions of a directory that travels. */
export function differs(before: ManifestEntry | undefined, now: ManifestEntry): boolean {
  return before === undefined || JSON.stringify(comparable(before)) !== JSON.stringify(comparable(now));
}

function comparable(entry: ManifestEntry): readonly unknown[] {
  switch (entry.kind) {
    case 'directory':
      return [entry.kind, entry.mode | 0o700];
    case 'file':
      return [entry.kind, entry.mode, entry.digest];
    case 'link':
      return [entry.kind, entry.target];
    default:
      return assertNever(entry);
  }
}

/** Sends what a job changed in its workspace, compared with what was sent. Gives the digest of a {@link WorkspaceChange}. */
export async function collectChanges(
  queue: Queue,
  base: string,
  workspace: string,
  signal: AbortSignal,
): Promise<string> {
  const blobs = await Blobs.open(queue);
  const before = new Map((await readManifest(blobs, base)).entries.map((entry) => [entry.path, entry]));
  const all = await readTree(workspace, { signal });
  const now = new Set(all.map(({ path }) => path));
  const entries = all.filter((entry) => differs(before.get(entry.path), entry));
  const deleted = [...before.keys()].filter((path) => !now.has(path));
  await sendFiles(blobs, entries, (path) => readFileAt(join(workspace, path)), signal);
  const change: WorkspaceChange = { version: 1, base, entries, deleted };
  return blobs.put(Buffer.from(JSON.stringify(change)));
}

/** Sends the files of a workspace that match patterns. Gives the digest of a manifest of them. */
export async function collectArtefacts(
  queue: Queue,
  patterns: readonly string[],
  workspace: string,
  signal: AbortSignal,
): Promise<string> {
  const read = patterns.map(readPattern);
  const blobs = await Blobs.open(queue);
  const isWanted = ({ kind, path }: ManifestEntry) =>
    kind === 'file' && read.some((pattern) => matchesAll(pattern, '**', path.split('/'), matchesName));
  const found = await readTree(workspace, { isWanted, signal });
  await sendFiles(blobs, found, (path) => readFileAt(join(workspace, path)), signal);
  return sendManifest(blobs, withDirectories(found));
}

type PathPattern = readonly (NamePattern | '**')[];

/** `dist/**`, `*.log`: names between slashes; `**` is any number of directories. @throws {SandboxError} `usage.invalid`. */
function readPattern(text: string): PathPattern {
  return text.split('/').map((part) => {
    if (part === '**') return part;
    const read = readNamePattern(part);
    if (typeof read !== 'string') return read;
    throw new SandboxError(
      'usage.invalid',
      `the pattern ${JSON.stringify(text)} of artefacts is not understood: ${read}`,
    );
  });
}
