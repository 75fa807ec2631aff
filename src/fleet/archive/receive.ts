import { closeSync, constants, lstatSync, mkdirSync, openSync } from 'node:fs';
import { mkdir, mkdtemp, realpath, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { parsedJson } from '../../base/parsed-json.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { type ManifestEntry, WorkspaceChange } from '../../model/fleet.ts';
import { OBEYED_FILES } from '../../policy/index.ts';
import { openSandbox, removeTree } from '../../run/index.ts';
import { atPlaceOf, currentDirectoryOf, OF_THIS_PROCESS, obeyedNames } from '../../workspace/index.ts';
import type { Downloaded, HeldChanges } from '../fleet-api.ts';
import type { Queue } from '../queue.ts';
import { Blobs } from './blobs.ts';
import { differs } from './collect.ts';
import { MOST_MANIFEST, readManifest, refuseContradictions, unpack } from './fetch.ts';
import { withDirectories } from './send.ts';
import { readTree, refuseFilled } from './tree.ts';

/**
 * Makes artefacts in a directory that is not there, or is empty.
 * @throws {SandboxError} `file.unusable`, also where a link that a command could have made leads there.
 */
export async function download(queue: Queue, digest: string, directory: string): Promise<Downloaded> {
  const { held, place } = holdEmpty(directory);
  try {
    const here = `/proc/self/fd/${held}`;
    await refuseFilled(here);
    const blobs = await Blobs.open(queue);
    const { version, entries } = await readManifest(blobs, digest);
    if (entries.some(({ kind }) => kind === 'link'))
      throw new SandboxError('file.unusable', 'what came back has links in it, which no worker collects');
    const isObeyed = obeyedIn(place, entries);
    const files = entries.filter(({ kind }) => kind !== 'directory');
    const leftOut = files.filter(({ path }) => isObeyed(path)).map(({ path }) => path);
    await unpack(blobs, { version, entries: entries.filter(({ path }) => !isObeyed(path)) }, here);
    return { leftOut, files: files.length - leftOut.length };
  } finally {
    closeSync(held);
  }
}

/** Makes a directory if it is not there, and holds it: nothing else can then be put in its place. */
function holdEmpty(directory: string): { readonly held: number; readonly place: string } {
  const options = { commandsWrite: [currentDirectoryOf(OF_THIS_PROCESS)], directoryMode: 0o777 };
  const refuse = (why: string) =>
    new SandboxError('file.unusable', `${visibleLine(directory, 200)} cannot be used: ${why}`);
  try {
    const found = atPlaceOf(directory, options, ({ at, path }) => {
      if (lstatSync(at, { throwIfNoEntry: false }) === undefined) mkdirSync(at);
      const held = openSync(at, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
      return { held, place: path };
    });
    if (found !== undefined) return found;
  } catch (error) {
    throw error instanceof SandboxError ? error : refuse(errnoOf(error) ?? String(error));
  }
  throw refuse('what leads to it is gone');
}

/** Whether something would be run or obeyed once it is there: nobody looks at it as after a command of this machine. */
function obeyedIn(place: string, entries: readonly ManifestEntry[]): (path: string) => boolean {
  const { rowFor } = obeyedNames(OBEYED_FILES, { workspace: place });
  // Git takes a directory with these for a repository, whatever its name is.
  const paths = new Set(entries.map(({ path }) => path));
  const repositories = [...paths]
    .filter((path) => /(?:^|\/)HEAD$/.test(path))
    .map((path) => path.slice(0, -'HEAD'.length))
    .filter((directory) => paths.has(`${directory}config`) || paths.has(`${directory}objects`));
  return (path) => {
    const row = rowFor(join(place, path));
    return (
      path.split('/').includes('.git') ||
      row?.treatment === 'shut' ||
      row?.where === 'project' ||
      repositories.some((directory) => path.startsWith(directory))
    );
  };
}

/** What puts the changes into a layer over the workspace, as any command does: what it may not do there, they may not. */
const PLACE = [
  'set -e',
  'beside=$(dirname -- "$0")',
  // The longest first, so that directories are empty by then.
  'if [ -s "$beside/deleted" ]; then xargs -0 -a "$beside/deleted" rm -rf --; fi',
  'cp -a -- "$beside/files/." .',
  '',
].join('\n');
/** The command of the change set is how it is told from others. */
const PLACED_BY = 'changes-of-a-fleet-job';

/** Holds what a job changed as a change set of a directory. */
export async function holdChanges(queue: Queue, digest: string, directory: string): Promise<HeldChanges> {
  const blobs = await Blobs.open(queue);
  const change = await readChange(blobs, digest);
  const workspace = await realpath(directory);
  const base = new Map((await readManifest(blobs, change.base)).entries.map((entry) => [entry.path, entry]));
  const here = new Map((await readTree(workspace)).map((entry) => [entry.path, entry]));
  const isAsSent = (path: string) => isSame(base.get(path), here.get(path));
  const entries = change.entries.filter(({ path }) => isAsSent(path));
  const deleted = change.deleted.filter(isAsSent);
  const conflicts = [...change.entries.map(({ path }) => path), ...change.deleted].filter(
    (path) => !isAsSent(path),
  );
  if (entries.length + deleted.length === 0) return { held: undefined, conflicts };
  const staging = await mkdtemp(join(tmpdir(), 'sandbox-run-changes-'));
  try {
    const [files, place] = [join(staging, 'files'), join(staging, PLACED_BY)];
    await mkdir(files);
    await unpack(blobs, { version: 1, entries: [...completed(entries, here)] }, files);
    const gone = replaced(entries, here, deleted);
    await writeFile(join(staging, 'deleted'), gone.map((path) => `./${path}\0`).join(''));
    await writeFile(place, PLACE);
    await using sandbox = await openSandbox({ workspace, readable: [staging] }, OF_THIS_PROCESS);
    const result = await sandbox.run(['bash', place], {
      ...{ effect: 'preview', approved: true, timeout: 0 },
    });
    if (!result.ok)
      throw new SandboxError(
        result.error?.code ?? 'changes.unavailable',
        `what the job changed cannot be held here: ${visibleLine(result.error?.message ?? result.stderr, 200)}`,
      );
    return { held: result.changes?.id, conflicts };
  } finally {
    await removeTree(staging);
  }
}

async function readChange(blobs: Blobs, digest: string): Promise<WorkspaceChange> {
  const read = WorkspaceChange.safeParse(parsedJson(await blobs.read(digest, MOST_MANIFEST)));
  if (read.success) return read.data;
  throw new SandboxError(
    'file.unusable',
    'what the job changed is not understood: is its worker of another version?',
  );
}

const isSame = (sent: ManifestEntry | undefined, here: ManifestEntry | undefined) =>
  here === undefined || sent === undefined ? sent === here : !differs(sent, here);

/** With the directories that lead there, as they are here where they are. */
function completed(
  entries: readonly ManifestEntry[],
  here: ReadonlyMap<string, ManifestEntry>,
): readonly ManifestEntry[] {
  const named = new Set(entries.map(({ path }) => path));
  const all = withDirectories(entries).map((entry) => {
    const known = here.get(entry.path);
    return !named.has(entry.path) && known?.kind === 'directory' ? known : entry;
  });
  refuseContradictions({ version: 1, entries: [...all] });
  return all;
}

/** Entries to remove before the new ones are written: deleted ones, and those of another kind now; the deepest first. */
function replaced(
  entries: readonly ManifestEntry[],
  here: ReadonlyMap<string, ManifestEntry>,
  deleted: readonly string[],
): readonly string[] {
  const others = entries
    .filter(({ path, kind }) => here.has(path) && (here.get(path)?.kind !== kind || kind !== 'directory'))
    .map(({ path }) => path);
  return [...deleted, ...others].sort((one, other) => other.length - one.length);
}
