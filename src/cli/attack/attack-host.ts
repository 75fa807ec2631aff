import { join } from 'node:path';
import type { ErrorCode } from '../../base/errors/codes.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { ATTACK_RESULTS, BACKEND_IDS } from '../../base/words.ts';
import { programBesideAddon } from '../../confine/native/load.ts';
import type { Control, ControlId, EnforcementReport } from '../../confine/plan/enforcement-report.ts';
import { WITHOUT } from '../../gate/index.ts';
import type {
  AttackOutcome,
  AttackReport,
  AttackResult,
  DoctorReport,
  Remedy,
  SandboxOptions,
} from '../../model/index.ts';
import {
  closePrepared,
  type PreparedSandbox,
  prepareSandbox,
  type Sandbox,
  sandboxOn,
} from '../../run/index.ts';
import { packageVersion } from '../../version.ts';
import type { Surroundings } from '../../workspace/index.ts';
import { Arena } from './arena.ts';
import { type Attack, type Observation, SECRET_VARIABLE } from './attack.ts';
import { BYSTANDER_ATTACKS } from './bystander-attacks.ts';
import { type CarryOutParts, carryOut } from './carry-out.ts';
import { FILE_ATTACKS, HIDDEN_DIRECTORY } from './file-attacks.ts';
import { KERNEL_ATTACKS } from './kernel-attacks.ts';
import { LISTED_NETWORK_ATTACKS } from './listed-network-attacks.ts';

/** THE registry of attacks: to add one, add a row to one of these, and a move to native/attack/ if it needs a new one. */
export const ATTACKS: readonly Attack[] = [
  ...FILE_ATTACKS,
  ...BYSTANDER_ATTACKS,
  ...LISTED_NETWORK_ATTACKS,
  ...KERNEL_ATTACKS,
];

/** Makes a sandbox ready; a test gives one that has a hole. */
export type Prepare = (options: SandboxOptions, around: Surroundings) => Promise<PreparedSandbox>;

/** What the attack is made from. */
export interface AttackParts {
  /** As for a command; the workspace is one of the doctor's own. */
  readonly sandbox: Omit<SandboxOptions, 'workspace' | 'readable'>;
  /** Where the call comes from; its variables are those of this process. */
  readonly around: Surroundings;
  /** Looks at the host, for what can be done about it. */
  readonly examine: () => Promise<DoctorReport>;
  readonly signal: AbortSignal;
  readonly onProgress?: CarryOutParts['onProgress'];
  /** @internal For tests. */
  readonly prepare?: Prepare;
  /** @internal For tests. */
  readonly attacks?: readonly Attack[];
}

/** What a command would be refused for here, as well. */
const NO_SANDBOX: readonly ErrorCode[] = [
  'addon.unavailable',
  'backend.unavailable',
  'enforcement.unavailable',
  'confinement.failed',
  'launch.failed',
  'policy.read_only_inside_writable',
];

/**
 * Carries out every attack against the sandbox that a command would get here.
 * @throws {SandboxError} for what is wrong with the options, and if the attacks themselves cannot be prepared.
 */
export async function attackHost(parts: AttackParts): Promise<AttackReport> {
  // Both clean up behind themselves, whichever fails.
  const [attacked, examined] = await Promise.allSettled([attackWithin(parts), parts.examine()]);
  if (attacked.status === 'rejected') throw attacked.reason;
  if (examined.status === 'rejected') throw examined.reason;
  if (attacked.value instanceof SandboxError) return refusedReport(attacked.value);
  return reportOf(attacked.value, examined.value, parts.attacks ?? ATTACKS);
}

/** Nothing was attacked. */
function refusedReport({ code, message }: SandboxError): AttackReport {
  return {
    version: packageVersion,
    ok: false,
    problem: { code, message },
    profile: null,
    backend: null,
    passedOver: [],
    landlockAbi: null,
    controls: [],
  };
}

/** What is claimed where the network is listed, and of previews: where it cannot be held, nothing is run. */
const PROMISED = { state: 'enforced' } as const;

/** What was attacked, and what was seen of each attack. */
interface Attacked extends Pick<PreparedSandbox, 'plan' | 'policy'> {
  readonly seen: ReadonlyMap<string, Observation>;
}

function reportOf(
  { plan, policy, seen }: Attacked,
  { backend: best, remedies }: DoctorReport,
  attacks: readonly Attack[],
): AttackReport {
  const { backend, passedOver, landlockAbi } = plan.report;
  // One that was named, and need not have been.
  const stronger = best !== null && best !== backend && passedOver.length === 0 ? best : undefined;
  const controls = plan.report.controls.map((control) => {
    const outcomes = attacks
      .filter((attack) => attack.control === control.id)
      .map((attack) => {
        const what = seen.get(attack.id) ?? { kind: 'failed', reason: 'it was not carried out' };
        const isPromised = attack.manner === 'listed' || attack.manner === 'previewed';
        return judgeAttack(attack, what, isPromised ? PROMISED : control, backend);
      });
    const result = worstOf(outcomes);
    const improve = improvementFor(control, result, remedies, stronger);
    return { id: control.id, claimed: control.state, result, attacks: outcomes, improve };
  });
  const results = controls.flatMap(({ attacks: outcomes }) => outcomes.map(({ result }) => result));
  return {
    version: packageVersion,
    // Where nothing was tried, or something could not be, nothing is known.
    ok:
      !results.some((result) => result === 'escaped' || result === 'failed') &&
      results.some((result) => result !== 'not-tried'),
    problem: null,
    profile: policy.profile,
    backend,
    passedOver: passedOver.map(({ backend: id, reason }) => ({ backend: id, reason })),
    landlockAbi,
    controls,
  };
}

/** @returns as an error, why no sandbox could be made. */
async function attackWithin(parts: AttackParts): Promise<Attacked | SandboxError> {
  const program = await orRefusal(async () => programBesideAddon('sandbox-run-attack'));
  if (program instanceof SandboxError) return program;
  using arena = new Arena();
  // A sandbox looks at the environment when it is made.
  process.env[SECRET_VARIABLE] = arena.secret;
  try {
    return await attackIn(arena, program, parts);
  } finally {
    delete process.env[SECRET_VARIABLE];
  }
}

/** The limits of the sandbox for attacks of the manner `limited`. */
const LOW_LIMITS = { processes: 50, memory: 32 << 20, tmpBytes: 4 << 20 } as const;

async function attackIn(arena: Arena, program: string, parts: AttackParts): Promise<Attacked | SandboxError> {
  const { signal, onProgress, prepare: make = prepareSandbox, attacks = ATTACKS } = parts;
  const prepare = (asked: SandboxOptions) => make(asked, parts.around);
  const plain = { ...parts.sandbox, workspace: arena.workspace, readable: [program] };
  let options: SandboxOptions = { ...plain, readable: [program, arena.readable] };
  let prepared = await orRefusal(() => prepare(options));
  if (prepared instanceof SandboxError && prepared.code === 'policy.read_only_inside_writable') {
    // The policy gives write access to where the directory is, and nothing could take that away again.
    options = plain;
    prepared = await orRefusal(() => prepare(options));
  }
  const attacksHidden = attacks.some(({ control }) => control === 'hidden-paths');
  if (!(prepared instanceof SandboxError) && prepared.plan.shutsInside && attacksHidden) {
    // Something to hide is added only where it can be hidden: it must not make another sandbox of this one.
    closePrepared(prepared);
    const hide = [...(parts.sandbox.hide ?? []), `${join(arena.workspace, HIDDEN_DIRECTORY)}/`];
    options = { ...options, hide };
    prepared = await orRefusal(() => prepare(options));
  }
  if (prepared instanceof SandboxError) return prepared;
  const { plan, policy } = prepared;
  const sandbox = await attackable(prepared, options);
  const limited = { ...options, limits: LOW_LIMITS };
  const makeLimited = async () => attackable(await prepare(limited), limited);
  const makeListed = async (port: number) => {
    const withServer = { ...options, net: [`127.0.0.1:${port}`] };
    const ready = await orRefusal(() => prepare(withServer));
    return ready instanceof SandboxError ? ready.message : attackable(ready, withServer);
  };
  try {
    const place = { arena, program, prepared, sandbox, makeLimited, makeListed };
    const seen = await carryOut({ ...place, attacks, signal, onProgress });
    return { plan, policy, seen };
  } finally {
    await sandbox.close();
  }
}

/**
 * The sandbox that a command would get here. What judges the text of commands, counts and records them is left out: it is
 * the kernel that is attacked, and the user's trail and budget are none of the doctor's business. Under the backend
 * `application` this shows what a program may do that was let through.
 */
function attackable(prepared: PreparedSandbox, options: SandboxOptions): Promise<Sandbox> {
  const { budget, record, session, tellHooks } = WITHOUT;
  return sandboxOn(prepared, options, undefined, (ports) => ({
    ...ports,
    ...{ judge: undefined, budget, record, session, tellHooks },
  }));
}

async function orRefusal<T>(make: () => Promise<T>): Promise<T | SandboxError> {
  try {
    return await make();
  } catch (error) {
    if (error instanceof SandboxError && NO_SANDBOX.includes(error.code)) return error;
    throw error;
  }
}

/** The worst. */
export function worstOf(attacks: readonly Pick<AttackOutcome, 'result'>[]): AttackResult {
  return ATTACK_RESULTS.find((result) => attacks.some((attack) => attack.result === result)) ?? 'not-tried';
}

/** The backends whose degraded controls are those of this program's own mechanisms. */
const OWN_BACKENDS: readonly EnforcementReport['backend'][] = BACKEND_IDS.slice(0, 2);

/** Whether the report says that this attack cannot work. */
export function isClaimed(
  { claimedInPart }: Pick<Attack, 'claimedInPart'>,
  { state }: Pick<Control, 'state'>,
  backend: EnforcementReport['backend'],
): boolean {
  if (state === 'enforced') return true;
  return state === 'degraded' && claimedInPart === true && OWN_BACKENDS.includes(backend);
}

/** An attack and what was seen, made into a line of the report. Pure. */
export function judgeAttack(
  attack: Pick<Attack, 'id' | 'does' | 'claimedInPart' | 'letsNothingOut'>,
  seen: Observation,
  control: Pick<Control, 'state'>,
  backend: EnforcementReport['backend'],
): AttackOutcome {
  const { id, does } = attack;
  if (seen.kind !== 'worked')
    return {
      id,
      result: seen.kind === 'short' ? 'failed' : seen.kind,
      detail: `${does}: ${seen.reason}`,
    };
  if (isClaimed(attack, control, backend) && attack.letsNothingOut?.includes(control.state))
    return {
      ...{ id, result: 'failed' },
      detail: `${does}: not stopped or told in time; nothing got out, and this machine may be too busy: try again`,
    };
  return isClaimed(attack, control, backend)
    ? { id, result: 'escaped', detail: `${does}: IT WORKED, although the report says that it cannot` }
    : { id, result: 'not-covered', detail: `${does}: it worked, as the report says (${control.state})` };
}

/** The controls that the advice of each topic completes. Of a newer kernel the advice names them itself. */
const CONTROLS_OF_TOPIC: Readonly<Record<string, readonly ControlId[]>> = {
  landlock: [
    ...(['filesystem', 'rename', 'truncate', 'devices', 'unix-sockets', 'abstract-sockets'] as const),
    ...(['signals', 'process-inspection', 'process-tree'] as const),
  ],
  namespaces: [
    ...(['filesystem', 'filesystem-view', 'truncate', 'metadata', 'protected-paths'] as const),
    ...(['private-tmp', 'unix-sockets', 'abstract-sockets', 'process-inspection'] as const),
  ],
  seccomp: ['syscalls', 'network', 'unix-sockets', 'abstract-sockets', 'terminal-injection'],
  cgroup: ['resource-limits'],
};

/**
 * What to do for a control, with the line to run where one line does; null: nothing is to be done. `stronger`: a backend
 * that this host has and that was not used. Pure.
 */
export function improvementFor(
  control: Pick<Control, 'id' | 'state' | 'reason'>,
  result: AttackResult,
  remedies: readonly Remedy[],
  stronger?: string,
): string | null {
  if (result === 'escaped') {
    return 'This is a defect of sandbox-run: report it as SECURITY.md says, with the output of sandbox-run doctor --attack --json. Until it is mended, do not count on this control.';
  }
  // What the command line did not ask for was asked for by the attack.
  if (control.state === 'enforced' || control.id === 'workspace-changes') return null;
  if (control.state === 'off') return `It is the policy that leaves it off: ${control.reason}.`;
  if (stronger !== undefined)
    return `The backend ${stronger} can be used here and holds more: leave --backend out. $ sandbox-run doctor --attack`;
  const lines = remedies
    .filter((remedy) => isAbout(remedy, control.id))
    .map(({ text, command }) => (command === null ? text : `${text} $ ${command}`));
  return lines.length > 0 ? lines.join(' Or: ') : `Known: ${control.reason}.`;
}

function isAbout({ topic, text }: Remedy, id: ControlId): boolean {
  if (topic === 'kernel') return new RegExp(`[:,] ${id}[,.]`).test(text);
  return CONTROLS_OF_TOPIC[topic]?.includes(id) === true;
}
