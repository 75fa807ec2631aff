import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Confinement, confine, type Grant, isUnenforceable } from '../../src/containment.ts';

const root = mkdtempSync(join(realpathSync(tmpdir()), 'containment-'));
const workspace = join(root, 'work');
mkdirSync(workspace);
afterAll(() => rmSync(root, { recursive: true, force: true }));
const GRANT: Grant = {
  workspace,
  read: ['/usr', '/bin', '/lib', '/lib64'].filter((path) => realpathSync.native(path) !== ''),
};

async function made(): Promise<Confinement> {
  const confinement = await confine().prepare(GRANT);
  if (isUnenforceable(confinement)) throw confinement.error;
  return confinement;
}

describe('what sandbox-run/confine is given by callers without types', () => {
  it.each<[string, unknown, unknown, string]>([
    ['no grant', null, {}, 'grant must be an object'],
    ['no workspace', { read: ['/usr'] }, {}, 'grant.workspace is missing: an absolute path'],
    ['a relative one', { ...GRANT, workspace: 'work' }, {}, 'grant.workspace must be an absolute path'],
    ['a path for a list', { ...GRANT, read: '/usr' }, {}, 'grant.read must be an array of absolute paths'],
    ['a field that is none', { ...GRANT, hide: [] }, {}, 'grant has no field hide; there are workspace, '],
    [
      'a mode that is none',
      { ...GRANT, network: { mode: 'of' } },
      {},
      'grant.network.mode must be one of off, ',
    ],
    [
      'a limit that is none',
      { ...GRANT, limits: { memory: '1G' } },
      {},
      'grant.limits.memory must be a number',
    ],
    [
      'a control that is none',
      GRANT,
      { controls: { files: 'required' } },
      'demands.controls has no field files; ',
    ],
    [
      'a demand that is none',
      GRANT,
      { controls: { network: true } },
      'demands.controls.network must be one of ',
    ],
  ])('%s is refused in one line', async (_, grant, demands, says) => {
    for (const method of ['prepare', 'plan'] as const) {
      const failure = confine()[method](grant as Grant, demands as object);
      await expect(failure).rejects.toMatchObject({
        code: 'usage.invalid',
        message: expect.stringContaining(says),
      });
    }
  });

  it('a command that is none is refused, and one after the end; all others run', async () => {
    const confinement = await made();
    const start = (command: unknown) => () => confinement.start(command as never);
    expect(start({ program: 'sh' })).toThrow('command.program must be an absolute path');
    expect(start({ program: '/bin/sh', argv: 'sh' })).toThrow('command.argv must be an array of strings');
    expect(start({ program: '/bin/sh', argv: ['a\0b'] })).toThrow('command.argv must be');
    expect(start({ program: '/bin/sh', env: { A: 1 } })).toThrow('command.env must be an object of strings');
    expect(start({ program: '/bin/sh', shell: true })).toThrow('command has no field shell');
    const ended = await confinement.start({ program: '/bin/sh', argv: ['sh', '-c', 'exit 3'] }).exited;
    expect([ended.failure, ended.exitCode]).toEqual([undefined, 3]);
    confinement.close();
    expect(start({ program: '/bin/true' })).toThrow('the confinement is closed');
  });
});
