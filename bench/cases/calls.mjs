// Calls that are made by the thousand, each by itself: outside, and inside with nothing and with the usual looked at.
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { median } from '../measure.mjs';
import { milliseconds, printTable, times } from '../table.mjs';
import { spawnAndCapture } from './launch.mjs';

const FILES_PER_DIRECTORY = 10;
const CONTENDERS = ['outside', 'never', 'auto'];

/** Of the loopback interface, in one process that is client and server. Prints milliseconds a call, as JSON. */
const NETWORK = `
const net = require('net'), http = require('http');
const count = Number(process.argv[1]);
const middle = (all) => all.sort((a, b) => a - b)[all.length >> 1];
const each = async (once) => {
  const all = [];
  for (let i = 0; i < count; ++i) { const begin = performance.now(); await once(); all.push(performance.now() - begin); }
  return middle(all);
};
const get = (port) => new Promise((done, failed) => http.get({ port, host: 'localhost', agent: false }, (r) => r.resume().on('end', done)).on('error', failed));
(async () => {
  const server = http.createServer((_, r) => r.end('x'));
  await new Promise((done) => server.listen(0, done));
  const { port } = server.address();
  const closed = net.createServer();
  await new Promise((done) => closed.listen(0, '127.0.0.1', done));
  const nobody = closed.address().port;
  await new Promise((done) => closed.close(done));
  const connect = (at) => new Promise((done) => { const s = net.connect(at, '127.0.0.1', () => { s.destroy(); done(); }).on('error', done); });
  await get(port);
  const found = { connect: await each(() => connect(port)), refused: await each(() => connect(nobody)), request: await each(() => get(port)) };
  found['20 requests at once'] = await each(() => Promise.all(Array.from({ length: 20 }, () => get(port))));
  console.log(JSON.stringify(found));
  server.close();
})();
`;

/** Makes, and then removes, that many files in new directories. Prints milliseconds, as JSON. */
const FILES = `
const fs = require('fs'), count = Number(process.argv[1]);
const begin = performance.now();
for (let i = 0; i < count; ++i) {
  if (i % ${FILES_PER_DIRECTORY} === 0) fs.mkdirSync('made/' + i / ${FILES_PER_DIRECTORY}, { recursive: true });
  fs.writeFileSync('made/' + Math.floor(i / ${FILES_PER_DIRECTORY}) + '/' + i, 'x');
}
console.log(JSON.stringify({ 'files made': performance.now() - begin }));
fs.rmSync('made', { recursive: true });
`;

export async function measureCalls({ createSandbox, directory, counts }) {
  const workspace = join(directory, 'calls');
  const tree = join(directory, 'calls-tree');
  mkdirSync(workspace);
  for (let i = 0; i < counts.entries; ++i) {
    const parent = join(
      tree,
      `package-${Math.floor(i / (10 * FILES_PER_DIRECTORY))}`,
      `lib-${Math.floor(i / FILES_PER_DIRECTORY)}`,
    );
    if (i % FILES_PER_DIRECTORY === 0) mkdirSync(parent, { recursive: true });
    writeFileSync(join(parent, `file-${i}.js`), 'x\n');
  }
  const policy = { unsafe: { unjudged_commands: true } };
  const sandboxes = {};
  for (const explain of ['never', 'auto'])
    sandboxes[explain] = await createSandbox({ workspace, explain, policy, timeout: 600_000 });
  const run = async (contender, [program, ...args]) => {
    if (contender === 'outside') return await spawnAndCapture(program, args, { cwd: workspace });
    const result = await sandboxes[contender].run([program, ...args]);
    if (result.exitCode !== 0) throw new Error(`${program}: ${result.stderr || result.error?.message}`);
    return result.stdout;
  };
  const found = new Map();
  const note = (what, contender, value) => {
    const of =
      found.get(what) ?? found.set(what, Object.fromEntries(CONTENDERS.map((one) => [one, []]))).get(what);
    of[contender].push(value);
  };
  // The first round does not count.
  for (let round = -1; round < counts.rounds; ++round) {
    for (const contender of CONTENDERS) {
      const told = (what, value) => round >= 0 && note(what, contender, value);
      for (const [code, count] of [
        [NETWORK, counts.connections],
        [FILES, counts.entries],
      ]) {
        const text = await run(contender, ['node', '-e', code, String(count)]);
        for (const [what, value] of Object.entries(JSON.parse(text))) told(what, value);
      }
      cpSync(tree, join(workspace, 'tree'), { recursive: true });
      const begin = performance.now();
      await run(contender, ['rm', '-rf', 'tree']);
      told(`rm -rf, ${counts.entries} files`, performance.now() - begin);
    }
  }
  for (const sandbox of Object.values(sandboxes)) await sandbox.close();
  rmSync(tree, { recursive: true });
  return Object.fromEntries(
    [...found].map(([what, of]) => [
      what,
      {
        ...Object.fromEntries(CONTENDERS.map((one) => [one, median(of[one])])),
        ratios: Object.fromEntries(
          CONTENDERS.map((one) => [one, median(of[one].map((value, at) => value / of.outside[at]))]),
        ),
      },
    ]),
  );
}

export function printCalls(results) {
  printTable(
    'Calls by the thousand (milliseconds, medians; in turns; ratios to outside, round by round)',
    ['', ...CONTENDERS, 'never', 'auto'],
    Object.entries(results).map(([what, of]) => [
      what,
      ...CONTENDERS.map((one) => milliseconds(of[one], 3)),
      times(of.ratios.never),
      times(of.ratios.auto),
    ]),
  );
}

export function callsGoals(results) {
  return Object.entries(results).map(([what, { ratios }]) => ({
    what: `${what}, inside : outside`,
    value: ratios.auto,
    limit: 1.1,
    unit: ' x',
  }));
}
