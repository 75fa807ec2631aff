import { closeSync, constants, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApprovalAnswer, ApprovalRequest, ApprovalScope, Approver } from '../model/approval.ts';
import { deferred } from '../util/deferred.ts';
import { viewOf } from './approval-view.ts';
import { presentQuestion, presentRequest, scopeSentence, sizeOfCommand } from './presentation.ts';
import { isInBackground, openTerminal, type Terminal, terminalFile } from './terminal.ts';

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

const BY = 'terminal';
/** What was typed before somebody can have read the question is no answer to it. */
const DEAF_MS = 300;

const EXPIRED: ApprovalAnswer = { approved: false, reason: 'expired', by: BY };
export const NOBODY: ApprovalAnswer = { approved: false, reason: 'nobody', by: BY };
const BACKGROUND: ApprovalAnswer = {
  approved: false,
  reason: 'failed',
  by: BY,
  detail:
    'this process is in the background of its terminal; bring it to the foreground (fg), or leave the question in the queue (--ask queue)',
};
const SHARED: ApprovalAnswer = {
  approved: false,
  reason: 'failed',
  by: BY,
  detail:
    'the command can write to this terminal while it runs, and could cover the question; leave questions in the queue (--ask queue) and answer them in another terminal',
};
const CANCELED: ApprovalAnswer = {
  approved: false,
  reason: 'failed',
  by: BY,
  detail: 'nobody waits for it any more',
};
const DENIED: ApprovalAnswer = { approved: false, reason: 'denied', by: BY };

/** Until when, for whom. */
interface Asking {
  readonly end: number;
  readonly signal: AbortSignal | undefined;
  readonly onInterrupt: (() => void) | undefined;
}

const CHOICES = ['once', 'session', 'always', 'deny'] as const;
const KEYS: Readonly<Record<(typeof CHOICES)[number], string>> = {
  once: '[o]nce',
  session: '[s]ession',
  always: '[a]lways',
  deny: '[d]eny (Enter)',
};
/** Shows the whole request; no answer. */
const MORE = 'more';
/** Above the line for the answer, and still to be seen with it. */
const MOST_ROWS = 10;

/** Shows the question, then asks until there is an answer; gives the terminal back. */
export function askOn(
  terminal: Terminal,
  request: ApprovalRequest,
  { end, signal, onInterrupt }: Asking,
): Promise<ApprovalAnswer> {
  const view = viewOf(request);
  const choices = CHOICES.filter((name) => name !== 'session' || view.session !== undefined);
  const keys = choices
    .map(([key]) => key)
    .join(', ')
    .replace(/, (.)$/, ' or $1');
  const what = view.connection === undefined ? 'Run this command?' : `Allow ${view.connection}?`;
  const prompt = `${what} ${choices.join(' / ')} [deny]: `;
  const { promise, resolve: settle } = deferred<ApprovalAnswer>();
  const timer = setTimeout(() => settle(EXPIRED), Math.max(end - performance.now(), 0));
  const cancel = () => settle(CANCELED);
  signal?.addEventListener('abort', cancel, { once: true });
  if (signal?.aborted === true) cancel();

  /** What cannot be shown cannot be answered, nor what is typed on a terminal that fails. */
  function orFail(use: () => void): void {
    try {
      use();
    } catch (error) {
      settle({ approved: false, reason: 'failed', by: BY, detail: `the terminal cannot be used: ${error}` });
    }
  }
  const say = (text: string) => orFail(() => terminal.write(text));

  let deaf = true;
  let hearing: NodeJS.Timeout | undefined;
  /** Keys count from now on, a moment later. */
  function question(text: string): void {
    deaf = true;
    say(text);
    hearing = setTimeout(() => {
      // What waits in the terminal was typed until now, however long we were busy.
      orFail(terminal.drain);
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
    if (word === MORE || word === MORE[0]) {
      say(presentRequest(request, terminal));
      question(prompt);
      return;
    }
    const choice = word === '' ? 'deny' : choices.find((name) => name === word || name[0] === word);
    if (choice === undefined) question(`Please type ${keys} (${choices.join(', ')}): `);
    else if (choice === 'deny') settle(DENIED);
    else if (choice === 'once') settle({ approved: true, scope: 'once', by: BY });
    else {
      chosen = choice;
      question(`${scopeSentence(chosen, view)}\nType yes to confirm (anything else: deny): `);
    }
  }

  const type = lineEditor({
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
    else type(text, () => deaf);
  });

  const left = Math.ceil((end - performance.now()) / 1000);
  const shown = presentQuestion(request, terminal);
  say(`\n${shown}`);
  say(`${choices.map((name) => KEYS[name]).join(' ')} [m]ore. No answer within ${left} s is a no.\n`);
  // For those who see only the end of it.
  if (shown.split('\n').length > MOST_ROWS) say(`The command stands above: ${sizeOfCommand(request)}.\n`);
  question(prompt);

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

function describe(answer: ApprovalAnswer): string {
  if (answer.approved) return `approved: ${answer.scope}`;
  return answer.reason === 'failed' ? 'withdrawn' : answer.reason;
}

/** What a line editor tells. */
interface LineEditorEvents {
  readonly echo: (text: string) => void;
  /** A line with an escape in it is told as that one character. */
  readonly onLine: (line: string) => void;
  /** Ctrl-D or Ctrl-\. */
  readonly onEnd: () => void;
  /** Ctrl-C. */
  readonly onInterrupt: () => void;
}

const LONGEST = 20;

/**
 * Takes what is typed on a terminal that neither echoes nor edits: a line of short words. `isDeaf` is asked for each key: a
 * line may begin a time in which nothing is heard. Ctrl-C and its kin always are.
 */
function lineEditor({ echo, onLine, onEnd, onInterrupt }: LineEditorEvents) {
  let line = '';
  /**
   * An escape came: an arrow key, a paste, or what the terminal itself answers to whoever writes the right thing to it.
   * None of it is an answer of a person, up to the end of the line.
   */
  let strange = false;
  function key(character: string): void {
    if (character === '\r' || character === '\n') {
      const whole = strange ? '\x1b' : line;
      line = '';
      strange = false;
      echo('\n');
      onLine(whole);
    } else if (character === '\x1b' || strange) {
      strange = true;
    } else if (character === '\x7f' || character === '\b') {
      if (line === '') return;
      line = line.slice(0, -1);
      echo('\b \b');
    } else if (character === '\x15') {
      echo('\b \b'.repeat(line.length));
      line = '';
    } else if (/^[ -~]$/.test(character) && line.length < LONGEST) {
      line += character;
      echo(character);
    }
  }
  return (text: string, isDeaf: () => boolean) => {
    for (const character of text) {
      if (character === '\x03') onInterrupt();
      else if (character === '\x04' || character === '\x1c') onEnd();
      else if (!isDeaf()) key(character);
    }
  };
}
