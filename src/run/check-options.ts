import { constants } from 'node:os';
import { SandboxError } from '../errors/sandbox-error.ts';
import { BACKEND_IDS } from '../model/backend.ts';
import type { Command } from '../model/command.ts';
import { AUTONOMIES, TAINTS } from '../model/decision.ts';
import { APPROVERS, MAX_OUTPUT_BYTES } from '../model/policy-keys.ts';
import type {
  JobOptions,
  RunOptions,
  SandboxOptions,
  SpawnOptions,
  TerminalSize,
} from './sandbox-options.ts';

/** A year; what is longer is a mistake, and would overflow the clock. */
const MAX_MILLISECONDS = 365 * 24 * 3600 * 1000;

export type Test = readonly [(value: unknown) => boolean, string];

const isString = (value: unknown): boolean => typeof value === 'string';
const isStrings = (value: unknown): boolean => Array.isArray(value) && value.every(isString);
const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isVariableName = (name: string): boolean => name !== '' && !name.includes('=');

/** @internal Tests for options, shared with those of sessions. */
export const STRING: Test = [isString, 'a string'];
const STRINGS: Test = [isStrings, 'an array of strings'];
export const BOOLEAN: Test = [(value) => typeof value === 'boolean', 'true or false'];
const MILLISECONDS: Test = [
  (value) => typeof value === 'number' && value >= 0 && value <= MAX_MILLISECONDS,
  'milliseconds from 0 (none) to a year',
];
const BYTES: Test = [(value) => Number.isSafeInteger(value) && Number(value) >= 0, 'a number of bytes'];
const isBytes = BYTES[0];
const MAX_OUTPUT: Test = [
  (value) =>
    isRecord(value)
      ? Object.keys(value).length === 2 &&
        isBytes(value.head) &&
        isBytes(value.tail) &&
        Number(value.head) + Number(value.tail) <= MAX_OUTPUT_BYTES
      : isBytes(value) && Number(value) <= MAX_OUTPUT_BYTES,
  `a number of bytes, or { head, tail } with one of each: ${MAX_OUTPUT_BYTES} (128 MiB) at most; spill keeps more`,
];
const SPILL: Test = [
  (value) =>
    typeof value === 'boolean' ||
    (isRecord(value) &&
      Object.keys(value).length === 1 &&
      (isBytes(value.maxBytes) || value.maxBytes === Infinity)),
  'true, false or { maxBytes }',
];
export const VARIABLES: Test = [
  (value) =>
    isRecord(value) && Object.entries(value).every(([name, text]) => isVariableName(name) && isString(text)),
  'an object of strings by variable name',
];
const CHANGED_VARIABLES: Test = [
  (value) =>
    isRecord(value) &&
    Object.entries(value).every(
      ([name, text]) => isVariableName(name) && (text === undefined || isString(text)),
    ),
  'an object of strings (or undefined) by variable name',
];
const isTerminalSize = (value: unknown): value is TerminalSize =>
  isRecord(value) &&
  [value.cols, value.rows].every((count) => Number.isInteger(count) && isCharacters(count));
const isCharacters = (count: unknown): boolean => Number(count) >= 1 && Number(count) <= 65535;
const TERMINAL_SIZE: Test = [isTerminalSize, 'an object { cols, rows } of numbers from 1 to 65535'];
const oneOf = (...values: readonly unknown[]): Test => [
  (value) => values.includes(value),
  values.map((value) => `"${value}"`).join(' or '),
];

const TREE_LIMITS = ['memory', 'processes', 'cpuSeconds', 'tmpBytes'];
const LIMITS: Test = [
  (value) =>
    isRecord(value) &&
    Object.entries(value).every(
      ([name, limit]) =>
        TREE_LIMITS.includes(name) &&
        (limit === undefined || (Number.isSafeInteger(limit) && Number(limit) > 0)),
    ),
  `an object of whole numbers above 0: ${TREE_LIMITS.join(', ')}`,
];

const SANDBOX_OPTIONS: Readonly<Record<keyof SandboxOptions, Test>> = {
  workspace: STRING,
  profile: STRING,
  policy: [(value) => isString(value) || isRecord(value), 'a path or an object'],
  policyFiles: BOOLEAN,
  backend: oneOf('auto', ...BACKEND_IDS),
  autonomy: oneOf(...AUTONOMIES),
  ask: oneOf(...APPROVERS),
  gate: [isRecord, 'an object'],
  principal: [(value) => isString(value) && value !== '', 'a string that is not empty'],
  session: [
    (value) => isString(value) || (isRecord(value) && typeof value.onEnd === 'function'),
    'a session of openSession() or its id',
  ],
  readable: STRINGS,
  writable: STRINGS,
  passEnv: STRINGS,
  env: VARIABLES,
  timeout: MILLISECONDS,
  idleTimeout: MILLISECONDS,
  limits: LIMITS,
  maxOutput: MAX_OUTPUT,
};

export const RUN_OPTIONS: Readonly<Record<keyof RunOptions, Test>> = {
  background: BOOLEAN,
  cwd: STRING,
  env: CHANGED_VARIABLES,
  approved: [
    (value) =>
      typeof value === 'boolean' ||
      (isRecord(value) && Object.keys(value).length === 1 && isString(value.fingerprint)),
    'true, false or { fingerprint }',
  ],
  taints: [
    (value) => Array.isArray(value) && value.every((taint) => TAINTS.some((known) => known === taint)),
    `an array of ${TAINTS.join(', ')}`,
  ],
  timeout: MILLISECONDS,
  idleTimeout: MILLISECONDS,
  signal: [(value) => value instanceof AbortSignal, 'an AbortSignal'],
  input: [(value) => isString(value) || value instanceof Uint8Array, 'a string or bytes'],
  stdin: oneOf('null', 'inherit'),
  onOutput: [(value) => typeof value === 'function', 'a function'],
  maxOutput: MAX_OUTPUT,
  encoding: oneOf('utf8', 'bytes'),
  escapes: oneOf('keep', 'neutralize'),
  combined: BOOLEAN,
  spill: SPILL,
  stdio: oneOf('capture', 'inherit'),
  pty: TERMINAL_SIZE,
};

/**
 * A copy of the options in which each was read once: what was checked is what is used.
 * @throws {SandboxError} `usage.invalid` for an unknown option or a wrong value.
 */
export function checked<Options extends object>(
  given: Options,
  tests: Readonly<Record<keyof Options & string, Test>>,
  where: string,
): Options {
  if (!isRecord(given)) throw new SandboxError('usage.invalid', `the options of ${where} must be an object`);
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(given)) {
    const test = Object.hasOwn(tests, name) ? tests[name as keyof Options & string] : undefined;
    if (test === undefined) {
      const known = Object.keys(tests).join(', ');
      throw new SandboxError('usage.invalid', `${where} has no option "${name}"; there are ${known}`);
    }
    const value = given[name];
    if (value === undefined) continue;
    if (!test[0](value)) throw new SandboxError('usage.invalid', `${where}: ${name} must be ${test[1]}`);
    copy[name] = value;
  }
  return copy as Options;
}

/** @throws {SandboxError} `usage.invalid`. */
export function checkSandboxOptions(options: SandboxOptions): SandboxOptions {
  return checked(options, SANDBOX_OPTIONS, 'createSandbox');
}

/** @throws {SandboxError} `usage.invalid`. */
export function checkRunOptions(options: RunOptions | JobOptions): RunOptions | JobOptions {
  const run = checked<RunOptions | JobOptions>(options, RUN_OPTIONS, 'run');
  if (run.stdio === 'inherit') {
    for (const name of OF_CAPTURED_OUTPUT) {
      if (run[name] !== undefined && run[name] !== false)
        throw new SandboxError(
          'usage.invalid',
          `run: ${name} is for captured output, not for stdio "inherit"`,
        );
    }
  }
  if (run.encoding === 'bytes' && run.escapes === 'neutralize')
    throw new SandboxError(
      'usage.invalid',
      'run: escapes are taken out of text, not of bytes; drop encoding',
    );
  return withOwnSize(run, 'run');
}

/**
 * A copy of a size that is one.
 * @throws {SandboxError} `usage.invalid`.
 */
export function checkedTerminalSize({ cols, rows }: TerminalSize, where: string): TerminalSize {
  if (isTerminalSize({ cols, rows })) return { cols, rows };
  throw new SandboxError('usage.invalid', `${where}: cols and rows must be numbers from 1 to 65535`);
}

/**
 * A signal that there is.
 * @throws {SandboxError} `usage.invalid`.
 */
export function checkedSignal(signal: NodeJS.Signals): NodeJS.Signals {
  if (typeof signal === 'string' && Object.hasOwn(constants.signals, signal)) return signal;
  throw new SandboxError(
    'usage.invalid',
    `kill: ${JSON.stringify(signal) ?? 'undefined'} is no signal; give its name, such as "SIGTERM"`,
  );
}

function withOwnSize<Options extends Pick<SpawnOptions, 'pty'>>(options: Options, where: string): Options {
  return options.pty === undefined ? options : { ...options, pty: checkedTerminalSize(options.pty, where) };
}

const OF_CAPTURED_OUTPUT = [
  'maxOutput',
  'encoding',
  'escapes',
  'combined',
  'spill',
  'pty',
  'background',
] as const;

/** @throws {SandboxError} `usage.invalid`. */
export function checkSpawnOptions(options: SpawnOptions): SpawnOptions {
  return withOwnSize(checked(options, RUN_OPTIONS, 'spawn'), 'spawn');
}

/**
 * A copy of the command, if it is one: what is judged, and perhaps asked about for minutes, is what runs.
 * @throws {SandboxError} `usage.invalid`.
 */
export function checkedCommand(command: Command): Command {
  if (typeof command === 'string') return command;
  if (isStrings(command)) {
    const [program, ...args] = command;
    if (program !== undefined) return [program, ...args];
  }
  throw new SandboxError(
    'usage.invalid',
    'a command must be a shell string or an array of strings, the program first',
  );
}
