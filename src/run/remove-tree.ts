import { chmod, rm } from 'node:fs/promises';
import { loadAddon } from '../confine/native/load.ts';

/** Takes a directory away, however deep it is, and whatever permissions a command has given to it and to what is in it. */
export async function removeTree(root: string): Promise<void> {
  await chmod(root, 0o700).catch(() => {});
  await new Promise((done) => loadAddon().emptyDirectory(root, done));
  await rm(root, { recursive: true, force: true });
}
