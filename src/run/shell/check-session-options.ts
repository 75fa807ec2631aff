import { SandboxError } from '../../errors/sandbox-error.ts';
import { BOOLEAN, checked, RUN_OPTIONS, STRING, VARIABLES } from '../check-options.ts';
import type { ShellOptions, TurnOptions } from './session-options.ts';

const { taints, timeout, signal, onOutput } = RUN_OPTIONS;

/** @throws {SandboxError} `usage.invalid`. */
export function checkSessionOptions(options: ShellOptions): ShellOptions {
  return checked(
    options,
    {
      cwd: STRING,
      env: VARIABLES,
      restore: [(value) => typeof value === 'object' && value !== null, 'a snapshot of a session'],
    },
    'session',
  );
}

/** @throws {SandboxError} `usage.invalid`. */
export function checkTurnOptions(options: TurnOptions): TurnOptions {
  const copy = checked(
    options,
    { approved: BOOLEAN, taints, timeout, signal, onOutput, env: VARIABLES },
    'session.run',
  );
  // The shell itself assigns them, so they have to be names that it takes.
  const wrong = Object.entries(copy.env ?? {}).find(
    ([name, value]) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || value.includes('\0'),
  );
  if (wrong !== undefined)
    throw new SandboxError(
      'usage.invalid',
      `session.run: the variable ${JSON.stringify(wrong[0])} cannot be set`,
    );
  return copy;
}
