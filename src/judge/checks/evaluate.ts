import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { andThen, isPromise } from '../../base/promise.ts';
import { strongest, VERDICTS } from '../../base/words.ts';
import { type Decision, decisiveReason, type Reason, type Verdict } from '../../model/index.ts';
import { answeredByRules } from './allow-rules.ts';
import { type Check, type CheckContext, reasonFor } from './check.ts';

/** A check that says nothing still stands in the trace. */
function orSilence(check: Check, reasons: readonly Reason[]): readonly Reason[] {
  if (reasons.length > 0) return reasons;
  return [
    { check: check.name, verdict: undefined, code: 'nothing', message: 'nothing to object to', words: [] },
  ];
}

const notAsked = (check: Check): Reason => ({
  ...{ check: check.name, verdict: undefined, code: 'not_asked', message: 'not asked about what is refused' },
  words: [],
});

/** Of the installation or the machine: no policy refuses then, and none can permit it. */
const OF_NO_CHECK: ReadonlySet<string> = new Set(['package.incomplete', 'launch.failed']);

/**
 * A check that fails must not make anything allowed.
 * @throws {SandboxError} what is wrong with the installation or the machine, which no decision is made on.
 */
function afterFailure(check: Check, error: unknown): readonly Reason[] {
  if (error instanceof SandboxError && OF_NO_CHECK.has(error.code)) throw error;
  const why = errorMessage(error);
  const message = `the check ${check.name} failed (${why}), so nothing is run; that is a bug of sandbox-run`;
  return [{ check: check.name, verdict: 'deny', code: 'check_failed', message, words: [] }];
}

function judge(check: Check, context: CheckContext): readonly Reason[] | PromiseLike<readonly Reason[]> {
  try {
    const said = check.judge(context);
    if (!isPromise(said)) return orSilence(check, said);
    return said.then(
      (reasons) => orSilence(check, reasons),
      (error: unknown) => afterFailure(check, error),
    );
  } catch (error) {
    return afterFailure(check, error);
  }
}

function decide(context: CheckContext, reasons: readonly Reason[]): Decision {
  let verdict: Verdict = 'allow';
  for (const reason of reasons) {
    if (reason.verdict !== undefined) verdict = strongest(VERDICTS, verdict, reason.verdict);
  }
  return { verdict, risk: context.risk, reach: context.reach, reasons };
}

/** What the checks say, in their order; at once unless one has to wait. */
function judgeAll(
  checks: readonly Check[],
  context: CheckContext,
): readonly Reason[] | Promise<readonly Reason[]> {
  const said = checks.map((check) => judge(check, context));
  if (said.some(isPromise)) return Promise.all(said).then((settled) => settled.flat());
  return (said as readonly (readonly Reason[])[]).flat();
}

/**
 * Runs all checks, so that no reason hides another; the strictest wins. Those that are last are asked only where no other
 * refuses. The decision comes at once, not as a promise, unless a check has to wait for a port.
 */
export function evaluate(checks: readonly Check[], context: CheckContext): Decision | Promise<Decision> {
  const own = judgeAll(
    checks.filter(({ isLast }) => isLast !== true),
    context,
  );
  return andThen(own, (reasons) => {
    const isRefused = reasons.some(({ verdict }) => verdict === 'deny');
    const others = checks.filter(({ isLast }) => isLast === true);
    const last = isRefused ? others.map(notAsked) : judgeAll(others, context);
    return andThen(last, (more) =>
      decide(context, undoneInstead(context, answeredByRules(context, [...reasons, ...more]))),
    );
  });
}

/** The check that asks about losses, and the code of its reason for which a command runs undoable instead. */
const LOSSES = 'losses';
const UNDOABLE = 'undoable';

/**
 * The reasons of a line that is asked about only because work in the workspace may be lost, with that answered: it runs on a
 * layer. Whatever else asks or refuses has its say as before.
 */
function undoneInstead(context: CheckContext, reasons: readonly Reason[]): readonly Reason[] {
  if (context.effect !== 'losses' || context.rules.undoes !== true) return reasons;
  const objections = reasons.filter(({ verdict }) => verdict === 'ask' || verdict === 'deny');
  const isLoss = objections.every(({ check, verdict }) => check === LOSSES && verdict === 'ask');
  if (objections.length === 0 || !isLoss) return reasons;
  return [
    ...reasons.map((one) => (one.verdict === 'ask' ? { ...one, verdict: undefined } : one)),
    reasonFor(LOSSES)('allow', UNDOABLE, 'sandbox-run undo brings back what it takes away in the workspace'),
  ];
}

/** Whether a command that is allowed runs on a layer, because it would be asked about as a loss else. */
export function isUndoneInstead({ reasons }: Pick<Decision, 'reasons'>): boolean {
  return reasons.some(({ check, code }) => check === LOSSES && code === UNDOABLE);
}

/** Checks whose questions another autonomy level would not ask. */
const SETTLED_BY_AUTONOMY: ReadonlySet<string> = new Set(['autonomy', 'risk']);

/** Whether a question would not be asked at all at another autonomy level. */
export function isSettledByAutonomy({ reasons }: Decision): boolean {
  return reasons.every(({ verdict, check }) => verdict !== 'ask' || SETTLED_BY_AUTONOMY.has(check));
}

/** Said to people alone: a model is not told how an operator would let something through. */
const PERMITTED = '; commands.permit_dangerous can permit it';

/** Why a command does not run, in one sentence for a person, and what would allow it. `undefined`: it runs. */
export function refusalSentence(decision: Decision): string | undefined {
  const decisive = decisiveReason(decision);
  const reason = decisive?.message ?? 'no reason was given';
  switch (decision.verdict) {
    case 'allow':
      return undefined;
    case 'deny':
      return `refused by the policy: ${reason}${decisive?.check === 'dangerous' ? PERMITTED : ''}`;
    case 'ask': {
      const other = isSettledByAutonomy(decision)
        ? '; so does the option autonomy: "autonomous", or security.autonomy in the policy'
        : '';
      return `this command needs approval, and there is no one to ask: ${reason} (the option approved runs it${other}; the option ask: "queue" waits for sandbox-run approvals)`;
    }
  }
}
