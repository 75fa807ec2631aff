// A command of a session against one of its own.
import { inProcess, inTurns, summarize } from '../measure.mjs';
import { milliseconds, printTable, times } from '../table.mjs';

const RUN = "run(':')";
const TURN = "a session's run(':')";

export async function measureSession({ sandbox, counts }) {
  const shell = await sandbox.session();
  const contender = (name, run, text) =>
    inProcess(name, async () => {
      const result = await run(text);
      if (result.exitCode !== 0) throw new Error(result.error?.message ?? result.status);
    });
  const samples = await inTurns(
    [
      contender(RUN, (text) => sandbox.run(text), ':'),
      contender(TURN, (text) => shell.run(text), ':'),
      contender('run: /bin/true', (text) => sandbox.run(text), '/bin/true'),
      contender('a session: /bin/true', (text) => shell.run(text), '/bin/true'),
      contender('session() and close()', async () => {
        await (await sandbox.session()).close();
        return { exitCode: 0 };
      }),
    ],
    counts,
  );
  await shell.close();
  return Object.fromEntries([...samples].map(([name, list]) => [name, summarize(list)]));
}

export function printSession(results) {
  printTable(
    `Commands of a session (milliseconds; ${results[RUN].count} runs each)`,
    ['command', 'median', 'p95', 'event loop blocked', `of ${RUN}`],
    Object.entries(results).map(([name, result]) => [
      name,
      milliseconds(result.median),
      milliseconds(result.p95),
      milliseconds(result.blocked),
      times(result.median / results[RUN].median),
    ]),
  );
}

export function sessionGoals(results) {
  const value = results[TURN].median / results[RUN].median;
  return [{ what: `${TURN} : ${RUN}`, value, limit: 0.6, unit: ' x' }];
}
