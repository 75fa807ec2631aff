import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import { withoutRefusedFacility } from '../../../../src/confine/backends/refused-facility.ts';
import type { HostFeatures } from '../../../../src/confine/plan/host-features.ts';
import { BEST_HOST, GROUPS } from '../plan/fixtures.ts';

const HOST: HostFeatures = { ...BEST_HOST, cgroup: GROUPS };

const failure = (stage: string, errno: keyof typeof constants.errno | 0, path = '') => ({
  stage,
  errno: errno === 0 ? 0 : constants.errno[errno],
  path,
});

/** What a host is found not to have, by name. */
function lostBy(given: ReturnType<typeof failure>, host = HOST): readonly string[] | undefined {
  const less = withoutRefusedFacility(host, given);
  if (less === undefined) return undefined;
  return Object.keys(host).filter(
    (key) => less[key as keyof HostFeatures] !== host[key as keyof HostFeatures],
  );
}

describe('withoutRefusedFacility', () => {
  const NAMESPACE_STAGES = [
    ...'create user uid_map setgroups gid_map mount loopback open enter'
      .split(' ')
      .map((step) => `namespace.${step}`),
    ...'propagation root build pivot create'.split(' ').map((step) => `view.${step}`),
  ];

  it.each(NAMESPACE_STAGES)(
    'takes namespaces away for %s with the errnos of a host that refuses',
    (stage) => {
      for (const errno of [
        'EPERM',
        'EACCES',
        'ENOSYS',
        'EINVAL',
        'ENOSPC',
        'EOPNOTSUPP',
        'ENODEV',
      ] as const) {
        expect(withoutRefusedFacility(HOST, failure(stage, errno))?.namespaces).toEqual({
          available: false,
          reason: `this host refuses namespaces (${stage}: ${errno})`,
        });
      }
    },
  );

  it('says where', () => {
    expect(withoutRefusedFacility(HOST, failure('view.build', 'EPERM', '/dev/pts'))?.namespaces).toEqual({
      available: false,
      reason: 'this host refuses namespaces (view.build: EPERM at /dev/pts)',
    });
  });

  it.each([
    ['view.open', 'ENOSYS', ['namespaces']],
    ['view.open', 'EPERM', ['namespaces']],
    ['landlock.create_ruleset', 'EOPNOTSUPP', ['landlock', 'landlockAbi', 'signalScope']],
    ['landlock.add_rule', 'EPERM', ['landlock', 'landlockAbi', 'signalScope']],
    ['landlock.restrict_self', 'ENOSYS', ['landlock', 'landlockAbi', 'signalScope']],
    ['landlock.restrict_self', 'E2BIG', ['landlock', 'landlockAbi', 'signalScope']],
    ['seccomp', 'EPERM', ['seccomp']],
    ['seccomp', 'EINVAL', ['seccomp']],
    ['exit_tracing', 'EBUSY', ['seccompListener']],
    ['exit_tracing', 'EPERM', ['seccompListener']],
    ['cgroup.enter', 'EPERM', ['cgroup']],
    ['signal_scope', 0, ['signalScope']],
    ['warden', 'EPERM', ['signalScope']],
  ] as const)('%s with %s costs exactly %j', (stage, errno, lost) => {
    expect([...(lostBy(failure(stage, errno)) ?? [])].sort()).toEqual([...lost].sort());
  });

  it.each([
    ['view.open', 'EACCES'],
    ['view.open', 'ENOENT'],
    ['landlock.open', 'EPERM'],
    ['landlock.add_rule', 'EINVAL'],
    ['private_directory', 'EACCES'],
    ['exec', 'EACCES'],
    ['session', 'EPERM'],
    ['capabilities', 'EPERM'],
    ['no_new_privs', 'EPERM'],
    ['namespace.create', 'ENOMEM'],
    ['namespace.create', 'EAGAIN'],
    ['view.build', 'ENOENT'],
  ] as const)('is not what %s with %s says: that is an error', (stage, errno) => {
    expect(withoutRefusedFacility(HOST, failure(stage, errno))).toBeUndefined();
  });

  it('ends: what was given up is not given up again, whatever fails', () => {
    const stages = [
      ...NAMESPACE_STAGES,
      'view.open',
      'landlock.create_ruleset',
      'landlock.add_rule',
      'landlock.restrict_self',
      'seccomp',
      'exit_tracing',
      'cgroup.enter',
      'signal_scope',
      'warden',
    ];
    for (const stage of stages) {
      let host: HostFeatures | undefined = HOST;
      let rounds = 0;
      while (host !== undefined && rounds <= stages.length) {
        host = withoutRefusedFacility(host, failure(stage, 'EPERM'));
        rounds += 1;
      }
      expect(rounds, stage).toBeLessThanOrEqual(3);
    }
  });
});
