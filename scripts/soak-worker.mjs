// One process of soak.mjs: runs commands of every kind, several at once, and says on its standard output how it stands.
// Takes its task as JSON. Ends when it has made its runs, or with SIGTERM.
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSandbox } from '../dist/index.js';

const { mark, runs, lanes, disturbed, workspace } = JSON.parse(process.argv[2]);

const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);

const OPTIONS = { workspace, autonomy: 'autonomous', env: { SOAK_MARK: mark }, timeout: 20_000 };
const [sandbox, limitedSandbox] = await Promise.all([
  createSandbox(OPTIONS),
  createSandbox({ ...OPTIONS, limits: { memory: 100_000_000 } }),
]).catch((error) => {
  // Disturbed, there may not even be room for that.
  if (!disturbed || error.code === undefined) throw error;
  process.exit(2);
});

/** State is said after each: the first of them warm up. */
const LAPS = 20;

function expect(holds, what, result) {
  if (holds) return;
  const { status, exitCode, signal, error, stdout, stderr, truncated } = result ?? {};
  throw new Error(
    `${what}: ${JSON.stringify({ status, exitCode, signal, error, stdout, stderr, truncated })}`,
  );
}

/** Every kind of run: does it and throws if it was not as it has to be. */
const KINDS = {
  async program() {
    const result = await sandbox.run(['/bin/true']);
    expect(result.exitCode === 0, 'true', result);
  },
  async shell(number) {
    const result = await sandbox.run(`echo run-${number}; echo other >&2; exit ${number % 7}`);
    expect(result.stdout === `run-${number}\n` && result.exitCode === number % 7, 'shell', result);
  },
  async pipeline() {
    const result = await sandbox.run('seq 1000 | sort -rn | head -1');
    expect(result.stdout === '1000\n', 'pipeline', result);
  },
  async input(number) {
    const result = await sandbox.run(['cat'], { input: `${number}`.repeat(5000) });
    expect(result.stdout === `${number}`.repeat(5000), 'input', result);
  },
  async signaled() {
    const result = await sandbox.run('kill -KILL $$');
    expect(result.signal === 'SIGKILL', 'signaled', result);
  },
  async timedOut() {
    const result = await sandbox.run('sleep 30', { timeout: 20 });
    expect(result.status === 'timed-out' && result.treeEnded, 'timed out', result);
  },
  async canceled(number) {
    const result = await sandbox.run('sleep 30', { signal: AbortSignal.timeout(number % 15) });
    expect(result.status === 'canceled' && result.treeEnded, 'canceled', result);
  },
  async stopped() {
    const result = await sandbox.run('kill -STOP $$', { timeout: 20 });
    expect(result.status === 'timed-out' && result.treeEnded, 'stopped', result);
  },
  async daemon() {
    const result = await sandbox.run('setsid sleep 300 >/dev/null 2>&1 </dev/null & exit 3');
    expect(result.exitCode === 3 && result.treeEnded, 'daemon', result);
  },
  async doubleFork() {
    const result = await sandbox.run('(setsid sh -c "sleep 300 & exec sleep 300" >/dev/null 2>&1 &); exit 4');
    expect(result.exitCode === 4 && result.treeEnded, 'double fork', result);
  },
  async holdsOutput() {
    const result = await sandbox.run('sleep 300 & echo begun');
    expect(result.stdout === 'begun\n' && result.treeEnded, 'holds output', result);
  },
  async flood() {
    const result = await sandbox.run('head -c 3000000 /dev/zero');
    expect(result.outputBytes.stdout === 3_000_000 && result.truncated.stdout > 0, 'flood', {});
  },
  async streamed() {
    let bytes = 0;
    const result = await sandbox.run('head -c 300000 /dev/zero', {
      onOutput: async (chunk) => {
        bytes += chunk.bytes.length;
        await sleep(1);
      },
    });
    expect(bytes === 300_000, 'streamed', result);
  },
  async spawned() {
    const child = sandbox.spawn(['cat']);
    let text = '';
    child.stdout.on('data', (chunk) => {
      text += chunk;
    });
    const read = new Promise((done) => child.stdout.once('close', done));
    child.stdin.on('error', () => {});
    child.stderr.on('error', () => {});
    child.stderr.resume();
    child.stdin.end('to and fro');
    const result = await child.result;
    await read;
    expect(result.exitCode === 0 && text === 'to and fro', `spawned (${text})`, result);
  },
  async files() {
    const result = await sandbox.run(
      'for i in 1 2 3 4 5; do head -c 20000 /dev/zero > "$TMPDIR/$i" || exit 1; done; cat "$TMPDIR"/[1-5] | wc -c',
    );
    expect(result.stdout === '100000\n', 'files', result);
  },
  async terminal() {
    const result = await sandbox.run('test -t 0 && test -t 1 && stty size', { pty: { cols: 90, rows: 30 } });
    expect(result.stdout === '30 90\r\n', 'terminal', result);
  },
  async job() {
    const job = await sandbox.run('sleep 300 & echo begun', { background: true });
    await job.waitForExit();
    const left = job.result;
    const result = await job.end();
    expect(left === undefined && result.treeEnded && result.stdout === 'begun\n', 'job', result);
  },
  async session(number) {
    const shell = await sandbox.session();
    try {
      await shell.run(`mine=${number}; sleep 300 &`);
      const hung = await shell.run('sleep 300', { timeout: 50 });
      const result = await shell.run('echo $mine');
      const lives = hung.status === 'timed-out' && !hung.restarted;
      expect(lives && result.stdout === `${number}\n`, 'session', result);
    } finally {
      await shell.close();
    }
  },
  async limited() {
    const result = await limitedSandbox.run('exec tail /dev/zero');
    expect(result.status === 'limit-exceeded' && result.limit.name === 'memory', 'limited', result);
  },
  async combined() {
    const result = await sandbox.run('echo one; echo two >&2; echo three', { combined: true });
    expect(result.stdout === 'one\ntwo\nthree\n', 'combined', result);
  },
  async missing() {
    const result = await sandbox.run(['no-such-program-anywhere']);
    expect(result.error?.code === 'program.not_found', 'missing', result);
  },
};
const NAMES = Object.keys(KINDS);

function state() {
  globalThis.gc?.();
  const status = readFileSync('/proc/self/status', 'utf8');
  return {
    descriptors: readdirSync('/proc/self/fd').length,
    threads: readdirSync('/proc/self/task').length,
    residentMb: Math.round((Number(/^VmRSS:\s+(\d+)/m.exec(status)[1]) / 1024) * 10) / 10,
  };
}
let next = 0;
let ending = false;
let unexpected = 0;
process.on('SIGTERM', () => {
  ending = true;
});

async function once(number) {
  // Most runs of an agent are plain ones; those that wait would make all of them few.
  const name = number % 3 !== 0 ? 'program' : NAMES[(number / 3) % NAMES.length];
  try {
    await KINDS[name](number);
  } catch (error) {
    // Disturbed, a run may end in many ways, but it has to end, and not by a bug of ours.
    const bug = ['TypeError', 'ReferenceError', 'RangeError'].includes(error.name);
    if (!disturbed || bug) {
      say({ failed: `${name}: ${error.stack}` });
      process.exitCode = 1;
      ending = true;
      return;
    }
    unexpected++;
    // What is short now may be there again soon.
    await sleep(20);
  }
}

/** Runs up to the given number, then waits until the command threads have cleaned up behind the last results. */
async function lap(end) {
  const lane = async () => {
    while (!ending && next < end) await once(next++);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  await sleep(300);
  say({ done: next, unexpected, ...state() });
}

for (let part = 1; part <= LAPS && !ending; part++) await lap(Math.floor((runs * part) / LAPS));
await sandbox.close();
await limitedSandbox.close();
say({ closed: true, done: next, unexpected, ...state() });
