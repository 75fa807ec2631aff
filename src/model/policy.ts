import type { BackendId, ControlId } from '../confine/plan/enforcement-report.ts';
import type { PathRule } from '../confine/plan/grant.ts';
import type { PolicyValues } from './policy-keys.ts';

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
    /** Controls that a policy file demands, not only the profile. */
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
