import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import { createSandbox, type Sandbox } from '../../src/index.ts';
import { expectNothingLeft } from '../support/leftovers.ts';
import { makeUnjudgedConfiguration } from '../support/unjudged-policy.ts';

/** The built library, for programs that the tests start. */
export const LIBRARY = fileURLToPath(new URL('../../dist/index.js', import.meta.url));
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Directories for one test file. While it lives, private directories of commands are made in `tmp`. */
export interface Place {
  readonly root: string;
  readonly workspace: string;
  readonly other: string;
  readonly tmp: string;
  dispose(): void;
}

/** Makes the directories and points TMPDIR of this process at one of them. */
export function makePlace(): Place {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-library-test-')));
  const [workspace, other, tmp] = [join(root, 'work'), join(root, 'other'), join(root, 'tmp')];
  for (const directory of [workspace, other, tmp]) mkdirSync(directory);
  const before = { TMPDIR: process.env.TMPDIR, XDG_CONFIG_HOME: process.env.XDG_CONFIG_HOME };
  process.env.TMPDIR = tmp;
  process.env.XDG_CONFIG_HOME = makeUnjudgedConfiguration(root);
  return {
    root,
    workspace,
    other,
    tmp,
    dispose: () => {
      for (const [name, value] of Object.entries(before)) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** A place with a sandbox in its workspace for all tests of one file; nothing may be left behind them. */
export async function makePlaceWithSandbox(): Promise<{
  readonly place: Place;
  readonly sandbox: Sandbox;
}> {
  const place = makePlace();
  const sandbox = await createSandbox({ workspace: place.workspace });
  afterAll(async () => {
    await sandbox.close();
    await expectNothingLeft(place);
    place.dispose();
  });
  return { place, sandbox };
}
