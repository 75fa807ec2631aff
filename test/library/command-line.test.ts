import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { spawn as spawnOnPty } from '@lydell/node-pty';
import { describe, expect, it } from 'vitest';
import {
  type ApprovalRequest,
  type Approver,
  type AuditRecord,
  CommandError,
  createSandbox,
  type SandboxCommandLine,
  type SandboxOptions,
} from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { processesWith } from '../support/leftovers.ts';
import { makePlaceWithSandbox, ROOT } from './support.ts';

const { place, sandbox } = await makePlaceWithSandbox();
const inWorkspace = (name: string) => join(place.workspace, name);

function ran(line: SandboxCommandLine, more: { readonly args?: string[]; readonly env?: object } = {}) {
  const { program, cwd } = line;
  const args = more.args ?? line.args;
  const { status, stdout, stderr } = spawnSync(program, args, {
    ...{ cwd, env: { ...line.env, ...more.env }, encoding: 'utf8' },
  });
  return { status, stdout, stderr };
}

const judged = (options: Partial<SandboxOptions> & { readonly policy?: object }) =>
  createSandbox({
    ...{ workspace: place.workspace, ...options },
    policy: { unsafe: { unjudged_commands: false }, ...options.policy },
  });

const spent = (why: RegExp) => ({ status: 125, stdout: '', stderr: expect.stringMatching(why) });

describe('a command line for a program of the application’s own', () => {
  it('runs the command as run does: place, variables, status, streams', async () => {
    mkdirSync(inWorkspace('sub'), { recursive: true });
    const command = 'pwd; env | sort; echo written > made; cat; echo e >&2; exit 7';
    const options = { cwd: 'sub', env: { A: "1 'é", TERM: 'xterm' } };
    const expected = await sandbox.run(command, { ...options, input: 'typed' });
    const line = await sandbox.commandLine(command, options);
    expect(line.cwd).toBe(inWorkspace('sub'));
    const child = spawn(line.program, line.args, { env: line.env, cwd: line.cwd });
    child.stdin.end('typed');
    let [out, err] = ['', ''];
    child.stdout.on('data', (text) => {
      out += text;
    });
    child.stderr.on('data', (text) => {
      err += text;
    });
    const [status] = await once(child, 'close');
    expect({ status, out, err }).toEqual({ status: 7, out: expected.stdout, err: 'e\n' });
    expect(readFileSync(inWorkspace('sub/made'), 'utf8')).toBe('written\n');
  });

  it('is one line for a shell, too', async () => {
    const { shell, cwd } = await sandbox.commandLine(['printf', '%s', "a'b"]);
    expect(execFileSync('/bin/sh', ['-c', shell], { cwd, encoding: 'utf8' })).toBe("a'b");
  });

  it('hands on arguments with any bytes', async () => {
    const words = ['a\nb', '--', '-c', '\'"$(id)`', '', '😀\u2028', '\u{1b}[31m', '--json', '%s'];
    const line = await sandbox.commandLine(['printf', '<%s>', ...words]);
    expect(ran(line).stdout).toBe(words.map((word) => `<${word}>`).join(''));
    expect(line.args.join(' ')).not.toContain('printf');
    await expect(sandbox.commandLine(['echo', 'a\0b'])).rejects.toMatchObject({ code: 'usage.invalid' });
  });

  it('holds the command as the sandbox does', async () => {
    const secret = join(place.other, 'secret');
    writeFileSync(secret, 'secret');
    const script = [
      `cat ${secret}; echo x > ${join(place.other, 'written')}; echo $?`,
      `kill -0 ${process.pid}; echo $?`,
      `readlink /proc/${process.pid}/fd/1; cat /proc/${process.pid}/environ; echo $?`,
      'exec 3<>/dev/tcp/127.0.0.1/22; echo $?',
    ].join('\n');
    const seen = ran(await sandbox.commandLine(script));
    expect(seen.stdout).toBe((await sandbox.run(script)).stdout);
    expect(seen.stdout).not.toContain('secret');
    expect(existsSync(join(place.other, 'written'))).toBe(false);
  });

  it('has a terminal of its own behind that of node-pty, with job control and its size', async () => {
    const command = ['bash', '--norc', '--noprofile', '-i'] as const;
    const line = await sandbox.commandLine([...command], { terminal: true, timeout: 0, env: { PS1: '> ' } });
    const pty = spawnOnPty(line.program, line.args, {
      ...{ cwd: line.cwd, env: line.env, cols: 100, rows: 30, name: 'xterm-256color' },
    });
    let shown = '';
    pty.onData((text) => {
      shown += text;
    });
    const ended = new Promise<number>((settle) => pty.onExit(({ exitCode }) => settle(exitCode)));
    const says = (pattern: RegExp) => eventually(() => expect(shown).toMatch(pattern));
    await says(/> /);
    pty.write('test -t 0 && stty size; echo term=$TERM\r');
    await says(/30 100[\s\S]*term=xterm-256color/);
    pty.resize(120, 40);
    await eventually(() => {
      pty.write('stty size\r');
      expect(shown).toMatch(/40 120/);
    });
    // The job is interrupted, the shell is not. What is typed comes back from it: it has the terminal by then.
    pty.write('cat\r');
    await eventually(() => {
      pty.write('typed\r');
      expect(shown).toMatch(/typed\r\ntyped\r\n/);
    });
    const before = shown.length;
    pty.write('\x03');
    await eventually(() => expect(shown.slice(before)).toContain('> '));
    pty.write('echo "st""ill here $?"\r');
    await says(/still here 130/);
    expect(shown).not.toMatch(/no job control/);
    pty.write('exit 5\r');
    expect(await ended).toBe(5);
  });

  it('for a terminal needs one', async () => {
    const line = await sandbox.commandLine(['true'], { terminal: true });
    expect(ran(line)).toMatchObject({ status: 125, stderr: expect.stringMatching(/is for a terminal/) });
  });

  it('ends the command with the process, by SIGTERM and by SIGKILL', async () => {
    const mark = `300.${process.pid}`;
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const script = `(trap "" TERM HUP; exec sleep ${mark}) & touch running; exec sleep ${mark}`;
      const line = await sandbox.commandLine(script, { timeout: 0 });
      const child: ChildProcess = spawn(line.program, line.args, { env: line.env, stdio: 'ignore' });
      await eventually(() => expect(existsSync(inWorkspace('running'))).toBe(true));
      child.kill(signal);
      await once(child, 'close');
      rmSync(inWorkspace('running'));
    }
    await eventually(() => expect(processesWith(mark)).toEqual([]));
    // What a launcher that was killed could not remove, the next one does.
    expect(ran(await sandbox.commandLine(['true'])).status).toBe(0);
  });

  it('holds changes back, for the changes of the sandbox', async () => {
    const line = await sandbox.commandLine('echo new > previewed', { effect: 'preview' });
    expect(ran(line).status).toBe(0);
    expect(existsSync(inWorkspace('previewed'))).toBe(false);
    const changes = await sandbox.changes();
    const [waiting] = await changes.list();
    expect(await changes.diff(waiting?.id ?? '')).toContain('+new');
    await changes.discard(waiting?.id ?? '');
  });

  it('has the network that is listed, without this process', async () => {
    const server = createServer((_, response) => response.end('listed'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const network = { mode: 'listed', allow: [`localhost:${port}`] } as const;
    await using listed = await createSandbox({ workspace: place.workspace, policy: { network } });
    const get = async (where: string) => {
      const line = await listed.commandLine(['curl', '-sS', '--max-time', '20', where]);
      const child = spawn(line.program, line.args, { env: line.env, stdio: ['ignore', 'pipe', 'ignore'] });
      let text = '';
      child.stdout.on('data', (piece) => {
        text += piece;
      });
      const [status] = await once(child, 'close');
      return { status, text };
    };
    expect(await get(`http://localhost:${port}/`)).toEqual({ status: 0, text: 'listed' });
    expect((await get(`http://127.0.0.2:${port}/`)).status).not.toBe(0);
    server.close();
  });
});

it('one for which too few files can be open says so, and what holds them', () => {
  const script = `
    const { createSandbox } = require(process.argv[1]);
    (async () => {
      const sandbox = await createSandbox({ workspace: process.argv[2] });
      const makeUntilItFails = async () => {
        for (;;) await sandbox.commandLine(['true']);
      };
      await makeUntilItFails().catch(({ code, message }) => console.log(code, message));
      await sandbox.close();
    })();`;
  const node = [process.execPath, '-e', script, join(ROOT, 'dist/index.cjs'), place.workspace];
  const { stdout } = spawnSync('sh', ['-c', 'ulimit -n 64; exec "$@"', '-', ...node], { encoding: 'utf8' });
  expect(stdout).toMatch(
    /^launch\.failed too many files are open .*ulimit -n.*; a command line holds a file until/,
  );
});

describe('what is decided about it', () => {
  it('is decided now: a refusal is a CommandError with the result of run', async () => {
    await using strict = await judged({});
    const refusal = await strict.commandLine('touch /etc/shadow').catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(CommandError);
    expect(refusal).toMatchObject({ code: 'command.denied', result: { status: 'denied' } });
    const missing = strict.commandLine(['no-such-program']);
    await expect(missing).rejects.toMatchObject({ code: 'program.not_found' });
  });

  it('is refused for a directory of the workspace that is not there, which a spawn would not name', async () => {
    writeFileSync(inWorkspace('file'), '');
    for (const [cwd, why] of [
      ['nowhere', /nowhere does not exist/],
      ['file', /file is not a directory/],
      ['file/in', /file\/in is not a directory/],
    ] as const) {
      const refusal = await sandbox.commandLine('pwd', { cwd }).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(CommandError);
      expect(refusal).toMatchObject({ code: 'cwd.unusable', result: { status: 'setup-failed' } });
      expect(String(refusal)).toMatch(why);
      expect(await sandbox.run('pwd', { cwd })).toMatchObject({
        error: { message: expect.stringMatching(why) },
      });
    }
  });

  const asks = { commands: { rules: [{ program: 'tool', verdict: 'ask' }] } } as const;
  function tool(text: string) {
    writeFileSync(inWorkspace('tool'), `#!/bin/sh\n${text}\n`);
    chmodSync(inWorkspace('tool'), 0o755);
  }

  it('asks the approver of this process now, for what is launched', async () => {
    tool('echo harmless');
    const asked: ApprovalRequest[] = [];
    const approver: Approver = {
      ask: async (request) => {
        asked.push(request);
        return { approved: true, scope: 'once', by: 'test' };
      },
    };
    const records: AuditRecord[] = [];
    const audit = { append: async (record: AuditRecord) => void records.push(record) };
    await using asking = await judged({ policy: asks, gate: { approver, audit } });
    expect(ran(await asking.commandLine(['./tool']))).toMatchObject({ status: 0, stdout: 'harmless\n' });
    expect(asked).toHaveLength(1);
    expect(records).toMatchObject([{ type: 'decision', outcome: 'handed-over' }]);

    const line = await asking.commandLine(['./tool']);
    tool('echo another; cat "$HOME/.ssh/id_ed25519"');
    expect(ran(line)).toMatchObject({ status: 126, stdout: '', stderr: expect.stringMatching(/approv/) });
    expect(ran(await asking.commandLine(['./tool'], { approved: true })).stdout).toMatch(/^another/);
  });

  it.each<[string, SandboxOptions]>([
    ['a session', { session: 'of-a-command-line' }],
    ['hidden files', { hide: ['.env', '*.pem'] }],
    ['undo for everything', { undo: 'always' }],
    ['a listed network', { net: ['example.org', '@npm'] }],
    ['more paths and limits', { writable: ['/var/tmp'], readable: ['/opt'], limits: { memory: 2 ** 31 } }],
    ['no files of policy', { policyFiles: false, env: { A: 'b' } }],
    ['a supervised agent', { autonomy: 'supervised' }],
    [
      'a reviewer that flags it',
      { gate: { reviewer: { review: async () => ({ outcome: 'flag', reason: 'why' }) } } },
    ],
  ])('launches what was approved, with %s', async (_, options) => {
    tool('echo approved');
    const approver: Approver = { ask: async () => ({ approved: true, scope: 'once', by: 'test' }) };
    await using asking = await judged({ ...options, policy: asks, gate: { ...options.gate, approver } });
    for (const terminal of [false, true]) {
      const line = await asking.commandLine(['./tool'], { terminal, taints: ['corruption'] });
      if (!terminal) expect(ran(line)).toMatchObject({ status: 0, stdout: 'approved\n' });
      else {
        const pty = spawnOnPty(line.program, line.args, { cwd: line.cwd, env: line.env });
        let shown = '';
        pty.onData((text) => {
          shown += text;
        });
        const status = await new Promise((settle) => pty.onExit(({ exitCode }) => settle(exitCode)));
        expect({ status, shown }).toEqual({ status: 0, shown: 'approved\r\n' });
      }
    }
  });

  it('is refused where nobody approves, and by an approver that says no', async () => {
    tool('echo harmless');
    await using nobody = await judged({ policy: asks, ask: 'nobody' });
    await expect(nobody.commandLine(['./tool'])).rejects.toMatchObject({ code: 'command.needs_approval' });
    const approver: Approver = { ask: async () => ({ approved: false, reason: 'denied', by: 'test' }) };
    await using no = await judged({ policy: asks, gate: { approver } });
    await expect(no.commandLine(['./tool'])).rejects.toBeInstanceOf(CommandError);
  });

  it('is counted once, and when it is made', async () => {
    await using counted = await judged({
      policy: { security: { max_actions_per_hour: 1 } },
      principal: 'line',
    });
    const line = await counted.commandLine(['true']);
    await expect(counted.commandLine(['true'])).rejects.toMatchObject({ code: 'command.denied' });
    expect(ran(line).status).toBe(0);
  });

  it('is refused where something of this process is needed while it runs', async () => {
    const network = { mode: 'listed', allow: ['example.org'] } as const;
    const wanted: readonly (readonly [RegExp, SandboxOptions])[] = [
      [/unlisted/, { net: ['example.org'], unlisted: 'ask' }],
      [/lookup/, { policy: { network }, gate: { lookup: async () => ({ addresses: [], ttl: 1 }) } }],
      [/told how/, { gate: { hooks: [{ name: 'h', beforeToolUse: () => ({}), afterToolUse: () => {} }] } }],
      [/shadow/, { shadow: {} }],
    ];
    for (const [message, options] of wanted) {
      await using bound = await createSandbox({ workspace: place.workspace, ...options });
      const refusal = { code: 'handover.unavailable', message: expect.stringMatching(message) };
      await expect(bound.commandLine(['true'])).rejects.toMatchObject(refusal);
    }
  });
});

describe('an attack on it', () => {
  it('by variables: those of the command and of this process are none of the launcher', async () => {
    const evil = inWorkspace('evil.cjs');
    const proof = join(place.other, 'evil-ran');
    writeFileSync(evil, `require('node:fs').writeFileSync(${JSON.stringify(proof)}, 'x')`);
    const bad = {
      NODE_OPTIONS: `--require=${evil}`,
      LD_PRELOAD: evil,
      BASH_ENV: evil,
      HOME: place.workspace,
    };
    const before = process.env.NODE_OPTIONS;
    process.env.NODE_OPTIONS = `--require=${evil}`;
    try {
      const line = await sandbox.commandLine(['/bin/echo', 'ran'], { env: bad });
      expect(Object.keys(line.env)).not.toContain('NODE_OPTIONS');
      expect(ran(line).stdout).toBe('ran\n');
      expect(ran(await sandbox.commandLine('echo $HOME', { env: bad })).stdout).toBe(`${place.workspace}\n`);
    } finally {
      if (before === undefined) delete process.env.NODE_OPTIONS;
      else process.env.NODE_OPTIONS = before;
    }
    expect(existsSync(proof)).toBe(false);
  });

  it('by variables of the start: they move neither policy nor state', async () => {
    const script = `cat ${join(place.other, 'secret')} 2>/dev/null; echo $SMUGGLED`;
    const config = inWorkspace('config/sandbox-run');
    mkdirSync(config, { recursive: true });
    writeFileSync(join(config, 'policy.toml'), `[filesystem]\nread = ["${place.other}"]\n`);
    writeFileSync(join(place.other, 'secret'), 'secret');
    const env = { XDG_CONFIG_HOME: inWorkspace('config'), HOME: place.workspace, SMUGGLED: 'x' };
    expect(ran(await sandbox.commandLine(script), { env }).stdout).toBe('\n');
  });

  it('by files that are written meanwhile: the policy is the one of the sandbox', async () => {
    const network = { mode: 'off' } as const;
    const policy = join(place.other, 'policy.toml');
    writeFileSync(policy, '[network]\nmode = "off"\n');
    const secret = join(place.other, 'secret');
    writeFileSync(secret, 'secret');
    for (const options of [{ policy }, { policy: { network }, policyFiles: false }, {}]) {
      await using one = await createSandbox({ workspace: place.workspace, ...options });
      const line = await one
        .commandLine(`cat ${secret}`, { approved: true })
        .catch((error: unknown) => error);
      if (line instanceof CommandError) continue;
      const wide = `[filesystem]\nread = ["${place.other}"]\nwrite = ["${place.other}"]\n`;
      for (const file of [inWorkspace('.sandbox-run.toml'), policy]) writeFileSync(file, wide);
      const seen = ran(line as SandboxCommandLine);
      rmSync(inWorkspace('.sandbox-run.toml'));
      writeFileSync(policy, '[network]\nmode = "off"\n');
      expect(seen.stdout).toBe('');
      expect(seen.status).not.toBe(0);
    }
  });

  it('by another start, or another claim', async () => {
    const line = await sandbox.commandLine(['echo', 'once']);
    const [cli = '', word = '', address = '', digest = ''] = line.args;
    // Not taken by who does not say what it must be.
    expect(ran(line, { args: [cli, word, address, 'f'.repeat(64)] })).toEqual(
      spent(/not what the command line/),
    );
    for (const wrong of ['/etc/passwd', `${address}/../1`, '/proc/self/fd/0', ''])
      expect(ran(line, { args: [cli, word, wrong, digest] })).toEqual(spent(/takes what/));
    expect(ran(line).stdout).toBe('once\n');
    expect(ran(line)).toEqual(spent(/used before/));
  });

  it('by two starts at once: one of them runs', async () => {
    const line = await sandbox.commandLine('echo once >> ran-at-once');
    const starts = [1, 2, 3].map(() => spawn(line.program, line.args, { env: line.env, stdio: 'ignore' }));
    const statuses = await Promise.all(starts.map(async (child) => (await once(child, 'close'))[0]));
    expect(statuses.sort()).toEqual([0, 125, 125]);
    expect(readFileSync(inWorkspace('ran-at-once'), 'utf8')).toBe('once\n');
  });

  it('by another file at its address', async () => {
    const one = await createSandbox({ workspace: place.workspace });
    const line = await one.commandLine(['echo', 'x']);
    const [cli = '', word = '', address = '', digest = ''] = line.args;
    const handed = readFileSync(address);
    expect(createHash('sha256').update(handed).digest('hex')).toBe(digest);
    await one.close();
    // With the number that it had, or any other.
    const path = join(place.other, 'forged');
    writeFileSync(
      path,
      handed.map((byte, at) => (at === 9 ? byte ^ 1 : byte)),
      { mode: 0o600 },
    );
    const fd = openSync(path, 'r+');
    const at = `/proc/${process.pid}/fd/${fd}`;
    expect(ran(line, { args: [cli, word, at, digest] })).toEqual(spent(/was closed/));
    unlinkSync(path);
    expect(ran(line, { args: [cli, word, at, digest] })).toEqual(spent(/not what the command line/));
    closeSync(fd);
  });

  it('after the sandbox was closed', async () => {
    const descriptors = () => readdirSync('/proc/self/fd').length;
    const one = await createSandbox({ workspace: place.workspace });
    const before = descriptors();
    const lines = await Promise.all([1, 2, 3].map(() => one.commandLine(['true'])));
    expect(descriptors()).toBe(before + 3);
    // Nothing of it has a name.
    expect(readdirSync(place.tmp).filter((name) => name.includes('line'))).toEqual([]);
    await one.close();
    expect(descriptors()).toBeLessThanOrEqual(before);
    for (const line of lines) expect(ran(line)).toEqual(spent(/closed/));
    await expect(one.commandLine(['true'])).rejects.toMatchObject({ code: 'sandbox.closed' });
  });

  it('by a command that looks for it', async () => {
    const line = await sandbox.commandLine(['true']);
    const [, , address = ''] = line.args;
    const script = `cat ${address}; for each in /proc/[0-9]*/fd/*; do readlink "$each"; done`;
    const seen = await sandbox.run(script);
    expect(seen.stdout).not.toContain('sandbox-run-line');
    expect(seen.stderr).toMatch(/No such file|Permission denied/);
    expect(ran(line).status).toBe(0);
  });
});
