import type { BackendId } from '../model/backend.ts';
import type { Control } from '../model/enforcement-report.ts';
import type { CgroupFacts, ProcessFacts, ProgramFacts, Sysctl } from './doctor-facts.ts';

/** A published fix in Landlock; see Documentation/userspace-api/landlock.rst. */
export interface LandlockErratum {
  readonly number: number;
  readonly meaning: string;
  readonly fixed: boolean;
}

/** How much a remedy matters: `needed` to run at all, `useful` for a stronger sandbox, `optional` for the rest. */
export type RemedyPriority = 'needed' | 'useful' | 'optional';

/** What to do about something that is missing. */
export interface Remedy {
  readonly topic: string;
  readonly priority: RemedyPriority;
  readonly text: string;
  /** The command that does it, where one command does. */
  readonly command: string | null;
}

/** What `sandbox-run doctor` found. The shape is stable: every key is always there, `null` where unknown. */
export interface DoctorReport {
  readonly version: string;
  /** The default profile can be enforced here. */
  readonly ok: boolean;
  /** Why not. */
  readonly problem: { readonly code: string; readonly message: string } | null;
  /** The backend that would run a command; null: it would be refused. */
  readonly backend: string | null;
  readonly profile: string;
  readonly host: {
    readonly kernel: string;
    readonly architecture: string;
    readonly node: string;
  } & ProcessFacts;
  readonly addon: { readonly available: boolean; readonly reason: string | null };
  /** Every backend, the strongest first, and whether it can be used here; none if they cannot be tried at all. */
  readonly backends: readonly {
    readonly id: BackendId;
    readonly available: boolean;
    /** Why not. */
    readonly reason: string | null;
  }[];
  readonly landlock: {
    readonly available: boolean | null;
    /** The kernel's; null: unknown without the addon. */
    readonly abi: number | null;
    readonly newestKnownAbi: number;
    readonly errata: readonly LandlockErratum[];
    /** Why it is absent: the errno's name and what it means. */
    readonly errno: string | null;
    readonly reason: string | null;
  };
  readonly seccomp: {
    readonly available: boolean | null;
    readonly actions: readonly { readonly name: string; readonly available: boolean | null }[];
    readonly reason: string | null;
  };
  readonly namespaces: {
    /** Found out by making those of a sandbox. */
    readonly available: boolean | null;
    /** A user namespace is among them, because this user has no CAP_SYS_ADMIN. */
    readonly user: boolean;
    readonly reason: string | null;
    readonly sysctls: readonly Sysctl[];
  };
  readonly cgroup: CgroupFacts & {
    /** Where groups for commands can be made, found out by making one; null: nowhere. */
    readonly place: string | null;
  };
  readonly programs: readonly ProgramFacts[];
  /** Each control of the default profile; empty without the addon. */
  readonly controls: readonly Control[];
  readonly remedies: readonly Remedy[];
}
