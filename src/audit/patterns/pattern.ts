/** What the patterns know of a decision. */
export interface ObservedDecision {
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly request: string;
  /** Of a command that was asked about: what makes it what it is; see `commandWords`. */
  readonly words: ReadonlySet<string>;
  /** A person was asked, or would have been. */
  readonly asked: boolean;
  /** The policy or a person was against it. */
  readonly refused: boolean;
  /** It was launched, or a container was told that it may run it. */
  readonly launched: boolean;
  /** If it was not launched: words that lead out of the workspace, as the check of paths saw them. */
  readonly escapes: readonly string[];
  readonly writes: readonly string[];
  readonly executes: readonly string[];
}

/** What a pattern recognized. */
interface Finding {
  /** What it is about: one event is raised for it within the time that is remembered. */
  readonly about: string;
  readonly message: string;
  readonly details: Readonly<Record<string, string | number | boolean>>;
}

/** Something that can only be seen over several commands of one session. Pure. */
export interface Pattern {
  /** Code of the event; stable, `snake_case`. */
  readonly code: string;
  /** One sentence: what raises it. */
  readonly summary: string;
  /** `earlier`: what is remembered of the same session, oldest first, without `latest`. */
  find(latest: ObservedDecision, earlier: readonly ObservedDecision[]): readonly Finding[];
}
