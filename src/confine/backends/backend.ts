import type { NativeConfinementSpec, NativeFailure } from '../native/contract.ts';
import type { HostFeatures } from '../plan/host-features.ts';
import type { LaunchPlan } from '../plan/launch-plan.ts';
import type { Way } from '../plan/mechanisms.ts';

/** Whether this host has what a backend needs. */
type BackendProbe =
  | {
      readonly usable: true;
      /** What was given, with what the backend found out. */
      readonly features: HostFeatures;
    }
  | { readonly usable: false; readonly reason: string };

/** What became of a program that does nothing. */
export interface Trial {
  /** undefined: a signal or its time limit ended it. */
  readonly exitCode: number | undefined;
  /** SIGKILL ended it, or its time limit. */
  readonly killed: boolean;
  readonly stdout: string;
  readonly stderr: string;
  /** Why it did not begin. */
  readonly failure: NativeFailure | undefined;
}

/** Port: starts a program that does nothing as commands are started, with all that is looked at before one begins. */
export type TryCommand = (spec: NativeConfinementSpec, program: string) => Promise<Trial>;

/** One way to keep commands in: what it plans with, and what the addon gets. Those of the kernel are here, others are handed in. */
export interface Backend extends Way {
  /** For `--help`. */
  readonly summary: string;
  /**
   * Asks the host, by doing what will be done; what costs time is cached for the process. What the addon tries when it
   * prepares a confinement need not be tried here: it is asked again with a host that has less if that fails.
   */
  probe(features: HostFeatures, tryCommand: TryCommand): BackendProbe | Promise<BackendProbe>;
  /** The plan in the addon's terms: names become masks and bytes here. */
  confinement(
    plan: LaunchPlan,
    features: HostFeatures,
    tryCommand: TryCommand,
  ): Promise<NativeConfinementSpec>;
}
