import { SandboxError } from '../base/errors/sandbox-error.ts';
import type { Backend } from './backends/backend.ts';
import { KERNEL_BACKENDS } from './backends/kernel-backends.ts';
import { withoutRefusedFacility } from './backends/refused-facility.ts';
import { errnoName } from './kernel/errno.ts';
import { goDownLadder, isOfTheRung, type Rung, type RungOutcome } from './ladder.ts';
import type {
  NativeAddon,
  NativeConfinement,
  NativeConfinementSpec,
  NativeFailure,
  NativeGuests,
} from './native/contract.ts';
import { loadAddon } from './native/load.ts';
import { createPathWalk } from './path-walk.ts';
import { controlOf } from './plan/enforcement.ts';
import type { ControlId, EnforcementReport } from './plan/enforcement-report.ts';
import { type Demands, type FullGrant, fullGrant, type Grant } from './plan/grant.ts';
import type { HostFeatures } from './plan/host-features.ts';
import type { LaunchPlan, PlannedLayer } from './plan/launch-plan.ts';
import { makePlan } from './plan/plan.ts';
import { probeHost } from './probe.ts';
import { type CommandToStart, completed, Running } from './running.ts';
import { tryCommand } from './try-command.ts';
import { whatIsUsual } from './usual-host.ts';

/** Options of `confine`, all optional. */
export interface ConfineOptions {
  /** The backends that may be used, the strongest first. Default: those that need nothing but the kernel. */
  readonly backends?: readonly Backend[];
  /** The kernel features of the host. Default: the host is probed. */
  readonly features?: HostFeatures;
  /** Makes the error that says why the kernel objects could not be made. Default: stage, error number and path. */
  readonly describe?: (failure: NativeFailure) => SandboxError;
}

/** Options of `prepare` and `another` that are not part of the grant, all optional. */
export interface Preparation {
  /** An earlier confinement, possibly closed: the new commands share its namespaces if both plans want the same ones. */
  readonly beside?: Confinement | undefined;
  /** All commands belong to one session and share their temporary directory. */
  readonly isOfSession?: boolean;
  /** Settings for guests of the addon (`native/guests/`), such as the network supervisor. */
  readonly guests?: NativeGuests;
  /**
   * Makes the missing directories that a plan hides, because nothing can be mounted over a missing path. Returns those that cannot
   * be made, by a command either. Default: all exist.
   */
  readonly makeHidden?: (plan: LaunchPlan) => readonly string[];
  /** Called once, while a thread of the addon makes the kernel objects. */
  readonly meanwhile?: () => void;
}

/** This host cannot enforce what is demanded. Nothing was made, and no weaker confinement is used instead. */
export interface Unenforceable {
  readonly enforceable: false;
  /** The control that is required and not held; `undefined`: none of the allowed backends works here, or works for this grant. */
  readonly control: ControlId | undefined;
  /** The reason in one sentence, with a remedy. */
  readonly why: string;
  readonly error: SandboxError;
}

/** Whether a result of `prepare`, `plan` or `another` is an `Unenforceable`. */
export const isUnenforceable = (made: unknown): made is Unenforceable =>
  (made as Partial<Unenforceable>).enforceable === false;

/** Turns grants into kernel restrictions. */
export interface Confiner {
  /**
   * Makes the kernel objects for a grant with the strongest backend that works here, and tests them.
   * @throws {SandboxError} `policy.path_missing`, `policy.path_replaceable`, … for an unsafe grant; else what `describe` returns.
   */
  prepare(grant: Grant, demands?: Demands, how?: Preparation): Promise<Confinement | Unenforceable>;
  /** The plan that `prepare` would use first. Makes no kernel objects, so a refusal that shows only then is not considered. */
  plan(grant: Grant, demands?: Demands): Promise<LaunchPlan | Unenforceable>;
}

/** The confiner of this host. */
export function confine(options: ConfineOptions = {}): Confiner {
  const { backends = KERNEL_BACKENDS, describe = describePlainly } = options;
  const hostNow = () => options.features ?? probeHost(loadAddon());
  return {
    prepare: (given, demands = {}, how = {}) =>
      orUnenforceable(async () => {
        const host = hostNow();
        const grant = fullGrant(given, whatIsUsual(given));
        return goDownLadder(backends, demands, host, (rung) =>
          prepareRung({ grant, demands, how, describe }, rung),
        );
      }),
    plan: (given, demands = {}) =>
      orUnenforceable(async () => {
        const grant = fullGrant(given, whatIsUsual(given));
        return goDownLadder(backends, demands, hostNow(), (rung) => planRung({ grant, demands }, rung));
      }),
  };
}

/** The arguments of a preparation. */
interface Wanted {
  readonly grant: FullGrant;
  readonly demands: Demands;
  readonly how: Preparation;
  readonly describe: (failure: NativeFailure) => SandboxError;
}

/** The values that a confinement was made from. */
type Parts = Omit<Wanted, 'grant' | 'how'> &
  Rung & { readonly addon: NativeAddon; readonly plan: LaunchPlan; readonly spec: NativeConfinementSpec };

/** Kernel objects for the commands of one grant, and what they hold. */
export class Confinement {
  readonly enforceable = true;
  /** The addon's handle, for the addon functions that belong to guests. */
  readonly native: NativeConfinement;
  /** Everything that `start` applies, by name. */
  readonly plan: LaunchPlan;
  readonly backend: Backend;
  /** Features of the host, without those that it refused during the preparation. */
  readonly features: HostFeatures;
  readonly #parts: Parts;

  /** @internal */
  constructor(parts: Parts, native: NativeConfinement) {
    this.#parts = parts;
    this.native = native;
    this.plan = parts.plan;
    this.backend = parts.backend;
    this.features = parts.features;
  }

  /** What is enforced, control by control. It claims only what `start` applies. */
  get report(): EnforcementReport {
    return this.plan.report;
  }

  /**
   * Starts a command. If a step before execve fails, no program runs, and `Running.exited` has `failure`.
   * @throws {Error} with a property `failure`, if this process has no thread or descriptor left for it.
   */
  start(command: CommandToStart): Running {
    return new Running(this.#parts.addon, this.native, completed(command, this.plan));
  }

  /** A confinement for another grant, with the same backend. Its commands share the namespaces of this one unless `how.beside` says otherwise. */
  another(given: Grant, how: Preparation = {}): Promise<Confinement | Unenforceable> {
    const { demands, describe } = this.#parts;
    return orUnenforceable(async () => {
      const grant = fullGrant(given, whatIsUsual(given));
      const outcome = await prepareRung(
        { grant, demands, how: { beside: this, ...how }, describe },
        this.#parts,
      );
      if ('refused' in outcome) throw outcome.refused;
      return outcome.result;
    });
  }

  /**
   * A confinement like this one whose copy-on-write layer over the workspace uses other directories. Nothing is planned anew.
   * @throws {SandboxError} `changes.unavailable`, `confinement.failed`.
   */
  async onLayer(layer: PlannedLayer, { beside, guests }: Preparation = {}): Promise<Confinement> {
    const { spec, plan } = this.#parts;
    const parts = { ...this.#parts, spec: onLayer(spec, layer), plan: { ...onLayer(plan, layer), layer } };
    const made = await makeConfinement(parts, { ...guests, machineOf: (beside ?? this).native });
    if (made instanceof Confinement) return made;
    throw parts.describe(made);
  }

  /** Releases the kernel objects once no command uses them. `done` is called afterwards: the kernel takes milliseconds. */
  close(done?: () => void): void {
    this.#parts.addon.closeConfinement(this.native, done);
  }
}

async function planRung(
  { grant, demands }: Pick<Wanted, 'grant' | 'demands'>,
  { backend, passedOver, ...known }: Rung,
): Promise<RungOutcome<LaunchPlan>> {
  const probed = await backend.probe(known.features, tryCommand);
  if (!probed.usable)
    return { refused: new SandboxError('backend.unavailable', probed.reason), features: known.features };
  return ofTheRung(known.features, async () => ({
    result: planOn(grant, demands, { backend, passedOver, features: probed.features }),
  }));
}

async function prepareRung(
  { grant, demands, how, describe }: Wanted,
  { backend, passedOver, ...known }: Rung,
): Promise<RungOutcome<Confinement>> {
  const addon = loadAddon();
  let { features } = known;
  for (;;) {
    const probed = await backend.probe(features, tryCommand);
    if (!probed.usable) return { refused: new SandboxError('backend.unavailable', probed.reason), features };
    const rung: Rung = { backend, features: probed.features, passedOver };
    const planned = await ofTheRung(features, async () => {
      const plan = withHiddenMade(planOn(grant, demands, rung), how, (impossible) =>
        planOn(grant, demands, rung, impossible),
      );
      const made = await backend.confinement(plan, probed.features, tryCommand);
      const sharesDirectories = how.isOfSession === true && backend.ownMounts !== true;
      return { result: { plan, spec: { ...made, sharesDirectories } } };
    });
    if ('refused' in planned) return planned;
    const { plan, spec } = planned.result;
    const { beside } = how;
    const machineOf = beside !== undefined && sharesWith(plan, beside.plan) ? beside.native : undefined;
    const parts: Parts = { ...rung, addon, demands, describe, plan, spec };
    const made = await makeConfinement(parts, { ...how.guests, machineOf }, how.meanwhile);
    if (made instanceof Confinement) return { result: made };
    const less = withoutRefusedFacility(probed.features, made);
    if (less === undefined) throw describe(made);
    features = less;
  }
}

function planOn(
  grant: FullGrant,
  demands: Demands,
  { backend, features, passedOver }: Rung,
  impossible: readonly string[] = [],
): LaunchPlan {
  return makePlan({
    ...grant,
    ...{ demands, features, passedOver, impossible },
    way: backend,
    lookup: (grant.pathLookup ?? createPathWalk)(),
  });
}

/** Makes the kernel objects, or returns why they could not be made. */
async function makeConfinement(
  parts: Parts,
  added: Pick<NativeConfinementSpec, 'machineOf'> & NativeGuests,
  meanwhile?: () => void,
): Promise<Confinement | NativeFailure> {
  const { addon, spec } = parts;
  const native = addon.createConfinement({ ...spec, ...added });
  const preparing = new Promise<NativeFailure | undefined>((done) => addon.prepare(native, done));
  meanwhile?.();
  const failure = await preparing;
  if (failure === undefined) return new Confinement(parts, native);
  addon.closeConfinement(native);
  return failure;
}

/** The plan without the hidden directories that cannot be made. */
function withHiddenMade(
  plan: LaunchPlan,
  { makeHidden }: Preparation,
  planWithout: (impossible: readonly string[]) => LaunchPlan,
): LaunchPlan {
  const impossible = makeHidden?.(plan) ?? [];
  return impossible.length === 0 ? plan : planWithout(impossible);
}

/** Whether both want the same namespaces: where the host came to refuse one of them, each has its own. */
function sharesWith({ namespaces: one }: LaunchPlan, { namespaces: other }: LaunchPlan): boolean {
  return one?.user === other?.user && one?.network === other?.network && one?.ipc === other?.ipc;
}

/** A spec or plan with the directories of another layer. */
function onLayer<
  Step extends { readonly kind: string },
  Of extends { namespaces?: { view: readonly Step[] } | undefined },
>(made: Of, layer: PlannedLayer): Of {
  const { namespaces } = made;
  if (namespaces === undefined) return made;
  const view = namespaces.view.map((step) => (step.kind === 'layer' ? { ...step, layer } : step));
  return { ...made, namespaces: { ...namespaces, view } };
}

async function ofTheRung<Result>(
  features: HostFeatures,
  make: () => Promise<{ readonly result: Result }>,
): Promise<RungOutcome<Result>> {
  try {
    return await make();
  } catch (error) {
    if (isOfTheRung(error)) return { refused: error, features };
    throw error;
  }
}

/** Returns an error that says what this host cannot do as `Unenforceable`; throws any other. */
async function orUnenforceable<Result>(make: () => Promise<Result>): Promise<Result | Unenforceable> {
  try {
    return await make();
  } catch (error) {
    if (!isOfTheRung(error)) throw error;
    return { enforceable: false, control: controlOf(error), why: error.message, error };
  }
}

function describePlainly({ stage, errno, path }: NativeFailure): SandboxError {
  const where = path === '' ? '' : ` at ${path}`;
  return new SandboxError(
    'confinement.failed',
    `the confinement cannot be made: ${stage} failed with ${errnoName(errno)}${where}`,
  );
}
