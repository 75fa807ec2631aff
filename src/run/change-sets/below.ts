import { createHash } from 'node:crypto';
import { lstatSync, readdirSync } from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import { aroundPath, bytesOf, type RawPath, type Stamp, stampOf, type TreeEntry, walkTree } from './tree.ts';

/** What is in a directory, at any depth. */
export interface TreeSummary {
  readonly objects: number;
  /** Of its files. */
  readonly bytes: number;
  /** Of names, kinds, modes, sizes and times: two trees with the same are taken for the same. */
  readonly digest: string;
  /**
   * Of the numbers of all that is no directory, and of the times of its last change, which nobody can set. Missing: the tree
   * is known by `digest` alone, because a layer has a part of it, or it was taken back.
   */
  readonly identity?: string | undefined;
  /** The newest time of a change of anything in it, in nanoseconds. */
  readonly changed: string;
  /** A part may not be looked into: nobody knows what is there. */
  readonly unreadable?: true;
}

/** An object, of the workspace or of a layer over it. */
interface Found {
  readonly stamp: Stamp;
  /** Where it can be read. */
  readonly at: Buffer;
  /** It is the workspace's own. */
  readonly isOwn: boolean;
}

/** A layer of another change set, walked through. */
export interface LowerLayer {
  readonly directory: string;
  readonly entries: ReadonlyMap<RawPath, TreeEntry>;
}

/** What is asked of a layer again and again, of which there may be very much. */
class Lower {
  readonly layer: LowerLayer;
  /** Of directories. */
  readonly #hides = new Map<RawPath, boolean>([['', false]]);
  #inside: ReadonlyMap<RawPath, readonly TreeEntry[]> | undefined;

  constructor(layer: LowerLayer) {
    this.layer = layer;
  }

  /** Whether nothing that is in a directory shows from further below. */
  hidesWithin(directory: RawPath): boolean {
    const known = this.#hides.get(directory);
    if (known !== undefined) return known;
    const found = hides(this.layer.entries.get(directory)) || this.hidesWithin(aroundPath(directory));
    this.#hides.set(directory, found);
    return found;
  }

  /** What it has itself in a directory. */
  inside(directory: RawPath): readonly TreeEntry[] {
    this.#inside ??= byDirectory(this.layer.entries.values());
    return this.#inside.get(directory) ?? [];
  }
}

/** What a command sees beneath its own layer: the workspace, or that with the layers of other change sets over it. */
export class Below {
  readonly #addon: NativeAddon;
  readonly #workspace: string;
  readonly #layers: readonly Lower[];

  /** `layers`: the topmost first. */
  constructor(addon: NativeAddon, workspace: string, layers: readonly LowerLayer[] = []) {
    this.#addon = addon;
    this.#workspace = workspace;
    this.#layers = layers.map((layer) => new Lower(layer));
  }

  find(path: RawPath): Found | undefined {
    for (const lower of this.#layers) {
      const { directory, entries } = lower.layer;
      const entry = entries.get(path);
      if (entry?.whiteout === true) return undefined;
      if (entry !== undefined) return { stamp: entry, at: joined(directory, path), isOwn: false };
      if (lower.hidesWithin(aroundPath(path))) return undefined;
    }
    const at = joined(this.#workspace, path);
    const stamp = lookAt(at);
    return stamp && { stamp, at, isOwn: true };
  }

  /** The names in a directory. @throws EACCES: it may not be looked into. */
  namesIn(path: RawPath): readonly RawPath[] {
    const names = new Set<RawPath>();
    const gone = new Set<RawPath>();
    for (const lower of this.#layers) {
      for (const { path: at, whiteout } of lower.inside(path)) {
        const name = at.slice(at.lastIndexOf('/') + 1);
        if (gone.has(name)) continue;
        if (whiteout) gone.add(name);
        else names.add(name);
      }
      if (lower.hidesWithin(path)) return [...names];
    }
    for (const name of namesAt(joined(this.#workspace, path))) if (!gone.has(name)) names.add(name);
    return [...names];
  }

  /** Everything in a directory, each directory before what is in it, names in the order of their bytes. */
  *within(path: RawPath): Generator<readonly [RawPath, Stamp]> {
    const pending = [path];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const inner = this.namesIn(next).toSorted(byBytes);
      const directories: RawPath[] = [];
      for (const name of inner) {
        const at = next === '' ? name : `${next}/${name}`;
        const found = this.find(at);
        if (found === undefined) continue;
        yield [at, found.stamp];
        if (found.stamp.kind === 'directory') directories.push(at);
      }
      // One by one: there may be more than a call takes.
      for (const directory of directories.toReversed()) pending.push(directory);
    }
  }

  /** `changedOf`: the time of the last change of an object, without what this program did to it. */
  async summary(
    path: RawPath,
    changedOf: (stamp: Stamp) => string = ({ changed }) => changed,
  ): Promise<TreeSummary> {
    const digest = createHash('sha256');
    const identity = createHash('sha256');
    let objects = 0;
    let total = 0;
    let changed = 0n;
    const all = await this.all(path).catch((error: unknown) => {
      if (errnoOf(error) === 'EACCES') return undefined;
      throw error;
    });
    let isUnreadable = all === undefined;
    for (const [at, entry] of all ?? []) {
      const { kind, mode, bytes, modified, inode, changed: when } = entry;
      if (entry.unreadable === true) isUnreadable = true;
      objects++;
      if (kind === 'file') total += bytes;
      // What is in a directory says when it changed, and its size means nothing.
      // The time of a link can be put back in microseconds only.
      const time = kind === 'link' ? String(BigInt(modified) / 1000n) : modified;
      const rest = kind === 'directory' ? [] : [bytes, time];
      digest.update(`${[at, kind, mode, ...rest].join('\0')}\n`);
      if (kind !== 'directory') identity.update(`${[at, inode, changedOf(entry)].join('\0')}\n`);
      if (BigInt(when) > changed) changed = BigInt(when);
    }
    return {
      ...{ objects, bytes: total, digest: digest.digest('hex'), changed: String(changed) },
      identity: identity.digest('hex'),
      ...(isUnreadable ? { unreadable: true as const } : {}),
    };
  }

  /** As `within`, with paths relative to the directory: by the addon where it can, which is ten times as fast. */
  async all(path: RawPath): Promise<Iterable<readonly [RawPath, Stamp & { readonly unreadable?: boolean }]>> {
    const directory = joined(this.#workspace, path);
    const isText = directory.equals(Buffer.from(directory.toString('utf8')));
    if (this.#layers.length > 0 || !isText) {
      const prefix = path === '' ? 0 : path.length + 1;
      return [...this.within(path)].map(([at, stamp]) => [at.slice(prefix), stamp] as const);
    }
    const entries = await walkTree(this.#addon, directory.toString('utf8'));
    return entries.map((entry) => [entry.path, entry] as const);
  }
}

function byDirectory(entries: Iterable<TreeEntry>): ReadonlyMap<RawPath, readonly TreeEntry[]> {
  const found = new Map<RawPath, TreeEntry[]>();
  for (const entry of entries) {
    const around = aroundPath(entry.path);
    const inside = found.get(around);
    if (inside === undefined) found.set(around, [entry]);
    else inside.push(entry);
  }
  return found;
}

const byBytes = (one: RawPath, other: RawPath): number => (one < other ? -1 : one > other ? 1 : 0);

/** Nothing beneath it shows from further below. */
function hides(entry: TreeEntry | undefined): boolean {
  return entry !== undefined && (entry.whiteout || entry.kind !== 'directory' || entry.opaque);
}

export function joined(directory: string, path: RawPath): Buffer {
  return path === '' ? Buffer.from(directory) : Buffer.concat([Buffer.from(`${directory}/`), bytesOf(path)]);
}

/** What is at a path; no link is followed at its end. */
export function lookAt(path: Buffer | string): Stamp | undefined {
  try {
    const info = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return info && stampOf(info);
  } catch (error) {
    // A file is on the way, or a name is longer than the file system has any.
    if (errnoOf(error) === 'ENOTDIR' || errnoOf(error) === 'ENAMETOOLONG') return undefined;
    throw error;
  }
}

function namesAt(path: Buffer): readonly RawPath[] {
  try {
    // By this name: one whose names can be read, and nothing of what they name, counts as shut.
    const entered = Buffer.concat([path, Buffer.from('/.')]);
    return readdirSync(entered, { encoding: 'buffer' }).map((name) => name.toString('latin1'));
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return [];
    throw error;
  }
}
