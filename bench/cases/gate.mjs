// What remembering and recording cost a command.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { inProcess, inTurns, summarize } from '../measure.mjs';
import { milliseconds, printTable } from '../table.mjs';

const COMMAND = ['/bin/true'];
const NOTHING = 'nothing';
const BOTH = 'budget and audit trail';
const AT_ONCE = 64;

const KINDS = {
  [NOTHING]: {},
  budget: { security: { max_actions_per_hour: 10_000_000 } },
  'audit trail': { audit: { enabled: true } },
  [BOTH]: { security: { max_actions_per_hour: 10_000_000 }, audit: { enabled: true } },
};

export async function measureGate({ createSandbox, directory, workspace, counts }) {
  const state = process.env.XDG_STATE_HOME;
  process.env.XDG_STATE_HOME = join(directory, 'state');
  mkdirSync(process.env.XDG_STATE_HOME);
  const sandboxes = [];
  try {
    const contenders = [];
    for (const [name, policy] of Object.entries(KINDS)) {
      const sandbox = await createSandbox({ workspace, policy });
      sandboxes.push(sandbox);
      contenders.push(inProcess(name, () => run(sandbox)));
      if (name !== NOTHING && name !== BOTH) continue;
      contenders.push(
        inProcess(`${name}, ${AT_ONCE} at once`, () =>
          Promise.all(Array.from({ length: AT_ONCE }, () => run(sandbox))),
        ),
      );
    }
    const samples = await inTurns(contenders, counts);
    return Object.fromEntries([...samples].map(([name, list]) => [name, summarize(list)]));
  } finally {
    for (const sandbox of sandboxes) await sandbox.close();
    if (state === undefined) delete process.env.XDG_STATE_HOME;
    else process.env.XDG_STATE_HOME = state;
  }
}

async function run(sandbox) {
  const result = await sandbox.run(COMMAND);
  if (result.exitCode !== 0) throw new Error(result.error?.message ?? result.status);
}

export function printGate(results) {
  printTable(
    `What is remembered of a command (milliseconds; ${results[NOTHING].count} runs each)`,
    ['/bin/true with', 'median', 'p95', 'more than with nothing'],
    Object.entries(results).map(([name, result]) => {
      const base = name.includes('at once') ? results[`${NOTHING}, ${AT_ONCE} at once`] : results[NOTHING];
      return [
        name,
        milliseconds(result.median),
        milliseconds(result.p95),
        milliseconds(result.median - base.median),
      ];
    }),
  );
}

export function gateGoals(results) {
  const value = results[BOTH].median - results[NOTHING].median;
  return [{ what: 'budget and audit trail, more per run', value, limit: 1, unit: ' ms' }];
}
