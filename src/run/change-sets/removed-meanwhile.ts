import { errnoOf } from '../../base/errno-of.ts';
import { type Below, joined, lookAt } from './below.ts';
import { aroundPath, type RawPath, type Stamp, type TreeEntry } from './tree.ts';

/** Where what stands at a new path may come from. */
interface Sources {
  /** Contents of files that were there before, and numbers of those that still are. */
  readonly known: ReadonlySet<string>;
  /** One may be neither where it was nor elsewhere as it was: the command may have moved it and changed it then. */
  readonly isOneAway: boolean;
}

/**
 * What a command changed in place and somebody removed from the workspace meanwhile. The layer holds a copy of it, which the
 * kernel marks. One of a file that the command itself moved from elsewhere has the mark, too: what may be such a one is not
 * taken for removed.
 */
export class RemovedMeanwhile {
  readonly #entries: readonly TreeEntry[];
  readonly #below: Below;
  readonly #workspace: string;
  readonly #startedNs: bigint;
  readonly #gone = new Set<RawPath>();
  #sources: Sources | undefined;

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
    const { known, isOneAway } = this.#sources;
    return !isOneAway && !known.has(contentOf(entry)) && !known.has(numberOf(entry));
  }

  /** What the command may have moved, or given another name. */
  #found(): Sources {
    const known = new Set<string>();
    const away = new Set<string>();
    const arrived = new Set<string>();
    const note = (entry: TreeEntry) => {
      const stamp = this.#below.find(entry.path)?.stamp;
      const isHidden = entry.whiteout || entry.opaque || entry.kind !== stamp?.kind;
      if (stamp === undefined) {
        if (entry.copied) arrived.add(contentOf(entry));
      } else if (stamp.kind === 'file') {
        // Another one may be in its place by now: `mv log.1 log.2; mv log log.1`.
        known.add(contentOf(stamp));
        if (entry.copied) known.add(numberOf(entry));
        else away.add(contentOf(stamp));
      } else if (stamp.kind === 'directory' && isHidden) {
        for (const [, inner] of this.#below.within(entry.path))
          if (inner.kind === 'file') away.add(contentOf(inner));
      }
    };
    let isUnknown = false;
    for (const entry of this.#entries)
      try {
        note(entry);
      } catch (error) {
        if (errnoOf(error) !== 'EACCES') throw error;
        isUnknown = true;
      }
    for (const content of away) known.add(content);
    return { known, isOneAway: isUnknown || [...away].some((content) => !arrived.has(content)) };
  }
}

/** To be moved changes neither. */
const contentOf = ({ modified, bytes }: Stamp): string => `${modified} ${bytes}`;
const numberOf = ({ inode }: Stamp): string => `number ${inode}`;
