import type { ErrorCode } from '../errors/codes.ts';
import { SandboxError } from '../errors/sandbox-error.ts';
import type { AttackReport } from '../model/attack-report.ts';
import type { DoctorReport } from '../model/doctor-report.ts';
import type { SandboxOptions } from '../model/options.ts';
import { programBesideAddon } from '../native/load.ts';
import { type PreparedSandbox, prepareSandbox } from '../run/resolve/prepare-sandbox.ts';
import { type Sandbox, sandboxOn } from '../run/sandbox.ts';
import { packageVersion } from '../version.ts';
import { type Arena, makeArena } from './arena.ts';
import { type Attack, SECRET_VARIABLE } from './attack.ts';
import { improvementFor, judgeAttack, type Observation, worstOf } from './attack-report.ts';
import { BYSTANDER_ATTACKS } from './bystander-attacks.ts';
import { type CarryOutParts, carryOut } from './carry-out.ts';
import { FILE_ATTACKS } from './file-attacks.ts';
import { KERNEL_ATTACKS, LOW_LIMITS } from './kernel-attacks.ts';

/** THE registry of attacks: to add one, add a row to one of these, and a move to native/attack/ if it needs a new one. */
export const ATTACKS: readonly Attack[] = [...FILE_ATTACKS, ...BYSTANDER_ATTACKS, ...KERNEL_ATTACKS];

/** Makes a sandbox ready; a test gives one that has a hole. */
export type Prepare = (options: SandboxOptions) => Promise<PreparedSandbox>;

/** What the attack is made from. */
export interface AttackParts {
  /** As for a command; the workspace is one of the doctor's own. */
  readonly sandbox: Omit<SandboxOptions, 'workspace' | 'readable'>;
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
        return judgeAttack(attack, what, control, backend);
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
  const arena = makeArena();
  // A sandbox looks at the environment when it is made.
  process.env[SECRET_VARIABLE] = arena.secret;
  try {
    return await attackIn(arena, program, parts);
  } finally {
    delete process.env[SECRET_VARIABLE];
    arena.dispose();
  }
}

async function attackIn(arena: Arena, program: string, parts: AttackParts): Promise<Attacked | SandboxError> {
  const { signal, onProgress, prepare = prepareSandbox, attacks = ATTACKS } = parts;
  const plain = { ...parts.sandbox, workspace: arena.workspace, readable: [program] };
  let options: SandboxOptions = { ...plain, readable: [program, arena.readable] };
  let prepared = await orRefusal(() => prepare(options));
  if (prepared instanceof SandboxError && prepared.code === 'policy.read_only_inside_writable') {
    // The policy gives write access to where the directory is, and nothing could take that away again.
    options = plain;
    prepared = await orRefusal(() => prepare(options));
  }
  if (prepared instanceof SandboxError) return prepared;
  const { plan, policy } = prepared;
  const sandbox = await attackable(prepared, options);
  const limited = { ...options, limits: LOW_LIMITS };
  const makeLimited = async () => attackable(await prepare(limited), limited);
  try {
    const seen = await carryOut({
      arena,
      program,
      prepared,
      sandbox,
      makeLimited,
      attacks,
      signal,
      onProgress,
    });
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
  return sandboxOn(prepared, options, undefined, (ports) => ({
    ...ports,
    ...{ judge: undefined, budget: undefined, record: undefined, session: undefined, tellHooks: undefined },
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
