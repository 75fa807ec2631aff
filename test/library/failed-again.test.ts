import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { HOST, STRONGEST } from '../support/tiers.ts';

const READS = 'cat "$1" && echo read';
const reads = (path: string) => ['sh', '-c', READS, 'sh', path] as const;

describe.runIf(HOST.landlockAbi > 0)('a line that failed and comes again', () => {
  const arena = makeArena();

  const readsDenied = (result: {
    readonly denials?: readonly { readonly operation: string; readonly object: string }[] | undefined;
  }) => (result.denials ?? []).filter(({ operation }) => operation === 'read').map(({ object }) => object);

  it('is told what it was denied to read, and the first time it is not', async () => {
    const sandbox = await arena.sandbox(STRONGEST, { workspace: arena.freshCorner() });
    const first = await sandbox.run(reads(arena.secret));
    expect(readsDenied(first)).toEqual([]);
    expect(readsDenied(await sandbox.run(reads(arena.secret)))).toEqual([arena.secret]);
    // Another line is none that failed.
    expect(readsDenied(await sandbox.run(reads(`${arena.secret}/..//${'secret.txt'}`)))).toEqual([]);
  });

  it('is so in another sandbox of the workspace, as in the next process', async () => {
    const workspace = arena.freshCorner();
    const one = await arena.sandbox(STRONGEST, { workspace });
    await one.run(reads(arena.secret));
    await one.close();
    const other = await arena.sandbox(STRONGEST, { workspace });
    expect(readsDenied(await other.run(reads(arena.secret)))).toEqual([arena.secret]);
    const elsewhere = await arena.sandbox(STRONGEST, { workspace: arena.freshCorner() });
    expect(readsDenied(await elsewhere.run(reads(arena.secret)))).toEqual([]);
  });

  it('is held as ever, changes the workspace, and is forgotten once it succeeds', async () => {
    const workspace = arena.freshCorner();
    const sandbox = await arena.sandbox(STRONGEST, { workspace });
    const line = ['sh', '-c', 'cat "$1"; echo "$$" >> ran; cat there', 'sh', arena.secret] as const;
    await sandbox.run(line);
    expect(readsDenied(await sandbox.run(line))).toEqual([arena.secret]);
    writeFileSync(join(workspace, 'there'), 'now');
    const third = await sandbox.run(line);
    expect(third.exitCode).toBe(0);
    expect(third.stdout).toBe('now');
    expect(readsDenied(await sandbox.run(line))).toEqual([]);
    expect((await sandbox.run(['wc', '-l', 'ran'])).stdout).toMatch(/^4 /);
  });

  it('is ended with the sandbox', async () => {
    const sandbox = await arena.sandbox(STRONGEST, { workspace: arena.freshCorner() });
    const line = ['sh', '-c', 'test -e go && { touch runs; exec sleep 600; }; exit 1'] as const;
    await sandbox.run(line);
    await sandbox.run(['touch', 'go']);
    const running = sandbox.run(line);
    await expect.poll(async () => (await sandbox.run(['ls'])).stdout, { timeout: 60_000 }).toContain('runs');
    await sandbox.close();
    expect((await running).status).not.toBe('exited');
  });

  it('is not looked at where the policy says never', async () => {
    const sandbox = await arena.sandbox(STRONGEST, {
      workspace: arena.freshCorner(),
      policy: { sandbox: { explain: 'never' } },
    });
    await sandbox.run(reads(arena.secret));
    expect((await sandbox.run(reads(arena.secret))).denials ?? []).toEqual([]);
  });
});
