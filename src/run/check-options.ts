import { SandboxError } from '../errors/sandbox-error.ts';
import { TAINTS } from '../model/decision.ts';
import type { Command } from '../model/execution-request.ts';
import { APPROVERS } from '../model/policy.ts';
import type { RunOptions, SandboxOptions, SpawnOptions } from './sandbox-options.ts';

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
const BOOLEAN: Test = [(value) => typeof value === 'boolean', 'true or false'];
const MILLISECONDS: Test = [
  (value) => typeof value === 'number' && value >= 0 && value <= MAX_MILLISECONDS,
  'milliseconds from 0 (none) to a year',
];
const BYTES: Test = [(value) => Number.isSafeInteger(value) && Number(value) >= 0, 'a number of bytes'];
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
const oneOf = (...values: readonly unknown[]): Test => [
  (value) => values.includes(value),
  values.map((value) => `"${value}"`).join(' or '),
];

const SANDBOX_OPTIONS: Readonly<Record<keyof SandboxOptions, Test>> = {
  workspace: STRING,
  profile: STRING,
  policy: [(value) => isString(value) || isRecord(value), 'a path or an object'],
  policyFiles: BOOLEAN,
  autonomy: oneOf('readonly', 'supervised', 'autonomous'),
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
  maxOutput: BYTES,
};

export const RUN_OPTIONS: Readonly<Record<keyof RunOptions, Test>> = {
  cwd: STRING,
  env: CHANGED_VARIABLES,
  approved: BOOLEAN,
  taints: [
    (value) => Array.isArray(value) && value.every((taint) => TAINTS.some((known) => known === taint)),
    `an array of ${TAINTS.join(', ')}`,
  ],
  timeout: MILLISECONDS,
  signal: [(value) => value instanceof AbortSignal, 'an AbortSignal'],
  input: [(value) => isString(value) || value instanceof Uint8Array, 'a string or bytes'],
  stdin: oneOf('null', 'inherit'),
  onOutput: [(value) => typeof value === 'function', 'a function'],
  stdio: oneOf('capture', 'inherit'),
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
export function checkRunOptions(options: RunOptions): RunOptions {
  return checked(options, RUN_OPTIONS, 'run');
}

/** @throws {SandboxError} `usage.invalid`. */
export function checkSpawnOptions(options: SpawnOptions): SpawnOptions {
  return checked(options, RUN_OPTIONS, 'spawn');
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
