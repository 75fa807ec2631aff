import type { FleetResult, FleetRunOptions, FleetStatus, NatsSettings } from '../model/fleet.ts';
import type { Command } from '../model/index.ts';

/** Options of `createFleet`. */
export interface FleetOptions extends NatsSettings {
  /** The name of the queue; it is made if it is not there. */
  readonly queue: string;
  /** False: a queue that is not there is `fleet.unknown`. Default: true. */
  readonly make?: boolean;
  /** Copies of what is made for a queue that is not there: 3 on a cluster, else 1. */
  readonly replicas?: number;
}

/** What a job changed, held on this machine. */
export interface HeldChanges {
  /** Of the change set; `undefined`: there is nothing to apply. */
  readonly held: string | undefined;
  readonly conflicts: readonly string[];
}

/** What came of files that came back. */
export interface Downloaded {
  /** What trusted programs would run or obey in that directory, and was therefore not made. */
  readonly leftOut: readonly string[];
  /** How many files were made. */
  readonly files: number;
}

/** A job that was handed over. */
export interface FleetJob {
  /** Names it to everybody: `sandbox-run fleet job ID`. */
  readonly id: string;
  /** What became of it. */
  readonly result: Promise<FleetResult>;
  /** Ends it, wherever it is. */
  cancel(): void;
}

/** Many machines that run commands. */
export interface Fleet extends AsyncDisposable {
  /**
   * Runs a command on a worker, under the policy of that worker, and waits for what becomes of it.
   * @throws {SandboxError} `usage.invalid`; `fleet.unreachable`, `fleet.refused` if it cannot be handed over.
   */
  run(command: Command, options?: FleetRunOptions): Promise<FleetResult>;
  /** The same; settles once the server has the job, so that it is not lost. */
  submit(command: Command, options?: FleetRunOptions): Promise<FleetJob>;
  /**
   * What became of a job of anybody; `wait`: once it has ended.
   * @throws {SandboxError} `fleet.unknown`: it is none, as far as that can be known: where jobs wait it may be one of them.
   */
  result(job: string, options?: { readonly wait?: boolean }): Promise<FleetResult | undefined>;
  /** Ends a job of anybody. @throws {SandboxError} as {@link result}. */
  cancel(job: string): Promise<void>;
  status(): Promise<FleetStatus>;
  /**
   * Makes files that came back (`fleet.artefacts` of a result) in a directory that is not there, or is empty. What trusted
   * programs would run or obey there (`.git`, `.envrc`, settings of editors) is left out, and named.
   * @throws {SandboxError} `file.unusable`, `fleet.unknown`.
   */
  download(artefacts: string, directory: string): Promise<Downloaded>;
  /**
   * Holds what a job changed (`fleet.changes` of a result) as a change set of the directory that was sent with it: nothing of
   * it is there before it is applied. `conflicts`: what changed there meanwhile, and is left out.
   * @throws {SandboxError} as {@link download}; `changes.unavailable` on hosts that hold no changes.
   */
  hold(changes: string, directory: string): Promise<HeldChanges>;
  /** Gives up the connection. Jobs go on; results that are awaited are rejected. */
  close(): Promise<void>;
}
