import { constants } from 'node:os';
import { assertNever } from '../../base/assert-never.ts';
import { ERROR_CODES } from '../../base/errors/codes.ts';
import type { ExecutionResult } from '../../model/index.ts';

/** Exit statuses that neither a command nor an error code has. */
export const EXIT_STATUS = { timedOut: 124, asks: 10, signal: 128 } as const;
/** SIGRTMIN as glibc counts. */
const FIRST_REAL_TIME_SIGNAL = 34;

/** The status of a launcher that a signal ended, or that ends as if one had. */
export const endedBy = (signal: NodeJS.Signals) => EXIT_STATUS.signal + constants.signals[signal];

/**
 * One number for a result, as a shell would say it: the command's own, 128 and the signal's number, 124 after the time-out,
 * and the status of the error (`ERROR_CODES`): 126 refused, 123 a limit was exceeded.
 */
export function exitStatus(result: ExecutionResult): number {
  switch (result.status) {
    case 'exited':
      return result.exitCode;
    case 'signaled':
      return EXIT_STATUS.signal + signalNumber(result.signal);
    case 'timed-out':
      return EXIT_STATUS.timedOut;
    case 'canceled':
      return result.signal === undefined
        ? (result.exitCode ?? 1)
        : EXIT_STATUS.signal + signalNumber(result.signal);
    case 'limit-exceeded':
    case 'denied':
    case 'setup-failed':
      return ERROR_CODES[result.error.code].exitStatus;
    default:
      return assertNever(result);
  }
}

function signalNumber(name: string): number {
  const realTime = /^SIGRTMIN\+(\d+)$/.exec(name)?.[1];
  if (realTime !== undefined) return FIRST_REAL_TIME_SIGNAL + Number(realTime);
  return Object.entries(constants.signals).find(([known]) => known === name)?.[1] ?? 0;
}
