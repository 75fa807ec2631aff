import type { ErrorCode } from '../base/errors/codes.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { isAtLeast } from '../base/words.ts';
import type { Backend } from './backends/backend.ts';
import { givesUpByNature } from './plan/enforcement.ts';
import type { PassedOver } from './plan/enforcement-report.ts';
import type { Demands } from './plan/grant.ts';
import type { HostFeatures } from './plan/host-features.ts';

/** Why a rung was not taken. */
interface Refused {
  readonly backend: Backend;
  readonly error: SandboxError;
}

/** A rung of the ladder as it is tried. */
export interface Rung {
  readonly backend: Backend;
  /** With what was found out on the rungs above. */
  readonly features: HostFeatures;
  readonly passedOver: readonly PassedOver[];
}

/** The outcome of a rung. A refused one passes on what it learned about the host. */
export type RungOutcome<Result> =
  | { readonly result: Result }
  | { readonly refused: SandboxError; readonly features: HostFeatures };

/** Errors that say what a host cannot do under one backend, so that another may help. */
const OF_THE_RUNG: readonly ErrorCode[] = [
  'backend.unavailable',
  'enforcement.unavailable',
  'policy.read_only_inside_writable',
  'state.reachable',
];

/** Whether an error is about the rung, and not about the policy, the workspace or us. */
export function isOfTheRung(error: unknown): error is SandboxError {
  return error instanceof SandboxError && OF_THE_RUNG.includes(error.code);
}

/**
 * Goes down the backends that the policy lets be used, and takes the first that works: the one place where a weaker
 * backend takes the place of a stronger one.
 * @throws {SandboxError} `backend.unavailable`: the one that was named cannot be used or is too weak for the policy;
 * `enforcement.unavailable` and what else says that none holds what is required.
 */
export async function goDownLadder<Result>(
  backends: readonly Backend[],
  demands: Demands,
  host: HostFeatures,
  attempt: (rung: Rung) => Promise<RungOutcome<Result>>,
): Promise<Result> {
  const refused: Refused[] = [];
  let features = host;
  for (const backend of rungsOf(backends, demands)) {
    // Otherwise a layer that can add a demand, such as a workspace, could have a backend that holds little take the place of
    // one that holds all but that.
    const better = refused.find(({ error }) => error.code !== 'backend.unavailable');
    if (better !== undefined && givesUpByNature(backend)) continue;
    const passedOver = refused.map(({ backend: { id }, error }) => ({ backend: id, reason: error.message }));
    const outcome = await attempt({ backend, features, passedOver });
    if ('result' in outcome) return outcome.result;
    refused.push({ backend, error: outcome.refused });
    features = outcome.features;
  }
  throw nothingLeft(demands, refused);
}

function rungsOf(backends: readonly Backend[], { backend = 'auto', minimum }: Demands): readonly Backend[] {
  if (backend !== 'auto' && minimum !== undefined && !isAtLeast(backend, minimum)) {
    throw new SandboxError(
      'backend.unavailable',
      `the backend ${backend} is weaker than ${minimum}, which the policy requires at least (sandbox.minimum)`,
    );
  }
  return backends.filter(
    ({ id }) => (backend === 'auto' || id === backend) && (minimum === undefined || isAtLeast(id, minimum)),
  );
}

function nothingLeft({ backend = 'auto', minimum }: Demands, refused: readonly Refused[]): SandboxError {
  const [first] = refused;
  if (first === undefined)
    return new SandboxError('backend.unavailable', `this version of sandbox-run has no backend ${backend}`);
  const { code, message } = first.error;
  if (backend !== 'auto') {
    return code === 'backend.unavailable'
      ? new SandboxError(
          code,
          `the backend ${backend} cannot be used here: ${message}; leave the option backend out to have the strongest that can`,
          { cause: first.error },
        )
      : first.error;
  }
  // What the strongest says that the host has at all can be mended sooner than a host.
  const usable = refused.find(
    (rung) => rung.error.code !== 'backend.unavailable' && !givesUpByNature(rung.backend),
  );
  if (usable !== undefined && usable.error.code !== 'enforcement.unavailable') return usable.error;
  const rest = refused.filter((rung) => rung !== usable && !givesUpByNature(rung.backend));
  const without =
    rest.length === 0
      ? ''
      : `; ${usable === undefined ? '' : 'other backends do not help: '}${rest.map(({ backend: { id }, error }) => `${id}: ${error.message}`).join('; ')}`;
  const limit =
    minimum === undefined
      ? '; set sandbox.minimum = "application" in the policy to run without kernel enforcement (commands are only checked by their text)'
      : `; sandbox.minimum is ${minimum}`;
  return new SandboxError(
    usable?.error.code ?? 'enforcement.unavailable',
    `${usable?.error.message ?? 'filesystem cannot be enforced here'}${without}${limit}`,
    { cause: usable?.error ?? first.error },
  );
}
