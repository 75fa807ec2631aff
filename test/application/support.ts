import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { createSandbox, type Sandbox, type SandboxOptions } from '../../src/index.ts';

export const SECRET = 'the-secret-81fd';

/** A workspace under the backend that has nothing but its checks, with links out of it, and a secret beside it. */
export interface Stage {
  readonly workspace: string;
  readonly outside: string;
  readonly secret: string;
  readonly sandbox: Sandbox;
}

// Registered here: a stage that is made within a test could not register what follows the file any more.
const made: { sandbox: Sandbox; root: string }[] = [];
afterAll(async () => {
  for (const { sandbox, root } of made) {
    await sandbox.close();
    rmSync(root, { recursive: true, force: true });
  }
});

export async function makeStage(options: SandboxOptions = {}): Promise<Stage> {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'application-'));
  const [workspace, outside] = [join(root, 'workspace'), join(root, 'outside')];
  for (const directory of [workspace, outside, join(workspace, 'sub'), join(workspace, 'links')])
    mkdirSync(directory);
  const secret = join(outside, 'secret.txt');
  writeFileSync(secret, `${SECRET}\n`);
  writeFileSync(join(workspace, 'a.txt'), 'foo 1\nbar 2\nfoo 3\n');
  writeFileSync(join(workspace, 'sub/inner.txt'), 'inner\n');
  writeFileSync(join(workspace, 'sub/.envrc'), 'id\n');
  symlinkSync(secret, join(workspace, 'links/file'));
  symlinkSync(outside, join(workspace, 'links/directory'));
  symlinkSync('/', join(workspace, 'links/root'));
  symlinkSync(join(outside, 'new'), join(workspace, 'links/dangling'));
  symlinkSync('../a.txt', join(workspace, 'links/inside'));
  // Deeper than where it lies: `..` behind it leads elsewhere than behind a directory of its name.
  mkdirSync(join(workspace, 'sub/one/two/three'), { recursive: true });
  mkdirSync(join(workspace, 'copy'));
  symlinkSync('../sub/one/two/three', join(workspace, 'links/deep'));
  symlinkSync('../sub/one/two/three', join(workspace, 'links/chain'));
  symlinkSync('chain/../../../outside/secret.txt', join(workspace, 'links/behind'));
  symlinkSync('../../outside', join(workspace, 'sub/one/up'));
  const sandbox = await createSandbox({
    workspace,
    backend: 'application',
    policyFiles: false,
    autonomy: 'autonomous',
    ...options,
  });
  made.push({ sandbox, root });
  return { workspace, outside, secret, sandbox };
}
