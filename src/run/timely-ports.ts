import type { ErrorCode } from '../base/errors/codes.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { isPromise, type MaybePromise } from '../base/promise.ts';
import { within } from '../gate/index.ts';
import type { ActionBudget, AuditSink, Reservation } from '../model/index.ts';

/** A budget of the application that never answers must not hold a run for ever: after some time it has failed. */
export function timelyBudget(budget: ActionBudget, timeoutMs: number): ActionBudget {
  const inTime = <T>(work: MaybePromise<T>) =>
    answerOf(work, timeoutMs, 'command.denied', 'the budget of the application');
  return {
    used: () => inTime(budget.used()),
    reserve: (limit) => {
      const reserving = budget.reserve(limit);
      if (!isPromise(reserving)) return timelyReservation(reserving, inTime);
      let isLate = false;
      // A late reservation is released: its command does not run.
      const reserved = Promise.resolve(reserving).then(async (reservation) => {
        if (!isLate) return reservation;
        reservation?.durable?.catch(() => {});
        await reservation?.release();
        return reservation;
      });
      return Promise.resolve(inTime(reserved)).then(
        (reservation) => timelyReservation(reservation, inTime),
        (error) => {
          isLate = true;
          reserved.catch(() => {});
          throw error;
        },
      );
    },
  };
}

function timelyReservation(
  reservation: Reservation | undefined,
  inTime: (work: MaybePromise<void>) => MaybePromise<void>,
): Reservation | undefined {
  return (
    reservation && {
      warning: reservation.warning,
      durable: reservation.durable && Promise.resolve(inTime(reservation.durable)),
      commit: () => inTime(reservation.commit()),
      release: () => inTime(reservation.release()),
    }
  );
}

/** An audit sink of the application, with the same time limit. */
export function timelySink(sink: AuditSink, timeoutMs: number): AuditSink {
  return {
    append: async (record) =>
      answerOf(sink.append(record), timeoutMs, 'audit.failed', 'the audit sink of the application'),
  };
}

/** The answer, if it comes within the time limit; otherwise rejects. */
function answerOf<T>(
  work: MaybePromise<T>,
  timeoutMs: number,
  code: ErrorCode,
  who: string,
): MaybePromise<T> {
  if (!isPromise(work)) return work;
  const answer = Promise.resolve(work).then((value) => ({ value }));
  return within(answer, timeoutMs).then((answered) => {
    if (answered !== undefined) return answered.value;
    const seconds = timeoutMs / 1000;
    throw new SandboxError(
      code,
      `${who} did not answer within ${seconds} s (approval.reviewer_timeout_seconds)`,
    );
  });
}
