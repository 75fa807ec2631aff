import { ERROR_CODES, type ErrorCode } from './codes.ts';

const BRAND = Symbol.for('sandbox-run.SandboxError');

/** The one error class of this package. Expected outcomes of a command are results, never this. */
export class SandboxError extends Error {
  override readonly name = 'SandboxError';
  /** Stable; see `ERROR_CODES`. */
  readonly code: ErrorCode;
  /** The message without the remedy. */
  readonly problem: string;
  /** The command that mends it, where there is one. */
  readonly remedy: string | undefined;

  /** `problem`: one line that says what, where and what to do, unless `remedy` is the command that does it. */
  constructor(code: ErrorCode, problem: string, options: ErrorOptions & { readonly remedy?: string } = {}) {
    super(options.remedy === undefined ? problem : `${problem}; to mend it: ${options.remedy}`, options);
    this.code = code;
    this.problem = problem;
    this.remedy = options.remedy;
  }

  /** The program is built as several files, and each has a copy of this class. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof Error && BRAND in value;
  }

  get [BRAND](): true {
    return true;
  }

  /** What the command line exits with for this error. */
  get exitStatus(): number {
    return ERROR_CODES[this.code].exitStatus;
  }
}
