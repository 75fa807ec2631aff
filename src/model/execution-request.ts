/** What to run: a shell string (under bash) or an argument vector, never joined into a string. */
export type Command = string | readonly [string, ...string[]];

/** One command to run in a sandbox. */
export interface ExecutionRequest {
  readonly command: Command;
  /** Absolute or relative to the workspace. Default: the workspace. */
  readonly cwd?: string;
  /** Additional variables; `undefined` takes one away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Milliseconds; 0: no limit. Default: the policy's. */
  readonly timeout?: number;
}
