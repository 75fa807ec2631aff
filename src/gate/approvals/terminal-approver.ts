import { setTimeout as sleep } from 'node:timers/promises';
import { assertNever } from '../../base/assert-never.ts';
import { errorMessage } from '../../base/error-message.ts';
import { readableWord } from '../../base/shell-quote.ts';
import { visibleText } from '../../base/visible-text.ts';
import {
  ANY_WORDS,
  type ApprovalAnswer,
  type ApprovalRequest,
  type ApprovalScope,
  type Approver,
  type ProposedRule,
  type RuleWriter,
} from '../../model/index.ts';
import { viewOf } from './approval-view.ts';
import {
  presentQuestion,
  presentRequest,
  presentRows,
  presentSentence,
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
  /** Writes the rule of an "always" answer. Missing: none is offered. */
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

/** What a key means; `more` shows the whole request, and is no answer. */
const CHOICES = ['yes', 'session', 'always', 'no', 'more'] as const;
type Choice = (typeof CHOICES)[number];
const KEYS: Readonly<Record<Exclude<Choice, 'more'>, string>> = {
  yes: '[y]es once',
  session: '[s]ession',
  always: '[a]lways',
  no: '[n]o',
};
/** Above the line for the answer, and still to be seen with it. */
const MOST_ROWS = 10;
/** For what is remembered or written, once it was shown. */
const CONFIRM = '[y]es  [n]o: ';

/** Enter is a no; `undefined`: none of the choices. */
function choiceOf(line: string, choices: readonly Choice[]): Choice | undefined {
  const word = line.trim().toLowerCase();
  return word === '' ? 'no' : choices.find((name) => name === word || name[0] === word);
}

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
  const offered = (['yes', 'session', 'always', 'no'] as const).filter(
    (name) => name === 'yes' || name === 'no' || scopes.includes(name),
  );
  const prompt = `${offered.map((name) => KEYS[name]).join('  ')}: `;
  const keys = offered
    .map(([key]) => key)
    .join(', ')
    .replace(/, (.)$/, ' or $1');

  /** What was chosen for longer than once, and has to be confirmed. */
  let confirmed: (() => ApprovalAnswer) | undefined;
  /** "Always" writes a rule, if one can answer the question. */
  function lasting(scope: Exclude<ApprovalScope, 'once'>): Turn<ApprovalAnswer> {
    if (scope === 'always' && offer !== undefined && rules !== undefined) {
      const { say, prompt: sure } = ruleQuestion(offer, rules, terminal);
      confirmed = () => {
        rules.write(offer);
        return { approved: true, scope: 'once', by: `${BY}, with a rule` };
      };
      return { say, prompt: sure };
    }
    confirmed = () => ({ approved: true, scope, by: BY });
    return { say: presentSentence(scopeSentence(scope, view), terminal), prompt: CONFIRM };
  }
  function heard(line: string): Turn<ApprovalAnswer> {
    const choice = choiceOf(line, confirmed === undefined ? [...offered, 'more'] : ['yes', 'no']);
    try {
      if (confirmed !== undefined) return { answer: choice === 'yes' ? confirmed() : DENIED };
      if (choice === 'session' || choice === 'always') return lasting(choice);
    } catch (error) {
      confirmed = undefined;
      return { say: presentSentence(visibleText(errorMessage(error)), terminal), prompt };
    }
    switch (choice) {
      case 'yes':
        return { answer: { approved: true, scope: 'once', by: BY } };
      case 'no':
        return { answer: DENIED };
      case 'more':
        return { say: presentRequest(request, terminal), prompt };
      default:
        return { prompt: `Please type ${keys}, or m to see more: ` };
    }
  }

  const shown = presentQuestion(request, terminal);
  const opening = [
    `\n${shown}`,
    // For those who see only the end of it.
    ...(shown.split('\n').length > MOST_ROWS
      ? [presentSentence(`The command stands above: ${sizeOfCommand(request)}.`, terminal)]
      : []),
  ];
  return talkOn(
    terminal,
    { opening: opening.join(''), prompt, heard, closing: describe, unheard: answerWithout },
    talk,
  );
}

/** The rule that an "always" answer may write. `undefined`: no rule covers the request, or the policy is on another machine. */
export function offeredRule(request: ApprovalRequest): ProposedRule | undefined {
  const isLasting = scopesOf(request).includes('always') && request.host === undefined;
  return isLasting ? request.rule : undefined;
}

/** Shows what would be written where. */
function ruleQuestion(rule: ProposedRule, rules: RuleWriter, terminal: Terminal) {
  const { path, text } = rules.preview(rule);
  const sentence = `Runs it once, and always allows ${describeRule(rule)} in ${visibleText(rule.directory)} from then on. Into ${visibleText(path)}:`;
  const rows = text
    .trimEnd()
    .split('\n')
    .map((row) => ({ label: '', text: visibleText(row) }));
  return {
    say: `${presentSentence(sentence, terminal)}${presentRows(rows, { columns: terminal.columns, gutter: RULE_GUTTER })}`,
    prompt: CONFIRM,
  };
}

const RULE_GUTTER = 6;

/**
 * Shows a request and the rule that is offered for it on a terminal: true once a person has said yes there. Nothing else is asked,
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
  const { say, prompt } = ruleQuestion(rule, rules, terminal);
  return talkOn<boolean>(
    terminal,
    {
      opening: `\n${presentQuestion(request, terminal)}${say}`,
      prompt,
      heard: (line) => ({ answer: choiceOf(line, ['yes', 'no']) === 'yes' }),
      closing: () => undefined,
      unheard: () => false,
    },
    talk,
  );
}

/** `cargo test …` */
const describeRule = ({ program, words }: ProposedRule): string =>
  [program, ...words].map((word) => (word === ANY_WORDS ? '…' : readableWord(word))).join(' ');

/** The answer if no person typed a line. */
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

/** Why a question ended without the user's own answer; `undefined`: the user answered, and sees that. */
function describe(answer: ApprovalAnswer): string | undefined {
  if (answer.approved || answer.reason === 'denied') return undefined;
  return answer.reason === 'failed' ? 'withdrawn' : answer.reason;
}
