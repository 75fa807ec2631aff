// Loads the gate with everything on (budget, approvals, audit trail) from several processes at once, and looks whether
// anything was lost, doubled or mixed up. Prints figures; exit status 1 if anything was.
//   node scripts/gate-load.mjs [--decisions 10000] [--processes 8] [--kill-seconds 20]
// First the processes make the decisions undisturbed; then others are killed at random moments for some seconds, and
// every command that ran must have its decision record.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { DatabaseSync } from '@photostructure/sqlite';

const { values } = parseArgs({
  options: {
    decisions: { type: 'string', default: '10000' },
    processes: { type: 'string', default: '8' },
    'kill-seconds': { type: 'string', default: '20' },
  },
});
const decisions = Number(values.decisions);
const processes = Number(values.processes);
const killSeconds = Number(values['kill-seconds']);

const WORKER = fileURLToPath(new URL('gate-load-worker.mjs', import.meta.url));
const CLI = fileURLToPath(new URL('../dist/cli.cjs', import.meta.url));

const root = mkdtempSync(join(tmpdir(), 'sandbox-run-load-'));
const problems = [];
const expect = (holds, what) => {
  if (!holds) problems.push(what);
  console.log(`  ${holds ? 'ok  ' : 'FAIL'} ${what}`);
};

function place(name) {
  const directory = join(root, name);
  const workspace = join(directory, 'work');
  mkdirSync(workspace, { recursive: true });
  const env = {
    ...process.env,
    TMPDIR: join(directory, 'tmp'),
    XDG_STATE_HOME: join(directory, 'state'),
    XDG_CONFIG_HOME: join(directory, 'config'),
  };
  mkdirSync(env.TMPDIR);
  return { workspace, env, trail: join(directory, 'state/sandbox-run/audit') };
}

/** Starts a worker; its output becomes JSON. */
function start(task, { workspace, env }) {
  const child = spawn(process.execPath, [WORKER, JSON.stringify(task)], {
    cwd: workspace,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  const begun = new Promise((done) => child.stdout.once('data', done));
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  const ended = new Promise((done) => {
    child.once('close', (code, signal) => {
      const [, text = ''] = output.split('\n');
      done({ code, signal, said: text === '' ? undefined : JSON.parse(text) });
    });
  });
  return { child, begun, ended };
}

async function cli(args, { workspace, env }) {
  const child = spawn(process.execPath, [CLI, ...args], {
    cwd: workspace,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  child.stdout.on('data', (chunk) => {
    text += chunk;
  });
  child.stderr.on('data', (chunk) => {
    text += chunk;
  });
  const code = await new Promise((done) => child.once('close', done));
  return { code, text: text.trim() };
}

function records(trail) {
  const database = new DatabaseSync(join(trail, 'trail.db'), { readOnly: true });
  const rows = database.prepare('SELECT line FROM trail ORDER BY seq').all();
  database.close();
  return rows.map(({ line }) => JSON.parse(line));
}

async function undisturbed() {
  const here = place('undisturbed');
  const each = Math.ceil(decisions / processes);
  const total = each * processes;
  console.log(`${total} decisions from ${processes} processes, budget, approvals and audit trail on`);
  const before = performance.now();
  const workers = await Promise.all(
    Array.from(
      { length: processes },
      (_, index) => start({ mode: 'all', index, count: each, limit: total }, here).ended,
    ),
  );
  const seconds = (performance.now() - before) / 1000;
  const said = workers.map((worker) => worker.said ?? {});
  const sum = (key) => said.reduce((total, one) => total + (one[key] ?? 0), 0);
  const all = records(here.trail);
  const made = all.filter(({ type }) => type === 'decision');
  const results = all.filter(({ type }) => type === 'result');
  const launched = made.filter(({ outcome }) => outcome === 'launch');
  console.log(
    `  ${seconds.toFixed(1)} s, ${Math.round(total / seconds)} decisions a second, ${all.length} records`,
  );
  expect(
    workers.every(({ code }) => code === 0),
    'every process ended by itself',
  );
  expect(
    sum('ran') + sum('refused') + sum('unapproved') === total,
    `${total} answers (${sum('ran')} ran, ${sum('refused')} refused, ${sum('unapproved')} not approved)`,
  );
  expect(made.length === total, `${made.length} decision records`);
  expect(new Set(made.map(({ request }) => request)).size === total, 'none of them twice');
  expect(launched.length === sum('ran'), `${launched.length} of them launches`);
  expect(
    results.length === launched.length &&
      new Set(results.map(({ request }) => request)).size === launched.length,
    'a result for each launch',
  );
  const asked = made.filter(({ approval }) => approval !== undefined && approval !== null);
  expect(asked.length === sum('asked'), `${asked.length} records with an approval, as many as were asked`);
  expect(
    all.every(({ seq }, index) => seq === index + 1),
    'the sequence has no gap and no double',
  );
  const verified = await cli(['audit', 'verify'], here);
  expect(verified.code === 0, `audit verify: ${verified.text.split('\n')[0]}`);
  const { used } = JSON.parse((await cli(['budget', 'show', '--json'], here)).text);
  expect(used === launched.length, `the budget has ${used} actions`);
}

async function killed() {
  const here = place('killed');
  console.log(`processes killed at random moments for ${killSeconds} s`);
  const begin = performance.now();
  const marks = join(here.workspace, 'ran');
  const ranSoFar = () => (existsSync(marks) ? readFileSync(marks, 'utf8').trimEnd().split('\n') : []);
  let kills = 0;
  let run = 0;
  // On a busy machine it takes longer until anything runs before it is killed.
  const goesOn = () => {
    const seconds = (performance.now() - begin) / 1000;
    return seconds < killSeconds || (seconds < killSeconds * 10 && ranSoFar().length <= kills);
  };
  await Promise.all(
    Array.from({ length: processes }, async (_, index) => {
      while (goesOn()) {
        const started = performance.now();
        const worker = start(
          { mode: 'mark', index: `${index}-${run++}`, count: 1_000_000, limit: 10_000_000 },
          here,
        );
        await worker.begun;
        const took = performance.now() - started;
        await new Promise((done) => setTimeout(done, Math.random() * (500 + took)));
        worker.child.kill('SIGKILL');
        kills++;
        await worker.ended;
      }
    }),
  );
  // What was started before the kill may still be about to write.
  await new Promise((done) => setTimeout(done, 500));
  const ran = ranSoFar();
  const launched = new Set(
    records(here.trail)
      .filter(({ type, outcome }) => type === 'decision' && outcome === 'launch')
      .map(({ command }) => /mark-[\d-]+/.exec(command)?.[0]),
  );
  const missing = ran.filter((mark) => !launched.has(mark));
  console.log(`  ${kills} kills, ${ran.length} commands ran, ${launched.size} were recorded`);
  expect(kills > 0 && ran.length > kills, 'commands ran in between');
  expect(
    missing.length === 0,
    `every command that ran has its decision record (${missing.slice(0, 3).join(', ') || 'none missing'})`,
  );
  const verified = await cli(['audit', 'verify'], here);
  expect(verified.code === 0, `audit verify: ${verified.text.split('\n')[0]}`);
  const budget = await cli(['budget', 'show', '--json'], here);
  expect(
    budget.code === 0 && JSON.parse(budget.text).used >= ran.length,
    `the database opens (${budget.text})`,
  );
  writeFileSync(join(here.workspace, 'more'), '');
  const after = await start({ mode: 'all', index: 'after', count: 10, limit: 10_000_000 }, here).ended;
  expect(after.code === 0 && after.said.ran > 0, 'and goes on to be used');
}

try {
  await undisturbed();
  if (killSeconds > 0) await killed();
} finally {
  rmSync(root, { recursive: true, force: true });
}
if (problems.length > 0) process.exitCode = 1;
