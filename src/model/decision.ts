/** What the policy says; strictest last. */
export const VERDICTS = ['allow', 'ask', 'deny'] as const;
export type Verdict = (typeof VERDICTS)[number];

/** How much may be broken by a command; highest last. */
export const RISKS = ['low', 'medium', 'high'] as const;
export type Risk = (typeof RISKS)[number];

/** Whether a command can use the network whatever its arguments: no (local), yes (network), or unknown. */
export const REACHES = ['local', 'unknown', 'network'] as const;
export type Reach = (typeof REACHES)[number];

/**
 * How much is left to the agent; most first. `contained`: whatever the sandbox holds runs unasked, what leaves it is asked
 * about; where it holds too little, that is `supervised`: what changes anything is asked about.
 */
export const AUTONOMIES = ['autonomous', 'contained', 'supervised', 'readonly'] as const;
export type Autonomy = (typeof AUTONOMIES)[number];

/** What a session has been exposed to: content that may instruct the model, data that must not leave. */
export const TAINTS = ['corruption', 'secret'] as const;
export type Taint = (typeof TAINTS)[number];

/** What one check says about one thing it stumbled on. */
export interface Reason {
  /** Name of the check. */
  readonly check: string;
  /** `undefined`: no opinion, with the reason for having none. */
  readonly verdict: Verdict | undefined;
  /** Stable, `snake_case`, unique within the check. */
  readonly code: string;
  /** One sentence that a person or a model can act on. */
  readonly message: string;
  /** The words it stumbled on, as they were written. */
  readonly words: readonly string[];
}

/** What the policy decided about a request, and why. */
export interface Decision {
  readonly verdict: Verdict;
  readonly risk: Risk;
  readonly reach: Reach;
  /** Of every check, in the order of the registry: the trace. */
  readonly reasons: readonly Reason[];
}
