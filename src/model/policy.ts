import type { BackendId, ControlId } from './enforcement-report.ts';
import type { PathAccess } from './launch-plan.ts';
import type { PolicyValues } from './policy-keys.ts';

/** One path that the command may use. */
export interface PathRule {
  /** Absolute; need not be canonical. */
  readonly path: string;
  readonly access: PathAccess;
  /** A missing path is an error; otherwise it is left out. */
  readonly required: boolean;
  /** Why it is there, for people. */
  readonly reason: string;
  /** Canonical, absolute: what lies in it and is not granted with it, unless a rule of its own grants it. */
  readonly except?: readonly string[];
  /** The largest parts of it that hold none of these: granted instead, where nothing can be taken out of a tree. */
  readonly parts?: readonly string[];
  /** What lies in it and needs no rule of its own: no link, and none of the exceptions. */
  readonly covers?: ReadonlySet<string>;
  /** Where commands find it if they have a view; `undefined`: at its own path. */
  readonly shownAs?: string;
}

/** Who looks at a command of a tainted session. */
export type ReviewerSettings =
  | { readonly kind: 'command'; readonly argv: readonly [string, ...string[]] }
  | {
      readonly kind: 'model';
      readonly model: string;
      /** `undefined`: the SDK's own. */
      readonly baseUrl: string | undefined;
      readonly keyVariable: string;
      readonly maxTokens: number;
    };

/** The effective policy of one sandbox: what all layers say, and what the profile brings that no key says. */
export type Policy = PolicyValues & {
  readonly filesystem: {
    readonly rules: readonly PathRule[];
    /** Absolute: shown as a file that exists and is refused, so that programs say so. */
    readonly masked: readonly string[];
    readonly workspaceAccess: 'read' | 'write';
  };
  readonly sandbox: {
    /** `auto`: the strongest that holds what is required. */
    readonly backend: BackendId | 'auto';
    /** The weakest that the operator named: what it cannot hold by its nature is accepted. */
    readonly accepted: BackendId | undefined;
    /** Of `demand`, what a policy file says, and not only the profile. */
    readonly demandedByFiles: readonly ControlId[];
  };
};

/** The reviewer that a policy names; `undefined`: it names none. */
export function reviewerSettings({ reviewer }: Pick<Policy, 'reviewer'>): ReviewerSettings | undefined {
  const { command, model, baseUrl, keyVariable, maxTokens } = reviewer;
  const [program, ...args] = command ?? [];
  if (program !== undefined) return { kind: 'command', argv: [program, ...args] };
  return model === undefined ? undefined : { kind: 'model', model, baseUrl, keyVariable, maxTokens };
}
