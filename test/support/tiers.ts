import { channel } from 'node:diagnostics_channel';
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withoutNamespaces } from '../../src/confine/backends/index.ts';
import { createSandbox, type PolicyFile, type Sandbox, type SandboxOptions } from '../../src/index.ts';
import type { ControlId, ControlState, EnforcementReport, HostFeatures } from '../../src/model/index.ts';
import { prepareSandbox, sandboxOn } from '../../src/run/index.ts';
import { OF_THIS_PROCESS } from '../../src/workspace/index.ts';

/** A host to run an attack on: this one, or this one as if it offered less. */
export interface Tier {
  readonly name: string;
  readonly view: boolean;
  readonly landlockAbi: number;
  readonly asIf: (host: HostFeatures) => HostFeatures;
}

/** What this host really offers, found out by making a sandbox. */
export interface RealHost {
  readonly backend: EnforcementReport['backend'];
  readonly landlockAbi: number;
  readonly namespaces: boolean;
  readonly signalScope: boolean;
  readonly root: boolean;
  /** Whether somebody filters the system calls of this process already, as Docker does. */
  readonly filtered: boolean;
  /** Whether nothing gives this process more rights, as in Docker with no-new-privileges. */
  readonly noNewPrivileges: boolean;
}

const NO_NAMESPACES = 'switched off for a test';

async function askHost(): Promise<RealHost> {
  const directory = mkdtempSync(join(realpathSync(tmpdir()), 'enforcement-probe-'));
  try {
    const sandbox = await createSandbox({ workspace: directory });
    const { plan } = sandbox;
    await sandbox.close();
    const status = readFileSync('/proc/self/status', 'utf8');
    return {
      backend: plan.report.backend,
      landlockAbi: plan.report.landlockAbi,
      namespaces: plan.namespaces !== undefined,
      signalScope: plan.report.controls.some((c) => c.id === 'process-tree' && c.state === 'enforced'),
      root: process.getuid?.() === 0,
      filtered: /^Seccomp:\s+2$/m.test(status),
      noNewPrivileges: /^NoNewPrivs:\s+1$/m.test(status),
    };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

export const HOST: RealHost = await askHost();

/** Landlock, seccomp, and a view of the sandbox's own where the host has namespaces. */
export const WITH_VIEW: Tier = {
  name: 'with namespaces',
  view: true,
  landlockAbi: HOST.landlockAbi,
  asIf: (host) => host,
};

/** What is left in default Docker. */
export const WITHOUT_VIEW: Tier = {
  name: 'without namespaces',
  view: false,
  landlockAbi: HOST.landlockAbi,
  asIf: (host) => withoutNamespaces(host, NO_NAMESPACES),
};

/** Where the older kernels themselves are there (scripts/kernel-matrix), no newer one has to stand in for them. */
export const STANDS_IN = process.env.SANDBOX_RUN_OLDER_TIERS !== '0';

/** The backend `namespaces`, as on a kernel without Landlock. */
export const WITHOUT_LANDLOCK: Tier = {
  name: 'without Landlock',
  view: true,
  landlockAbi: 0,
  asIf: (host) => ({
    ...host,
    landlock: { available: false, reason: 'switched off for a test' },
    landlockAbi: 0,
    signalScope: false,
  }),
};

/** A tier on a kernel with an older Landlock. */
export function atAbi(tier: Tier, abi: number): Tier {
  return {
    name: `${tier.name}, as on Landlock ABI ${abi}`,
    view: tier.view,
    landlockAbi: abi,
    asIf: (host) => ({
      ...tier.asIf(host),
      landlockAbi: Math.min(abi, host.landlockAbi),
      signalScope: abi >= 6 && host.signalScope,
    }),
  };
}

/**
 * With SANDBOX_RUN_TEST_TIERS=strongest, as in `npm test`, only the strongest tier of this host is tested. The other tiers
 * are tested by `npm run test:full`.
 */
export const ONLY_STRONGEST = process.env.SANDBOX_RUN_TEST_TIERS === 'strongest';

/** Every tier of this host's own kernel, strongest first; without Landlock there is no confinement outside of a view. */
const ALL_HOST_TIERS: readonly Tier[] = [
  ...(HOST.namespaces ? [WITH_VIEW] : []),
  ...(HOST.landlockAbi > 0 ? [WITHOUT_VIEW] : []),
];

/** The strongest tier of this host's own kernel: every row of every attack runs on it. */
export const STRONGEST: Tier = ALL_HOST_TIERS[0] ?? WITHOUT_VIEW;

/**
 * The tiers of this host's own kernel that are tested. Which ones a host must have is checked by declared-features.test.ts.
 */
export const HOST_TIERS: readonly Tier[] = ONLY_STRONGEST ? ALL_HOST_TIERS.slice(0, 1) : ALL_HOST_TIERS;

/** The same, and the one for which this kernel can stand in. How trees end does not depend on it: see `atAbi`. */
export const TIERS: readonly Tier[] = [
  ...HOST_TIERS,
  ...(HOST.namespaces && HOST.landlockAbi > 0 && STANDS_IN && !ONLY_STRONGEST ? [WITHOUT_LANDLOCK] : []),
];

/** Every so many rows of a table run on tiers that are not the strongest. */
const SAMPLE_STEP = 8;

/**
 * The rows of a table that run on a tier: all of them on the strongest tier of this host; on another tier every eighth row,
 * always the same ones, and those that `matters` names, because they are held by another mechanism there (a level of
 * Landlock, the view, the helper process that holds a tree together).
 */
export function rowsFor<Row>(
  tier: Tier,
  rows: readonly Row[],
  matters: (row: Row) => boolean = () => false,
): readonly Row[] {
  // Where kernels are tested one by one, each of their tiers is tested whole: nobody waits for that.
  if (tier === STRONGEST || !STANDS_IN) return rows;
  return rows.filter((row, index) => index % SAMPLE_STEP === 0 || matters(row));
}

function olderTiers(...abis: readonly number[]): readonly Tier[] {
  if (!STANDS_IN || ONLY_STRONGEST) return [];
  return HOST_TIERS.flatMap((tier) =>
    abis.filter((abi) => abi < HOST.landlockAbi).map((abi) => atAbi(tier, abi)),
  );
}

/** Below Landlock ABI 6 the tree of a command is held together by a helper process. */
export const SUBREAPER_TIERS = olderTiers(5);

/** The same at every older ABI that this host can stand in for. */
export const OLDER_TIERS = olderTiers(1, 2, 3, 4, 5, 6);

/** The oldest alone, for attacks on which no later right of Landlock has a bearing. */
export const OLDEST_TIERS = olderTiers(1);

/** Those where a listener may see the calls of commands: with a signal scope, with a warden for each, and with the least. */
export const LOOKED_AT_TIERS: readonly Tier[] = [...TIERS, ...SUBREAPER_TIERS, ...OLDEST_TIERS];

/** For whoever counts what was tried and what the report said of it (scripts/vm/tests/run.mjs). */
const sandboxes = channel('sandbox-run:test:sandbox');
const controls = channel('sandbox-run:test:control');

/** A sandbox on the tier's host. */
export async function sandboxIn(tier: Tier, options: SandboxOptions): Promise<Sandbox> {
  sandboxes.publish({ tier: tier.name });
  // An attack is to be stopped by the kernel, whatever a policy would have said about its text.
  // And by the tier, not by Firejail, which may take its place where that refuses.
  const policy = {
    unsafe: { unjudged_commands: true },
    sandbox: { minimum: 'namespaces' as const },
    ...(options.policy as PolicyFile | undefined),
  };
  if (tier === WITH_VIEW) return createSandbox({ ...options, policy });
  const wanted = { ...options, policy };
  return sandboxOn(await prepareSandbox(wanted, OF_THIS_PROCESS, tier.asIf), wanted);
}

/** What the report says about a control. */
export function stateOf(sandbox: Sandbox, id: ControlId): ControlState {
  const control = sandbox.plan.report.controls.find((candidate) => candidate.id === id);
  if (control === undefined) throw new Error(`no control ${id} in the report`);
  controls.publish({ id, state: control.state });
  return control.state;
}
