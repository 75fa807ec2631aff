import { closeSync, lstatSync, mkdirSync, openSync, readdirSync, symlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { pathOf, textOfPath } from '../../base/path-text.ts';
import { linkBytes } from '../../confine/link-bytes.ts';
import type { LeftBehind } from '../../model/index.ts';
import { inDirectoryOf, readRegular, replaceFile } from '../host/held-directory.ts';
import { type Shutter, told } from './kept.ts';

/** So much is remembered of what commands can change and shall not; more is told. */
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_ENTRIES = 10_000;

type Remembered =
  | { readonly kind: 'file'; readonly content: Buffer; readonly mode: number }
  | { readonly kind: 'link'; readonly content: Buffer }
  | { readonly kind: 'directory'; readonly names: readonly string[]; readonly mode: number };

/** What paths, and what is beneath them, were before commands could change them, so that they can be put back. */
export class Baseline {
  private readonly known = new Map<string, Remembered>();
  private readonly tooMuch = new Set<string>();

  constructor(paths: readonly string[]) {
    const { known, tooMuch } = this;
    let bytes = 0;
    const pending = [...paths];
    for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
      if (known.has(path)) continue;
      const remembered = known.size < MAX_ENTRIES ? look(pathOf(path), MAX_BYTES - bytes) : 'too much';
      if (remembered === undefined) continue;
      if (remembered === 'too much') {
        tooMuch.add(path);
        continue;
      }
      known.set(path, remembered);
      if (remembered.kind === 'file') bytes += remembered.content.length;
      if (remembered.kind === 'directory')
        // Nothing runs git's samples.
        for (const name of remembered.names) if (!name.endsWith('.sample')) pending.push(join(path, name));
    }
  }

  /** What has to be looked at after a command. */
  get paths(): readonly string[] {
    return [...this.known.keys(), ...this.tooMuch];
  }

  /** Whether a path cannot be restored, because it was too large, or of a kind that cannot be remembered. */
  isTooMuch(path: string): boolean {
    return this.tooMuch.has(path);
  }

  covers(path: string): boolean {
    return this.known.has(path);
  }

  contentOf(path: string): Buffer | undefined {
    const remembered = this.known.get(path);
    return remembered?.kind === 'file' ? remembered.content : undefined;
  }

  /** Whether the file at a path equals the earlier one at another path. */
  isFileFrom(before: string, path: string, shutter: Shutter): boolean {
    const was = this.known.get(before);
    const is = inDirectoryOf(shutter.rootOf(path), path, (at) => look(at, MAX_BYTES));
    return was?.kind === 'file' && isSame(was, is);
  }

  /** Makes of the path what it was, if it is something else now. */
  restore(path: string, shutter: Shutter): readonly LeftBehind[] {
    const was = this.known.get(path);
    if (was === undefined) return [];
    const root = shutter.rootOf(path);
    const is = inDirectoryOf(root, path, (at) => look(at, MAX_BYTES));
    if (isSame(was, is)) {
      if (was.kind === 'directory') return withoutStrangers(path, was.names, shutter);
      // What still runs may have it mapped, to change it unseen.
      if (was.kind === 'link' || replaceFile(root, path, was.content)) return [];
    }
    const moved = is === undefined ? [] : shutter.shut(path, PROGRAM, CHANGED);
    if (moved.some(({ done }) => done === 'told')) return moved;
    const isBack = inDirectoryOf(root, path, (at) => make(at, was));
    if (isBack === undefined) return [told(path, `${CHANGED}; it could not be put back`, PROGRAM)];
    const children = was.kind === 'directory' ? was.names.map((name) => join(path, name)) : [];
    for (const child of children) this.restore(child, shutter);
    const kept = moved[0]?.kept;
    return [
      { path, done: 'restored', program: PROGRAM, reason: CHANGED, ...(kept === undefined ? {} : { kept }) },
    ];
  }
}

function withoutStrangers(path: string, names: readonly string[], shutter: Shutter): readonly LeftBehind[] {
  const now = inDirectoryOf(shutter.rootOf(path), path, (at) => readdirSync(at, 'buffer')) ?? [];
  return now
    .map(textOfPath)
    .filter((name) => !names.includes(name) && !name.endsWith('.sample'))
    .flatMap((name) => shutter.shut(join(path, name), PROGRAM, 'it is new where commands may not write'));
}

const PROGRAM = 'what trusts this path';
const CHANGED = 'the command changed it, while nothing could keep it from that';

function look(path: string | Buffer, limit: number): Remembered | 'too much' | undefined {
  const info = lstatSync(path, { throwIfNoEntry: false });
  if (info === undefined) return undefined;
  if (info.isSymbolicLink()) return { kind: 'link', content: linkBytes(path) };
  if (info.isDirectory())
    return {
      kind: 'directory',
      names: readdirSync(path, 'buffer').map(textOfPath),
      mode: info.mode & 0o777,
    };
  const content = info.isFile() ? readRegular(path, limit) : undefined;
  return content === undefined ? 'too much' : { kind: 'file', content, mode: info.mode & 0o777 };
}

function isSame(was: Remembered, is: Remembered | 'too much' | undefined): boolean {
  if (is === undefined || is === 'too much' || was.kind !== is.kind) return false;
  if (was.kind === 'link') return was.content.equals((is as typeof was).content);
  if (was.kind === 'directory') return was.mode === (is as typeof was).mode;
  return was.mode === (is as typeof was).mode && was.content.equals((is as typeof was).content);
}

function make(path: Buffer, was: Remembered): true {
  if (was.kind === 'link') symlinkSync(was.content, path);
  else if (was.kind === 'directory') mkdirSync(path, { mode: was.mode });
  else {
    const file = openSync(path, 'wx', was.mode);
    try {
      writeSync(file, was.content);
    } finally {
      closeSync(file);
    }
  }
  return true;
}
