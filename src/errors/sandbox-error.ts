import { ERROR_CODES, type ErrorCode } from './codes.ts';

const BRAND = Symbol.for('sandbox-run.SandboxError');

/** The one error class of this package. Expected outcomes of a command are results, never this. */
export class SandboxError extends Error {
  override readonly name = 'SandboxError';
  /** Stable; see `ERROR_CODES`. */
  readonly code: ErrorCode;

  /** `message`: one line that says what, where and what to do. */
  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
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
