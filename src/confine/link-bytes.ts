import { readlinkSync } from 'node:fs';

/** Where a symbolic link leads, byte by byte. Other runtimes than Node give text or plain arrays for its other spellings. */
export function linkBytes(path: string | Buffer): Buffer {
  return Buffer.from(readlinkSync(path, { encoding: 'buffer' }));
}
