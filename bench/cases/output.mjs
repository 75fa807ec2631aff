// A lot of output through capture.
import { median } from '../measure.mjs';
import { printTable } from '../table.mjs';
import { spawnAndCapture } from './launch.mjs';

const MEGABYTE = 1024 * 1024;

export async function measureOutput({ createSandbox, workspace, counts }) {
  const bytes = counts.megabytes * MEGABYTE;
  const argv = ['/usr/bin/head', '-c', String(bytes), '/dev/zero'];
  const expect = (length) => {
    if (length !== bytes) throw new Error(`${length} of ${bytes} bytes arrived`);
  };
  const keeping = await createSandbox({ workspace, maxOutput: bytes });
  const counting = await createSandbox({ workspace });
  const contenders = {
    'sandbox.run, all kept': async () => expect((await keeping.run(argv)).stdout.length),
    'sandbox.run, 1 MiB kept and the rest counted': async () => {
      expect((await counting.run(argv)).outputBytes.stdout);
    },
    'child_process.spawn, all kept': async () =>
      expect((await spawnAndCapture(argv[0], argv.slice(1))).length),
  };
  const rates = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
  for (let round = -1; round < counts.rounds; ++round) {
    for (const [name, start] of Object.entries(contenders)) {
      const begin = performance.now();
      await start();
      const seconds = (performance.now() - begin) / 1000;
      if (round >= 0) rates[name].push(counts.megabytes / seconds);
    }
  }
  await Promise.all([keeping.close(), counting.close()]);
  return {
    perSecond: Object.fromEntries(Object.entries(rates).map(([name, list]) => [name, median(list)])),
    counts,
  };
}

export function printOutput({ perSecond, counts }) {
  printTable(
    `${counts.megabytes} MB of output (median of ${counts.rounds})`,
    ['captured as a string by', 'MB/s'],
    Object.entries(perSecond).map(([name, value]) => [name, value.toFixed(0)]),
  );
}
