import { describe, expect, it } from 'vitest';
import type { ControlId, ControlState } from '../../src/index.ts';
import type { HostFeatures } from '../../src/model/index.ts';
import { makeArena } from '../support/arena.ts';
import { atAbi, HOST, OLDER_TIERS, sandboxIn, stateOf, TIERS, type Tier } from '../support/tiers.ts';

/** What each control must say, by tier; the attacks in the other files show that it is true. */
function expected(tier: Tier): Readonly<Partial<Record<ControlId, ControlState>>> {
  const since = (abi: number, otherwise: ControlState): ControlState =>
    tier.landlockAbi >= abi ? 'enforced' : otherwise;
  const viewed = (otherwise: ControlState): ControlState => (tier.view ? 'enforced' : otherwise);
  return {
    filesystem: 'enforced',
    'filesystem-view': viewed('unsupported'),
    rename: tier.landlockAbi === 0 ? viewed('degraded') : since(2, 'degraded'),
    truncate: tier.view ? 'enforced' : since(3, 'degraded'),
    metadata: viewed('unsupported'),
    'protected-paths': viewed('degraded'),
    'private-tmp': viewed('degraded'),
    devices: since(5, 'degraded'),
    network: 'enforced',
    // A view lets sockets work, and before Landlock ABI 9 those of the host that lie in the workspace too.
    'unix-sockets': since(9, tier.view ? 'degraded' : 'enforced'),
    'abstract-sockets': 'enforced',
    signals: since(6, 'unsupported'),
    'process-inspection': 'enforced',
    'process-tree': HOST.signalScope ? since(6, 'degraded') : 'degraded',
    privileges: 'enforced',
    descriptors: 'enforced',
    environment: 'enforced',
  };
}

const without = (tier: Tier, missing: Partial<HostFeatures>): Tier => ({
  ...tier,
  name: `${tier.name} and less`,
  asIf: (host) => ({ ...tier.asIf(host), ...missing }),
});
const MISSING = { available: false, reason: 'taken away by a test' } as const;

describe('running where the kernel offers less', () => {
  const arena = makeArena();

  describe.each([...TIERS, ...OLDER_TIERS])('$name', (tier) => {
    it('the report says what is not enforced, and why', async () => {
      const sandbox = await arena.sandbox(tier);
      const { controls, landlockAbi } = sandbox.plan.report;
      expect(landlockAbi).toBe(Math.min(tier.landlockAbi, HOST.landlockAbi));
      for (const [id, state] of Object.entries(expected(tier))) {
        expect([id, stateOf(sandbox, id as ControlId)]).toEqual([id, state]);
      }
      for (const control of controls) expect(control.reason.length).toBeGreaterThan(10);
      const result = await sandbox.run(['/bin/true']);
      expect([result.status, result.report]).toEqual(['exited', sandbox.plan.report]);
    });
  });

  describe.each(TIERS)('$name', (tier) => {
    it('without Landlock namespaces take its place, and where there are none nothing runs, as the profile requires file-system enforcement', async () => {
      const bare = without(tier, { landlock: MISSING, landlockAbi: 0, signalScope: false });
      if (!tier.view) {
        // Firejail may be there.
        const policy = { sandbox: { minimum: 'namespaces' } } as const;
        await expect(sandboxIn(bare, { workspace: arena.workspace, policy })).rejects.toMatchObject({
          code: 'enforcement.unavailable',
          message: expect.stringContaining('filesystem'),
        });
        return;
      }
      const sandbox = await arena.sandbox(bare);
      const { report } = sandbox.plan;
      expect([report.backend, report.landlockAbi]).toEqual(['namespaces', 0]);
      expect(report.passedOver).toEqual([{ backend: 'landlock', reason: MISSING.reason }]);
      for (const id of ['filesystem', 'rename', 'process-inspection', 'protected-paths'] as const)
        expect([id, stateOf(sandbox, id)]).toEqual([id, 'enforced']);
      const result = await sandbox.run(['/bin/cat', arena.secret]);
      expect([result.status, result.exitCode, result.stdout]).toEqual(['exited', 1, '']);
    });

    it('without seccomp nothing runs, as the profile requires the network to be off', async () => {
      const bare = without(tier, { seccomp: MISSING });
      await expect(sandboxIn(bare, { workspace: arena.workspace })).rejects.toMatchObject({
        code: 'enforcement.unavailable',
        // Where nothing but a view keeps files away, it takes seccomp to keep it so, and that is said first.
        message: expect.stringContaining(tier.landlockAbi > 0 ? 'network' : 'filesystem'),
      });
    });

    it('without seccomp a policy that accepts it runs, and the report says what is missing', async () => {
      const bare = without(tier, { seccomp: MISSING });
      const demand = { network: 'best-effort', filesystem: 'best-effort' } as const;
      const sandbox = await arena.sandbox(bare, { policy: { demand } });
      expect(stateOf(sandbox, 'network')).toBe(tier.view ? 'degraded' : 'unsupported');
      expect(stateOf(sandbox, 'syscalls')).toBe('unsupported');
      expect(stateOf(sandbox, 'terminal-injection')).toBe('degraded');
    });

    it('what a policy demands and the kernel lacks is refused', async () => {
      await expect(
        sandboxIn(atAbi(tier, 5), {
          workspace: arena.workspace,
          policy: { demand: { signals: 'required' }, sandbox: { minimum: 'namespaces' } },
        }),
      ).rejects.toMatchObject({ code: 'enforcement.unavailable' });
    });
  });
});
