// Measures what the hooks add to a tool call of the real Claude Code: milliseconds from the model's call until its result
// comes back, without hooks and in both modes, in turns.
//   npm run bench:claude-code [-- --rounds 4] [--calls 10] [--cli FILE] [--against FILE] [--command TEXT] [--think 150]
// --cli: another build's dist/cli.cjs. --against: one to be measured beside it, in the same turns. --command: what the tool Bash runs; it must be allowed in every mode.
// --think: milliseconds that the model takes for a turn, which are not counted. A real one takes longer; one that takes none
// calls the next tool while hooks that nobody waits for still run.
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { median, p95, quantile } from './measure.mjs';
import { milliseconds, printGoals, printTable } from './table.mjs';

const ROOT = join(import.meta.dirname, '..');
/**
 * What Claude Code itself takes for calling any hooks: those of mode decide, but `empty`: each is true(1), and `fixed`: the
 * one before a command is an echo(1) of a yes. No hook can take less.
 */
const FLOORS = ['empty', 'fixed'];
const MODES = ['decide', 'rewrite'];
const YES = { hookEventName: 'PreToolUse', permissionDecision: 'allow', permissionDecisionReason: 'always' };
const TOOLS = ['Bash', 'Read'];
/** Milliseconds that a call may take longer than without hooks. */
const MOST_ADDED = { Bash: 20, Read: 2 };

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '4' },
    calls: { type: 'string', default: '10' },
    cli: { type: 'string', default: join(ROOT, 'dist/cli.cjs') },
    against: { type: 'string' },
    command: { type: 'string', default: 'echo hello' },
    think: { type: 'string', default: '150' },
  },
});
const rounds = Number(options.rounds);
const calls = Number(options.calls);
const contenders = [
  ...['none', ...FLOORS, ...MODES].map((name) => ({ name, hooks: name, cli: options.cli })),
  ...(options.against === undefined
    ? []
    : MODES.map((hooks) => ({ name: `${hooks}, against`, hooks, cli: options.against }))),
];

const directory = mkdtempSync(join(realpathSync(tmpdir()), 'sandbox-run-bench-'));
try {
  const { claudePackage } = await load('claude-package');
  const { makeClaudePlace, runClaude } = await load('claude-session');
  const claude = claudePackage();
  if (claude.missing !== undefined) throw new Error(claude.missing);
  console.log(`Claude Code ${claude.version}, load ${loadavg()[0].toFixed(1)}, ${options.command}`);
  const samples = new Map();
  const of = (hooks, tool) => samples.get(`${hooks} ${tool}`) ?? [];
  for (let round = 0; round < rounds; round += 1)
    // Each time another one first: a machine that is busy for a while is not always so for the same one.
    for (const { name, hooks, cli } of [...contenders, ...contenders]
      .slice(round % contenders.length)
      .slice(0, contenders.length)) {
      const isReplaced = FLOORS.includes(hooks);
      const place = makeClaudePlace(resolve(cli), isReplaced ? 'decide' : hooks, TOOLS);
      if (isReplaced) replaceHooks(join(place.home, '.claude/settings.json'), hooks === 'fixed');
      const measured = await session(runClaude, claude.program, place);
      await disposeOf(place);
      for (const tool of TOOLS) samples.set(`${name} ${tool}`, [...of(name, tool), ...measured.get(tool)]);
    }
  report(of);
} finally {
  rmSync(directory, { recursive: true, force: true });
}

/** Its server may still be ending, and write once more what it kept open. */
async function disposeOf(place) {
  for (let left = 20; ; left -= 1)
    try {
      return place.dispose();
    } catch (error) {
      if (error.code !== 'ENOTEMPTY' || left === 0) throw error;
      await pause(250);
    }
}

/** Hooks that know nothing, in the place of ours. */
function replaceHooks(path, areAnswered) {
  const settings = JSON.parse(readFileSync(path, 'utf8'));
  const yes = `echo '${JSON.stringify({ hookSpecificOutput: YES })}'`;
  for (const [event, groups] of Object.entries(settings.hooks))
    for (const hook of groups.flatMap(({ hooks }) => hooks))
      hook.command = areAnswered && event === 'PreToolUse' ? yes : 'true';
  writeFileSync(path, JSON.stringify(settings));
}

/** The helpers of the tests, which are TypeScript. */
async function load(name) {
  const outfile = join(directory, `${name}.mjs`);
  await build({
    entryPoints: [join(ROOT, `test/clients/${name}.ts`)],
    ...{ bundle: true, platform: 'node', format: 'esm', outfile, logLevel: 'error' },
  });
  return import(pathToFileURL(outfile).href);
}

/** One session: as many calls of each tool as were asked for, after one of each that does not count. */
async function session(runClaude, program, place) {
  const file = join(place.project, 'file.txt');
  writeFileSync(file, 'a line\n');
  const turn = {
    Bash: [{ tool: 'Bash', input: { command: options.command, description: 'Says hello' } }],
    Read: [{ tool: 'Read', input: { file_path: file } }],
  };
  const script = TOOLS.flatMap((tool) => Array.from({ length: calls + 1 }, () => turn[tool]));
  const { results, status } = await runClaude(program, place, script, {
    thinkMs: Number(options.think),
  });
  const wrong = results.find(({ isError }) => isError);
  if (status !== 0 || wrong !== undefined || results.length !== script.length)
    throw new Error(`a call failed: ${wrong?.text ?? `Claude Code ended with ${status}`}`);
  return new Map(
    TOOLS.map((tool, at) => {
      const first = at * (calls + 1) + 1;
      return [tool, results.slice(first, first + calls).map(({ ms }) => ms)];
    }),
  );
}

function report(of) {
  const added = (hooks, tool) => median(of(hooks, tool)) - median(of('none', tool));
  printTable(
    'A tool call of Claude Code (milliseconds)',
    ['tool', 'hooks', 'calls', 'fastest', 'median', 'p95', 'added'],
    TOOLS.flatMap((tool) =>
      contenders.map(({ name: hooks }) => {
        const all = of(hooks, tool);
        const numbers = [
          quantile(all, 0),
          median(all),
          p95(all),
          hooks === 'none' ? undefined : added(hooks, tool),
        ];
        return [tool, hooks, String(all.length), ...numbers.map((value) => milliseconds(value, 1))];
      }),
    ),
  );
  printGoals(
    TOOLS.flatMap((tool) =>
      MODES.map((hooks) => ({
        what: `${tool} with hooks in mode ${hooks}: added to the median`,
        ...{ value: added(hooks, tool), limit: MOST_ADDED[tool], unit: ' ms' },
      })),
    ),
  );
}
