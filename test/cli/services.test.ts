import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { HOST } from '../support/tiers.ts';
import { makeConfiguration } from '../support/unjudged-policy.ts';
import {
  begin,
  clientWords,
  expectNothingLeft,
  processesWith,
  recordsOf,
  serverWords,
  services,
  sr,
} from './services-support.ts';
import { CLI, expectOneLine, PTY_DRIVER, serversOf } from './support.ts';
import { call, makeWarmPlace, warmUp } from './warm-support.ts';

const place = makeWarmPlace();
afterEach(async () => {
  await sr(place, ['stop', '--all']);
});
afterAll(() => place.dispose());

/** So long that nothing ends by itself, and as nobody else sleeps. */
const long = (number: number) => `${7_000 + number}.${process.pid}`;
const up = (...words: readonly string[]) => sr(place, ['up', ...words]);

describe('a service', () => {
  it('goes on after the command line that started it, and ends with everything on stop', async () => {
    const began = await up('web', '--ready', '5173', '--', ...serverWords(5173, 'hello'));
    expect(began).toMatchObject({ exitCode: 0, stderr: '' });
    expect(began.stdout).toMatch(/^web is ready, reach it at localhost:5173 \(process \d+\)\n$/);
    expect(await services(place)).toMatchObject([
      { name: 'web', workspace: place.workspace, state: 'ready', restarts: 0, ports: [{ port: 5173 }] },
    ]);
    expect(recordsOf(place)).toHaveLength(1);
    const again = await up('web');
    expect(again.exitCode).toBe(125);
    expectOneLine(again.stderr);
    expect(again.stderr).toContain('web runs with the command that up was given: sandbox-run restart web');
    expect(await sr(place, ['stop', 'web'])).toEqual({ exitCode: 0, stdout: 'web has ended\n', stderr: '' });
    expect(await services(place)).toEqual([]);
    expect(recordsOf(place)).toBeUndefined();
    // With the last service its supervisor ends.
    await eventually(() => expect(serversOf(place.state)).toEqual([]));
  });

  it.runIf(HOST.namespaces)('is reached at localhost by commands and services of its workspace', async () => {
    await up('web', '--ready', '5173', '--', ...serverWords(5173, 'from web'));
    await up(
      'other',
      '--ready',
      '5174',
      '-c',
      `echo in-tmp > /tmp/shared; exec ${quoted(serverWords(5174, 'from other'))}`,
    );
    for (const words of [['--'], ['--warm', '--'], []])
      expect(await sr(place, [...words, ...clientWords(5173)])).toEqual({
        ...{ exitCode: 0, stdout: 'from web\n', stderr: '' },
      });
    expect((await sr(place, ['-c', 'cat /tmp/shared'])).stdout).toBe('in-tmp\n');
    // As the rewritten command of an agent, whose session has a machine of its own otherwise.
    const agent = ['--for-model', '--workspace', place.workspace, '--session', 'one', '--timeout', '60'];
    const ofModel = await call(place, [...agent, '-c', quoted(clientWords(5174))]);
    expect(ofModel).toMatchObject({ exitCode: 0, stdout: 'from other\n' });
    // Its model is told what there is, once.
    expect(ofModel.stderr).toMatch(
      /^In the background: service web of your user runs ".*", reach it at localhost:5173; .*\nIn the background: service other of your user runs .* localhost:5174; .*\n$/,
    );
    expect((await call(place, [...agent, '-c', 'true'])).stderr).toBe('');
  });

  it.runIf(HOST.namespaces)('is that of its worktree alone, of several of one repository', async () => {
    const [main, linked] = ['main', 'linked'].map((name) => join(place.root, name)) as [string, string];
    const git = (...words: readonly string[]) => execa('git', [...IDENTITY, ...words], { env: place.env });
    await git('init', '-q', main);
    await git('-C', main, 'commit', '-q', '--allow-empty', '-m', 'first');
    await git('-C', main, 'worktree', 'add', '-q', linked);
    for (const net of [[], ['--net', '@own']]) {
      for (const cwd of [main, linked])
        await sr(place, ['up', 'web', ...net, '--ready', '5173', '--', ...serverWords(5173, cwd)], { cwd });
      for (const cwd of [main, linked]) {
        const seen = await sr(place, [...net, '--', ...clientWords(5173)], { cwd });
        expect(seen).toEqual({ exitCode: 0, stdout: `${cwd}\n`, stderr: '' });
        const status = await sr(place, [...net, '--', 'git', 'status', '--short'], { cwd });
        expect(status).toEqual({ exitCode: 0, stdout: '', stderr: '' });
      }
      expect(await sr(place, ['stop', 'web'], { cwd: linked })).toMatchObject({ exitCode: 0 });
      expect((await services(place)).map(({ workspace }) => workspace)).toEqual([main]);
      await sr(place, ['stop', 'web'], { cwd: main });
    }
  });

  it.runIf(HOST.namespaces)('says in one line what holds it, where that is not the strongest', async () => {
    const words = ['--backend', 'namespaces', '--', 'sleep', long(22)];
    const { exitCode, stderr } = await up('web', ...words);
    expect(exitCode).toBe(0);
    expectOneLine(stderr);
    expect(stderr).toMatch(
      /^sandbox-run: backend namespaces.*; not enforced: .* \(sandbox-run doctor says why/,
    );
    await sr(place, ['stop', 'web']);
    expect(await up('web', '-q', ...words)).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it('is reached with --net @own, also on a host without namespaces', async () => {
    await up('web', '--net', '@own', '--ready', '5173', '--', ...serverWords(5173, 'from web'));
    expect(await sr(place, ['--net', '@own', '--', ...clientWords(5173)])).toEqual({
      ...{ exitCode: 0, stdout: 'from web\n', stderr: '' },
    });
  });

  it('is shown with names by which commands reach it, where the network is listed, too', async () => {
    const listens = `import socket, time\ns = socket.socket(socket.AF_UNIX)\ns.bind('/tmp/own.sock'); s.listen()\nprint('listens', flush=True)\ntime.sleep(${long(21)})`;
    const began = await up('own', '--net', '@own', '--ready-line', 'listens', '--', 'python3', '-c', listens);
    expect(began.stdout).toMatch(/^own is ready \(process \d+\)\n$/);
    expect(await services(place)).toMatchObject([{ name: 'own', ports: [] }]);
  });

  it.runIf(HOST.namespaces)('is reached from shells with any soft limit of open files', async () => {
    // Most shells have a soft limit of fewer digits than the hard one, to which Node raises it.
    const limited = (limit: number) => ({ by: ['/bin/sh', '-c', `ulimit -Sn ${limit}; exec "$@"`, 'sh'] });
    await sr(place, ['up', 'web', '--ready', '5173', '--', ...serverWords(5173, 'from web')], limited(777));
    for (const limit of [999, 1000])
      expect(await sr(place, ['--', ...clientWords(5173)], limited(limit))).toEqual({
        ...{ exitCode: 0, stdout: 'from web\n', stderr: '' },
      });
  });

  it.runIf(HOST.namespaces)('joins the machine of a session that was there before', async () => {
    const agent = ['--for-model', '--workspace', place.workspace, '--session', 'two', '--timeout', '60'];
    await eventually(() => expect(serversOf(place.state)).toEqual([]));
    await warmUp(place);
    await call(place, [...agent, '-c', 'echo of-session > /tmp/before']);
    await up('web', '--ready', '5173', '--', ...serverWords(5173, 'from web'));
    const seen = await call(place, [...agent, '-c', `cat /tmp/before; ${quoted(clientWords(5173))}`]);
    expect(seen.stdout).toBe('of-session\nfrom web\n');
  });

  it.runIf(HOST.namespaces)('is not reached under another policy, and one line says so', async () => {
    await up('web', '--ready', '5173', '--', ...serverWords(5173, 'from web'));
    mkdirSync(join(place.root, 'beside'), { recursive: true });
    const other = await sr(place, ['--rw', join(place.root, 'beside'), '--', ...clientWords(5173)]);
    expect(other.stdout).toBe('ECONNREFUSED\n');
    expectOneLine(other.stderr);
    expect(other.stderr).toContain('does not reach the services of this workspace (web)');
    expect(other.stderr).toContain(`web was started without --rw ${join(place.root, 'beside')};`);
    const own = ['up', 'own', '--net', '@own', '--env', 'KEY=hidden', '--ready', '5174'];
    await sr(place, [...own, '--', ...serverWords(5174, 'from own')]);
    const listed = await sr(place, ['--net', 'example.org', '--', ...clientWords(5174)]);
    expect(listed.stderr).toContain('own has --net @own, this command --net example.org;');
    expect(listed.stderr).not.toContain('hidden');
    // The host's localhost is another one, so it is not proposed.
    expect(listed.stderr).toContain('could not reach 127.0.0.1:5174');
    expect(listed.stderr).not.toContain('to allow');
    await sr(place, ['stop', '--all']);
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { readonly port: number };
    const alone = await sr(place, ['--net', 'example.org', '--', ...clientWords(port)]);
    expect(alone.stderr).toContain(`to allow: --net localhost:${port}\n`);
    server.close();
    // Nor from another workspace, where there is nothing to say.
    expect(await sr(place, ['--', ...clientWords(5173)], { cwd: join(place.root, 'beside') })).toMatchObject({
      ...{ stdout: 'ECONNREFUSED\n', stderr: '' },
    });
  });

  it.runIf(HOST.namespaces)(
    'is not reached from a directory beneath, and the line that says so leads there',
    async () => {
      const beneath = join(place.workspace, 'a b', 'c');
      mkdirSync(beneath, { recursive: true });
      await up('web', '--ready', '5173', '--', ...serverWords(5173, 'from web'));
      // Of no repository: each directory is a workspace for itself.
      const alone = await sr(place, ['--', ...clientWords(5173)], { cwd: beneath });
      expect(alone).toMatchObject({ stdout: 'ECONNREFUSED\n', stderr: '' });
      mkdirSync(join(place.workspace, '.git'));
      const missed = await sr(place, ['--', ...clientWords(5173)], { cwd: beneath });
      expect(missed.stdout).toBe('ECONNREFUSED\n');
      expectOneLine(missed.stderr);
      const [, ...words] = /(--workspace) (\S+)\n$/.exec(missed.stderr) ?? [];
      expect(words).toEqual(['--workspace', place.workspace]);
      expect(await sr(place, [...words, '--', ...clientWords(5173)], { cwd: beneath })).toMatchObject({
        ...{ stdout: 'from web\n', stderr: '' },
      });
      rmSync(join(place.workspace, '.git'), { recursive: true });
    },
  );

  it('whose port leads to nothing yet is told with that port', async () => {
    if (!HOST.namespaces) return;
    const began = await up('web', '--publish', '0:5173', '--', 'sleep', long(20));
    expect(began.stdout).toMatch(
      /^web runs; 127\.0\.0\.1:\d+ leads to its port 5173, where nothing listens yet \(process \d+\)\n$/,
    );
  });

  it('that fails at once and is to be started again is told so', async () => {
    const failed = await up('web', '--restart', 'on-failure', '-c', 'exit 3');
    expect(failed).toMatchObject({ exitCode: 124, stdout: '' });
    expectOneLine(failed.stderr);
    expect(failed.stderr).toContain('web has failed and will be started again');
  });

  it('that ends before it is ready fails up, with its status and its last lines', async () => {
    const failed = await up('web', '--ready', '5173', '-c', 'echo starting; echo broken >&2; exit 7');
    expect(failed).toEqual({
      exitCode: 7,
      stdout: '',
      stderr: 'starting\nbroken\nsandbox-run: web ended before it was ready: exited with 7\n',
    });
    expect(await services(place)).toMatchObject([{ name: 'web', state: 'ended', end: 'exited with 7' }]);
    expect((await sr(place, ['logs', 'web'])).stdout).toBe('starting\nbroken\n');
    // It can be started anew under its name.
    expect((await up('web', '--', 'sleep', long(2))).exitCode).toBe(0);
  });

  it('that is not ready in time goes on, and up fails with a line', async () => {
    const late = await up('web', '--ready', '5173', '--ready-timeout', '0.3', '--', 'sleep', long(3));
    expect(late.exitCode).toBe(124);
    expectOneLine(late.stderr);
    expect(await services(place)).toMatchObject([{ name: 'web', state: 'starting' }]);
  });

  it('is ready by a line of its output, also where the pattern would take for ever', async () => {
    const ready = await up(
      'web',
      '--ready-line',
      'listening on \\d+$',
      '-c',
      `echo listening on 80; exec sleep ${long(4)}`,
    );
    expect(ready.exitCode).toBe(0);
    const stuck = `while :; do echo ${'a'.repeat(60)}b; sleep 0.01; done`;
    const late = await up('slow', '--ready-line', '^(a+)+$', '--ready-timeout', '1', '-c', stuck);
    expect(late.exitCode).toBe(124);
    expect(await services(place)).toHaveLength(2);
    const wrong = await up('wrong', '--ready-line', '(', '--', 'true');
    expect(wrong.exitCode).toBe(125);
    expectOneLine(wrong.stderr);
  });

  it('has one line for a name that it cannot have', async () => {
    for (const name of ['Web', 'a b', '../x', 'a\u001b[31m', 'a'.repeat(33), 'ä', '_a', '1234', '9a']) {
      const refused = await up(name, '--', 'true');
      expect(refused.exitCode, name).toBe(125);
      expectOneLine(refused.stderr);
    }
    const file = join(place.workspace, '.sandbox-run.toml');
    writeFileSync(file, '[services."a b"]\ncommand = "true"\n');
    const refused = await up();
    rmSync(file);
    expectOneLine(refused.stderr);
    expect(refused.stderr).toContain('must be a name of a to z');
    expect(recordsOf(place)).toBeUndefined();
  });

  it('is started once by two that want it at the same time', async () => {
    await up('other', '--', 'sleep', long(5));
    const both = await Promise.all([1, 2].map(() => up('web', '--', 'sleep', long(6))));
    expect(both.map(({ exitCode }) => exitCode).sort()).toEqual([0, 125]);
    const refused = both.find(({ exitCode }) => exitCode === 125);
    expectOneLine(refused?.stderr ?? '');
    expect(refused?.stderr).toContain('a service of that name exists in');
    expect(processesWith(long(6))).toHaveLength(1);
  });

  it('is started again when it fails, with its runs counted, and ends after its time', async () => {
    const counted = 'echo run >> runs; test $(wc -l < runs) -ge 3 || exit 1; echo well; exec sleep';
    const began = await up(
      'web',
      '--restart',
      'on-failure',
      '--ready-line',
      'well',
      '-c',
      `${counted} ${long(7)}`,
    );
    expect(began).toMatchObject({ exitCode: 0 });
    expect(await services(place)).toMatchObject([{ restarts: 2, state: 'ready' }]);
    await up('short', '--for', '1s', '--', 'sleep', long(8));
    await eventually(async () =>
      expect(await services(place)).toMatchObject([
        { name: 'web' },
        { name: 'short', state: 'ended', end: 'stopped after the time of --for' },
      ]),
    );
    expect(processesWith(long(8))).toEqual([]);
  });

  it('is started anew by restart, as it was', async () => {
    await up('web', '--env', 'GIVEN=a value', '-c', `echo "$GIVEN $PWD"; exec sleep ${long(9)}`);
    const [before = 0] = processesWith(long(9));
    const again = await sr(place, ['restart', 'web']);
    expect(again.exitCode).toBe(0);
    expect(again.stdout).toMatch(/^web runs \(process \d+\)\n$/);
    expect(processesWith(long(9))).toHaveLength(1);
    expect(processesWith(long(9))).not.toEqual([before]);
    await eventually(async () =>
      expect((await sr(place, ['logs', 'web'])).stdout).toBe(`a value ${place.workspace}\n`.repeat(2)),
    );
  });

  it('is ready again when restart returns, or restart fails as up does', async () => {
    await up(
      'web',
      '--ready',
      '5173',
      '-c',
      `test ! -e broken || exit 7; exec ${quoted(serverWords(5173, 'x'))}`,
    );
    const again = await sr(place, ['restart', 'web']);
    expect(again).toMatchObject({ exitCode: 0, stderr: '' });
    expect(again.stdout).toMatch(/^web is ready, reach it at localhost:5173/);
    writeFileSync(join(place.workspace, 'broken'), '');
    const failed = await sr(place, ['restart', 'web']);
    expect(failed).toMatchObject({ exitCode: 7, stdout: '' });
    expect(failed.stderr).toContain('web ended before it was ready: exited with 7');
    rmSync(join(place.workspace, 'broken'));
    expect(await sr(place, ['restart', 'web'])).toMatchObject({ exitCode: 0 });
  });

  it('is followed until it ends, or the reader leaves', async () => {
    await up(
      'web',
      '-c',
      `echo one; until test -e go; do sleep 0.02; done; echo two; exec sleep ${long(10)}`,
    );
    const [whole, left] = [begin(place, ['logs', '-f', 'web']), begin(place, ['logs', '-f', 'web'])];
    let seen = '';
    left.stdout.on('data', (bytes) => {
      seen += String(bytes);
    });
    await eventually(() => expect(seen).toBe('one\n'));
    writeFileSync(join(place.workspace, 'go'), '');
    await eventually(() => expect(seen).toBe('one\ntwo\n'));
    left.kill('SIGTERM');
    expect((await left).exitCode).toBe(143);
    await sr(place, ['stop', 'web']);
    expect(await whole).toMatchObject({ exitCode: 0, stdout: 'one\ntwo\n' });
  });

  it('gives its output byte by byte to a pipe, and without escapes to a terminal', async () => {
    await up('web', '-c', `printf 'a\\033[31mred\\377\\n'; exec sleep ${long(11)}`);
    await eventually(async () => expect((await sr(place, ['logs', 'web'])).stdout).toContain('red'));
    const { stdout } = await execa('/bin/sh', [CLI, 'logs', 'web'], {
      ...{ cwd: place.workspace, env: place.env, extendEnv: false, encoding: 'buffer' },
    });
    expect(Buffer.from(stdout)).toEqual(Buffer.from('a\u001b[31mred\u00ff', 'latin1'));
    const shown = await onTerminal(['/bin/sh', CLI, 'logs', 'web'], []);
    expect(shown.output).toContain('ared');
    expect(shown.output).not.toContain('\u001b[31m');
  });

  it('is asked about on the terminal of its call, and refused where nobody answers', async () => {
    const asks = { XDG_CONFIG_HOME: makeConfiguration(join(place.root, 'asks'), ASKS) };
    const words = ['up', 'web', '--', 'sleep', long(12)];
    const nobody = await sr(place, words, { env: asks });
    expect(nobody.exitCode).toBe(126);
    expect(processesWith(long(12))).toEqual([]);
    const steps = [{ expect: 'sleep' }, { insist: 'yes\r', until: 'web runs' }];
    const asked = await onTerminal(['/bin/sh', CLI, ...words], steps, asks);
    expect(asked).toMatchObject({ failed: null, status: 0 });
    expect(processesWith(long(12))).toHaveLength(1);
    await sr(place, ['stop', 'web'], { env: asks });
    const no = await onTerminal(
      ['/bin/sh', CLI, ...words],
      [{ expect: 'sleep' }, { insist: 'n\r', until: 'was not started' }],
      asks,
    );
    expect(no.status).toBe(126);
    expect(processesWith(long(12))).toEqual([]);
  });

  it('ends with the session of the agent that started it', async () => {
    await up('web', '--session', 'claude-code.three', '--', 'sleep', long(13));
    await up('mine', '--', 'sleep', long(14));
    const input = JSON.stringify({
      session_id: 'three',
      hook_event_name: 'SessionEnd',
      cwd: place.workspace,
    });
    await call(place, ['hook', 'claude-code', '--mode', 'rewrite'], { input });
    await eventually(() => expect(processesWith(long(13))).toEqual([]));
    expect((await services(place)).map(({ name }) => name)).toEqual(['mine']);
  });
});

describe('a service that was refused something', () => {
  it('says so, and what would allow it, when it fails and when it is stopped before it was ready', async () => {
    const outside = join(place.root, 'outside');
    mkdirSync(outside);
    const failed = await up('web', '--ready', '5173', '--', 'touch', join(outside, 'file'));
    expect(failed).toMatchObject({ exitCode: 1, stdout: '' });
    expect(failed.stderr).toMatch(
      /\nsandbox-run: web ended before it was ready: exited with 1\nsandbox-run: touch could not .*\nsandbox-run: to allow: --rw \S+\n$/,
    );
    const looked = `import socket, time\ntry: socket.getaddrinfo('other.example', 80)\nexcept OSError: print('refused', flush=True)\ntime.sleep(${long(20)})`;
    const words = ['--net', 'example.org', '--ready', '5173', '--ready-timeout', '1', '--', 'python3', '-c'];
    const late = await up('web', ...words, looked);
    expect(late).toMatchObject({ exitCode: 124, stdout: '' });
    expect(late.stderr).toContain('web is not ready after 1 s and keeps running. ');
    await eventually(async () => expect((await sr(place, ['logs', 'web'])).stdout).toBe('refused\n'));
    const stopped = await sr(place, ['stop', 'web']);
    expect(stopped).toMatchObject({ exitCode: 0, stdout: 'web has ended\n' });
    expect(stopped.stderr).toMatch(
      /^sandbox-run: .*could not reach other\.example.*\nsandbox-run: to allow: --net other\.example\n$/,
    );
  });

  it('is not told of files that it was refused if it was ready all the same', async () => {
    const outside = join(place.root, 'outside');
    mkdirSync(outside, { recursive: true });
    const words = `touch ${outside}/file; exec ${quoted(serverWords(5173, 'from web'))}`;
    expect(await up('web', '--ready', '5173', '-c', words)).toMatchObject({ exitCode: 0 });
    expect(await sr(place, ['stop', 'web'])).toEqual({ exitCode: 0, stdout: 'web has ended\n', stderr: '' });
  });
});

describe('services of a project', () => {
  const file = join(place.workspace, '.sandbox-run.toml');

  it('count once their file is trusted, and are started together', async () => {
    writeFileSync(
      file,
      `[services.web]\ncommand = ${JSON.stringify(serverWords(5173, 'from web'))}\nready = 5173\n[services.job]\ncommand = "sleep ${long(15)}"\n`,
    );
    const untrusted = await up();
    expect(untrusted.exitCode).toBe(125);
    expectOneLine(untrusted.stderr);
    expect(untrusted.stderr).toContain('sandbox-run trust');
    const steps = [{ expect: 'Enter for no' }, { insist: 'yes\r', until: 'trusted as it was shown' }];
    const beneath = join(place.workspace, 'beneath');
    mkdirSync(beneath);
    mkdirSync(join(place.workspace, '.git'));
    const elsewhere = await sr(place, ['up', 'web'], { cwd: beneath });
    expectOneLine(elsewhere.stderr);
    expect(elsewhere.stderr).toContain(`: sandbox-run up web --workspace ${place.workspace}\n`);
    rmSync(join(place.workspace, '.git'), { recursive: true });
    const trusted = await onTerminal([process.execPath, CLI, 'trust'], steps);
    // Without namespaces commands could change the file, and a policy with it is refused.
    if (!HOST.namespaces) return;
    expect(trusted).toMatchObject({ failed: null, status: 0 });
    expect((await up()).stdout).toMatch(/^web is ready.*\njob runs.*\n$/);
    await sr(place, ['stop', 'job']);
    const rest = await up();
    expect(rest).toMatchObject({ exitCode: 0, stderr: '' });
    expect(rest.stdout).toMatch(/^web runs already\njob runs.*\n$/);
    await sr(place, ['stop', 'job']);
    expect((await up('job')).exitCode).toBe(0);
    expect((await services(place)).map(({ name }) => name)).toEqual(['web', 'job']);
    expect(await sr(place, ['restart', 'web'])).toMatchObject({ exitCode: 0, stderr: '' });
    // Changed, it is another file.
    writeFileSync(file, readFileSync(file, 'utf8').replace('from web', 'from elsewhere'));
    const asBefore = async (name: string) => {
      const { exitCode, stderr } = await sr(place, ['restart', name]);
      expect(exitCode).toBe(0);
      if (stderr !== '') expectOneLine(stderr);
      return stderr;
    };
    expect(await asBefore('web')).toContain(': sandbox-run stop web, then sandbox-run up web\n');
    expect(await asBefore('job')).toContain('is no longer trusted');
    expect(await onTerminal([process.execPath, CLI, 'trust'], steps)).toMatchObject({ status: 0 });
    expect(await asBefore('web')).toContain('its policy file has changed');
    expect(await asBefore('job')).toBe('');
    writeFileSync(file, readFileSync(file, 'utf8').replace('from elsewhere', 'from nowhere'));
    await sr(place, ['stop', '--all']);
    expect((await up('job')).exitCode).toBe(125);
    // A project names no socket, wherever it would be made, and no address that other machines reach.
    for (const port of [`${place.root}/a.sock:5173`, '0.0.0.0:5173']) {
      writeFileSync(file, `[services.web]\ncommand = "true"\npublish = [${JSON.stringify(port)}]\n`);
      const refused = await onTerminal([process.execPath, CLI, 'trust'], []);
      expect(refused.status).toBe(125);
      expect(refused.output).toContain('must be a port, with no address or one of the loopback interface');
    }
    writeFileSync(file, '');
  });
});

describe('a supervisor', () => {
  it('goes on when the terminal is closed', async () => {
    const [program = '', ...words] = ['/bin/sh', CLI, 'up', 'web', '--', 'sleep', long(16)];
    const driver = `import os, pty, sys, time
pid, fd = pty.fork()
if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])
seen = b""
while b"web runs" not in seen: seen += os.read(fd, 1000)
os.close(fd)`;
    await execa('python3', ['-c', driver, program, ...words], {
      ...{ cwd: place.workspace, env: place.env, extendEnv: false },
    });
    expect(processesWith(long(16))).toHaveLength(1);
    expect(await services(place)).toMatchObject([{ name: 'web', state: 'running' }]);
  });

  it('answers about its services whoever of the same user asks, and starts nothing for a caller that is unlike it', async () => {
    await up('web', '-c', `echo written; exec sleep ${long(17)}`);
    const unlike = { by: ['nice', '-n', '3'] };
    expect((await sr(place, ['ps'], unlike)).stdout).toContain('web');
    expect((await sr(place, ['logs', 'web'], unlike)).stdout).toBe('written\n');
    const refused = await sr(place, ['up', 'other', '--', 'sleep', long(18)], unlike);
    expect(refused.exitCode).toBe(125);
    expectOneLine(refused.stderr);
    expect(refused.stderr).toContain('belong to another supervisor');
    expect(processesWith(long(18))).toEqual([]);
    const apart = await sr(place, ['--', 'true'], unlike);
    expectOneLine(apart.stderr);
    expect(apart.stderr).toMatch(
      /web was started by a process with "nice \d+", and this one has "nice \d+"\n/,
    );
    expect(await sr(place, ['restart', 'web'], unlike)).toMatchObject({ exitCode: 0 });
    expect(await sr(place, ['stop', '--all'], unlike)).toMatchObject({
      exitCode: 0,
      stdout: 'web has ended\n',
    });
    await expectNothingLeft(place, long(17));
  });

  it('is named where it does not answer, instead of what is wrong otherwise', async () => {
    await up('web', '--', 'sleep', long(19));
    const [{ supervisor }] = await services(place);
    process.kill(supervisor, 'SIGSTOP');
    try {
      const calls = [['ps'], ['ps', '--json'], ['logs', 'web'], ['stop', 'web'], ['up', 'web', '--', 'true']];
      const told = await Promise.all([...calls, ['--', 'true']].map((words) => sr(place, words)));
      for (const { stdout, stderr } of told) {
        expect(stdout).toBe('');
        expectOneLine(stderr);
        expect(stderr).toContain(`(process ${supervisor}) does not answer`);
      }
      expect(told.map(({ exitCode }) => exitCode)).toEqual([...calls.map(() => 125), 0]);
    } finally {
      process.kill(supervisor, 'SIGCONT');
    }
    expect(await services(place)).toMatchObject([{ name: 'web', state: 'running' }]);
  });

  it('answers about its services from a place, and with variables, whose names are no text', async () => {
    await up('web', '--', 'sleep', long(20));
    const odd = join(place.root, 'odd');
    mkdirSync(odd, { recursive: true });
    const go = 'odd=$(printf "\\377"); mkdir -p "$odd"; cd "$odd"; export OLDPWD="$odd"; exec "$@"';
    expect(await sr(place, ['ps'], { cwd: odd, by: ['/bin/sh', '-c', go, 'sh'] })).toMatchObject({
      ...{ exitCode: 0, stderr: '', stdout: expect.stringContaining('web') },
    });
    const by = ['/bin/sh', '-c', 'OLDPWD=$(printf "\\377"); export OLDPWD; exec "$@"', 'sh'];
    const refused = await sr(place, ['up', 'other', '--', 'true'], { by });
    expectOneLine(refused.stderr);
    expect(refused.stderr).toContain('OLDPWD is not valid UTF-8');
    expect(await sr(place, ['stop', 'web'], { by })).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it('has one line for what it cannot start with, at once', async () => {
    const open = join(place.root, 'open');
    mkdirSync(join(open, 'sandbox-run'), { recursive: true });
    chmodSync(join(open, 'sandbox-run'), 0o777);
    const began = performance.now();
    for (const [XDG_STATE_HOME, why] of [
      [open, 'can be used by others'],
      ['/proc/none', 'cannot be made or read'],
      [`/${'l'.repeat(90)}`, 'no place for its socket'],
    ] as const) {
      const { exitCode, stderr } = await sr(place, ['up', 'web', '--', 'true'], { env: { XDG_STATE_HOME } });
      expect(exitCode).toBe(125);
      expectOneLine(stderr);
      expect(stderr).toContain(why);
    }
    // It is not waited for a server that cannot begin, which takes 20 s.
    expect(performance.now() - began).toBeLessThan(15_000);
  });

  it('takes its services with it when it is asked to end', async () => {
    await up('web', '--', 'sleep', long(19));
    const [{ supervisor }] = await services(place);
    process.kill(supervisor, 'SIGTERM');
    await expectNothingLeft(place, long(19));
    expect(await services(place)).toEqual([]);
  });
});

const IDENTITY = ['-c', 'user.name=A', '-c', 'user.email=a@example.org'];

const ASKS = '[[commands.rules]]\nverdict = "ask"\nprogram = "sleep"\n';

const quoted = (words: readonly string[]) =>
  words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');

/** Runs on a terminal of its own, where something is typed. */
async function onTerminal(
  argv: readonly string[],
  steps: readonly object[],
  env: Readonly<Record<string, string>> = {},
) {
  const input = JSON.stringify({
    ...{ argv, cwd: place.workspace, env: { ...place.env, ...env }, size: [40, 200], steps },
  });
  const { stdout } = await execa('python3', [PTY_DRIVER], { input });
  return JSON.parse(stdout) as { output: string; failed: object | null; status: number | null };
}
