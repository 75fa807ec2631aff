import { type BigIntStats, lstatSync } from 'node:fs';
import { errnoOf } from '../util/errno-of.ts';

/** Paths that are remembered; the oldest go first. */
const MOST_PATHS = 10_000;
/** The clock of file systems is behind that of processes by up to a tick, in nanoseconds. */
const TICK_NS = 10_000_000n;

/**
 * The files that commands of one sandbox made and nobody changed since: nothing of anybody's is lost with them. Known are those
 * that the words of a command name, that were not there when it began, and that were born while it ran: a file that was moved
 * there is older, and the time of a birth cannot be set. It is remembered as long as the sandbox is open.
 */
export class OwnFiles {
  readonly #known = new Map<string, string>();

  isOwn(path: string): boolean {
    const known = this.#known.get(path);
    return known !== undefined && known === stateOf(look(path));
  }

  /** To be called before a command begins, with what it is to write; what it returns, when it has ended. */
  before(paths: readonly string[]): () => void {
    const began = BigInt(Date.now()) * 1_000_000n - TICK_NS;
    const wanted = paths.filter((path) => look(path) === undefined || this.isOwn(path));
    return () => {
      for (const path of wanted) {
        const was = this.#known.get(path);
        this.#known.delete(path);
        const info = look(path);
        const isNew = info?.isFile() === true && info.nlink === 1n && info.birthtimeNs >= began;
        const isSame = info !== undefined && was?.startsWith(objectOf(info)) === true;
        const state = isNew || isSame ? stateOf(info) : undefined;
        if (state !== undefined) this.#known.set(path, state);
      }
      const more = [...this.#known.keys()].slice(0, Math.max(0, this.#known.size - MOST_PATHS));
      for (const path of more) this.#known.delete(path);
    };
  }
}

const objectOf = ({ dev, ino, birthtimeNs }: BigIntStats) => `${dev}:${ino}:${birthtimeNs}:`;

const stateOf = (info: BigIntStats | undefined): string | undefined =>
  info && `${objectOf(info)}${[info.size, info.mtimeNs, info.ctimeNs, info.nlink].join(':')}`;

function look(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    if (errnoOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}
