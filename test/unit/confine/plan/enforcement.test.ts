import { describe, expect, it } from 'vitest';
import { SandboxError } from '../../../../src/base/errors/sandbox-error.ts';
import { CONTROL_IDS } from '../../../../src/base/words.ts';
import { describeReport } from '../../../../src/cli/index.ts';
import { NEWEST_KNOWN_ABI } from '../../../../src/confine/kernel/landlock/rights.ts';
import { requireDemands } from '../../../../src/confine/plan/enforcement.ts';
import type { ControlId } from '../../../../src/confine/plan/enforcement-report.ts';
import type { Mechanisms, WorkspaceFindings } from '../../../../src/confine/plan/mechanisms.ts';
import type { Policy } from '../../../../src/model/index.ts';
import {
  ABIS,
  BEST_HOST,
  CONTAINER,
  HOST_KINDS,
  type HostKind,
  hostWith,
  mechanismsOf,
  NETWORKS,
  planOf,
  policyWith,
  profile,
  reportOf,
  undemanding,
} from './fixtures.ts';

const NOTHING_FOUND: WorkspaceFindings = { replaceableLinks: [] };

function reportFor(policy: Policy, kind: HostKind, found = NOTHING_FOUND) {
  const features = hostWith(kind);
  const backend = kind.abi > 0 ? 'landlock' : 'namespaces';
  return {
    used: mechanismsOf(policy, features, backend),
    report: reportOf(policy, features, backend, found),
  };
}

/** What at least has to be there for `enforced`, written down independently of the judges. */
const NEEDED: Readonly<Record<ControlId, (used: Mechanisms) => boolean>> = {
  filesystem: (used) => used.landlockAbi >= 1 || (used.view && used.ownUser && used.seccomp),
  'filesystem-view': (used) => used.view,
  rename: (used) => used.landlockAbi >= 2 || (used.landlockAbi === 0 && used.view),
  truncate: (used) => used.landlockAbi >= 3 || used.view,
  metadata: (used) => used.view,
  'protected-paths': (used) => used.view,
  // Of a policy that hides something; none of these does.
  'hidden-paths': () => true,
  'private-tmp': (used) => used.view,
  devices: (used) => used.landlockAbi >= 5,
  network: (used) => used.networkNamespace || (used.seccomp && used.inetSockets === 'refused'),
  'unix-sockets': (used) =>
    used.view || used.landlockAbi >= 9 || (used.seccomp && used.unixSockets === 'refused'),
  'abstract-sockets': (used) =>
    used.networkNamespace || used.landlockAbi >= 6 || (used.seccomp && used.unixSockets === 'refused'),
  signals: (used) => used.landlockAbi >= 6,
  'process-inspection': (used) => used.landlockAbi >= 1 || used.ownUser,
  syscalls: (used) => used.seccomp,
  'terminal-injection': (used) => used.seccomp,
  privileges: () => true,
  descriptors: () => true,
  environment: () => true,
  'process-tree': (used) => used.processTree === 'signal-scope',
  'resource-limits': () => true,
  'workspace-changes': (used) => used.view,
  denials: (used) => used.observed !== 'nothing' && used.inetSockets !== 'refused',
};

describe.each(ABIS)('the report at Landlock ABI %i', (abi) => {
  const cases = HOST_KINDS.filter((kind) => kind.abi === abi).flatMap((kind) =>
    NETWORKS.map((network) => ({ kind, network, ...reportFor(policyWith(network), kind) })),
  );

  it('has every control exactly once, in order, with a reason', () => {
    for (const { report } of cases) {
      expect(report.controls.map((control) => control.id)).toEqual(CONTROL_IDS);
      for (const control of report.controls) expect(control.reason, control.id).toMatch(/\S/);
    }
  });

  it('calls nothing enforced whose mechanism is absent', () => {
    for (const { used, report, kind, network } of cases) {
      const wrong = report.controls
        .filter((control) => control.state === 'enforced' && !NEEDED[control.id](used))
        .map((control) => control.id);
      expect(wrong, JSON.stringify({ kind, network })).toEqual([]);
    }
  });

  it('uses no mechanism that the host does not have', () => {
    for (const { used, kind } of cases) {
      expect(used.landlockAbi).toBe(Math.min(kind.abi, NEWEST_KNOWN_ABI));
      expect(used.seccomp).toBe(kind.seccomp);
      expect(used.view).toBe(kind.namespaces);
      expect(used.networkNamespace && !kind.namespaces).toBe(false);
    }
  });

  it('says off only for what the policy turned off, or nobody asked for', () => {
    for (const { report, network } of cases) {
      const off = report.controls.filter((control) => control.state === 'off').map((control) => control.id);
      expect(off).toEqual([
        'hidden-paths',
        ...(network.mode === 'open' ? ['network'] : []),
        ...(network.unixSockets === 'allowed' ? ['unix-sockets'] : []),
        // Nobody asked for a preview.
        'workspace-changes',
      ]);
    }
  });

  it('does not change without notice', async () => {
    const text = [true, false]
      .flatMap((namespaces) =>
        [true, false].map((seccomp) => {
          const { report } = reportFor(profile('workspace-write'), { abi, namespaces, seccomp });
          const title = `${namespaces ? 'with' : 'without'} namespaces, ${seccomp ? 'with' : 'without'} seccomp`;
          return `# ${title}\n${describeReport(report)}`;
        }),
      )
      .join('\n');
    await expect(text).toMatchFileSnapshot(`../../../golden/report-abi-${String(abi).padStart(2, '0')}.txt`);
  });
});

describe('more of the host', () => {
  const RANK = { off: 0, unsupported: 0, degraded: 1, enforced: 2 } as const;
  it.each(NETWORKS)('never weakens a control: %o', (network) => {
    const ranks = (kind: HostKind) =>
      reportFor(policyWith(network), kind).report.controls.map((control) => RANK[control.state]);
    for (const kind of HOST_KINDS) {
      const weaker = [
        ...(kind.abi > 0 ? [{ ...kind, abi: kind.abi - 1 }] : []),
        ...(kind.namespaces ? [{ ...kind, namespaces: false }] : []),
        ...(kind.seccomp ? [{ ...kind, seccomp: false }] : []),
      ];
      const mine = ranks(kind);
      for (const less of weaker) {
        const lost = ranks(less).flatMap((rank, at) => (rank > (mine[at] ?? 0) ? [CONTROL_IDS[at]] : []));
        // Where all unix sockets are refused, abstract ones and those in the workspace are too; a mechanism that lets
        // own sockets by path work again gives that up.
        // Landlock 1 refuses every rename between directories; a kernel without it, where mounts hold, does not.
        const renames = less.abi === 0 && kind.abi === 1 ? ['rename'] : [];
        const tradedIn = lost.filter(
          (id) => !['abstract-sockets', 'unix-sockets', ...renames].some((known) => known === id),
        );
        expect(tradedIn, JSON.stringify({ kind, less })).toEqual([]);
      }
    }
  });
});

describe('an ABI newer than known', () => {
  it('is used as the newest known one, and the report says so', () => {
    const { used, report } = reportFor(policyWith({}), { abi: 99, namespaces: true, seccomp: true });
    expect(used.landlockAbi).toBe(NEWEST_KNOWN_ABI);
    expect(report.controls[0]?.reason).toContain('the kernel has 99, newer than this version');
  });
});

describe('links on the way to protected paths', () => {
  it('weaken the protection, and the report names them', () => {
    const kind = { abi: 11, namespaces: true, seccomp: true };
    const { report } = reportFor(policyWith({}), kind, { replaceableLinks: ['/w/.git'] });
    const control = report.controls.find((candidate) => candidate.id === 'protected-paths');
    expect(control?.state).toBe('degraded');
    expect(control?.reason).toContain('/w/.git');
  });
});

describe('requireDemands', () => {
  it.each(CONTROL_IDS)('refuses a host that does not enforce %s where it is required, and names it', (id) => {
    const policy: Policy = { ...policyWith({}), demand: { [id]: 'required' } };
    for (const kind of HOST_KINDS) {
      const { report } = reportFor(policy, kind);
      const state = report.controls.find((control) => control.id === id)?.state;
      let refusal: unknown;
      try {
        requireDemands(report);
      } catch (error) {
        refusal = error;
      }
      if (state === 'enforced' || state === 'off') {
        expect(refusal).toBeUndefined();
        continue;
      }
      expect(refusal).toBeInstanceOf(SandboxError);
      expect(refusal).toMatchObject({
        code: 'enforcement.unavailable',
        exitStatus: 126,
        message: expect.stringMatching(new RegExp(`^${id} cannot be enforced here: .*demand\\.${id} = `)),
      });
    }
  });

  it('lets best effort pass on the poorest host', () => {
    const poorest = { abi: 0, namespaces: false, seccomp: false };
    expect(() => requireDemands(reportFor(undemanding(policyWith({})), poorest).report)).not.toThrow();
  });
});

describe('the default policy', () => {
  it.each(HOST_KINDS.filter((kind) => kind.abi === 0 && !(kind.namespaces && kind.seccomp)))(
    'refuses a host without Landlock where namespaces and seccomp do not take its place: %o',
    (kind) => {
      expect(() => planOf({ features: hostWith(kind), backend: 'namespaces' })).toThrow(
        /^filesystem cannot be enforced here: /,
      );
    },
  );

  it.each(['application'] as const)('refuses a host that is left with less: %s', (backend) => {
    const features = hostWith({ abi: 0, namespaces: false, seccomp: true });
    expect(() => planOf({ features, backend })).toThrow(/^filesystem cannot be enforced here: /);
  });

  it('refuses a host that cannot keep the network off', () => {
    const features = hostWith({ abi: 11, namespaces: false, seccomp: false });
    expect(() => planOf({ features })).toThrow(/^network cannot be enforced here: /);
  });

  it('refuses a host where only AF_VSOCK would stay open', () => {
    const features = hostWith({ abi: 11, namespaces: true, seccomp: false });
    expect(() => planOf({ features })).toThrow(/^network cannot be enforced here: .*AF_VSOCK/);
  });

  it.each(HOST_KINDS.filter((kind) => kind.abi > 0 && kind.seccomp))(
    'runs on every other host: %o',
    (kind) => {
      const { report } = planOf({ features: hostWith(kind) });
      for (const control of report.controls.filter((candidate) => candidate.demand === 'required'))
        expect(control.state, control.id).toBe(control.id === 'hidden-paths' ? 'off' : 'enforced');
    },
  );
});

describe('chooseMechanisms', () => {
  it('isolates the network in a namespace, refuses sockets without one, and leaves an open one alone', () => {
    const inetOf = (mode: 'off' | 'open', features = BEST_HOST) =>
      mechanismsOf(policyWith({ mode }), features).inetSockets;
    expect(inetOf('off')).toBe('isolated');
    expect(inetOf('off', CONTAINER)).toBe('refused');
    expect(inetOf('open')).toBe('open');
    expect(inetOf('open', CONTAINER)).toBe('open');
  });

  it.each([
    [8, false, 'contained', 'refused'],
    [8, false, 'allowed', 'allowed'],
    [8, true, 'contained', 'allowed'],
    [9, false, 'contained', 'allowed'],
  ] as const)('ABI %i, view %s, %s: unix sockets are %s', (abi, namespaces, unixSockets, expected) => {
    const features = hostWith({ abi, namespaces, seccomp: true });
    expect(mechanismsOf(policyWith({ unixSockets }), features).unixSockets).toBe(expected);
  });
});

describe('what a backend cannot hold by its nature', () => {
  const features = hostWith({ abi: 0, namespaces: false, seccomp: true });
  const under = (sandbox: Partial<Policy['sandbox']>, demand = policyWith({}).demand) => {
    const policy = policyWith({});
    return planOf({
      features,
      backend: 'application',
      policy: { ...policy, demand, sandbox: { ...policy.sandbox, ...sandbox } },
    });
  };

  it('is accepted where the operator named it, or a weaker one', () => {
    const { controls } = under({ accepted: 'application' }).report;
    expect(controls.find(({ id }) => id === 'filesystem')).toMatchObject({
      state: 'unsupported',
      demand: 'best-effort',
    });
  });

  it('is not where a stronger one was named', () => {
    expect(() => under({ accepted: 'firejail' })).toThrow(/^filesystem cannot be enforced here/);
  });

  it('is not where a policy file requires it', () => {
    expect(() => under({ accepted: 'application', demandedByFiles: ['network'] })).toThrow(
      /^network cannot be enforced here/,
    );
  });

  it('is nothing else: what it could hold stays required', () => {
    const demand = { ...policyWith({}).demand, 'protected-paths': 'required' } as const;
    expect(() => under({ accepted: 'application' }, demand)).toThrow(/^protected-paths cannot/);
  });
});

describe('hidden paths', () => {
  const policy = profile('workspace-write');
  const hiding = { ...policy, filesystem: { ...policy.filesystem, hide: ['.env'] } };
  const BEST = { abi: 11, namespaces: true, seccomp: true };
  const found = (paths: readonly string[], elsewhere: readonly string[] = []) => ({
    ...NOTHING_FOUND,
    hidden: { paths, elsewhere },
  });
  it.each([
    ['landlock', true, [], [], 'enforced'],
    ['landlock', true, ['/w/.env'], [], 'enforced'],
    ['landlock', true, ['/w/.env'], ['/w/.env'], 'degraded'],
    ['landlock', false, [], [], 'enforced'],
    ['landlock', false, ['/w/.env'], [], 'unsupported'],
    ['namespaces', true, ['/w/.env'], [], 'enforced'],
    ['firejail', false, ['/w/.env'], [], 'enforced'],
    ['firejail', false, ['/w/.env'], ['/w/.env'], 'degraded'],
    ['application', true, [], [], 'enforced'],
    ['application', true, ['/w/.env'], [], 'unsupported'],
  ] as const)(
    'under %s (namespaces: %s) with %j and other names of %j are %s',
    (backend, namespaces, paths, elsewhere, state) => {
      const features = hostWith({ ...BEST, namespaces });
      const accepting = { ...hiding, sandbox: { ...hiding.sandbox, accepted: backend } };
      const report = reportOf(accepting, features, backend, found(paths, elsewhere));
      const control = report.controls.find(({ id }) => id === 'hidden-paths');
      // Also where the backend was named: nobody who names one accepts that a secret is shown.
      expect(control).toMatchObject({ state, demand: 'required' });
      if (state === 'enforced') return;
      const only = { ...report, controls: report.controls.filter(({ id }) => id === 'hidden-paths') };
      expect(() => requireDemands(only)).toThrow('hidden-paths cannot be enforced here');
    },
  );

  it('are off where the policy hides nothing', () => {
    const { report } = reportFor(policy, BEST);
    expect(report.controls).toContainEqual(expect.objectContaining({ id: 'hidden-paths', state: 'off' }));
  });
});
