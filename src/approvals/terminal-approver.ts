import { setTimeout as sleep } from 'node:timers/promises';
import type {
  ApprovalAnswer,
  ApprovalRequest,
  ApprovalScope,
  Approver,
  ProposedRule,
  RuleWriter,
} from '../model/approval.ts';
import { ANY_WORDS } from '../model/command-rule.ts';
import { assertNever } from '../util/assert-never.ts';
import { errorMessage } from '../util/error-message.ts';
import { readableWord } from '../util/shell-quote.ts';
import { visibleText } from '../util/visible-text.ts';
import { viewOf } from './approval-view.ts';
import {
  presentQuestion,
  presentRequest,
  presentRows,
  scopeSentence,
  scopesOf,
  sizeOfCommand,
} from './presentation.ts';
import type { Terminal } from './terminal.ts';
import { type TalkOptions, type Turn, talkOn, type Unheard, withTerminal } from './terminal.ts';

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
  /** Writes a rule for who wants one. Missing: none is offered. */
  readonly rules?: RuleWriter | undefined;
}

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
  rules,
}: TerminalApproverOptions = {}): Approver {
  let last: Promise<unknown> = Promise.resolve();

  async function ask(request: ApprovalRequest, end: number, signal: AbortSignal | undefined) {
    const talked = await withTerminal(
      (terminal) => askOn(terminal, request, { end, signal, onInterrupt }, rules),
      {
        tryLock,
        end,
        signal,
      },
    );
    if (talked.used) return talked.result;
    if (talked.why === 'late') return signal?.aborted === true ? CANCELED : EXPIRED;
    return talked.why === 'background' ? BACKGROUND : NOBODY;
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

const BY = 'terminal';
const EXPIRED: ApprovalAnswer = { approved: false, reason: 'expired', by: BY };
const NOBODY: ApprovalAnswer = { approved: false, reason: 'nobody', by: BY };
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

const CHOICES = ['once', 'session', 'always', 'rule', 'deny'] as const;
const KEYS: Readonly<Record<(typeof CHOICES)[number], string>> = {
  once: '[o]nce',
  session: '[s]ession',
  always: '[a]lways',
  rule: '[r]ule',
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
  talk: TalkOptions,
  rules?: RuleWriter,
): Promise<ApprovalAnswer> {
  const view = viewOf(request);
  const scopes = scopesOf(request);
  const offer = rules === undefined ? undefined : offeredRule(request);
  const choices = CHOICES.filter((name) =>
    name === 'rule' ? offer !== undefined : name === 'deny' || scopes.includes(name),
  );
  const keys = choices
    .map(([key]) => key)
    .join(', ')
    .replace(/, (.)$/, ' or $1');
  const what = view.connection === undefined ? 'Run this command?' : `Allow ${view.connection}?`;
  const prompt = `${what} ${choices.join(' / ')} [deny]: `;

  /** The scope that was chosen and has to be confirmed. */
  let chosen: ApprovalScope | undefined;
  let isRuleShown = false;
  /** Shows what would be written where; once that was confirmed, writes it. */
  function ruleTurn(answer: string | undefined): Turn<ApprovalAnswer> {
    if (offer === undefined || rules === undefined) return { answer: DENIED };
    try {
      if (answer === undefined) {
        const question = ruleQuestion(offer, rules, terminal, 'deny');
        isRuleShown = true;
        return question;
      }
      if (answer !== 'yes') return { answer: DENIED };
      rules.write(offer);
      return { answer: { approved: true, scope: 'once', by: `${BY}, with a rule` } };
    } catch (error) {
      isRuleShown = false;
      return { say: `${visibleText(errorMessage(error))}\n`, prompt };
    }
  }
  function heard(line: string): Turn<ApprovalAnswer> {
    const word = line.trim().toLowerCase();
    if (isRuleShown) return ruleTurn(word);
    if (chosen !== undefined)
      return { answer: word === 'yes' ? { approved: true, scope: chosen, by: BY } : DENIED };
    if (word === MORE || word === MORE[0]) return { say: presentRequest(request, terminal), prompt };
    const choice = word === '' ? 'deny' : choices.find((name) => name === word || name[0] === word);
    if (choice === undefined) return { prompt: `Please type ${keys} (${choices.join(', ')}): ` };
    if (choice === 'deny') return { answer: DENIED };
    if (choice === 'once') return { answer: { approved: true, scope: 'once', by: BY } };
    if (choice === 'rule') return ruleTurn(undefined);
    chosen = choice;
    return { say: `${scopeSentence(chosen, view)}\n`, prompt: 'Type yes to confirm (anything else: deny): ' };
  }

  const left = Math.ceil((talk.end - performance.now()) / 1000);
  const shown = presentQuestion(request, terminal);
  const opening = [
    `\n${shown}`,
    `${choices.map((name) => KEYS[name]).join(' ')} [m]ore. No answer within ${left} s is a no.\n`,
    // For those who see only the end of it.
    ...(shown.split('\n').length > MOST_ROWS
      ? [`The command stands above: ${sizeOfCommand(request)}.\n`]
      : []),
  ];
  return talkOn(
    terminal,
    { opening: opening.join(''), prompt, heard, closing: describe, unheard: answerWithout },
    talk,
  );
}

/** The rule that may be written for who answers always. `undefined`: none would do, or the policy is on another machine. */
export function offeredRule(request: ApprovalRequest): ProposedRule | undefined {
  const isLasting = scopesOf(request).includes('always') && request.host === undefined;
  return isLasting ? request.rule : undefined;
}

/** Shows what would be written where. `otherwise`: what any other answer means. */
function ruleQuestion(rule: ProposedRule, rules: RuleWriter, terminal: Terminal, otherwise: 'deny' | 'no') {
  const { path, text } = rules.preview(rule);
  const shown = presentRows(
    [
      { label: 'rule', text: `always allow ${describeRule(rule)} in ${visibleText(rule.directory)}` },
      { label: 'file', text: visibleText(path) },
      ...text
        .trimEnd()
        .split('\n')
        .map((row) => ({ label: '', text: visibleText(row) })),
    ],
    terminal,
  );
  return {
    say: `Runs it once, and puts this into your policy, for commands that are started from then on:\n${shown}`,
    prompt: `Type yes to write it (anything else: ${otherwise}): `,
  };
}

/**
 * Shows a request and the rule that is offered for it on a terminal: true once a person has typed yes there. Nothing else is asked,
 * so that no program answers through a pipe.
 * @throws {SandboxError} where the rule cannot be written.
 */
export function confirmRuleOn(
  terminal: Terminal,
  request: ApprovalRequest,
  rule: ProposedRule,
  rules: RuleWriter,
  talk: TalkOptions,
): Promise<boolean> {
  const { say, prompt } = ruleQuestion(rule, rules, terminal, 'no');
  return talkOn<boolean>(
    terminal,
    {
      opening: `\n${presentRequest(request, terminal)}\n${say}`,
      prompt,
      heard: (line) => ({ answer: line.trim().toLowerCase() === 'yes' }),
      closing: (isMeant) => (isMeant ? 'yes' : 'no'),
      unheard: () => false,
    },
    talk,
  );
}

/** `cargo test …` */
const describeRule = ({ program, words }: ProposedRule): string =>
  [program, ...words].map((word) => (word === ANY_WORDS ? '…' : readableWord(word))).join(' ');

/** What it is that there was no line of a person. */
function answerWithout(why: Unheard, detail: string | undefined): ApprovalAnswer {
  switch (why) {
    case 'ended':
      return DENIED;
    case 'expired':
      return EXPIRED;
    case 'canceled':
      return CANCELED;
    case 'failed':
      return { approved: false, reason: 'failed', by: BY, detail };
    default:
      return assertNever(why);
  }
}

function describe(answer: ApprovalAnswer): string {
  if (answer.approved) return `approved: ${answer.scope}`;
  return answer.reason === 'failed' ? 'withdrawn' : answer.reason;
}
