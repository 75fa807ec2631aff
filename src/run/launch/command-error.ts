import { assertNever } from '../../base/assert-never.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { readableWord } from '../../base/shell-quote.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { Command, ExecutionResult, TurnResult } from '../../model/index.ts';
import { exitStatus } from './exit-status.ts';

const LONGEST_COMMAND = 100;
const LONGEST_LAST_WORDS = 200;

/**
 * What a run with the option `reject` throws for a command that did not exit with 0. `code` is that of the result's error,
 * else `command.failed`.
 */
export class CommandError extends SandboxError {
  readonly result: ExecutionResult | TurnResult;

  constructor(command: Command, result: ExecutionResult | TurnResult) {
    super(result.error?.code ?? 'command.failed', describe(command, result));
    this.result = result;
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof SandboxError && 'result' in value;
  }

  /** As a shell would say it: that of the command, where it has one. */
  override get exitStatus(): number {
    return exitStatus(this.result);
  }
}

/** What a run gives, with the option `reject` or without. */
export function settled<Result extends ExecutionResult>(
  command: Command,
  running: Promise<Result>,
  reject = false,
): Promise<Result> {
  if (!reject) return running;
  return running.then((result) => {
    if (result.ok) return result;
    throw new CommandError(command, result);
  });
}

/** In one line; the last line of standard error says more than any of ours. */
function describe(command: Command, result: ExecutionResult): string {
  const text = typeof command === 'string' ? command : command.map(readableWord).join(' ');
  const said = result.stderr.trimEnd().split('\n').at(-1)?.trim() ?? '';
  const lastWords = said === '' ? '' : `: ${visibleLine(said, LONGEST_LAST_WORDS)}`;
  return `${visibleLine(text, LONGEST_COMMAND)}: ${whatBecameOf(result)}${lastWords}`;
}

function whatBecameOf(result: ExecutionResult): string {
  switch (result.status) {
    case 'exited':
      return `exited ${result.exitCode}`;
    case 'signaled':
      return `ended by ${result.signal}`;
    case 'timed-out':
      return `ran out of time and was ended after ${(result.durationMs / 1000).toFixed(1)} s`;
    case 'canceled':
      return 'was canceled';
    case 'limit-exceeded':
    case 'denied':
    case 'setup-failed':
      return result.error.message;
    default:
      return assertNever(result);
  }
}
