// Many commands at once.
import { median } from '../measure.mjs';
import { printTable } from '../table.mjs';
import { spawnAndCapture } from './launch.mjs';

export const IN_FLIGHT = 64;

/** Runs `total` times, always `IN_FLIGHT` at once, and returns runs per second. */
async function rate(start, total) {
  let left = total;
  const lane = async () => {
    while (left-- > 0) await start();
  };
  const begin = performance.now();
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  return (total * 1000) / (performance.now() - begin);
}

export async function measureThroughput({ sandbox, counts }) {
  const contenders = {
    'sandbox.run': () => sandbox.run(['/bin/true']),
    'child_process.spawn': () => spawnAndCapture('/bin/true', []),
  };
  const rates = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
  // The first runs at once make the private directories and mounts that later ones reuse.
  for (const start of Object.values(contenders)) await rate(start, IN_FLIGHT * 2);
  for (let round = 0; round < counts.rounds; ++round) {
    for (const [name, start] of Object.entries(contenders)) rates[name].push(await rate(start, counts.total));
  }
  return {
    perSecond: Object.fromEntries(Object.entries(rates).map(([name, list]) => [name, median(list)])),
    counts,
  };
}

export function printThroughput({ perSecond, counts }) {
  printTable(
    `${IN_FLIGHT} commands in flight (median of ${counts.rounds} times ${counts.total} runs)`,
    ['/bin/true by', 'per second'],
    Object.entries(perSecond).map(([name, value]) => [name, value.toFixed(0)]),
  );
}

export function throughputGoals({ perSecond }) {
  const value = perSecond['sandbox.run'] / perSecond['child_process.spawn'];
  return [
    {
      what: `throughput with ${IN_FLIGHT} in flight : child_process.spawn`,
      value,
      limit: 2,
      unit: ' x',
      atLeast: true,
    },
  ];
}
