import { closeSync, constants, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApprovalRequest, Approver } from '../model/approval.ts';
import { isInBackground, openTerminal, terminalFile } from './terminal.ts';
import { askOn, BACKGROUND, CANCELED, EXPIRED, NOBODY, SHARED } from './terminal-question.ts';

/** How a terminal is used. */
interface TerminalApproverOptions {
  /** Locks an open file for us alone; false: somebody else has it. Without it two processes may ask at the same time. */
  readonly tryLock?: ((fd: number) => boolean) | undefined;
  /**
   * Whether a command that runs cannot write to the terminal, nor read what is typed there: only then is it asked here what
   * such a command may do. Missing: it can.
   */
  readonly isOutOfReach?: (() => boolean) | undefined;
  /** Called when Ctrl-C was typed, which is a no. */
  readonly onInterrupt?: (() => void) | undefined;
}

const TTY = '/dev/tty';
const LOCK_POLL_MS = 100;

/**
 * Asks on the controlling terminal, one request at a time; the standard streams stay the command's. What is on a screen
 * can be painted by whoever can write to it, a sandboxed command that still runs included: such a fake gets no answer,
 * but it could cover ours. Where that matters, answer by `approvals` on a terminal of its own or on the web page. What such
 * a command itself may do is never asked on a terminal that it can write to.
 */
export function createTerminalApprover({
  tryLock,
  isOutOfReach,
  onInterrupt,
}: TerminalApproverOptions = {}): Approver {
  let last: Promise<unknown> = Promise.resolve();

  async function ask(request: ApprovalRequest, end: number, signal: AbortSignal | undefined) {
    const lock = await lockTerminal(tryLock, end, signal);
    if (lock === undefined) return signal?.aborted === true ? CANCELED : EXPIRED;
    try {
      const terminal = openTerminal(TTY);
      if (terminal === undefined) return isInBackground() ? BACKGROUND : NOBODY;
      return await askOn(terminal, request, { end, signal, onInterrupt });
    } finally {
      lock.release();
    }
  }

  return {
    ask(request, { timeoutMs, signal }) {
      if (request.connection !== undefined && isOutOfReach?.() !== true) return Promise.resolve(SHARED);
      const end = performance.now() + timeoutMs;
      const before = last;
      const answer = cameInTime(before, end, signal).then((came) => {
        if (came) return ask(request, end, signal);
        return signal?.aborted === true ? CANCELED : EXPIRED;
      });
      last = Promise.allSettled([before, answer]);
      return answer;
    },
  };
}

/** False: the time was over, or nobody waits any more. */
async function cameInTime(
  turn: Promise<unknown>,
  end: number,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const done = new AbortController();
  const given = signal === undefined ? done.signal : AbortSignal.any([signal, done.signal]);
  const late = sleep(Math.max(end - performance.now(), 0), false, { signal: given }).catch(() => false);
  try {
    return await Promise.race([turn.then(() => true), late]);
  } finally {
    done.abort();
  }
}

interface Lock {
  release(): void;
}

/** Waits for the terminal; `undefined`: in vain. The lock is one of those who ask, nobody else has to heed it. */
async function lockTerminal(
  tryLock: TerminalApproverOptions['tryLock'],
  end: number,
  signal: AbortSignal | undefined,
): Promise<Lock | undefined> {
  const path = tryLock === undefined ? undefined : terminalFile();
  const fd = path === undefined ? undefined : openOrNot(path);
  const release = () => {
    if (fd !== undefined) closeSync(fd);
  };
  for (;;) {
    if (signal?.aborted === true || performance.now() >= end) break;
    if (fd === undefined || tryLock?.(fd) === true) return { release };
    await sleep(LOCK_POLL_MS, undefined, signal === undefined ? {} : { signal }).catch(() => {});
  }
  release();
  return undefined;
}

function openOrNot(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOCTTY | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
}
