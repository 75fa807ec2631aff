import { createHash } from 'node:crypto';
import { type BigIntStats, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { errnoOf } from '../../base/errno-of.ts';
import { readOr } from '../../base/errors/shortage.ts';
import { orElse } from '../../base/or-else.ts';
import { pathOf, textOfPath } from '../../base/path-text.ts';
import type { MadeFiles } from '../../model/index.ts';
import { readRegular } from '../../workspace/index.ts';

/** Paths that are remembered; the oldest go first. */
const MOST_PATHS = 10_000;
/** File times lag behind the clock of processes by up to one tick, in nanoseconds. */
const TICK_NS = 10_000_000n;
/** Files up to this size are compared by content if their times prove nothing; nobody changes a larger file within a tick. */
const LARGEST_COMPARED = 16 * 1024 * 1024;
/** Names that are looked at in a directory that a command made. */
const MOST_NAMES = 1_000;
/** In a directory that a command made, only so soon, in milliseconds: after that, other programs may have put files there. */
const SOON_MS = 5_000;

/**
 * The files that commands made and nobody changed since: nothing of anybody's is lost with them. Known are those that the words
 * of a command name or that are in a directory that they name, that were not there when it began, and that were born while it
 * ran: a file that was moved there is older, and the time of a birth cannot be set. `made`: remembers them over processes.
 */
export class OwnFiles {
  readonly #known = new Map<string, string>();
  readonly #made: MadeFiles | undefined;

  constructor(made?: MadeFiles) {
    this.#made = made;
  }

  isOwn(path: string): boolean {
    const known = [this.#known.get(path), this.#made?.known().get(path)];
    if (known.every((one) => one === undefined)) return false;
    const info = look(path);
    return info !== undefined && known.some((one) => one !== undefined && isStill(one, path, info));
  }

  /**
   * To be called before a command begins, with what it is to write and what it is to remove or move away; what it returns, when
   * the command has ended.
   */
  before(writes: readonly string[], removes: readonly string[]): () => void {
    const now = Date.now();
    const began = BigInt(now) * 1_000_000n - TICK_NS;
    const wanted = writes.filter((path) => look(path) === undefined || this.isOwn(path));
    // An own file stays one under another name.
    const objects = new Set(
      [...wanted, ...this.#ownAt(removes)].flatMap((path) => {
        const info = look(path);
        return info === undefined ? [] : [objectOf(info)];
      }),
    );
    return () => {
      const isSoon = Date.now() - now < SOON_MS;
      const made = new Map<string, string>();
      for (const path of wanted) {
        this.#known.delete(path);
        const names = isSoon ? filesAt(path) : [path];
        for (const name of names) {
          const info = look(name);
          if (info === undefined || info.isDirectory()) continue;
          const isNew = info.nlink === 1n && (info.isFile() || info.isSymbolicLink());
          const isOurs = (isNew && info.birthtimeNs >= began) || objects.has(objectOf(info));
          const state = isOurs ? stateOf(name, info) : undefined;
          if (state !== undefined) made.set(name, state);
        }
      }
      for (const [path, state] of made) this.#known.set(path, state);
      const more = [...this.#known.keys()].slice(0, Math.max(0, this.#known.size - MOST_PATHS));
      for (const path of more) this.#known.delete(path);
      if (made.size > 0) this.#made?.add(made);
    };
  }

  /** The own files at paths or beneath them. */
  #ownAt(paths: readonly string[]): readonly string[] {
    if (paths.length === 0) return [];
    const known = new Set([...this.#known.keys(), ...(this.#made?.known().keys() ?? [])]);
    return [...known].filter((one) => paths.some((path) => isBeneath(one, path)) && this.isOwn(one));
  }
}

const objectOf = ({ dev, ino, birthtimeNs }: BigIntStats) => `${dev}:${ino}:${birthtimeNs}:`;

const stampOf = (info: BigIntStats) =>
  `${objectOf(info)}${[info.size, info.mtimeNs, info.ctimeNs, info.nlink].join(':')}`;

/** A second change within one clock tick leaves all times unchanged, so only the content shows it. */
function stateOf(path: string, info: BigIntStats): string | undefined {
  const isRecent = info.ctimeNs > BigInt(Date.now()) * 1_000_000n - 2n * TICK_NS;
  if (!isRecent || !info.isFile() || info.size > LARGEST_COMPARED) return stampOf(info);
  const content = contentOf(path);
  return content && `${stampOf(info)} ${content}`;
}

function isStill(state: string, path: string, info: BigIntStats): boolean {
  const [stamp, content] = state.split(' ');
  return stamp === stampOf(info) && (content === undefined || content === contentOf(path));
}

/** `undefined`: it cannot be read, so that nobody knows what it is. */
function contentOf(path: string): string | undefined {
  const content = readOr(() => readRegular(pathOf(path), LARGEST_COMPARED), undefined);
  return content && createHash('sha256').update(content).digest('base64');
}

/** A path, or what is beneath it, following no link. */
function filesAt(path: string): readonly string[] {
  const found: string[] = [];
  const pending = [path];
  for (let next = pending.pop(); next !== undefined && found.length < MOST_NAMES; next = pending.pop()) {
    const at = next;
    if (look(at)?.isDirectory() !== true) {
      found.push(at);
      continue;
    }
    const names = orElse(() => readdirSync(pathOf(at), { encoding: 'buffer' }), []);
    for (const name of names.slice(0, MOST_NAMES)) pending.push(join(at, textOfPath(name)));
  }
  return found;
}

function look(path: string): BigIntStats | undefined {
  try {
    return lstatSync(pathOf(path), { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    if (errnoOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}
