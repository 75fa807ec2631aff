/** A redirect of a descriptor, done before a program starts. */
export type StepRedirect =
  | {
      readonly kind: 'read' | 'write' | 'append' | 'update';
      readonly fd: number;
      /** A file, as written. */
      readonly path: string;
    }
  | { readonly kind: 'copy'; readonly fd: number; readonly from: number }
  | { readonly kind: 'close'; readonly fd: number }
  /** The text is read from the descriptor. */
  | { readonly kind: 'text'; readonly fd: number; readonly text: string };

/** One program of a pipeline. */
export interface Stage {
  /** The program as written and its arguments; empty: only the redirects are made. */
  readonly words: readonly string[];
  /** In their order. */
  readonly redirects: readonly StepRedirect[];
  /** Absolute directory in which it runs; `undefined`: it depends on a `cd` that may fail, or was not asked for. */
  readonly directory?: string | undefined;
}

/** Programs that run at once, each reading what the one before it writes; or a `cd`, which is alone. */
export interface StepPipeline {
  /** How it depends on what ran before: not at all, on success, on failure. */
  readonly joinedBy: 'then' | 'and' | 'or';
  readonly stages: readonly Stage[];
}

/** A shell string that needs no shell: programs with arguments that are known, one after the other. */
export interface Steps {
  readonly pipelines: readonly StepPipeline[];
  /** The file names that each glob word expands to, by the word's offset in the source. */
  readonly patterns?: ReadonlyMap<number, readonly string[]>;
}

/** A stage whose program was looked up. */
export interface ResolvedStage extends Stage {
  readonly program:
    | { readonly kind: 'found'; readonly path: string }
    /** The status that a shell would give it: 127 not found, 126 not executable. */
    | { readonly kind: 'missing'; readonly status: 126 | 127 }
    | { readonly kind: 'cd'; readonly directory: string }
    /** Only the redirects are made. */
    | undefined;
}

/** Steps that can be started. */
export interface ResolvedSteps {
  readonly pipelines: readonly (Omit<StepPipeline, 'stages'> & {
    readonly stages: readonly ResolvedStage[];
  })[];
}
