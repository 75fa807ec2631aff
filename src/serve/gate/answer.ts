import type { ResultOf } from '../protocol/method-table.ts';

/** A question that came in whole and well-formed. */
export interface GateRequest {
  readonly requestId: string;
  readonly command: string;
  readonly session: string | undefined;
  readonly tool: string | undefined;
  /** Who asks, by what the kernel says: `uid:N`. */
  readonly principal: string;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

/** The answer. */
export type GateAnswer = ResultOf<'gate.check'>;

/** Decides, and has it on record before it returns. */
export type GateDecide = (request: GateRequest) => Promise<GateAnswer>;

/** Told after each answer, for a log. */
export type OnAnswer = (request: GateRequest, answer: GateAnswer) => void;

/** How long deciding may take, and who is told. */
interface AnswererOptions {
  readonly decide: GateDecide;
  /** After that the answer is no. The decider has a time limit of its own for people; this one is for what it forgot. */
  readonly timeoutMs: number;
  readonly onAnswer?: OnAnswer | undefined;
}

/**
 * Makes of a decider one that always answers: a failure, silence and a request that nobody waits for any more are a no.
 * A late yes changes nothing.
 */
export function createAnswerer({ decide, timeoutMs, onAnswer }: AnswererOptions): GateDecide {
  return async (request) => {
    const { decision, reason } = (await settle(decide, request, timeoutMs)) ?? {};
    const answer: GateAnswer = {
      // Whatever a decider says that is not exactly a yes is a no.
      decision: decision === 'allow' ? 'allow' : 'deny',
      ...(reason === undefined ? {} : { reason }),
    };
    onAnswer?.(request, answer);
    return answer;
  };
}

const no = (reason: string): GateAnswer => ({ decision: 'deny', reason });

function settle(
  decide: GateDecide,
  request: GateRequest,
  timeoutMs: number,
): Promise<GateAnswer | undefined> {
  const { signal } = request;
  if (signal.aborted) return Promise.resolve(no(whyAborted(signal)));
  return new Promise<GateAnswer | undefined>((done) => {
    const controller = new AbortController();
    const finish = (answer: GateAnswer | undefined) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', withdraw);
      done(answer);
    };
    const giveUp = (reason: string) => {
      finish(no(reason));
      controller.abort();
    };
    const withdraw = () => giveUp(whyAborted(signal));
    const timer = setTimeout(() => giveUp('no decision was made in time'), timeoutMs);
    signal.addEventListener('abort', withdraw);
    Promise.resolve()
      .then(() => decide({ ...request, signal: controller.signal }))
      .then(finish, () => finish(no('the gate could not decide')));
  });
}

function whyAborted({ reason }: AbortSignal): string {
  return typeof reason === 'string' ? reason : 'the request was withdrawn';
}
