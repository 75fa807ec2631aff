import { describe, expect, it } from 'vitest';
import { HOST } from '../support/tiers.ts';
import { AS_STRANGER, withMounts } from './support/mounts.ts';
import { buildOuterFilter } from './support/outer-filter.ts';
import { expectHonest, makeWorld, ROOT } from './support/world.ts';

const world = makeWorld();
const filter = buildOuterFilter();
const WITHOUT_LANDLOCK = filter({ landlock_create_ruleset: 'ENOSYS' });

const NO_PROC = withMounts('mount -t tmpfs none /proc');
/** The numbers in it are those of the namespace around. */
const FOREIGN_PROC = ['unshare', ...(ROOT ? [] : ['--map-root-user']), '--pid', '--fork'];

// Both kinds of /proc are mounted, or left behind, in a namespace.
describe.skipIf(!HOST.namespaces)('without /proc (needs namespaces)', () => {
  it('the command is held by Landlock, and the report says what is not looked at', async () => {
    const answer = await world.attack({ host: NO_PROC });
    expectHonest(answer);
    expect(answer).toMatchObject({ backend: 'landlock', tier: 'signal-scope' });
    expect(answer.states?.['resource-limits']).toBe('unsupported');
    expect(answer.reasons?.['resource-limits']).toContain('/proc cannot be read');
  });

  it('a policy that demands the limits is refused', async () => {
    const answer = await world.attack({
      host: NO_PROC,
      options: { policy: { demand: { 'resource-limits': 'required' } } },
    });
    expect(answer.refused?.code).toBe('enforcement.unavailable');
  });

  it('Landlock with a warden for each command: the report says that a tree is not sure to end', async () => {
    const answer = await world.attack({ host: [...NO_PROC, ...filter({ kill: 'ENOSYS' })] });
    expectHonest(answer);
    expect(answer.tier).toBe('subreaper');
    expect(answer.states?.['process-tree']).toBe('unsupported');
    expect(answer.reasons?.['process-tree']).toContain('/proc cannot be read');
  });
});

describe.skipIf(!HOST.namespaces)('a /proc of another process namespace (needs namespaces)', () => {
  it('is not looked at, and the report says so', async () => {
    const answer = await world.attack({ host: FOREIGN_PROC });
    expectHonest(answer);
    expect(answer.backend).toBe('landlock');
    expect(answer.reasons?.['resource-limits']).toContain('/proc is that of another process namespace');
  });

  it('ends nobody who has a number of ours in the namespace around', async () => {
    // The warden's number is small in there; outside, such numbers belong to others, whose children must survive.
    const answer = await world.attack({ host: [...FOREIGN_PROC, ...filter({ kill: 'ENOSYS' })] });
    expectHonest(answer);
    expect(answer.states?.['process-tree']).toBe('unsupported');
  });
});

/** What hides shows only to who may trace it, which root may all. */
describe.runIf(ROOT && HOST.namespaces)(
  'a /proc that hides processes (needs namespaces, and to be started as root)',
  () => {
    it.each(['hidepid=1', 'hidepid=2', 'hidepid=4'])('%s: said to an ordinary user', async (option) => {
      const host = withMounts(`mount -t proc -o ${option} none /proc`, ...AS_STRANGER);
      const answer = await world.attack({ host });
      expectHonest(answer);
      expect(answer.tier).toBe('signal-scope');
      expect(answer.states?.['resource-limits']).toBe('unsupported');
      expect(answer.reasons?.['resource-limits']).toContain('hidepid=');
    });

    it('makes no difference to root', async () => {
      const answer = await world.attack({ host: withMounts('mount -t proc -o hidepid=2 none /proc') });
      expectHonest(answer);
      expect(answer.states?.['resource-limits']).toBe('degraded');
    });

    it('lets a process that hides itself outlive a warden, as the report says', async () => {
      const host = [
        ...withMounts('mount -t proc -o hidepid=2 none /proc', ...AS_STRANGER),
        ...WITHOUT_LANDLOCK,
      ];
      const answer = await world.attack({ host });
      expectHonest(answer);
      expect(answer.states?.['process-tree']).toBe('unsupported');
    });
  },
);
