import type { ErrorCode } from '../errors/codes.ts';
import { SandboxError } from '../errors/sandbox-error.ts';
import type { AttackOutcome, AttackReport } from '../model/attack-report.ts';
import type { DoctorReport } from '../model/doctor-report.ts';
import type { ControlId, EnforcementReport } from '../model/enforcement-report.ts';
import type { SandboxOptions } from '../model/options.ts';
import { programBesideAddon } from '../native/load.ts';

import { packageVersion } from '../version.ts';
import { ATTACKS } from './all-attacks.ts';
import { type Arena, makeArena } from './arena.ts';
import type { Attack } from './attack.ts';

import { worstOf } from './attack-report.ts';
import { carryOut } from './carry-out.ts';
import { improvementFor } from './improve.ts';
import { SECRET_VARIABLE } from './places.ts';
import { type Prepare, prepareAttacked } from './prepare-attacked.ts';

/** What the attack is made from. */
export interface AttackParts {
  /** As for a command; the workspace is one of the doctor's own. */
  readonly sandbox: Omit<SandboxOptions, 'workspace' | 'readable'>;
  /** Looks at the host, for what can be done about it. */
  readonly examine: () => Promise<DoctorReport>;
  readonly signal: AbortSignal;
  /** After each command; `control`: of the attack that it carried out. */
  readonly onProgress?: (done: number, of: number, control: ControlId) => void;
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
  const { report, profile, outcomes, problem } = attacked.value;
  const known = { version: packageVersion, profile };
  if (report === undefined) {
    const nothing = { backend: null, passedOver: [], landlockAbi: null, controls: [] };
    return { ...known, ok: false, problem, ...nothing };
  }
  const { backend: best } = examined.value;
  // One that was named, and need not have been.
  const stronger =
    best !== null && best !== report.backend && report.passedOver.length === 0 ? best : undefined;
  const controls = report.controls.map((control) => {
    const attacks = outcomes.get(control.id) ?? [];
    const result = worstOf(attacks);
    const improve = improvementFor(control, result, examined.value.remedies, stronger);
    return { id: control.id, claimed: control.state, result, attacks, improve };
  });
  return {
    ...known,
    // Where nothing was tried, or something could not be, nothing is known.
    ok:
      controls.every(({ attacks }) =>
        attacks.every(({ result }) => result !== 'escaped' && result !== 'failed'),
      ) && controls.some(({ result }) => result !== 'not-tried'),
    problem: null,
    backend: report.backend,
    passedOver: report.passedOver.map(({ backend, reason }) => ({ backend, reason })),
    landlockAbi: report.landlockAbi,
    controls,
  };
}

interface Attempted {
  readonly report: EnforcementReport | undefined;
  readonly profile: string | null;
  readonly problem: AttackReport['problem'];
  readonly outcomes: ReadonlyMap<string, readonly AttackOutcome[]>;
}

async function attackWithin(parts: AttackParts): Promise<Attempted> {
  const program = await orRefusal(async () => programBesideAddon('sandbox-run-attack'));
  if (program instanceof SandboxError) return nothingFor(program);
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

async function attackIn(arena: Arena, program: string, parts: AttackParts): Promise<Attempted> {
  const { signal, onProgress, prepare, attacks = ATTACKS } = parts;
  const plain = { ...parts.sandbox, workspace: arena.workspace, readable: [program] };
  let options: SandboxOptions = { ...plain, readable: [program, arena.readable] };
  let prepared = await orRefusal(() => prepareAttacked(options, prepare));
  if (prepared instanceof SandboxError && prepared.code === 'policy.read_only_inside_writable') {
    // The policy gives write access to where the directory is, and nothing could take that away again.
    options = plain;
    prepared = await orRefusal(() => prepareAttacked(options, prepare));
  }
  if (prepared instanceof SandboxError) return nothingFor(prepared);
  try {
    const outcomes = await carryOut({
      arena,
      program,
      attacked: prepared,
      options,
      prepare,
      attacks,
      signal,
      onProgress,
    });
    const { plan, policy } = prepared.prepared;
    return { report: plan.report, profile: policy.profile, problem: null, outcomes };
  } finally {
    await prepared.sandbox.close();
  }
}

function nothingFor({ code, message }: SandboxError): Attempted {
  return { report: undefined, profile: null, problem: { code, message }, outcomes: new Map() };
}

async function orRefusal<T>(make: () => Promise<T>): Promise<T | SandboxError> {
  try {
    return await make();
  } catch (error) {
    if (error instanceof SandboxError && NO_SANDBOX.includes(error.code)) return error;
    throw error;
  }
}
