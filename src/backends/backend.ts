import type { ResolvedSteps } from '../model/command-line.ts';
import type { BackendId } from '../model/enforcement-report.ts';
import type { HostFeatures } from '../model/host-features.ts';
import type { LaunchPlan } from '../model/launch-plan.ts';
import type { NativeConfinementSpec, NativeFailure } from '../native/contract.ts';

/** Whether this host has what a backend needs. */
type BackendProbe =
  | {
      readonly usable: true;
      /** What was given, with what the backend found out. */
      readonly features: HostFeatures;
    }
  | { readonly usable: false; readonly reason: string };

/** What is started for a command: by whatever backend it is one program, which the addon starts and ends. */
export interface StartedProgram {
  /** Absolute. */
  readonly program: string;
  readonly argv: readonly [string, ...string[]];
  /** `NAME=value`, each ended by NUL. */
  readonly env: Uint8Array;
  readonly cwd: string;
}

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

/** One way to keep commands in. To add one: a directory here, and a line in `all-backends.ts`. */
export interface Backend {
  readonly id: BackendId;
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
  /** What is really started for a command; absent: the command itself. */
  readonly wrap?: (plan: LaunchPlan, command: StartedProgram) => StartedProgram;
  /**
   * How a list of programs is started in place of a shell, and every command as such a list; absent: a shell string runs
   * under bash. Such a backend relies on the decision: commands are always judged.
   */
  readonly steps?: (plan: LaunchPlan, steps: ResolvedSteps) => Pick<StartedProgram, 'program' | 'argv'>;
}
