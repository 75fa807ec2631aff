// The command line from start to finish.
import { fileURLToPath } from 'node:url';
import { fromC, inTurns, summarize } from '../measure.mjs';
import { milliseconds, printTable, times } from '../table.mjs';

export async function measureCommandLine({ dist, stopwatch, counts }) {
  const cli = fileURLToPath(new URL('cli.cjs', dist));
  const samples = await inTurns(
    [
      fromC('node -e 0', stopwatch, [process.execPath, '-e', '0']),
      fromC('sandbox-run -- /bin/true', stopwatch, [process.execPath, cli, '--', '/bin/true']),
    ],
    counts,
  );
  return Object.fromEntries([...samples].map(([name, list]) => [name, summarize(list)]));
}

export function printCommandLine(results) {
  const base = results['node -e 0'].median;
  printTable(
    `Start to finish (milliseconds; ${results['node -e 0'].count} runs each)`,
    ['program', 'median', 'p95', 'of node -e 0'],
    Object.entries(results).map(([name, result]) => [
      name,
      milliseconds(result.median, 1),
      milliseconds(result.p95, 1),
      times(result.median / base),
    ]),
  );
}

export function commandLineGoals(results) {
  const value = results['sandbox-run -- /bin/true'].median / results['node -e 0'].median;
  return [{ what: 'sandbox-run -- /bin/true : node -e 0', value, limit: 1.6, unit: ' x' }];
}
