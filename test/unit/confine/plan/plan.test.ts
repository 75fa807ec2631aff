import { describe, expect, it } from 'vitest';
import { confinementSpec } from '../../../../src/confine/backends/confinement-spec.ts';
import {
  FILE_RIGHTS,
  maskOf,
  NETWORK_RIGHTS,
  SCOPES,
} from '../../../../src/confine/kernel/landlock/rights.ts';
import { generatedProgram } from '../../../../src/confine/kernel/seccomp/program.ts';
import {
  BEST_HOST,
  CONTAINER,
  fakeLookup,
  GROUPS,
  HOST_KINDS,
  hostWith,
  NETWORKS,
  planOf,
  policyOfRules,
  policyWith,
  profile,
  rule,
  undemanding,
} from './fixtures.ts';

const accessOf = (plan: ReturnType<typeof planOf>) =>
  Object.fromEntries(plan.paths.map((path) => [path.path, path.access]));

describe('a plan', () => {
  it.each(HOST_KINDS)('uses what the host has and nothing else: %o', (kind) => {
    for (const network of NETWORKS) {
      const plan = planOf({ policy: undemanding(policyWith(network)), features: hostWith(kind) });
      expect(plan.namespaces !== undefined).toBe(kind.namespaces);
      expect(plan.namespaces?.network ?? false).toBe(kind.namespaces && network.mode === 'off');
      expect(plan.seccompGroups.length > 0).toBe(kind.seccomp);
      expect(plan.landlock.rules.length > 0).toBe(kind.abi > 0);
      expect(plan.landlock.rules.some((one) => one.inView)).toBe(kind.abi > 0 && kind.namespaces);
    }
  });

  it.each(HOST_KINDS.filter(({ seccomp, abi }) => seccomp && abi > 0))(
    'has a seccomp program that was assembled beforehand: %o',
    (kind) => {
      for (const network of NETWORKS) {
        const { seccompGroups } = planOf({
          policy: undemanding(policyWith(network)),
          features: hostWith(kind),
        });
        expect({ network, found: generatedProgram(seccompGroups, 'x64') !== undefined }).toEqual({
          network,
          found: true,
        });
      }
    },
  );

  it.each(HOST_KINDS)('gives the kernel no bit that its ABI does not have: %o', async (kind) => {
    const known = (table: readonly { name: string; bit: bigint; sinceAbi: number }[]) =>
      maskOf(
        table,
        table.filter((row) => row.sinceAbi <= kind.abi).map((row) => row.name),
      );
    const onFiles = maskOf(
      FILE_RIGHTS,
      FILE_RIGHTS.filter((row) => row.validOn === 'any').map((row) => row.name),
    );
    for (const network of NETWORKS) {
      const plan = planOf({ policy: undemanding(policyWith(network)), features: hostWith(kind) });
      const { landlock, rules } = await confinementSpec(plan, { architecture: 'x64' });
      expect(landlock.handledFs & ~known(FILE_RIGHTS)).toBe(0n);
      expect(landlock.handledNet & ~known(NETWORK_RIGHTS)).toBe(0n);
      expect(landlock.scoped & ~known(SCOPES)).toBe(0n);
      for (const one of rules) {
        expect(one.directoryAccess & ~landlock.handledFs).toBe(0n);
        expect(one.fileAccess & ~(one.directoryAccess & onFiles)).toBe(0n);
      }
    }
  });
});

describe('where the private directories are', () => {
  it('is the usual place in a view, and known only at the launch without one', () => {
    expect(planOf()).toMatchObject({
      home: '/home/user',
      homes: ['/home/user'],
      tmp: '/tmp',
      memoryParent: '/dev/shm',
      slotDirectories: ['slot:tmp', 'slot:home'],
    });
    expect(planOf({ features: CONTAINER })).toMatchObject({
      home: 'slot:home',
      tmp: 'slot:tmp',
      memoryParent: undefined,
    });
  });

  describe('where commands can have none of their own', () => {
    const container = { features: CONTAINER, parentBesideTmp: () => '/var/tmp' };
    const rightsOf = (plan: ReturnType<typeof planOf>) =>
      plan.landlock.rules.find(({ path }) => path === '/tmp')?.rights;

    it('is /tmp itself beside a private directory elsewhere, without the sockets in it', () => {
      const plan = planOf(container);
      expect(accessOf(plan)['/tmp']).toBe('write');
      expect(rightsOf(plan)).toContain('make_reg');
      expect(rightsOf(plan)).not.toContain('resolve_unix');
      expect(plan).toMatchObject({ temporaryParent: '/var/tmp', tmp: 'slot:tmp' });
    });

    it.each([
      ['there is no other place for private directories', { parentBesideTmp: () => undefined }],
      ['a path that is only read lies in it', { policy: policyOfRules([rule('/tmp/data', 'data')]) }],
      ['the workspace lies in it', { workspace: '/tmp/w', workspaceAsNamed: '/tmp/w' }],
      ['the state lies in it', { own: [{ path: '/tmp/state', kind: 'state' as const }] }],
      ['the policy keeps it private', { policy: policyOfRules([], { tmp: 'private' }) }],
      ['there is none', { lookup: fakeLookup({ '/w/.git': 'missing', '/tmp': 'missing' }) }],
    ])('is shut where %s', (_, changes) => {
      const plan = planOf({ ...container, ...changes });
      expect([accessOf(plan)['/tmp'], rightsOf(plan)]).toEqual([undefined, undefined]);
      const reason = plan.report.controls.find(({ id }) => id === 'private-tmp')?.reason;
      expect(reason).toContain('/tmp itself is refused (');
    });

    it('is not touched where there is a view, nor by backends that hold no paths', () => {
      for (const plan of [
        planOf({ parentBesideTmp: () => '/var/tmp' }),
        planOf({ ...container, backend: 'application', policy: undemanding(profile('workspace-write')) }),
      ])
        expect([accessOf(plan)['/tmp'], plan.temporaryParent]).toEqual([undefined, '/tmp']);
    });
  });

  it.each([BEST_HOST, CONTAINER])('is the host’s own where the policy shares it', (features) => {
    const policy = policyOfRules([], { tmp: 'host', home: 'host' });
    const plan = planOf({ policy, features });
    expect(plan).toMatchObject({
      home: '/home/user',
      tmp: '/tmp',
      slotDirectories: [],
      seedFiles: [],
      memoryParent: undefined,
    });
    expect(accessOf(plan)).toEqual({ '/w': 'write', '/tmp': 'write', '/home/user': 'write' });
  });
});

describe('the paths of a plan', () => {
  it('have the workspace, as the profile says', () => {
    expect(accessOf(planOf({ policy: policyOfRules([]) }))).toEqual({ '/w': 'write' });
    expect(accessOf(planOf({ policy: profile('read-only') }))['/w']).toBe('read');
  });

  it('are canonical, and the links on the way are kept for the view', () => {
    const plan = planOf({
      policy: policyOfRules([rule('/bin', 'read'), rule('/lib', 'read'), rule('/usr', 'read')]),
      lookup: fakeLookup({
        '/bin': { link: '/usr/bin' },
        '/lib': { link: '/usr/lib' },
        '/w/.git': 'missing',
      }),
    });
    expect(accessOf(plan)).toEqual({ '/usr/bin': 'read', '/usr/lib': 'read', '/usr': 'read', '/w': 'write' });
    const links = plan.namespaces?.view.filter((step) => step.kind === 'symlink').map((step) => step.target);
    expect(links).toEqual(expect.arrayContaining(['/bin', '/lib']));
  });

  it('recreate each link once, however many paths lead through it', () => {
    const plan = planOf({
      policy: policyOfRules([rule('/l/a', 'read'), rule('/l/b', 'read')]),
      lookup: fakeLookup({ '/l': { link: '/real' }, '/w/.git': 'missing' }),
    });
    expect(plan.namespaces?.view.filter((step) => step.target === '/l')).toHaveLength(1);
  });

  it('keep the name of the workspace as the user gave it', () => {
    const plan = planOf({
      policy: policyOfRules([]),
      workspaceAsNamed: '/home/user/w',
      lookup: fakeLookup({ '/home/user/w': { link: '/w' }, '/w/.git': 'missing' }),
    });
    expect(accessOf(plan)).toEqual({ '/w': 'write' });
    expect(plan.namespaces?.view).toContainEqual({ kind: 'symlink', content: '/w', target: '/home/user/w' });
  });

  it.each([
    ['data', 'read', 'read'],
    ['read', 'data', 'read'],
    ['read', 'write', 'write'],
    ['write', 'read', 'write'],
    ['device', 'data', 'device'],
    ['device', 'write', 'write'],
  ] as const)('that are granted as %s and as %s are %s', (one, other, expected) => {
    const policy = policyOfRules([rule('/p', one), rule('/alias', other)]);
    const plan = planOf({
      policy,
      lookup: fakeLookup({ '/alias': { link: '/p' }, '/w/.git': 'missing' }),
    });
    expect(accessOf(plan)['/p']).toBe(expected);
  });

  it('leave out an optional one that is missing, and refuse a required one by name', () => {
    const lookup = fakeLookup({ '/gone': 'missing', '/w/.git': 'missing' });
    const withRule = (required: boolean) =>
      planOf({ policy: policyOfRules([rule('/gone', 'read', required)]), lookup });
    expect(accessOf(withRule(false))).toEqual({ '/w': 'write' });
    expect(() => withRule(true)).toThrow(
      expect.objectContaining({
        code: 'policy.path_missing',
        message: expect.stringContaining('the policy requires /gone, which does not exist'),
      }),
    );
  });
});

describe('a read-only path inside a writable one', () => {
  const inside = (access: 'data' | 'read' | 'write' | 'device', outer = '/w') =>
    policyOfRules([rule(`${outer}/inner`, access), rule(outer, 'write')]);

  it.each(['data', 'read'] as const)('(%s) is refused without a view: it would be writable', (access) => {
    expect(() => planOf({ policy: inside(access), features: CONTAINER })).toThrow(
      expect.objectContaining({
        code: 'policy.read_only_inside_writable',
        message: expect.stringContaining('/w/inner is read-only inside the writable /w'),
      }),
    );
  });

  it('is found behind a link', () => {
    const policy = policyOfRules([rule('/alias', 'read')]);
    const lookup = fakeLookup({ '/alias': { link: '/w/inner' }, '/w/.git': 'missing' });
    expect(() => planOf({ policy, lookup, features: CONTAINER })).toThrow(/inside the writable/);
  });

  it('is a mount of its own in a view', () => {
    expect(planOf({ policy: inside('read') }).namespaces?.view).toContainEqual(
      expect.objectContaining({ kind: 'bind', target: '/w/inner', writable: false }),
    );
  });

  it.each([
    ['write', inside('write')],
    ['device', inside('device')],
    ['beside it', policyOfRules([rule('/w-other', 'read')])],
    ['around it', policyOfRules([rule('/', 'read')])],
  ])('is no matter otherwise: %s', (_, policy) => {
    expect(() => planOf({ policy, features: CONTAINER })).not.toThrow();
  });
});

describe('protected paths', () => {
  const policy = policyOfRules([], { protect: ['.git/hooks', '.envrc', 'sub/x'] });

  it('are those of the workspace, existing or not', () => {
    const lookup = fakeLookup({ '/w/.envrc': 'missing' });
    expect(planOf({ policy, lookup }).protectedPaths).toEqual(['/w/.git/hooks', '/w/.envrc', '/w/sub/x']);
  });

  it('are none where the workspace is not writable', () => {
    const readOnly = policyOfRules([], { protect: ['.git/hooks'], workspaceAccess: 'read' });
    expect(planOf({ policy: readOnly }).protectedPaths).toEqual([]);
  });

  it('include a `.git` that is a file, as in a worktree', () => {
    const lookup = fakeLookup({ '/w/.git': 'file' });
    expect(planOf({ policy, lookup, obeyed: ['/w/.git'] }).protectedPaths).toContain('/w/.git');
  });

  it('are followed through links inside the workspace, and the report says that the link can be replaced', () => {
    const plan = planOf({ policy, lookup: fakeLookup({ '/w/sub': { link: '/w/real' } }) });
    expect(plan.protectedPaths).toContain('/w/real/x');
    const control = plan.report.controls.find((one) => one.id === 'protected-paths');
    expect(control).toMatchObject({ state: 'degraded', reason: expect.stringContaining('/w/sub') });
  });

  it('are left out where a link leads outside, which a command cannot write anyway', () => {
    const plan = planOf({ policy, lookup: fakeLookup({ '/w/sub': { link: '/elsewhere' } }) });
    expect(plan.protectedPaths).toEqual(['/w/.git/hooks', '/w/.envrc']);
  });
});

describe('limits', () => {
  it('are named as the kernel names them; those not set are left alone', () => {
    const { limits, ...rest } = policyOfRules([]);
    const policy = {
      ...rest,
      limits: {
        ...limits,
        coreSize: 0,
        userProcesses: 5,
        openFiles: 6,
        fileSize: 7,
        addressSpace: 8,
        cpuSeconds: 9,
      },
    };
    const all = planOf({ policy }).limits.map(({ name, value }) => `${name}=${value}`);
    expect(all).toEqual(['core=0', 'nproc=5', 'nofile=6', 'fsize=7', 'as=8', 'cpu=10']);
    expect(planOf().limits).toEqual([{ name: 'core', value: 0 }]);
  });

  it('of the tree are those of the policy, and four fifths of the memory of the host', () => {
    const { limits, ...rest } = policyOfRules([]);
    const asked = { memory: 1, processes: 2, cpuSeconds: 3, tmpBytes: 4, idleTimeoutMs: 5 };
    expect(planOf({ policy: { ...rest, limits: { ...limits, ...asked } } }).treeLimits).toEqual({
      memoryBytes: 1,
      processes: 2,
      cpuSeconds: 3,
      tmpBytes: 4,
      idleTimeoutMs: 5,
      cgroup: undefined,
    });
    expect(planOf().treeLimits).toEqual({
      memoryBytes: 8_000_000_000,
      processes: 4096,
      cpuSeconds: undefined,
      tmpBytes: undefined,
      idleTimeoutMs: undefined,
      cgroup: undefined,
    });
  });

  it('are held by control groups where they can be made', () => {
    const features = hostWith({ abi: 6, namespaces: true, seccomp: true, cgroup: true });
    const plan = planOf({ features });
    expect(plan.treeLimits.cgroup).toEqual(GROUPS);
    expect(plan.report.controls.find(({ id }) => id === 'resource-limits')).toMatchObject({
      state: 'enforced',
      reason: 'memory, processes of the tree by control group; each process by rlimits',
    });
  });
});

describe('what is hidden', () => {
  const policy = { ...profile('workspace-write') };
  const hiding = { ...policy, filesystem: { ...policy.filesystem, hide: ['.env'] } };
  const hidden = { paths: ['/w/.env', '/usr/share/x', '/elsewhere/.env'], elsewhere: [] };

  it('is emptied where something around it is granted, and no grant in it is left', () => {
    const rules = [rule('/usr', 'read'), rule('/usr/share/x/y', 'write'), rule('/w/.env', 'read')];
    const filesystem = { ...hiding.filesystem, rules };
    const plan = planOf({ policy: { ...hiding, filesystem }, hidden });
    expect(plan.emptied).toEqual(['/w/.env', '/usr/share/x']);
    expect(plan.paths.map(({ path }) => path)).toEqual(['/usr', '/w']);
    expect(plan.slotDirectories).toContain('slot:nothing');
    expect(planOf().slotDirectories).not.toContain('slot:nothing');
  });

  it('is in no private copy', () => {
    const copied = ['/w/.git/config'];
    const files = { '/w/.git/config': 'file' } as const;
    const changes = { policy: hiding, copied, lookup: fakeLookup(files) };
    expect(planOf(changes).copies).toHaveLength(1);
    expect(planOf({ ...changes, hidden: { paths: copied, elsewhere: [] } }).copies).toEqual([]);
  });
});
