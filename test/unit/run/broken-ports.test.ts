import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { prepareSandbox } from '../../../src/run/resolve/prepare-sandbox.ts';
import { sandboxOn } from '../../../src/run/sandbox.ts';
import { OF_THIS_PROCESS } from '../../../src/workspace/index.ts';

it('a check that cannot be made says so, and does not pass for a command that is not judged', async () => {
  const workspace = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-test-')));
  const options = { workspace, policyFiles: false };
  let isBroken = false;
  const taints = async () => {
    if (isBroken) throw new Error('the store is gone');
    return [];
  };
  try {
    await using sandbox = await sandboxOn(
      await prepareSandbox(options, OF_THIS_PROCESS),
      options,
      undefined,
      (ports) => ({
        ...ports,
        session: { id: 's', begin: () => {}, taints, taint: () => {} },
      }),
    );
    expect((await sandbox.check('ls')).decision?.verdict).toBe('allow');
    isBroken = true;
    await expect(sandbox.check('ls')).rejects.toThrow('the store is gone');
    expect(await sandbox.run('touch ran')).toMatchObject({ status: 'denied' });
  } finally {
    rmSync(workspace, { recursive: true, force: true });
  }
});
