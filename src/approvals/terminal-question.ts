import type { ApprovalAnswer, ApprovalRequest, ApprovalScope } from '../model/approval.ts';
import { viewOf } from './approval-view.ts';
import { createLineEditor } from './line-editor.ts';
import { presentRequest, scopeSentence, shortCommand, sizeOfCommand } from './presentation.ts';
import type { Terminal } from './terminal.ts';

const BY = 'terminal';
/** What was typed before somebody can have read the question is no answer to it. */
const DEAF_MS = 300;

export const EXPIRED: ApprovalAnswer = { approved: false, reason: 'expired', by: BY };
export const NOBODY: ApprovalAnswer = { approved: false, reason: 'nobody', by: BY };
export const BACKGROUND: ApprovalAnswer = {
  approved: false,
  reason: 'failed',
  by: BY,
  detail:
    'this process is in the background of its terminal; bring it to the foreground (fg), or leave the question in the queue (--ask queue)',
};
export const CANCELED: ApprovalAnswer = {
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
const MEANINGS: Readonly<Record<(typeof CHOICES)[number], string>> = {
  once: '[o]nce     this time',
  session: '[s]ession  while this session lasts',
  always: '[a]lways   until it is revoked',
  deny: '[d]eny     no (Enter)',
};

/** Shows the request, then asks until there is an answer; gives the terminal back. */
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
  const { promise, settle } = settledOnce<ApprovalAnswer>();
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
    const choice = word === '' ? 'deny' : choices.find((name) => name === word || name[0] === word);
    if (choice === undefined) question(`Please type ${keys} (${choices.join(', ')}): `);
    else if (choice === 'deny') settle(DENIED);
    else if (choice === 'once') settle({ approved: true, scope: 'once', by: BY });
    else {
      chosen = choice;
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

  const size = sizeOfCommand(request);
  const menu = choices.map((name) => `${MEANINGS[name]}\n`).join('');
  const left = Math.ceil((end - performance.now()) / 1000);
  say(`\n--- sandbox-run: the policy asks about a command (${size}) ---\n`);
  say(`${presentRequest(request, terminal)}\n${menu}No answer within ${left} s is a no.\n`);
  // Again, for those who see only the end of it.
  const which = shortCommand(request, terminal) ?? `The command stands above: ${size}.\n`;
  question(`${which}Run this command? ${choices.join(' / ')} [deny]: `);

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

function settledOnce<T>(): { readonly promise: Promise<T>; readonly settle: (value: T) => void } {
  let settle: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => {
    settle = resolve;
  });
  return { promise, settle };
}
