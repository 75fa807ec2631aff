import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { Sandbox, SandboxOptions } from '../../src/index.ts';
import { PROGRAMS } from './sandboxee.ts';
import { makeDirectory } from './state-home.ts';
import { sandboxIn, type Tier } from './tiers.ts';

/** A workspace, and beside it what a command must not touch. */
export interface Arena {
  readonly root: string;
  readonly workspace: string;
  readonly outside: string;
  /** A file in `outside`. */
  readonly secret: string;
  /** A sandbox for the workspace that is closed at the end of the file. */
  sandbox(tier: Tier, options?: SandboxOptions): Promise<Sandbox>;
  /** Puts new files to attack into a new directory of `outside`. */
  freshVictims(): string;
  /** An empty directory inside the workspace. */
  freshCorner(): string;
}

export const SECRET = 'the-secret-7d1f';

/** Makes an arena under `parent` for the current test file, which cleans it up. */
export function makeArena(parent: string = tmpdir()): Arena {
  const root = makeDirectory(join(realpathSync(parent), 'enforcement-'));
  const workspace = join(root, 'workspace');
  const outside = join(root, 'outside');
  const secret = join(outside, 'secret.txt');
  mkdirSync(workspace);
  mkdirSync(outside);
  writeFileSync(secret, SECRET);
  const open: Sandbox[] = [];
  let count = 0;
  afterAll(async () => {
    await Promise.all(open.map((sandbox) => sandbox.close()));
    rmSync(root, { recursive: true, force: true });
  });
  return {
    root,
    workspace,
    outside,
    secret,
    async sandbox(tier, options = {}) {
      const readable = [PROGRAMS, ...(options.readable ?? [])];
      const sandbox = await sandboxIn(tier, { workspace, ...options, readable });
      open.push(sandbox);
      return sandbox;
    },
    freshVictims() {
      const directory = join(outside, `victims-${++count}`);
      mkdirSync(join(directory, 'empty'), { recursive: true });
      mkdirSync(join(directory, 'full'));
      for (const name of ['file', 'doomed', 'renamed', 'moved-out', 'linked', 'full/inner']) {
        writeFileSync(join(directory, name), SECRET);
      }
      return directory;
    },
    freshCorner: () => mkdtempSync(join(workspace, 'corner-')),
  };
}

/** An attack may leave a file that nobody but root can read: its mode tells of that, and this must not throw. */
function readableContent(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
    return '(not readable)';
  }
}

/** Everything about a tree that an attack could change, access times excepted. */
export function snapshot(path: string): Readonly<Record<string, string>> {
  const seen: Record<string, string> = {};
  const look = (at: string): void => {
    const info = lstatSync(at);
    const content = info.isSymbolicLink() ? readlinkSync(at) : info.isFile() ? readableContent(at) : '';
    const { mode, uid, gid, ino, nlink, size, mtimeMs, ctimeMs } = info;
    seen[at] = JSON.stringify({ mode, uid, gid, ino, nlink, size, mtimeMs, ctimeMs, content });
    if (info.isDirectory()) for (const name of readdirSync(at)) look(join(at, name));
  };
  look(path);
  return seen;
}
