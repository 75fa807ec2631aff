import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { constants, hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, openQueue } from '../../src/fleet/index.ts';
import { connectNats } from '../../src/gate/nats/index.ts';
import { until } from '../support/approvals.ts';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { processesWith } from '../support/leftovers.ts';
import { freePort, type NatsServers, startNats } from '../support/nats.ts';
import { HOST } from '../support/tiers.ts';
import { CLI, cli, expectOneLine, makePlace, startCli } from './support.ts';

const machine = makePlace();
const submitter = makePlace();
let servers: NatsServers;
let worker: ReturnType<typeof spawn>;
const on = () => ['--queue', 'builds', '--url', servers.url];

/** A worker as a program, with the policy of its machine. */
beforeAll(async () => {
  servers = await startNats();
  mkdirSync(join(machine.root, 'config/sandbox-run'), { recursive: true });
  writeFileSync(
    join(machine.root, 'config/sandbox-run/policy.toml'),
    `[approval]\nask = "queue"\n[state]\nurl = "${servers.url}"\n[[commands.rules]]\nprogram = "touch"\nverdict = "ask"\n`,
    { mode: 0o600 },
  );
  mkdirSync(join(submitter.root, 'config/sandbox-run'), { recursive: true });
  writeFileSync(join(submitter.root, 'config/sandbox-run/policy.toml'), `[state]\nurl = "${servers.url}"\n`, {
    mode: 0o600,
  });
  worker = spawn(
    process.execPath,
    [CLI, 'worker', ...on(), '--slots', '3', '--label', 'gpu', '--grace', '0'],
    {
      cwd: machine.workspace,
      env: {
        ...{ PATH: process.env.PATH, HOME: join(machine.root, 'home'), TMPDIR: machine.root },
        XDG_CONFIG_HOME: join(machine.root, 'config'),
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  await new Promise((done) => worker.stdout?.once('data', done));
});
afterAll(async () => {
  if (worker.exitCode === null) {
    const ended = new Promise((done) => worker.once('exit', done));
    worker.kill('SIGTERM');
    await ended;
  }
  await servers.stop();
  machine.dispose();
  submitter.dispose();
});

const ONE = ['submit', '--queue', 'builds'];

describe('submit', () => {
  it('waits, shows the output and ends as the command does', async () => {
    const ended = await cli(submitter, ['submit', ...on(), '--wait', '-c', 'echo out; echo err >&2; exit 7']);
    expect(ended).toMatchObject({ exitCode: 7, stdout: 'out\n', stderr: 'err\n' });
  });

  it('tells what was denied and what was left behind, and where', async () => {
    mkdirSync(join(machine.workspace, '.git/hooks'), { recursive: true });
    writeFileSync(join(machine.workspace, '.git/HEAD'), 'ref: refs/heads/main\n');
    writeFileSync(
      join(machine.workspace, 'attempt'),
      'echo > .git/hooks/pre-commit\necho $RANDOM > Makefile\necho > ../beside\ntouch /usr/mine\nexit 1\n',
    );
    const command = 'bash attempt';
    const local = await cli(machine, ['-c', command]);
    const said = local.stderr.split('\n').filter((line) => /could not|look at this/.test(line));
    // Without namespaces the hook is made, and set aside.
    const hook = HOST.namespaces ? 'could not make .*pre-commit' : 'could not make .*beside';
    expect(said.join()).toMatch(new RegExp(`look at this.*Makefile.*${hook}`));
    // An ordinary user could not make it without a sandbox either.
    if (process.getuid?.() === 0) expect(said.join()).toMatch(/could not make .*(?:\/usr\/mine|and \d more)/);
    const elsewhere = said.map((line) => line.replace('sandbox-run: ', `sandbox-run: ${hostname()}: `));
    const ended = await cli(submitter, ['submit', ...on(), '--wait', '-c', command]);
    for (const line of elsewhere) expect(ended.stderr).toContain(line);
    if (!HOST.namespaces)
      for (const { stderr } of [local, ended]) expect(stderr).toMatch(/set aside.*pre-commit/);
    const jobs = join(submitter.root, 'one');
    writeFileSync(jobs, `${command}\n`);
    const many = await cli(submitter, ['submit', ...on(), '--wait', '--jobs', jobs]);
    expect(many.stderr).toMatch(/^sandbox-run: job [0-9a-f]{16}\.1 on .*could not make /m);
    const id = (await cli(submitter, ['submit', ...on(), '-c', command])).stdout.trim();
    const told = await cli(submitter, ['fleet', 'job', id, ...on(), '--wait']);
    expect(told.stderr).toMatch(/could not make /);
    // How to get more is said to who has that policy.
    expect(ended.stderr).not.toMatch(/to allow|--ro /);
  });

  it('has as its input a file, or that of this command, and no other', async () => {
    const file = join(submitter.root, 'input');
    writeFileSync(file, 'of a file\n');
    const reading = ['submit', ...on(), '--wait', '--', 'cat'];
    const withInput = (input: string) => [...reading.slice(0, -2), '--input', input, ...reading.slice(-2)];
    expect(await cli(submitter, withInput(file))).toMatchObject({ exitCode: 0, stdout: 'of a file\n' });
    const piped = { input: 'piped\n' };
    expect(await startCli(submitter, withInput('-'), piped)).toMatchObject({
      exitCode: 0,
      stdout: 'piped\n',
    });
    expect(await cli(submitter, reading, piped)).toMatchObject({ exitCode: 0, stdout: '' });
  });

  it('reads no more of its input than a job may have', async () => {
    const endless = await cli(submitter, [
      'submit',
      ...on(),
      '--wait',
      '--input',
      '/dev/zero',
      '--',
      'wc',
      '-c',
    ]);
    expect(endless).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(endless.stderr);
    expect(endless.stderr).toContain('input has more than the 262144 bytes');
  });

  it('hands over, and fleet job tells what became of it', async () => {
    const { stdout } = await cli(submitter, ['submit', ...on(), '--label', 'gpu', '--', 'echo', 'later']);
    const id = stdout.trim();
    const told = await cli(submitter, ['fleet', 'job', id, ...on(), '--wait']);
    expect(told).toMatchObject({ exitCode: 0, stdout: 'later\n' });
    const json = JSON.parse((await cli(submitter, ['fleet', 'job', id, ...on(), '--json'])).stdout);
    expect(json).toMatchObject({ status: 'exited', fleet: { job: id, attempts: 1 } });
  });

  it('of many has one line for all, or one object for each', async () => {
    const jobs = join(submitter.root, 'jobs');
    writeFileSync(jobs, 'echo 1\nexit 3\n\necho 2\n');
    const all = await cli(submitter, ['submit', ...on(), '--wait', '--jobs', jobs]);
    expect(all).toMatchObject({ exitCode: 1, stdout: '3 jobs ended, 1 failed\n' });
    // Which one.
    expectOneLine(all.stderr);
    expect(all.stderr).toMatch(/job [0-9a-f]{16}\.2 on \S+: exited 3\n/);
    const each = await cli(submitter, ['submit', ...on(), '--wait', '--json', '--jobs', jobs]);
    const lines = each.stdout.trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).exitCode).sort()).toEqual([0, 0, 3]);
  });

  it('of many goes on where one result cannot be read', async () => {
    const jobs = join(submitter.root, 'spoiled');
    const { words, letGo } = makeHold(machine.workspace);
    writeFileSync(jobs, `${words}\n`.repeat(3));
    const waiting = startCli(submitter, ['submit', ...on(), '--wait', '--jobs', jobs]);
    const connection = await connectNats({ url: servers.url }, 'spoils');
    const { records } = await openQueue(connection, 'builds');
    const id = await until(async () => {
      const keys: string[] = [];
      for await (const key of await records.keys()) keys.push(key);
      const claimed = await Promise.all(keys.map(async (key) => ({ key, entry: await records.get(key) })));
      return claimed.find(({ entry }) => entry?.string().includes('"claimed"') === true)?.key;
    });
    await records.put(id, 'what nobody understands');
    letGo();
    await connection.close();
    const { exitCode, stdout, stderr } = await waiting;
    expect(stderr).toContain(`job ${id}: the result of job ${id} is not understood`);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '3 jobs ended, 1 failed\n' });
  });

  it.runIf(HOST.namespaces)(
    'sends a directory, brings files back, and what changed waits (needs namespaces)',
    async () => {
      writeFileSync(join(submitter.workspace, 'a'), 'a\n');
      const from = ['--workspace-from', submitter.workspace, '--changes'];
      const made = join(submitter.root, 'made');
      const back = ['--artefact', 'out/*', '--into', made];
      const command = 'mkdir out && echo b > a && echo made > out/file';
      const ended = await cli(submitter, ['submit', ...on(), '--wait', ...from, ...back, '-c', command]);
      expect(ended.exitCode).toBe(0);
      expect(readFileSync(join(made, 'out/file'), 'utf8')).toBe('made\n');
      expect(readFileSync(join(submitter.workspace, 'a'), 'utf8')).toBe('a\n');
      const id = /changes apply (\S+)/.exec(ended.stderr)?.[1] ?? '';
      const list = await cli(submitter, ['changes', 'list'], { cwd: submitter.workspace });
      expect(list.stdout).toMatch(new RegExp(`^${id} .*: bash /\\S+/changes-of-a-fleet-job\n`, 'm'));
      expect((await cli(submitter, ['changes', 'apply', id], { cwd: submitter.workspace })).exitCode).toBe(0);
      expect(readFileSync(join(submitter.workspace, 'a'), 'utf8')).toBe('b\n');
    },
  );

  it('says so where no file is what was to come back', async () => {
    const back = ['--artefact', 'dits/**', '--into', join(submitter.root, 'nothing')];
    const from = ['--workspace-from', submitter.workspace];
    const ended = await cli(submitter, ['submit', ...on(), '--wait', ...from, ...back, '--', 'true']);
    expect(ended.exitCode).toBe(0);
    expect(ended.stderr).toContain('no file came back: there is none that is called dits/**');
    expectOneLine(ended.stderr);
  });

  it('where nobody is asked, names what a worker can do, and no option that submit has not', async () => {
    const queue = ['--queue', 'unasked', '--url', servers.url];
    const unasked = startCli(machine, ['worker', ...queue, '--ask', 'nobody', '--grace', '0']);
    await Promise.race([once(unasked.stdout, 'data'), unasked]);
    const refused = await cli(submitter, ['submit', ...queue, '--wait', '--', 'touch', 'unasked']);
    expect(refused.exitCode).toBe(126);
    expectOneLine(refused.stderr);
    expect(refused.stderr).toMatch(/needs approval, .* worker .*--ask queue.*sandbox-run fleet approvals/);
    expect(refused.stderr).not.toContain('approved runs it');
    unasked.kill('SIGTERM');
    expect((await unasked).exitCode).toBe(0);
  });

  it('is canceled with its job by a signal, and by fleet cancel', async () => {
    const waiting = startCli(submitter, [
      'submit',
      ...on(),
      '--wait',
      '-c',
      'echo > begun; exec -a canceled-job sleep 1000',
    ]);
    await eventually(() => expect(existsSync(join(machine.workspace, 'begun'))).toBe(true), 60_000);
    waiting.kill('SIGINT');
    expect((await waiting).exitCode).not.toBe(0);
    await eventually(() => expect(processesWith('canceled-job')).toEqual([]), 60_000);
    const command = 'echo > begun-too; exec sleep 1000';
    const id = (await cli(submitter, ['submit', ...on(), '-c', command])).stdout.trim();
    await eventually(() => expect(existsSync(join(machine.workspace, 'begun-too'))).toBe(true), 60_000);
    expect((await cli(submitter, ['fleet', 'cancel', id, ...on()])).exitCode).toBe(0);
    const told = await cli(submitter, ['fleet', 'job', id, ...on()]);
    expect(told.exitCode).not.toBe(1);
    // Somebody else may have done it.
    expect(told.stderr).toMatch(/^sandbox-run: .*: canceled/);
  });

  it('is canceled with its job when the reader of its output is gone', async () => {
    const endless = 'while :; do echo output; (exec -a unread-job sleep 0.1); done';
    const waiting = startCli(submitter, ['submit', ...on(), '--wait', '-c', endless]);
    waiting.stdout?.once('data', () => waiting.stdout?.destroy());
    expect((await waiting).exitCode).toBe(128 + constants.signals.SIGPIPE);
    await eventually(() => expect(processesWith('unread-job')).toEqual([]), 60_000);
  });

  it('ends by a signal where the server is gone, and says so', async () => {
    const gone = await startNats();
    const waiting = startCli(submitter, [
      'submit',
      '--queue',
      'q',
      '--url',
      gone.url,
      '--wait',
      '--',
      'true',
    ]);
    const status = ['fleet', 'status', '--queue', 'q', '--url', gone.url, '--json'];
    await until(async () => {
      const { stdout } = await cli(submitter, status);
      return (stdout !== '' && JSON.parse(stdout).jobs.normal === 1) || undefined;
    });
    await gone.stop();
    // Not by execa, which sends SIGKILL after a time.
    process.kill(waiting.pid as number, 'SIGTERM');
    const { exitCode, stderr } = await waiting;
    expect(exitCode).toBe(125);
    expect(stderr).toContain('was not canceled and may run');
    expectOneLine(stderr);
  });

  it.each([
    [['fleet', 'status', '--queue', 'no-such-queue'], /there is no queue no-such-queue/],
    [['fleet', 'job', `${'f'.repeat(16)}.1`, '--queue', 'quiet', '--wait'], /there is no job ffff/],
    [['fleet', 'cancel', `${'f'.repeat(16)}.1`, '--queue', 'quiet'], /there is no job ffff/],
  ])('%j is not there, and is told so in one line', async (args, why) => {
    const connection = await connectNats({ url: servers.url }, 'makes it');
    await openQueue(connection, 'quiet');
    await connection.close();
    const refused = await cli(submitter, [...args, '--url', servers.url]);
    expect(refused.exitCode).toBe(125);
    expectOneLine(refused.stderr);
    expect(refused.stderr).toMatch(why);
  });

  // That it is tried for no longer than a moment: test/unit/gate/nats/patience.test.ts.
  it('says of a server that was started without JetStream what it needs', async () => {
    // As the Debian package starts one.
    const bare = spawn(
      'setpriv',
      ['--pdeathsig', 'KILL', 'nats-server', '-a', '127.0.0.1', '-p', '-1', '--ports_file_dir', machine.root],
      { stdio: 'ignore' },
    );
    const url = await until(async () => {
      const file = readdirSync(machine.root).find((name) => name.startsWith('nats-server_'));
      const text = file === undefined ? '' : readFileSync(join(machine.root, file), 'utf8');
      return text === '' ? undefined : (JSON.parse(text).nats[0] as string);
    });
    const refused = await cli(submitter, ['submit', '--queue', 'builds', '--url', url, '--', 'true']);
    bare.kill('SIGKILL');
    expect(refused.exitCode).toBe(125);
    expectOneLine(refused.stderr);
    expect(refused.stderr).toMatch(/it has no JetStream; .*--jetstream/);
  });

  it('asks by the queue of the fleet, where one answer from any machine is enough', async () => {
    const asking = startCli(submitter, ['submit', ...on(), '--wait', '--', 'touch', 'asked']);
    const question = await until(async () => {
      const { stdout } = await cli(submitter, ['approvals', 'list', '--json']);
      return stdout === '' ? undefined : (JSON.parse(stdout) as { id: string });
    });
    expect((await cli(submitter, ['approvals', 'approve', question.id])).exitCode).toBe(0);
    expect((await asking).exitCode).toBe(0);
    expect((await cli(submitter, ['approvals', 'deny', question.id])).exitCode).toBe(125);
  });

  it.each([
    ['[x', /pattern that is not understood/],
    ['./x', /a pattern is relative/],
  ])('--artefact %s is refused in one line', async (pattern, why) => {
    const given = ['--wait', '--artefact', pattern, '--into', 'made', '--workspace-from', '.'];
    const refused = await cli(submitter, ['submit', ...on(), ...given, '--', 'true']);
    expect(refused.exitCode).toBe(125);
    expectOneLine(refused.stderr);
    expect(refused.stderr).toMatch(why);
  });

  it.each([
    [['submit', '--', 'true'], /--queue NAME/],
    [['submit', '--queue', 'Not A Name', '--', 'true'], /small letters/],
    [['submit', '--queue', 'builds'], /say what to run/],
    [['submit', '--queue', 'builds', '--json', '--', 'true'], /needs --wait/],
    [['submit', '--queue', 'builds', '--wait', '--artefact', 'x', '--', 'true'], /go together/],
    [[...ONE, '--wait', '--artefact', 'x', '--into', 'made', '--', 'true'], /needs --workspace-from/],
    [
      [...ONE, '--wait', '--artefact', 'x', '--into', '/etc', '--workspace-from', '.', '--', 'true'],
      /not empty/,
    ],
    [
      [...ONE, '--wait', '--artefact', 'x', '--into', 'made', '--workspace-from', '.', '--jobs', 'list'],
      /not for --jobs/,
    ],
    [[...ONE, '--wait', '--changes', '--workspace-from', '.', '--jobs', 'list'], /not for --jobs/],
    [[...ONE, '--input', 'no-such-file', '--', 'true'], /--input no-such-file cannot be read/],
    [[...ONE, '--input', '-', '--jobs', '-'], /both standard input/],
    [['submit', '--queue', 'builds', '--env', 'A', '--', 'true'], /NAME=VALUE/],
    [['submit', '--queue', 'builds', '--label', 'Not_One', '--', 'true'], /label/],
    [['submit', '--queue', 'builds', '--url', 'nats://127.0.0.1:1', '--', 'true'], /cannot be used/],
    [['submit', '--queue', 'builds', '--url', 'nats://a:b@127.0.0.1', '--', 'true'], /user or password/],
    [['worker', '--queue', 'builds', '--lease', '1'], /--lease must be/],
    [['fleet', 'job', 'nonsense', '--queue', 'builds'], /cannot be used|is no job/],
  ])('%j is refused in one line', async (args, why) => {
    const refused = await cli(submitter, args);
    expect(refused.exitCode).toBe(125);
    expectOneLine(refused.stderr);
    expect(refused.stderr).toMatch(why);
  });
});

it('the help of a worker says its times in seconds, as they are given', async () => {
  const { stdout } = await cli(machine, ['worker', '--help']);
  expect(stdout.replace(/\s+/g, ' ')).toMatch(/lost \(default: 15\).* go on \(default: 30\)/);
});

describe('fleet status', () => {
  it('tells of workers, slots and jobs', async () => {
    const text = await cli(submitter, ['fleet', 'status', ...on()]);
    expect(text.stdout).toMatch(/^builds: \d+ jobs? waits?, \d+ run in 3 slots/);
    expect(text.stdout).toMatch(/live \d\/3 \d+ ended, seen \d+ s ago gpu/);
    const json = JSON.parse((await cli(submitter, ['fleet', 'status', ...on(), '--json'])).stdout);
    expect(json).toMatchObject({ queue: 'builds', slots: 3, lost: 0 });
  });

  it('says of jobs that wait for labels that no worker has', async () => {
    await using fleet = await createFleet({ url: servers.url, queue: 'builds' });
    const submitted = (label: string) => fleet.submit(['true'], { labels: ['gpu', label] });
    const jobs = [await submitted('nobody-has'), await submitted('nobody-has'), await submitted('gpu')];
    const { stdout } = await cli(submitter, ['fleet', 'status', ...on()]);
    expect(stdout).toContain('\n2 jobs wait for a worker with gpu nobody-has, and there is none\n');
    const json = JSON.parse((await cli(submitter, ['fleet', 'status', ...on(), '--json'])).stdout);
    expect(json.unmet).toEqual([{ labels: ['gpu', 'nobody-has'], jobs: 2 }]);
    for (const job of jobs) job.cancel();
    await Promise.all(jobs.map(({ result }) => result));
  });

  it('shows nothing of what a worker says of itself that a terminal would obey', async () => {
    const connection = await connectNats({ url: servers.url }, 'hostile worker');
    const { workers } = await openQueue(connection, 'builds');
    const record = {
      ...{ state: 'ended', beat: 1, host: 'evil\u001b[2J\nforged line', pid: 1, version: '1' },
      ...{ labels: ['\u009b31m'], slots: 1, running: 0, done: 0, failed: 0, leaseMs: 15_000, since: 1 },
    };
    await workers.put('hostile', JSON.stringify(record));
    const { stdout } = await cli(submitter, ['fleet', 'status', ...on()]);
    await workers.delete('hostile');
    await connection.close();
    expect(stdout).toContain('hostile evil');
    expect(stdout).not.toMatch(/[^\P{Cc}\n]|^forged/mu);
  });
});

describe('examples/fleet/up', () => {
  it('starts the whole on one machine, and takes everything with it', async () => {
    const up = fileURLToPath(new URL('../../examples/fleet/up', import.meta.url));
    const port = String(await freePort());
    const started = spawn(up, ['tried'], {
      env: { ...process.env, PORT: port, SANDBOX_RUN: CLI, TMPDIR: machine.root },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = new Promise((done) => started.once('exit', done));
    let said = '';
    started.stdout.on('data', (bytes) => {
      said += bytes;
    });
    await eventually(() => expect(said.match(/worker is ready/g)).toHaveLength(2), 60_000);
    const there = ['--queue', 'tried', '--url', `nats://127.0.0.1:${port}`];
    expect((await cli(submitter, ['submit', ...there, '--wait', '--', 'echo', 'up'])).stdout).toBe('up\n');
    started.kill('SIGTERM');
    await ended;
    await eventually(() => expect(processesWith(`--port ${port}`)).toEqual([]), 60_000);
  });
});
