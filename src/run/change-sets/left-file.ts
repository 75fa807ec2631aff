import { closeSync, fstatSync } from 'node:fs';
import type { NativeAddon } from '../../confine/native/contract.ts';
import { openToRead } from './held-paths.ts';
import type { After } from './operations.ts';

/** Why a file of a layer is neither shown nor applied. */
export const STILL_WRITTEN =
  'something writes to it, or did, although its command has ended; run the command again';

/**
 * Whether a file of a layer is what its command left. The command has ended, but may have handed an open file to another
 * one, which would make something else of it once a person has looked: nobody can set the time of a change, and what is
 * mapped is open.
 */
export function isAsLeft(addon: NativeAddon, file: number, { bytes, changed }: After): boolean {
  const { size, ctimeNs } = fstatSync(file, { bigint: true });
  if (Number(size) !== bytes || String(ctimeNs) !== changed) return false;
  try {
    return !addon.hasWriter(file);
  } catch {
    // Then nobody knows.
    return false;
  }
}

/**
 * Opens a file of a layer to read it; `undefined`: it is not what its command left.
 * @throws what open(2) fails with.
 */
export function openAsLeft(addon: NativeAddon, path: Buffer, after: After): number | undefined {
  const file = openToRead(path);
  if (isAsLeft(addon, file, after)) return file;
  closeSync(file);
  return undefined;
}
