import { describe, expect, it } from 'vitest';
import { CONTROL_IDS } from '../../src/base/words.ts';
import {
  ATTACKS,
  type Attack,
  attackHost,
  doctorAttack,
  examineHost,
  type Place,
  type Prepare,
} from '../../src/cli/index.ts';
import type { Backend } from '../../src/confine/index.ts';
import type { AttackReport, ControlId, HostFeatures, LaunchPlan } from '../../src/model/index.ts';
import { BACKENDS, type PreparedSandbox, prepareSandbox } from '../../src/run/index.ts';
import { OF_THIS_PROCESS } from '../../src/workspace/index.ts';
import { SLOW_HOST } from '../support/slow-host.ts';
import { HOST, OLDER_TIERS, rowsFor, TIERS, type Tier, WITHOUT_VIEW } from '../support/tiers.ts';

/** Time is what the limited ones are about; the others take none. */
const QUICK = ATTACKS.filter(({ manner }) => manner !== 'limited');

/**
 * Those that take next to no time: something that is hidden has to be two seconds old before a command runs, and where the
 * network is listed there are races.
 */
const AT_ONCE = QUICK.filter(({ manner, control }) => manner !== 'listed' && control !== 'hidden-paths');

/** Those against some controls, and but on a slow host all others that take no time: nothing else may be said to escape. */
const against = (...controls: readonly ControlId[]) =>
  QUICK.filter(
    (attack) =>
      (controls.includes(attack.control) && attack.manner !== 'listed') ||
      (!SLOW_HOST && AT_ONCE.includes(attack)),
  );

/** Controls that are held by other means at another level of Landlock, or without a view. */
const BY_TIER: readonly ControlId[] = [
  ...(['filesystem', 'filesystem-view', 'rename', 'truncate', 'metadata', 'devices', 'network'] as const),
  ...(['unix-sockets', 'abstract-sockets', 'signals', 'process-inspection', 'process-tree'] as const),
  ...(['private-tmp', 'protected-paths', 'workspace-changes', 'denials'] as const),
];

/** All attacks on the strongest tier; on others those whose control is held by other means there, and some of the rest. */
const attacksOn = (tier: Tier) =>
  rowsFor(tier, QUICK, ({ control, manner }) => manner !== 'listed' && BY_TIER.includes(control));

const attackWith = (prepare: Prepare, attacks: readonly Attack[] = QUICK): Promise<AttackReport> =>
  attackHost({
    sandbox: {},
    around: OF_THIS_PROCESS,
    examine: examineHost,
    signal: new AbortController().signal,
    prepare,
    attacks,
  });

const escapedOf = ({ controls }: AttackReport) =>
  controls.filter(({ result }) => result === 'escaped').map(({ id }) => id);

/** The sandbox of another plan, with the report of the one that was asked for. */
const withPlan =
  (
    change: (plan: LaunchPlan) => LaunchPlan,
    asIf: (host: HostFeatures) => HostFeatures = (host) => host,
  ): Prepare =>
  async (options, around) => {
    const backends = BACKENDS.map(
      (backend): Backend => ({
        ...backend,
        confinement: (plan, ...on) => backend.confinement(change(plan), ...on),
      }),
    );
    const prepared = await prepareSandbox(options, around, asIf, backends);
    return { ...prepared, plan: { ...change(prepared.plan), report: prepared.plan.report } };
  };

const withoutView: Prepare = async (options, around) => {
  const weak = await prepareSandbox(options, around, WITHOUT_VIEW.asIf);
  const strong = await prepareSandbox(options, around);
  strong.confinement.close();
  // What is written is not undone either.
  return { ...weak, settle: () => [], plan: { ...weak.plan, report: strong.plan.report } };
};

const passing: Prepare = async (options, around): Promise<PreparedSandbox> => {
  const prepared = await prepareSandbox(options, around);
  const { environment } = prepared.policy;
  const pass = [...environment.pass, 'SANDBOX_RUN_DOCTOR_SECRET'];
  return { ...prepared, policy: { ...prepared.policy, environment: { ...environment, pass } } };
};

const NO_END = Number.MAX_SAFE_INTEGER;
/** A control group takes no more than the kernel can have. */
const MANY_PROCESSES = 2 ** 20;

describe('a sandbox whose report claims too much', () => {
  it('is attacked in each control', () => {
    const attacked = new Set(ATTACKS.map(({ control }) => control));
    expect(CONTROL_IDS.filter((id) => !attacked.has(id))).toEqual([]);
    expect(new Set(ATTACKS.map(({ id }) => id)).size).toBe(ATTACKS.length);
  });

  // Without Landlock and a view there is no sandbox of the kernel's left that could lack something.
  const viewIsOne = HOST.namespaces && HOST.landlockAbi > 0;
  it.runIf(viewIsOne)('is found out if it lacks a view, with namespaces (from ABI 1)', async () => {
    const lost = ['filesystem-view', 'metadata', 'protected-paths', 'private-tmp'] as const;
    expect(escapedOf(await attackWith(withoutView, against(...lost)))).toEqual(lost);
  });

  it.runIf(HOST.namespaces)('is found out if a preview changes the workspace (with namespaces)', async () => {
    const prepare: Prepare = async (options, around) => ({
      ...(await prepareSandbox(options, around)),
      withLayer: () => prepareSandbox(options, around),
    });
    const report = await attackWith(prepare, against('workspace-changes', 'filesystem'));
    expect(escapedOf(report)).toEqual(['workspace-changes']);
  });

  it('is found out if nobody looks at what it denies', async () => {
    const prepare = withPlan((plan) => ({ ...plan, observed: 'nothing' }));
    const report = await attackWith(prepare, against('denials', 'filesystem'));
    // Nothing got out, and yet it is not what the report says.
    expect(report.controls.find(({ id }) => id === 'denials')?.result).toBe('failed');
    expect(escapedOf(report)).toEqual([]);
  });

  it('is not said to have told nobody of a denial where the calls could not be looked at', async () => {
    const attack = ATTACKS.find(({ id }) => id === 'go-untold');
    const staged = attack?.stage({ inSandbox: true, outside: '/outside' } as Place);
    const path = staged?.move[1] ?? '';
    const refused = { ok: false, text: 'ENOENT' };
    const worked = async (objects: readonly string[], isIncomplete: boolean) =>
      staged?.worked?.(refused, { objects, isIncomplete });
    expect(await worked([], false)).toBe(true);
    expect(await worked([path], true)).toBe(false);
    await expect(worked([], true)).rejects.toThrow('could not be looked at');
  });

  it.runIf(HOST.namespaces)('is found out if it shows what it hides (with namespaces)', async () => {
    const prepare = withPlan(({ namespaces, ...plan }) => ({
      ...plan,
      namespaces: namespaces && {
        ...namespaces,
        view: namespaces.view.filter(({ kind }) => kind !== 'emptied'),
      },
    }));
    expect(escapedOf(await attackWith(prepare, against('hidden-paths')))).toEqual(['hidden-paths']);
  });

  it.runIf(HOST.namespaces)('is found out if it lacks a network of its own (with namespaces)', async () => {
    const prepare = withPlan((plan) => ({
      ...plan,
      namespaces: plan.namespaces === undefined ? undefined : { ...plan.namespaces, network: false },
    }));
    // The scope of abstract sockets came with ABI 6; below it nothing else keeps commands from them.
    const lost = HOST.landlockAbi >= 6 ? (['network'] as const) : (['network', 'abstract-sockets'] as const);
    expect(escapedOf(await attackWith(prepare, against('network', 'abstract-sockets')))).toEqual(lost);
  });

  const LISTED = ATTACKS.filter(({ manner }) => manner === 'listed');
  const ofNetwork = ({ controls }: AttackReport) =>
    controls.find(({ id }) => id === 'network')?.attacks.filter(({ result }) => result !== 'not-tried') ?? [];
  const whereListed = (change: (plan: LaunchPlan) => LaunchPlan): Prepare =>
    withPlan((plan) => (plan.networkRules === undefined ? plan : change(plan)));
  const open = whereListed((plan) => ({
    ...plan,
    ...{ network: 'open', networkRules: undefined, landlock: { ...plan.landlock, handledNetwork: [] } },
    namespaces: plan.namespaces === undefined ? undefined : { ...plan.namespaces, network: false },
  }));
  const nothing = { names: [], addresses: [], apart: [], verify: 'none', looksInside: false } as const;
  const shut = whereListed((plan) => ({ ...plan, networkRules: nothing }));

  it('is found out if a network that lists something is open', async () => {
    const attacks = ofNetwork(await attackWith(open, LISTED));
    const escaped = attacks.filter(({ result }) => result === 'escaped').map(({ id }) => id);
    const races = ['turn-connection', 'pass-socket', 'flip-address', 'swap-descriptor'];
    expect(escaped).toEqual(expect.arrayContaining(['unlisted-tcp', 'unlisted-udp', ...races]));
  });

  it('has nothing shown of it where not even what is listed is reached', async () => {
    const attacks = ofNetwork(await attackWith(shut, LISTED));
    expect(attacks.length).toBeGreaterThan(10);
    for (const { id, result, detail } of attacks)
      expect([id, result, detail]).toEqual([id, 'failed', expect.stringContaining('not reached either')]);
  });

  it('is found out if it lacks the filter of system calls', async () => {
    const report = await attackWith(
      withPlan((plan) => ({ ...plan, seccompGroups: [] })),
      against('syscalls'),
    );
    expect(escapedOf(report)).toEqual(expect.arrayContaining(['syscalls']));
  });

  it.runIf(HOST.landlockAbi >= 6)('is found out if it lacks the scope of signals (from ABI 6)', async () => {
    const report = await attackWith(
      // With it, what ends the tree is in a scope of its own, and the command with it.
      withPlan(
        (plan) => ({ ...plan, landlock: { ...plan.landlock, scoped: [] } }),
        (host) => ({ ...host, signalScope: false }),
      ),
      against('signals'),
    );
    expect(escapedOf(report)).toContain('signals');
  });

  it('is found out if it passes a variable on, and the program ends with 1', async () => {
    const printed: string[] = [];
    const status = await doctorAttack({
      sandbox: {},
      json: false,
      prepare: passing,
      attacks: against('environment'),
      print: (text) => printed.push(text),
    });
    expect(status).toBe(1);
    expect(printed.join()).toMatch(/^sandbox-run [^\n]*ESCAPED/);
    expect(printed.join()).toMatch(/environment +enforced +escaped/);
    expect(printed.join()).toMatch(/escaped +read-variable/);
  });

  it('is found out if it holds no limits', async () => {
    const prepare = withPlan((plan) => ({
      ...plan,
      treeLimits: { ...plan.treeLimits, memoryBytes: NO_END, processes: MANY_PROCESSES, tmpBytes: NO_END },
    }));
    const limits = ATTACKS.filter(({ control }) => control === 'resource-limits');
    const report = await attackWith(prepare, limits);
    const { attacks = [] } = report.controls.find(({ id }) => id === 'resource-limits') ?? {};
    // Where nothing but samples holds them, a busy machine looks the same.
    const isSampled = report.controls.find(({ id }) => id === 'resource-limits')?.claimed !== 'enforced';
    const result = isSampled ? 'failed' : 'escaped';
    expect(attacks.map((attack) => attack.result)).toEqual([result, result, result]);
    expect(report.controls.find(({ id }) => id === 'resource-limits')?.result).toBe(result);
  });
});

describe('what each tier claims holds', () => {
  it.each([...TIERS, ...OLDER_TIERS])('$name', async (tier) => {
    const report = await attackWith(
      (options, around) => prepareSandbox(options, around, tier.asIf),
      attacksOn(tier),
    );
    expect(report.problem).toBeNull();
    expect(escapedOf(report)).toEqual([]);
    const failed = report.controls.flatMap(({ attacks }) =>
      attacks.filter(({ result }) => result === 'failed'),
    );
    expect(failed).toEqual([]);
  });
});
