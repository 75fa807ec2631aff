// How things are measured: in turns, so that a slow moment of the machine strikes everybody, and by the middle value.
import { openSync, readSync } from 'node:fs';

export function quantile(values, fraction) {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))];
}

export const median = (values) => quantile(values, 0.5);
export const p95 = (values) => quantile(values, 0.95);

/**
 * Measures each contender `rounds` times `perTurn` runs. A turn begins with a run that does not count: it pays for
 * what the contender before left behind, such as the pages that a fork marked for copying.
 * @param contenders {name, turn(count) => Promise<sample[]>}[]
 * @returns Map from name to samples
 */
export async function inTurns(contenders, { rounds, perTurn }) {
  const samples = new Map(contenders.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; ++round) {
    for (const { name, turn } of contenders) samples.get(name).push(...(await turn(perTurn + 1)).slice(1));
  }
  return samples;
}

/**
 * A contender that runs in this process. Its samples are {total, blocked}: milliseconds from the call until the result
 * is there, and how much of that this thread was on a processor or waiting for one (/proc/thread-self/schedstat). The
 * kernel adds up what a thread ran when the thread goes to sleep: what a run did last is found by the next one, and
 * nothing is counted twice. performance.eventLoopUtilization is of no use here: it takes waits for an event of another
 * thread for work now and then.
 */
export function inProcess(name, start) {
  return {
    name,
    async turn(count) {
      const samples = [];
      for (let i = 0; i < count; ++i) {
        // From an event of its own, so that nothing else is charged to the run.
        await new Promise((done) => setImmediate(done));
        const before = busyTime();
        const begin = performance.now();
        await start();
        const total = performance.now() - begin;
        samples.push({ total, blocked: busyTime() - before });
      }
      return samples;
    },
  };
}

const schedstat = openSync('/proc/thread-self/schedstat', 'r');
const text = Buffer.alloc(128);

/** Milliseconds that this thread ran or was ready to run, since it exists. */
function busyTime() {
  const length = readSync(schedstat, text, 0, text.length, 0);
  const [running, waiting] = text.latin1Slice(0, length).split(' ');
  return (Number(running) + Number(waiting)) / 1e6;
}

/** A contender that is started by the stopwatch in C. */
export function fromC(name, stopwatch, argv) {
  return {
    name,
    turn: async (count) =>
      (await stopwatch.measure(count, argv)).map((total) => ({ total, blocked: undefined })),
  };
}

/** {median, p95, blocked, blockedP95} of samples. */
export function summarize(samples) {
  const totals = samples.map((sample) => sample.total);
  const blocked = samples.flatMap((sample) => (sample.blocked === undefined ? [] : [sample.blocked]));
  return {
    count: samples.length,
    median: median(totals),
    p95: p95(totals),
    blocked: blocked.length === 0 ? undefined : median(blocked),
    blockedP95: blocked.length === 0 ? undefined : p95(blocked),
  };
}
