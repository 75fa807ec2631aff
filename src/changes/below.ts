import { createHash } from 'node:crypto';
import { lstatSync, readdirSync } from 'node:fs';
import type { NativeAddon } from '../native/contract.ts';
import { errnoOf } from '../util/errno-of.ts';
import { bytesOf, leadingTo, type RawPath, type Stamp, stampOf, type TreeEntry, walkTree } from './tree.ts';

/** What is in a directory, at any depth. */
export interface TreeSummary {
  readonly objects: number;
  /** Of its files. */
  readonly bytes: number;
  /** Of names, kinds, modes, sizes and times: two trees with the same are taken for the same. */
  readonly digest: string;
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

/** What a command sees beneath its own layer: the workspace, or that with the layers of other change sets over it. */
export class Below {
  readonly #addon: NativeAddon;
  readonly #workspace: string;
  readonly #layers: readonly LowerLayer[];

  /** `layers`: the topmost first. */
  constructor(addon: NativeAddon, workspace: string, layers: readonly LowerLayer[] = []) {
    this.#addon = addon;
    this.#workspace = workspace;
    this.#layers = layers;
  }

  find(path: RawPath): Found | undefined {
    for (const { directory, entries } of this.#layers) {
      const entry = entries.get(path);
      if (entry?.whiteout === true) return undefined;
      if (entry !== undefined) return { stamp: entry, at: joined(directory, path), isOwn: false };
      if (leadingTo(path).some((above) => hides(entries.get(above)))) return undefined;
    }
    const at = joined(this.#workspace, path);
    const stamp = lookAt(at);
    return stamp && { stamp, at, isOwn: true };
  }

  /** The names in a directory. @throws EACCES: it may not be looked into. */
  namesIn(path: RawPath): readonly RawPath[] {
    const names = new Set<RawPath>();
    const gone = new Set<RawPath>();
    const prefix = path === '' ? '' : `${path}/`;
    for (const { entries } of this.#layers) {
      for (const entry of entries.values()) {
        const name = entry.path.slice(prefix.length);
        if (!entry.path.startsWith(prefix) || name === '' || name.includes('/') || gone.has(name)) continue;
        if (entry.whiteout) gone.add(name);
        else names.add(name);
      }
      if ([...leadingTo(path), path].some((above) => hides(entries.get(above)))) return [...names];
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
      pending.push(...directories.toReversed());
    }
  }

  async summary(path: RawPath): Promise<TreeSummary> {
    const digest = createHash('sha256');
    let objects = 0;
    let total = 0;
    let changed = 0n;
    const all = await this.#all(path).catch((error: unknown) => {
      if (errnoOf(error) === 'EACCES') return undefined;
      throw error;
    });
    let isUnreadable = all === undefined;
    for (const [at, entry] of all ?? []) {
      const { kind, mode, bytes, modified, changed: when } = entry;
      if (entry.unreadable === true) isUnreadable = true;
      objects++;
      if (kind === 'file') total += bytes;
      // What is in a directory says when it changed, and its size means nothing.
      // The time of a link can be put back in microseconds only.
      const time = kind === 'link' ? String(BigInt(modified) / 1000n) : modified;
      const rest = kind === 'directory' ? [] : [bytes, time];
      digest.update(`${[at, kind, mode, ...rest].join('\0')}\n`);
      if (BigInt(when) > changed) changed = BigInt(when);
    }
    return {
      ...{ objects, bytes: total, digest: digest.digest('hex'), changed: String(changed) },
      ...(isUnreadable ? { unreadable: true as const } : {}),
    };
  }

  /** As `within`, with paths relative to the directory: by the addon where it can, which is ten times as fast. */
  async #all(
    path: RawPath,
  ): Promise<Iterable<readonly [RawPath, Stamp & { readonly unreadable?: boolean }]>> {
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
