import {
  chmodSync,
  closeSync,
  fchmodSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
} from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import { linkBytes } from '../../confine/link-bytes.ts';
import type { NativeAddon, NativeFailure } from '../../confine/native/contract.ts';
import { lookAt } from './below.ts';
import { HeldPaths, openToRead } from './held-paths.ts';
import { renameOurs } from './renames.ts';
import { failureError, type RawPath, type Stamp } from './tree.ts';

/** What lies on another file system than the state directory is copied to be kept; more than this is not. */
const KEPT_BYTES = 256 * 1024 * 1024;
const KEPT_OBJECTS = 20_000;

/** Copies of what a command left or what was there before it, where that cannot be moved. No link is followed. */
export class Copies {
  readonly #addon: NativeAddon;

  constructor(addon: NativeAddon) {
    this.#addon = addon;
  }

  /**
   * Copies what is at a name, by way of {@link partOf} the other: what has that in the end is whole. False: it is too much;
   * `undefined`: it may not be read.
   */
  async make(from: Buffer, to: Buffer, { kind, bytes, mode }: Stamp): Promise<boolean | undefined> {
    const by = partOf(to);
    await this.clear(by);
    let isWhole: boolean | undefined = kind === 'link' || kind === 'file' || kind === 'directory';
    try {
      if (kind === 'link') copyLink(from, by);
      else if (kind === 'file' && bytes <= KEPT_BYTES) await this.#copyFile(from, by, { mode });
      else isWhole = kind === 'directory' && (await this.#copyTree(from, by));
    } catch (error) {
      const errno = errnoOf(error);
      if (errno !== 'EACCES' && errno !== 'EPERM') {
        // A full disk is no place for halves.
        await this.clear(by);
        throw error;
      }
      isWhole = undefined;
    }
    if (isWhole === true) renameOurs(by, to);
    else await this.clear(by);
    return isWhole;
  }

  /** Removes what is at a name, if anything is. */
  async clear(name: Buffer): Promise<void> {
    if (lookAt(name)?.kind !== 'directory') {
      rmSync(name, { force: true });
      return;
    }
    await new Promise((done) => this.#addon.emptyDirectory(name.toString(), done));
    rmdirSync(name);
  }

  /** Copies the content of an open file to a name that is free. */
  async ofOpened(source: number, to: Buffer, mode: number): Promise<void> {
    const file = openSync(to, 'wx', 0o600);
    try {
      const failure = await new Promise<NativeFailure | undefined>((done) =>
        this.#addon.copyContent(source, file, done),
      );
      if (failure !== undefined) throw failureError(failure);
      fchmodSync(file, mode);
    } finally {
      closeSync(file);
    }
  }

  /** Copies a directory; no link is followed, not even one that takes the place of what is being copied. */
  async #copyTree(from: Buffer, to: Buffer): Promise<boolean> {
    mkdirSync(to, { mode: 0o700 });
    using source = new HeldPaths(from);
    using target = new HeldPaths(to);
    const directories: RawPath[] = [''];
    let objects = 0;
    let total = 0;
    // What is found is looked into later.
    for (const directory of directories) {
      const inside = source.nameOf(directory === '' ? '.' : `${directory}/.`);
      if (inside === undefined) return false;
      for (const name of readdirSync(inside, { encoding: 'latin1' })) {
        const path = directory === '' ? name : `${directory}/${name}`;
        const [at, copy] = [source.nameOf(path), target.nameOf(path)];
        const stamp = at && lookAt(at);
        if (at === undefined || copy === undefined || stamp === undefined) return false;
        total += stamp.kind === 'file' ? stamp.bytes : 0;
        if (++objects > KEPT_OBJECTS || total > KEPT_BYTES) return false;
        if (stamp.kind === 'file') await this.#copyFile(at, copy, stamp);
        else if (stamp.kind === 'link') copyLink(at, copy);
        else if (stamp.kind !== 'directory') return false;
        else {
          mkdirSync(copy, { mode: 0o700 });
          directories.push(path);
        }
      }
    }
    for (const directory of directories.toReversed()) {
      const [at, copy] = [source, target].map((held) =>
        held.nameOf(directory === '' ? '.' : `${directory}/.`),
      );
      const stamp = at && lookAt(at);
      if (copy === undefined || stamp === undefined) return false;
      utimesSync(copy, seconds(stamp.modified), seconds(stamp.modified));
      chmodSync(copy, stamp.mode);
    }
    return true;
  }

  async #copyFile(from: Buffer, to: Buffer, { mode }: Pick<Stamp, 'mode'>): Promise<void> {
    const source = openToRead(from);
    try {
      await this.ofOpened(source, to, mode);
    } finally {
      closeSync(source);
    }
  }
}

/** Where a copy is until it is whole. */
export const partOf = (to: Buffer): Buffer => Buffer.concat([to, Buffer.from('.new')]);

function copyLink(from: Buffer, to: Buffer): void {
  const { modified } = lookAt(from) ?? { modified: '0' };
  symlinkSync(linkBytes(from), to);
  lutimesSync(to, seconds(modified), seconds(modified));
}

/** Whole microseconds, and a little more: what is cut off is never one of them. */
export const seconds = (nanoseconds: string): number => Number(BigInt(nanoseconds) / 1000n) / 1e6 + 4e-7;
