// What is validated with zod: policy files, and the options of the library. In dist/ it is a part of its own, with
// its libraries (scripts/build-parts.mjs): most starts of the command line do without.
import type { z } from 'zod';
import { errorMessage } from '../base/error-message.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { visibleLine } from '../base/visible-text.ts';
import {
  CheckOptions,
  Command,
  CommandLineOptions,
  JobOptions,
  RunOptions,
  SandboxOptions,
  ShellOptions,
  SpawnOptions,
  TurnOptions,
} from '../model/index.ts';

export { checkNarrowingPolicy, checkPolicy, loadLayer, loadWorkspaceFile } from '../policy/index.ts';

/** How a sandbox takes what it is given: the library validates it, other doors have done so. */
export interface OptionReader {
  command(given: Command): Command;
  run(given: RunOptions | JobOptions): RunOptions | JobOptions;
  spawn(given: SpawnOptions): SpawnOptions;
  check(given: CheckOptions): CheckOptions;
  commandLine(given: CommandLineOptions): CommandLineOptions;
  session(given: ShellOptions): ShellOptions;
  turn(given: TurnOptions): TurnOptions;
}

/**
 * Validates what callers of the library give. What comes back is a copy in which each option was read once: what was
 * validated is what is used, though a getter could give something else the next time. All throw {@link SandboxError}
 * `usage.invalid`, for an unknown option too.
 */
export const readOptions: OptionReader & { sandbox(given: SandboxOptions): SandboxOptions } = {
  sandbox: (given) => read(SandboxOptions, given, 'createSandbox'),
  command: (given) => {
    // Most are strings, and a union would try them one after the other.
    if (typeof given === 'string') return given;
    const result = Command.safeParse(given);
    if (result.success) return result.data;
    throw new SandboxError('usage.invalid', `a command must be ${result.error.issues[0]?.message}`);
  },
  run: (given) => {
    const said = copyOf(given, 'run');
    const options = read(said.background === true ? JobOptions : RunOptions, said, 'run');
    refuseContradictions(options);
    return options;
  },
  spawn: (given) => read(SpawnOptions, given, 'spawn'),
  check: (given) => read(CheckOptions, given, 'check'),
  commandLine: (given) => read(CommandLineOptions, given, 'commandLine'),
  session: (given) => read(ShellOptions, given, 'session'),
  turn: (given) => read(TurnOptions, given, 'session.run'),
};

const OF_CAPTURED_OUTPUT = [
  'maxOutput',
  'encoding',
  'escapes',
  'combined',
  'spill',
  'pty',
  'background',
] as const;

function refuseContradictions(options: RunOptions | JobOptions): void {
  const uncaptured =
    options.stdio === 'inherit' &&
    OF_CAPTURED_OUTPUT.find((name) => options[name] !== undefined && options[name] !== false);
  if (uncaptured)
    throw new SandboxError(
      'usage.invalid',
      `run: ${uncaptured} is for captured output, not for stdio "inherit"`,
    );
  if (options.input !== undefined && options.stdin === 'inherit')
    throw new SandboxError(
      'usage.invalid',
      'run: input takes the place of this process’s standard input; drop stdin',
    );
  const { spill } = options;
  const named = typeof spill === 'object' ? spill : {};
  if (options.combined && named.stderr !== undefined)
    throw new SandboxError(
      'usage.invalid',
      'run: combined puts all output into stdout; drop stderr of spill',
    );
  if (named.append !== undefined && (named.stdout ?? named.stderr) === undefined)
    throw new SandboxError(
      'usage.invalid',
      'run: spill appends to files that are named; add stdout or stderr',
    );
  if (options.encoding === 'bytes' && options.escapes === 'neutralize')
    throw new SandboxError(
      'usage.invalid',
      'run: escapes are taken out of text, not of bytes; drop encoding',
    );
}

/** Whose command may be an array, so that its words may be taken for options. */
const TAKES_ARRAYS: ReadonlySet<string> = new Set(['run', 'spawn', 'check', 'commandLine']);

function copyOf(given: object, where: string): Readonly<Record<string, unknown>> {
  if (TAKES_ARRAYS.has(where) && (typeof given === 'string' || Array.isArray(given)))
    throw new SandboxError(
      'usage.invalid',
      `the options of ${where} must be an object; a program and its arguments are one array: ${where}(["echo", "a"])`,
    );
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new SandboxError('usage.invalid', `the options of ${where} must be an object`);
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function read<Schema extends z.ZodObject>(schema: Schema, given: object, where: string): z.output<Schema> {
  const said = copyOf(given, where);
  // Nothing is said, so nothing can be wrong: most runs have no options.
  if (Object.keys(said).length === 0) return {} as z.output<Schema>;
  const result = parsed(schema, said, where);
  if (result.success) return result.data;
  throw new SandboxError('usage.invalid', describeIssue(result.error.issues[0], schema, where));
}

/** A getter within an option may throw whatever it likes. */
function parsed<Schema extends z.ZodObject>(schema: Schema, said: object, where: string) {
  try {
    return schema.safeParse(said);
  } catch (error) {
    const why = errorMessage(error);
    throw new SandboxError('usage.invalid', `${where}: an option cannot be read: ${visibleLine(why, 200)}`);
  }
}

function describeIssue(issue: z.core.$ZodIssue | undefined, schema: z.ZodObject, where: string): string {
  if (issue === undefined) return `the options of ${where} are not understood`;
  if (issue.code === 'unrecognized_keys' && issue.path.length === 0)
    return `${where} has no option "${issue.keys[0]}"; there are ${Object.keys(schema.shape).join(', ')}`;
  const { message } = issue;
  const [name, ...within] = issue.path.map(String);
  const place = within.length === 0 ? '' : ` (see ${visibleLine(within.join('.'), 100)})`;
  return `${where}: ${name} must be ${message}${place}`;
}
