import { type Below, joined, lookAt } from './below.ts';
import { aroundPath, type RawPath, type Stamp, type TreeEntry } from './tree.ts';

/**
 * What a command changed in place and somebody removed from the workspace meanwhile. The layer holds a copy of it, which the
 * kernel marks. One of a file that the command itself moved from elsewhere has the mark, too.
 */
export class RemovedMeanwhile {
  readonly #entries: readonly TreeEntry[];
  readonly #below: Below;
  readonly #workspace: string;
  readonly #startedNs: bigint;
  readonly #gone = new Set<RawPath>();
  #sources: ReadonlySet<string> | undefined;

  constructor(entries: readonly TreeEntry[], below: Below, workspace: string, startedNs: bigint) {
    this.#entries = entries;
    this.#below = below;
    this.#workspace = workspace;
    this.#startedNs = startedNs;
  }

  has(path: RawPath): boolean {
    return this.#gone.has(path);
  }

  /** Finds out about it: of a directory before what is in it. */
  look(entry: TreeEntry): void {
    const { path, copied } = entry;
    const isWithin = this.#gone.has(aroundPath(path));
    if (isWithin || (copied && this.#below.find(path) === undefined && this.#isGone(entry)))
      this.#gone.add(path);
  }

  #isGone(entry: TreeEntry): boolean {
    // No layer takes a directory that is moved.
    if (entry.kind === 'directory') return true;
    // To remove it is to change the directory around it.
    const around = lookAt(joined(this.#workspace, aroundPath(entry.path)));
    if (around === undefined || BigInt(around.changed) <= this.#startedNs) return false;
    this.#sources ??= this.#found();
    return !this.#sources.has(contentOf(entry)) && !this.#sources.has(numberOf(entry));
  }

  /** What the command may have moved, or given another name. */
  #found(): ReadonlySet<string> {
    const sources = new Set<string>();
    for (const entry of this.#entries) {
      const found = this.#below.find(entry.path);
      if (found === undefined) continue;
      const isHidden = entry.whiteout || entry.opaque || entry.kind !== found.stamp.kind;
      if (found.stamp.kind === 'file') sources.add(entry.copied ? numberOf(entry) : contentOf(found.stamp));
      else if (found.stamp.kind === 'directory' && isHidden)
        for (const [, stamp] of this.#below.within(entry.path)) sources.add(contentOf(stamp));
    }
    return sources;
  }
}

/** To be moved changes neither. */
const contentOf = ({ modified, bytes }: Stamp): string => `${modified} ${bytes}`;
const numberOf = ({ inode }: Stamp): string => `number ${inode}`;
