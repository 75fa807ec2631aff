import { describe, expect, it } from 'vitest';
import { FILE_RIGHTS, NETWORK_RIGHTS, SCOPES } from '../../../../src/confine/kernel/landlock/rights.ts';
import { handledRights, landlockRules } from '../../../../src/confine/plan/landlock.ts';
import type { PlannedPath } from '../../../../src/confine/plan/launch-plan.ts';
import { ABIS, CONTAINER, HOST_KINDS, hostWith, mechanismsOf, NETWORKS, policyWith } from './fixtures.ts';

const planned = (path: string, access: PlannedPath['access']): PlannedPath => ({
  path,
  access,
  required: true,
  reason: 'a test',
});
const ONE_OF_EACH = [
  planned('/d', 'data'),
  planned('/r', 'read'),
  planned('/w', 'write'),
  planned('/n', 'device'),
];
const CASES = HOST_KINDS.flatMap((kind) => NETWORKS.map((network) => ({ ...kind, ...network })));
const since = (table: readonly { name: string; sinceAbi: number }[], name: string) =>
  table.find((row) => row.name === name)?.sinceAbi ?? Number.POSITIVE_INFINITY;

describe.each(ABIS)('at Landlock ABI %i', (abi) => {
  const cases = CASES.filter((candidate) => candidate.abi === abi).map((kind) => {
    const used = mechanismsOf(policyWith(kind), hostWith(kind));
    return {
      used,
      handled: handledRights(used),
      rules: landlockRules(used, ONE_OF_EACH, ['slot:tmp', 'slot:home'], true),
    };
  });

  it('handles nothing that the ABI does not have', () => {
    for (const { handled } of cases) {
      expect(handled.handledFile.filter((name) => since(FILE_RIGHTS, name) > abi)).toEqual([]);
      expect(handled.handledNetwork.filter((name) => since(NETWORK_RIGHTS, name) > abi)).toEqual([]);
      expect(handled.scoped.filter((name) => since(SCOPES, name) > abi)).toEqual([]);
    }
  });

  it('handles every file right and scope that the ABI has', () => {
    for (const { handled } of cases) {
      expect(handled.handledFile.length).toBe(FILE_RIGHTS.filter((row) => row.sinceAbi <= abi).length);
      expect(handled.scoped.length).toBe(SCOPES.filter((row) => row.sinceAbi <= abi).length);
    }
  });

  it('handles the network exactly where seccomp shuts it and nothing isolates it', () => {
    for (const { used, handled } of cases) {
      const available = NETWORK_RIGHTS.filter((row) => row.sinceAbi <= abi).length;
      expect(handled.handledNetwork.length).toBe(used.inetSockets === 'refused' ? available : 0);
    }
  });

  it('grants only what it handles, and something in every rule', () => {
    for (const { handled, rules } of cases) {
      expect(rules.length > 0).toBe(abi > 0);
      for (const rule of rules) {
        expect(rule.rights.filter((right) => !handled.handledFile.includes(right))).toEqual([]);
        expect(rule.rights, rule.path).not.toEqual([]);
      }
    }
  });
});

describe('the rights of an access', () => {
  const used = mechanismsOf(policyWith({}), CONTAINER);
  const rightsOf = (path: string) =>
    landlockRules(used, ONE_OF_EACH, [], false).find((rule) => rule.path === path)?.rights;

  it.each([
    ['/d', 'read_file read_dir'],
    ['/r', 'execute read_file read_dir'],
    [
      '/w',
      'execute write_file read_file read_dir remove_dir remove_file make_dir make_reg make_sock make_fifo make_sym refer truncate',
    ],
    ['/n', 'write_file read_file read_dir truncate ioctl_dev'],
  ])('%s: %s', (path, rights) => {
    expect(rightsOf(path)?.join(' ')).toBe(rights);
  });

  it('let sockets of others be used only where the policy allows it, on all paths that may be written', () => {
    const pathsFor = (unixSockets: 'allowed' | 'contained') =>
      landlockRules(mechanismsOf(policyWith({ unixSockets }), CONTAINER), ONE_OF_EACH, [], false)
        .filter((rule) => rule.rights.includes('resolve_unix'))
        .map((rule) => rule.path);
    expect(pathsFor('contained')).toEqual([]);
    expect(pathsFor('allowed')).toEqual(['/w', '/dev/shm']);
  });

  it('let nobody make a device node', () => {
    const granted = landlockRules(used, ONE_OF_EACH, ['slot:tmp'], true).flatMap((rule) => rule.rights);
    expect(granted).not.toContain('make_char');
    expect(granted).not.toContain('make_block');
  });
});

describe('the rules of what belongs to the command', () => {
  const paths = (namespaces: boolean, sharedMemory: boolean) => {
    const used = mechanismsOf(policyWith({}), hostWith({ abi: 6, namespaces, seccomp: true }));
    return landlockRules(used, [], ['slot:tmp'], sharedMemory).map(
      (rule) => `${rule.inView ? 'view ' : ''}${rule.path}`,
    );
  };
  it('are the host’s shared memory without a view', () => {
    expect(paths(false, true)).toEqual(['slot:tmp', '/dev/shm']);
  });
  it('are private shared memory, the way to mounts, and terminals in a view', () => {
    expect(paths(true, true)).toEqual(['slot:tmp', 'shm:', 'view /', 'view /dev/pts']);
    expect(paths(true, false)).toEqual(['slot:tmp', 'view /', 'view /dev/pts']);
  });
});
