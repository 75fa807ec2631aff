// The command line from start to finish, and what a server that runs already saves of it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fromC, inProcess, inTurns, summarize } from '../measure.mjs';
import { startServe } from '../serve-connection.mjs';
import { milliseconds, printTable, times } from '../table.mjs';

/** What Claude Code sends before a command; a decision about it is what an agent waits for. */
const CALL = JSON.stringify({
  session_id: 'bench',
  hook_event_name: 'PreToolUse',
  tool_name: 'Bash',
  tool_input: { command: 'ls -la src | head -5', description: 'Look' },
  tool_use_id: 'toolu_bench',
});

export async function measureCommandLine({ dist, stopwatch, counts, directory }) {
  const cli = fileURLToPath(new URL('cli.cjs', dist));
  const server = await startServe(cli);
  const warm = (method, command) =>
    inProcess(`serve: ${method} ${command[0]}, warm`, () => server.request(method, { command }));
  const call = join(directory, 'call.json');
  writeFileSync(call, CALL);
  // The shell that puts the file on standard input is in the numbers of both.
  const withCall = (...argv) => ['/bin/sh', '-c', 'exec "$@" < "$0"', call, process.execPath, ...argv];
  const samples = await inTurns(
    [
      fromC('node -e 0', stopwatch, [process.execPath, '-e', '0']),
      fromC('sandbox-run -- /bin/true', stopwatch, [process.execPath, cli, '--', '/bin/true']),
      warm('run', ['/bin/true']),
      warm('check', ['/bin/true']),
      fromC('sh: node -e 0', stopwatch, withCall('-e', '0')),
      fromC('sh: hook claude-code', stopwatch, withCall(cli, 'hook', 'claude-code')),
      fromC('sh: hook --mode rewrite', stopwatch, withCall(cli, 'hook', 'claude-code', '--mode', 'rewrite')),
    ],
    counts,
  );
  await server.stop();
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
  const ratio = (program, base) => results[program].median / results[base].median;
  return [
    {
      what: 'sandbox-run -- /bin/true : node -e 0',
      value: ratio('sandbox-run -- /bin/true', 'node -e 0'),
      limit: 1.6,
      unit: ' x',
    },
    {
      what: 'hook claude-code : node -e 0',
      value: ratio('sh: hook claude-code', 'sh: node -e 0'),
      limit: 1.8,
      unit: ' x',
    },
    {
      what: 'hook claude-code --mode rewrite : node -e 0',
      value: ratio('sh: hook --mode rewrite', 'sh: node -e 0'),
      limit: 1.8,
      unit: ' x',
    },
  ];
}
