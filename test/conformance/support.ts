import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { BACKEND_IDS } from '../../src/base/words.ts';
import { createSandbox, type Sandbox, SandboxError, type SandboxOptions } from '../../src/index.ts';
import type { BackendId } from '../../src/model/index.ts';
import { expectNothingLeft } from '../support/leftovers.ts';

/** What each backend says of this host: undefined if it can be used. */
export const REFUSALS: ReadonlyMap<BackendId, string | undefined> = new Map(
  await Promise.all(BACKEND_IDS.map(async (id) => [id, await refusalOf(id)] as const)),
);

/** The backends that this host has. Which those must be is said by SANDBOX_RUN_EXPECT_BACKENDS, see declared.test.ts. */
export const USABLE: readonly BackendId[] = BACKEND_IDS.filter((id) => REFUSALS.get(id) === undefined);

async function refusalOf(backend: BackendId): Promise<string | undefined> {
  const workspace = mkdtempSync(join(realpathSync(tmpdir()), 'conformance-probe-'));
  try {
    const sandbox = await createSandbox({ workspace, backend, policyFiles: false });
    await sandbox.close();
    return undefined;
  } catch (error) {
    if (error instanceof SandboxError) return error.message;
    throw error;
  } finally {
    rmSync(workspace, { recursive: true, force: true });
  }
}

/** A workspace with files in it, and beside it what a command must not touch. */
export interface Stage {
  readonly root: string;
  readonly workspace: string;
  readonly outside: string;
  /** A file in `outside`. */
  readonly secret: string;
  /** A sandbox of the workspace, closed at the end of the file. */
  sandbox(backend: BackendId, options?: SandboxOptions): Promise<Sandbox>;
}

export const SECRET = 'the-secret-4c9a';
/** 100 lines, `line 1` to `line 100`. */
export const LINES = Array.from({ length: 100 }, (_, index) => `line ${index + 1}\n`).join('');

/**
 * The programs of the conformance suite are those that the allow-list of the application backend has: cat, cp, head, ls,
 * printenv, pwd, rg, sed, which.
 */
export function makeStage(): Stage {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'conformance-'));
  const [workspace, outside, tmp] = ['workspace', 'outside', 'tmp'].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ];
  for (const directory of [workspace, outside, tmp, join(workspace, 'sub')]) mkdirSync(directory);
  const secret = join(outside, 'secret.txt');
  writeFileSync(secret, SECRET);
  writeFileSync(join(workspace, 'lines.txt'), LINES);
  writeFileSync(join(workspace, 'sub/inner.txt'), 'inner\n');
  const before = process.env.TMPDIR;
  process.env.TMPDIR = tmp;
  const open: Sandbox[] = [];
  afterAll(async () => {
    await Promise.all(open.map((sandbox) => sandbox.close()));
    try {
      await expectNothingLeft({ tmp });
    } finally {
      if (before === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = before;
      rmSync(root, { recursive: true, force: true });
    }
  });
  return {
    root,
    workspace,
    outside,
    secret,
    async sandbox(backend, options = {}) {
      const sandbox = await createSandbox({
        workspace,
        backend,
        policyFiles: false,
        autonomy: 'autonomous',
        ...options,
      });
      open.push(sandbox);
      return sandbox;
    },
  };
}
