import { describe, expect, it } from 'vitest';
import { confinementSpec } from '../../../../src/confine/backends/confinement-spec.ts';
import { RLIMIT_NUMBERS } from '../../../../src/confine/kernel/rlimits.ts';
import { CONTAINER, hostWith, planOf } from '../plan/fixtures.ts';

describe('confinementSpec', () => {
  it('has masks instead of names', async () => {
    const { landlock, rules } = await confinementSpec(planOf({ features: CONTAINER }), {
      architecture: 'x64',
    });
    expect(landlock).toEqual({ handledFs: 0x1_ffffn, handledNet: 0xfn, scoped: 0x3n });
    expect(rules.find((rule) => rule.path === '/usr')).toEqual({
      path: '/usr',
      directoryAccess: 0b1101n,
      fileAccess: 0b101n,
      required: false,
      inView: false,
    });
  });

  it.each(['x64', 'arm64'] as const)('has a filter of whole instructions for %s', async (architecture) => {
    const { filter } = await confinementSpec(planOf(), { architecture });
    expect(filter.length).toBeGreaterThan(0);
    expect(filter.length % 8).toBe(0);
  });

  it('has no filter and no namespaces where the plan has none', async () => {
    const plan = { ...planOf({ features: CONTAINER }), seccompGroups: [] };
    const spec = await confinementSpec(plan, { architecture: 'x64' });
    expect(spec.filter.length).toBe(0);
    expect(spec.namespaces).toBeUndefined();
  });

  it('has every step of the view, writable only where the plan says so', async () => {
    const plan = planOf({ features: hostWith({ abi: 7, namespaces: true, seccomp: true }) });
    const steps = (await confinementSpec(plan, { architecture: 'x64' })).namespaces?.view ?? [];
    const planned = plan.namespaces?.view ?? [];
    expect(steps.map((step) => step.target)).toEqual(planned.map((step) => step.target));
    for (const [at, step] of steps.entries()) {
      const source = planned[at];
      expect(step.kind).toBe(source?.kind);
      if (source?.kind !== 'bind') continue;
      expect(step.readOnly).toBe(!source.writable);
      expect(step.allowDevices).toBe(source.device);
    }
    expect(steps.find((step) => step.target === '/dev/ptmx')).toMatchObject({
      kind: 'symlink',
      source: 'pts/ptmx',
    });
  });

  it('leaves umask and shared memory out by the values that the addon knows', async () => {
    expect(await confinementSpec(planOf({ features: CONTAINER }), { architecture: 'x64' })).toMatchObject({
      umask: -1,
      memoryParent: '',
      limits: [{ resource: RLIMIT_NUMBERS.core, value: 0n }],
    });
    expect((await confinementSpec({ ...planOf(), umask: 0o077 }, { architecture: 'x64' })).umask).toBe(0o077);
  });
});
