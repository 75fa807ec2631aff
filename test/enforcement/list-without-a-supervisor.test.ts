import { describe, expect, it } from 'vitest';
import { createSandbox } from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { confined } from '../support/sandboxee.ts';
import { TIERS } from '../support/tiers.ts';

describe('a listed network where it cannot be held', () => {
  const arena = makeArena();
  const policyOf = (network: object, more: object = {}) => ({
    workspace: arena.workspace,
    policy: { network, ...more },
  });

  it.each(TIERS)('is refused without a listener, whatever the policy demands: $name', async (tier) => {
    const without = {
      ...tier,
      asIf: (host: Parameters<typeof tier.asIf>[0]) => ({ ...tier.asIf(host), seccompListener: false }),
    };
    const policy = {
      network: { mode: 'listed' as const, allow: ['*'] },
      demand: { network: 'best-effort' as const },
    };
    await expect(arena.sandbox(without, { policy })).rejects.toMatchObject({
      code: 'enforcement.unavailable',
      message: expect.stringMatching(
        /^network\.mode = "listed" cannot be held here: .*seccomp listener.*network\.mode = "off" works/,
      ),
    });
    // The control: the same host runs with the network off.
    const off = await arena.sandbox(without, { policy: { ...policy, network: { mode: 'off' } } });
    expect((await confined(off, ['/bin/true'])).exitCode).toBe(0);
  });

  it('is refused by backends that cannot hold it', async () => {
    const options = { ...policyOf({ mode: 'listed' }), backend: 'application' as const };
    await expect(createSandbox(options)).rejects.toMatchObject({ code: 'enforcement.unavailable' });
  });

  it.each([
    [{ mode: 'open', deny: ['10.0.0.0/8'] }, 'network.deny holds nothing back'],
    [{ mode: 'listed', unix_sockets: 'allowed' }, 'cannot be held together'],
    [{ mode: 'listed', allow: ['nope nope'] }, 'network.allow.0: "nope nope": it must be a name'],
    [{ allow: ['@nobody'] }, 'there is no preset "@nobody"'],
  ])('%j is refused in one line', async (network, message) => {
    await expect(createSandbox(policyOf(network))).rejects.toMatchObject({
      code: 'policy.invalid',
      message: expect.stringContaining(message),
    });
  });

  it('commands of an open or shut network have no listener for it', async () => {
    for (const mode of ['off', 'open'] as const) {
      const sandbox = await createSandbox(policyOf({ mode }));
      expect([sandbox.plan.network, sandbox.plan.networkRules]).not.toContain('listed');
      expect(sandbox.plan.networkRules).toBeUndefined();
      await sandbox.close();
    }
  });
});
