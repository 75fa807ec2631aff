/**
 * What is measured: all of a run, and of that the decision and the launch; how long a job waited in its queue; a job as its
 * submitter sees it, and as its worker does.
 */
export type Measure = 'run' | 'decision' | 'launch' | 'queue-wait' | 'submit' | 'job';

/** Attributes of a measurement: words of ours, numbers, and names of programs. Never arguments, variables or paths. */
export type Facts = Readonly<Record<string, string | number | boolean | undefined>>;

/** Something that is being measured. */
export interface Measured {
  /** The W3C `traceparent`, for another process to continue the trace; `undefined`: it is not traced. */
  readonly traceparent: string | undefined;
  /** Measurements that the work starts become children of this one. */
  within<T>(work: () => T): T;
  /** Ends the measurement. */
  end(facts?: Facts): void;
}

/** Where durations go. Nothing of it throws or waits. */
export interface Telemetry {
  /** `parent`: what it is a part of, from another process; `since`: when it began, in milliseconds since 1970. */
  begin(what: Measure, options?: { readonly parent?: string | undefined; readonly since?: number }): Measured;
}
