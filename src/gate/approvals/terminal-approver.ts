import { closeSync, constants, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApprovalAnswer, ApprovalRequest, ApprovalScope, Approver } from '../../model/approval.ts';
import { viewOf } from './approval-view.ts';
import { createLineEditor } from './line-editor.ts';
import { presentRequest, scopeSentence, sizeOfCommand } from './presentation.ts';
import { openTerminal, type Terminal, terminalFile } from './terminal.ts';

/** How a terminal is used. */
export interface TerminalApproverOptions {
  /** Locks an open file for us alone; false: somebody else has it. Without it two processes may ask at the same time. */
  readonly tryLock?: ((fd: number) => boolean) | undefined;
  /** Called when Ctrl-C was typed, which is a no. */
  readonly onInterrupt?: (() => void) | undefined;
}

const TTY = '/dev/tty';
const BY = 'terminal';
/** What was typed before somebody can have read the question is no answer to it. */
const DEAF_MS = 300;
const LOCK_POLL_MS = 100;

const EXPIRED: ApprovalAnswer = { approved: false, reason: 'expired', by: BY };
const NOBODY: ApprovalAnswer = { approved: false, reason: 'nobody', by: BY };
const CANCELED: ApprovalAnswer = {
  approved: false,
  reason: 'failed',
  by: BY,
  detail: 'nobody waits for it any more',
};

/**
 * Asks on the controlling terminal, one request at a time; the standard streams stay the command's. What is on a screen
 * can be painted by whoever can write to it, a sandboxed command that still runs included: such a fake gets no answer,
 * but it could cover ours. Where that matters, answer by `approvals` on a terminal of its own or on the web page.
 */
export function createTerminalApprover({ tryLock, onInterrupt }: TerminalApproverOptions = {}): Approver {
  let last: Promise<unknown> = Promise.resolve();

  async function ask(request: ApprovalRequest, end: number, signal: AbortSignal | undefined) {
    const lock = await lockTerminal(tryLock, end, signal);
    if (lock === undefined) return signal?.aborted === true ? CANCELED : EXPIRED;
    try {
      const terminal = openTerminal(TTY);
      if (terminal === undefined) return NOBODY;
      return await askOn(terminal, request, { end, signal, onInterrupt });
    } finally {
      lock.release();
    }
  }

  return {
    ask(request, { timeoutMs, signal }) {
      const end = performance.now() + timeoutMs;
      const answer = last.then(() => ask(request, end, signal));
      last = answer.catch(() => {});
      return answer;
    },
  };
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

interface Asking {
  readonly end: number;
  readonly signal: AbortSignal | undefined;
  readonly onInterrupt: (() => void) | undefined;
}

const CHOICES = {
  once: '[o]nce    this time',
  session: '[s]ession while this session lasts',
  always: '[a]lways  until it is revoked',
  deny: '[d]eny    no (Enter)',
} as const;

/** Shows the request, then asks until there is an answer. */
function askOn(
  terminal: Terminal,
  request: ApprovalRequest,
  { end, signal, onInterrupt }: Asking,
): Promise<ApprovalAnswer> {
  const view = viewOf(request);
  const choices = Object.keys(CHOICES).filter((name) => name !== 'session' || view.session !== undefined);
  const { promise, settle } = settledOnce<ApprovalAnswer>();
  const timer = setTimeout(() => settle(EXPIRED), Math.max(end - performance.now(), 0));
  const cancel = () => settle(CANCELED);
  signal?.addEventListener('abort', cancel, { once: true });
  if (signal?.aborted === true) cancel();

  /** What cannot be shown cannot be answered. */
  function say(text: string): void {
    try {
      terminal.write(text);
    } catch (error) {
      settle({
        approved: false,
        reason: 'failed',
        by: BY,
        detail: `the terminal cannot be written: ${error}`,
      });
    }
  }

  let deaf = true;
  let hearing: NodeJS.Timeout | undefined;
  /** Keys count from now on, a moment later. */
  function question(text: string): void {
    deaf = true;
    say(text);
    hearing = setTimeout(() => {
      // What waits in the terminal was typed until now, however long we were busy.
      terminal.drain();
      deaf = false;
    }, DEAF_MS);
  }

  /** The scope that was chosen and has to be confirmed. */
  let chosen: ApprovalScope | undefined;
  function heard(line: string): void {
    const word = line.trim().toLowerCase();
    if (chosen !== undefined) {
      if (word === 'yes') settle({ approved: true, scope: chosen, by: BY });
      else settle(DENIED);
      return;
    }
    const choice = word === '' ? 'deny' : choices.find((name) => name === word || name[0] === word);
    if (choice === undefined) question(`Please answer ${choices.join(', ')}: `);
    else if (choice === 'deny') settle(DENIED);
    else if (choice === 'once') settle({ approved: true, scope: 'once', by: BY });
    else {
      chosen = choice === 'always' ? 'always' : 'session';
      question(`${scopeSentence(chosen, view)}\nType yes to confirm (anything else: deny): `);
    }
  }

  const editor = createLineEditor({
    echo: say,
    onLine: heard,
    onEnd: () => settle(DENIED),
    onInterrupt: () => {
      settle(DENIED);
      onInterrupt?.();
    },
  });
  terminal.onInput((text) => {
    if (text === undefined) settle(DENIED);
    else editor.type(text, () => deaf);
  });

  const menu = choices.map((name) => `  ${CHOICES[name as keyof typeof CHOICES]}\n`).join('');
  say(
    `\n--- sandbox-run: the policy asks about this command (${sizeOfCommand(request)}) ---\n${presentRequest(request, terminal)}${menu}`,
  );
  question(`Run it? ${choices.join(' / ')} [deny]: `);

  return promise
    .finally(() => {
      clearTimeout(timer);
      clearTimeout(hearing);
      signal?.removeEventListener('abort', cancel);
    })
    .then((answer) => {
      say(`\n--- ${describe(answer)} ---\n`);
      return answer;
    })
    .finally(() => terminal.close());
}

const DENIED: ApprovalAnswer = { approved: false, reason: 'denied', by: BY };

function describe(answer: ApprovalAnswer): string {
  if (answer.approved) return `approved: ${answer.scope}`;
  return answer.reason === 'failed' ? 'withdrawn' : answer.reason;
}

function settledOnce<T>(): { readonly promise: Promise<T>; readonly settle: (value: T) => void } {
  let settle: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => {
    settle = resolve;
  });
  return { promise, settle };
}
