import type { ActionBudget } from '../model/gate-ports.ts';

const HOUR_MS = 3_600_000;

/** Counts the actions of this process in a sliding window of an hour; `now` is a clock that only goes forward. */
export function createActionWindow(now: () => number): ActionBudget {
  let times: readonly number[] = [];
  const recent = () => {
    const start = now() - HOUR_MS;
    times = times.filter((time) => time > start);
    return times;
  };
  return {
    used: () => recent().length,
    record(limit) {
      if (recent().length >= limit) return false;
      times = [...times, now()];
      return true;
    },
  };
}
