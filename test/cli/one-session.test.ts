import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { privateParentIn } from '../../src/workspace/index.ts';
import { eventually } from '../support/eventually.ts';
import { patience } from '../support/slow-host.ts';
import { HOST } from '../support/tiers.ts';
import { services, sr } from './services-support.ts';
import { CLI, expectOneLine, serversOf } from './support.ts';
import { CLIENT, call, makeWarmPlace, WARM, warmUp } from './warm-support.ts';

const place = makeWarmPlace();
beforeAll(async () => {
  await warmUp(place);
}, patience(60_000));
afterAll(() => place.dispose());

interface Of {
  readonly session: string;
  readonly cwd?: string;
  readonly words?: readonly string[];
}

const hook = async (of: Of, event: Readonly<Record<string, unknown>>) => {
  const cwd = of.cwd ?? place.workspace;
  const input = JSON.stringify({ session_id: of.session, cwd, ...event });
  const words = ['hook', 'claude-code', '--mode', 'rewrite', ...(of.words ?? [])];
  // As agents do: by a shell for each call, which waits for what it starts, as that of Debian does.
  const { stdout } = await execa('/bin/sh', ['-c', '"$@"; exit', 'sh', ...WARM, ...words], {
    ...{ cwd, input, env: place.env, extendEnv: false, reject: false },
  });
  return stdout;
};

/** The line that the agent's shell runs for a command of its model. */
const lineFor = async (of: Of, command: string, input: Readonly<Record<string, unknown>> = {}) => {
  const event = { hook_event_name: 'PreToolUse', tool_name: 'Bash', tool_use_id: 'call' };
  const answer = await hook(of, { ...event, tool_input: { command, ...input } });
  const { updatedInput } = JSON.parse(answer).hookSpecificOutput;
  expect(updatedInput, answer).toBeDefined();
  return updatedInput.command as string;
};

const inShell = (line: string, cwd = place.workspace) =>
  execa('/bin/bash', ['-c', line], { cwd, env: place.env, extendEnv: false, reject: false });

/** Runs a script, so that its text is judged by nobody: what holds it is the kernel. */
const runScript = async (of: Of, script: string) => {
  writeFileSync(join(of.cwd ?? place.workspace, 'script.sh'), script);
  return run(of, 'sh script.sh');
};

/** Runs a command as a session's agent does, in the foreground. */
const run = async (of: Of, command: string) => {
  const { stdout, stderr, exitCode } = await inShell(await lineFor(of, command), of.cwd);
  return { stdout, stderr, exitCode };
};

/**
 * What the commands of a session share on this host: without namespaces its $TMPDIR alone. A workspace of tests lies beneath /tmp,
 * which is closed to them then.
 */
const SHARED = HOST.namespaces ? ['/tmp', '/dev/shm'] : ['"$TMPDIR"'];
const [TMP = ''] = SHARED;
const shared = (name: string) => SHARED.map((directory) => `${directory}/${name}`);
const needsNamespaces = it.runIf(HOST.namespaces);

const endOf = (session: string, reason = 'prompt_input_exit') =>
  hook({ session }, { hook_event_name: 'SessionEnd', reason });

const startOf = (session: string) => hook({ session }, { hook_event_name: 'SessionStart', source: 'clear' });

/** Calls a hook by a process that is no descendant of this one, as another agent would. */
async function startByAnother(session: string): Promise<void> {
  const answered = join(place.workspace, 'answered');
  const event = {
    session_id: session,
    hook_event_name: 'SessionStart',
    source: 'clear',
    cwd: place.workspace,
  };
  const orphan =
    '(while [ -d /proc/$$ ]; do sleep 0.02; done; "$@"; : > answered) > /dev/null 2>&1 < start &';
  writeFileSync(join(place.workspace, 'start'), JSON.stringify(event));
  await execa('/bin/sh', ['-c', orphan, 'sh', ...WARM, 'hook', 'claude-code', '--mode', 'rewrite'], {
    ...{ env: place.env, extendEnv: false, cwd: place.workspace, stdin: 'ignore' },
  });
  await eventually(() => expect(existsSync(answered)).toBe(true), 60_000);
  rmSync(answered);
}

/** Where files with this name are in private directories of sandboxes, on the host. */
function privateFiles(name: string, of: Pick<typeof place, 'env'> = place): readonly string[] {
  const places = [of.env.TMPDIR ?? tmpdir(), '/dev/shm', '/var/tmp'].map(
    (path) => privateParentIn(path).path,
  );
  return places.filter(existsSync).flatMap((parent) =>
    readdirSync(parent)
      .filter((one) => one.startsWith('sandbox-run-slot-'))
      .flatMap((one) => [join(parent, one, name), join(parent, one, 'tmp', name)])
      .filter((path) => existsSync(path)),
  );
}

describe('what the commands of one session share', () => {
  it('is the temporary directory: what one makes by mktemp is read by the next', async () => {
    const made = await run({ session: 'files' }, 'f=$(mktemp); echo for the next > "$f"; echo "$f"');
    expect(made).toMatchObject({ exitCode: 0, stderr: '' });
    expect(made.stdout).toMatch(HOST.namespaces ? /^\/tmp\/tmp\./ : /\/sandbox-run-slot-\w+\/tmp\/tmp\./);
    expect(await run({ session: 'files' }, `cat ${made.stdout}`)).toMatchObject({
      ...{ stdout: 'for the next', stderr: '' },
    });
  });

  needsNamespaces('is POSIX shared memory, also of a server in the background', async () => {
    const served = join(place.workspace, 'served');
    const serve = [
      'from multiprocessing import shared_memory',
      'import time',
      'm = shared_memory.SharedMemory(name="of-server", create=True, size=16)',
      'm.buf[:5] = b"hello"',
      'open("served", "w").close()',
      'time.sleep(600)',
    ].join('\n');
    const read =
      'from multiprocessing import shared_memory, resource_tracker; m = shared_memory.SharedMemory(name="of-server"); print(bytes(m.buf[:5]).decode()); resource_tracker.unregister(m._name, "shared_memory"); m.close()';
    const line = await lineFor({ session: 'memory' }, `python3 -c '${serve}'`, { run_in_background: true });
    const server = inShell(line);
    try {
      await eventually(() => expect(existsSync(served)).toBe(true), 60_000);
      expect(await run({ session: 'memory' }, `python3 -c '${read}'`)).toMatchObject({ stdout: 'hello' });
      expect((await run({ session: 'other-memory' }, `python3 -c '${read}'`)).stderr).toContain(
        'FileNotFoundError',
      );
    } finally {
      rmSync(served, { force: true });
      server.kill('SIGTERM');
      await server;
    }
  });

  needsNamespaces(
    'is what the issue says: a web server in the background, and curl in the next command',
    async () => {
      writeFileSync(join(place.workspace, 'index.txt'), 'a page\n');
      const of = { session: 'web' };
      const server = inShell(
        await lineFor(of, 'python3 -m http.server 8123 > /tmp/log 2>&1', { run_in_background: true }),
      );
      try {
        const fetch = `python3 -c 'import urllib.request as r; print(r.urlopen("http://localhost:8123/index.txt").read().decode())'`;
        await eventually(async () => expect((await run(of, fetch)).stdout).toBe('a page\n'), 60_000);
        expect((await run(of, 'cat /tmp/log')).stdout).toContain('GET /index.txt');
      } finally {
        server.kill('SIGTERM');
        await server;
      }
    },
  );

  it('is their servers where the network is listed, at localhost and by Unix sockets, and nobody else reaches them', async () => {
    const policy = join(place.root, 'listed.toml');
    writeFileSync(policy, '[network]\nmode = "listed"\n');
    const words = ['--policy', policy];
    const ready = join(place.workspace, 'ready-listed');
    // An address of each kind that is held by what stands beside it.
    const addresses = `A = [(2, 1, ("127.0.0.1", 8123)), (2, 2, ("127.0.0.1", 8124)), (1, 1, "\\0of-listed"), (1, 1, "of-listed.sock")]`;
    writeFileSync(
      join(place.workspace, 'serve.py'),
      `import socket, threading, time
${addresses}
def stream(s):
    while True: s.accept()[0].sendall(b"served")
def datagrams(s):
    while True: s.sendto(b"served", s.recvfrom(9)[1])
for family, kind, address in A:
    s = socket.socket(family, kind); s.bind(address)
    if kind == 1: s.listen()
    threading.Thread(target=stream if kind == 1 else datagrams, args=[s]).start()
open("ready-listed", "w").close()
`,
    );
    writeFileSync(
      join(place.workspace, 'ask.py'),
      `import socket
${addresses}
for family, kind, address in A:
    s = socket.socket(family, kind); s.settimeout(0.5)
    try:
        s.connect(address)
        if kind == 2: s.send(b"x")
        print(s.recv(9).decode() or "nothing")
    except OSError: print("nothing")
`,
    );
    const of = { session: 'listed', words };
    const server = inShell(await lineFor(of, 'exec python3 serve.py', { run_in_background: true }));
    try {
      await eventually(() => expect(existsSync(ready)).toBe(true), 60_000);
      expect((await run(of, 'python3 ask.py')).stdout.split('\n')).toEqual(Array(4).fill('served'));
      for (const other of [{ session: 'listed-other', words }, { session: 'listed' }]) {
        const found = (await run(other, 'python3 ask.py')).stdout.split('\n');
        expect(found, JSON.stringify(other)).toEqual(Array(4).fill('nothing'));
      }
    } finally {
      rmSync(ready, { force: true });
      server.kill('SIGTERM');
      await server;
    }
  });

  it('does not outlast the session, however it is looked for', async () => {
    expect(await run({ session: 'ends' }, `touch ${shared('of-ended').join(' ')}`)).toMatchObject({
      exitCode: 0,
    });
    expect(privateFiles('of-ended')).toHaveLength(SHARED.length);
    await endOf('ends');
    await eventually(() => expect(privateFiles('of-ended')).toEqual([]), 60_000);
    expect((await run({ session: 'ends' }, `ls -A ${SHARED.join(' ')}`)).stdout).not.toContain('of-ended');
  });

  it('stays for a command that its agent runs on, as after /clear', async () => {
    const began = join(place.workspace, 'began');
    const go = join(place.workspace, 'go');
    const line = await lineFor(
      { session: 'races' },
      `echo x > ${TMP}/of-race; touch began; while [ ! -e go ]; do sleep 0.1; done; cat ${TMP}/of-race`,
      { run_in_background: true },
    );
    const running = inShell(line);
    try {
      await eventually(() => expect(existsSync(began)).toBe(true), 60_000);
      expect(await endOf('races', 'clear')).toBe('');
      await startOf('after-race');
      expect((await run({ session: 'after-race' }, `cat ${TMP}/of-race`)).stdout).toBe('x');
      // Another agent, or another session of this one, has a machine of its own.
      await startOf('beside-race');
      expect((await run({ session: 'beside-race' }, `ls -A ${TMP}`)).stdout).not.toContain('of-race');
      writeFileSync(go, '');
      expect((await running).stdout).toBe('x');
      await endOf('after-race');
      await eventually(() => expect(privateFiles('of-race')).toEqual([]), 60_000);
    } finally {
      writeFileSync(go, '');
      await running;
      rmSync(began, { force: true });
      rmSync(go, { force: true });
    }
  });

  it('is swept when the server was killed', async () => {
    const own = makeWarmPlace();
    try {
      await warmUp(own);
      const words = ['--warm', '--session', 'killed', '-c', `touch ${shared('of-killed').join(' ')}`];
      expect(await call(own, words)).toMatchObject({ exitCode: 0 });
      expect(privateFiles('of-killed', own)).toHaveLength(SHARED.length);
      for (const pid of serversOf(own.state.replace(/\/sandbox-run$/, ''))) process.kill(pid, 'SIGKILL');
      await eventually(async () => {
        expect(await call(own, ['--', 'true'])).toMatchObject({ exitCode: 0 });
        expect(privateFiles('of-killed', own)).toEqual([]);
      }, 60_000);
    } finally {
      await own.dispose();
    }
  });
});

describe('what runs in the background', () => {
  const FETCH = `python3 -c 'import urllib.request as r; print(r.urlopen("http://localhost:8123").status)'`;
  const SERVE = 'python3 -m http.server 8123';
  const LINE =
    /^In the background: process (\d+) runs "python3 -m http\.server 8123", reach it at localhost:8123; stop it with: kill \1$/;

  needsNamespaces('is told to the model after its next command, once and when it changes', async () => {
    const of = { session: 'told' };
    expect((await run(of, 'true')).stderr).toBe('');
    const server = inShell(await lineFor(of, SERVE, { run_in_background: true }));
    const told: string[] = [];
    try {
      await eventually(async () => {
        const { stderr, stdout } = await run(of, FETCH);
        told.push(...stderr.split('\n').filter((line) => line.startsWith('In the background')));
        expect(stdout).toBe('200');
      }, 60_000);
      expect(told.at(-1)).toMatch(LINE);
      expect((await run(of, 'true')).stderr).toBe('');
      expect((await run({ session: 'not-told' }, 'true')).stderr).toBe('');
    } finally {
      server.kill('SIGTERM');
      await server;
    }
    expect((await run(of, 'true')).stderr).toBe('In the background: nothing runs any more.');
    expect((await run(of, 'true')).stderr).toBe('');
  });

  needsNamespaces('ends with the session, whose last answer says which', async () => {
    const of = { session: 'over' };
    const [mine, other] = ['sleep 5501', 'sleep 5502'];
    const running = inShell(await lineFor(of, mine, { run_in_background: true }));
    const others = inShell(await lineFor({ session: 'goes-on' }, other, { run_in_background: true }));
    try {
      const commands = async () => (await services(place)).map(({ command }) => command).sort();
      await eventually(async () => expect(await commands()).toEqual([mine, other]), 60_000);
      expect(JSON.parse(await endOf('over'))).toEqual({
        systemMessage: 'sandbox-run: ended with this session: "sleep 5501"',
      });
      await running;
      expect(await commands()).toEqual([other]);
    } finally {
      for (const one of [running, others]) {
        one.kill('SIGTERM');
        await one;
      }
    }
  });

  needsNamespaces(
    'goes on after /clear, and the commands of the next session reach it and know of it',
    async () => {
      const of = { session: 'cleared' };
      const server = inShell(await lineFor(of, SERVE, { run_in_background: true }));
      try {
        await eventually(async () => expect((await run(of, FETCH)).stdout).toBe('200'), 60_000);
        expect((await run(of, 'true')).stderr).toBe('');
        // Twice, as agents are cleared again and again.
        for (const [before, next] of [
          ['cleared', 'cleared-2'],
          ['cleared-2', 'cleared-3'],
        ] as const) {
          expect(await endOf(before, 'clear')).toBe('');
          // Another session of this agent, and one of an agent that is another process, have nothing to do with it.
          await hook({ session: `new-${next}` }, { hook_event_name: 'SessionStart', source: 'startup' });
          expect((await run({ session: `new-${next}` }, FETCH)).exitCode).not.toBe(0);
          await startByAnother(`not-${next}`);
          expect((await run({ session: `not-${next}` }, FETCH)).exitCode).not.toBe(0);
          await startOf(next);
          const reached = await run({ session: next }, FETCH);
          expect(reached.stdout).toBe('200');
          expect(reached.stderr.split('\n').at(-1)).toMatch(LINE);
        }
        expect(JSON.parse(await endOf('cleared-3'))).toEqual({
          systemMessage: 'sandbox-run: ended with this session: "python3 -m http.server 8123"',
        });
        await server;
      } finally {
        server.kill('SIGTERM');
        await server;
      }
    },
  );

  needsNamespaces('goes on so, too, if the hooks before it were answered elsewhere', async () => {
    const event = { session_id: 'unheard-of', hook_event_name: 'PreToolUse', tool_name: 'Bash' };
    const tool_input = { command: SERVE, run_in_background: true };
    const { stdout } = await execa(process.execPath, [CLI, 'hook', 'claude-code', '--mode', 'rewrite'], {
      ...{ cwd: place.workspace, env: place.env, extendEnv: false },
      input: JSON.stringify({ ...event, tool_input, cwd: place.workspace }),
    });
    const server = inShell(JSON.parse(stdout).hookSpecificOutput.updatedInput.command);
    try {
      await eventually(
        async () => expect(await services(place)).toMatchObject([{ state: 'running' }]),
        60_000,
      );
      expect(await endOf('unheard-of', 'clear')).toBe('');
      await startOf('heard-of');
      await eventually(async () => expect((await run({ session: 'heard-of' }, FETCH)).stdout).toBe('200'));
      expect(await endOf('heard-of')).toContain('ended with this session');
      await server;
    } finally {
      server.kill('SIGTERM');
      await server;
    }
  });

  it('ends with the session where no server heard its end', async () => {
    const of = { session: 'unheard' };
    const running = inShell(await lineFor(of, 'sleep 5503', { run_in_background: true }));
    try {
      await eventually(
        async () => expect(await services(place)).toMatchObject([{ command: 'sleep 5503' }]),
        60_000,
      );
      // As a hook does whose call the server did not take.
      const input = JSON.stringify({
        ...{ session_id: 'unheard', cwd: place.workspace, hook_event_name: 'SessionEnd', reason: 'other' },
      });
      const server = readdirSync(place.state).find((name) => name.startsWith('warm-')) ?? '';
      await execa(process.execPath, [CLI, 'hook', 'claude-code', '--mode', 'rewrite'], {
        ...{ input, cwd: place.workspace, extendEnv: false },
        env: { ...place.env, SANDBOX_RUN_WARM_SERVER: `!${join(place.state, server)}` },
      });
      await running;
      expect(await services(place)).toEqual([]);
    } finally {
      running.kill('SIGTERM');
      await running;
    }
  });

  it('is shown to its user beside services, who can end it', async () => {
    const of = { session: 'shown' };
    const running = inShell(
      await lineFor(of, 'python3 -m http.server 8124 --bind 127.0.0.1', { run_in_background: true }),
    );
    try {
      let found: Awaited<ReturnType<typeof services>> = [];
      await eventually(async () => {
        found = await services(place);
        expect(found).toMatchObject([
          {
            ...{ workspace: place.workspace, session: 'claude-code.shown', state: 'running' },
            ...{ command: 'python3 -m http.server 8124 --bind 127.0.0.1', ports: [{ port: 8124 }] },
          },
        ]);
      }, 60_000);
      const name = found[0]?.name ?? '';
      expect(name).toBe(String(found[0]?.pid));
      expect((await sr(place, ['ps'])).stdout).toMatch(
        new RegExp(`^${name} +agent’s: python3 -m http.server 8124 .*localhost:8124`, 'm'),
      );
      for (const which of ['logs', 'restart']) {
        const refused = await sr(place, [which, name]);
        expectOneLine(refused.stderr);
        expect(refused.stderr).toContain(`it can only be ended here (sandbox-run stop ${name})`);
      }
      // From any place: the number means one process.
      for (const other of [`0${name}`, `${name}e0`, String(process.pid), '1'])
        expect((await sr(place, ['stop', other])).exitCode, other).toBe(125);
      expect(await sr(place, ['stop', name], { cwd: '/' })).toEqual({
        ...{ exitCode: 0, stderr: '', stdout: `${name} has ended\n` },
      });
      await running;
      expect(await services(place)).toEqual([]);
      expect((await sr(place, ['stop', name])).stderr).toContain(`no service ${name} runs`);
    } finally {
      running.kill('SIGTERM');
      await running;
    }
  });

  it('is ended with a command in the foreground, which says so and how to keep it', async () => {
    const said = 'run it as a command in the background, without &';
    for (const command of ['sleep 600 &', 'sleep 600 > /dev/null 2>&1 &', '(sleep 600 &) > log 2>&1'])
      expect((await run({ session: 'ampersand' }, command)).stderr, command).toContain(said);
    for (const command of ['sleep 0.01 & wait', 'true && true', 'echo x 2>&1', 'echo "a & b"'])
      expect((await run({ session: 'ampersand' }, command)).stderr, command).toBe('');
  });

  needsNamespaces('ends by the line that the model is told, and by that of no other session', async () => {
    const of = { session: 'stops' };
    const ready = join(place.workspace, 'ready');
    const script = `import http.server as h\ns = h.HTTPServer(("127.0.0.1", 8123), h.SimpleHTTPRequestHandler)\nopen("ready", "w").close()\ns.serve_forever()`;
    const server = inShell(await lineFor(of, `python3 -c '${script}'`, { run_in_background: true }));
    try {
      await eventually(() => expect(existsSync(ready)).toBe(true), 60_000);
      const { stderr } = await run(of, 'true');
      expect(stderr.split('\n')).toHaveLength(1);
      const [, pid, stop = ''] =
        /^In the background: process (\d+) runs ".*", reach it at localhost:8123; stop it with: (.*)$/.exec(
          stderr,
        ) ?? [];
      expect(stop).toBe(`kill ${pid}`);
      // Another session's command is one like any other, which the kernel refuses.
      const other = await run({ session: 'stranger' }, stop);
      expect(other.exitCode).not.toBe(0);
      expect((await run(of, FETCH)).stdout).toBe('200');
      const stopped = await run(of, stop);
      expect(stopped).toMatchObject({ exitCode: 0, stderr: 'In the background: nothing runs any more.' });
      await server;
      expect((await run(of, FETCH)).exitCode).not.toBe(0);
    } finally {
      rmSync(ready, { force: true });
      server.kill('SIGTERM');
      await server;
    }
  });
});

describe('a session cannot', () => {
  it('see the files of another one, of another workspace or policy, or of a command without a session', async () => {
    const look = `cat ${shared('secret').join(' ')} 2>&1; ls -A ${SHARED.join(' ')}`;
    const make = shared('secret')
      .map((path) => `echo mine > ${path}`)
      .join('; ');
    expect(await run({ session: 'one' }, make)).toMatchObject({ exitCode: 0 });
    expect((await run({ session: 'one' }, look)).stdout).toContain(SHARED.map(() => 'mine').join('\n'));
    expect((await run({ session: 'two' }, look)).stdout).not.toContain('mine');
    const beside = join(place.root, 'beside');
    mkdirSync(beside);
    expect((await run({ session: 'one', cwd: beside }, look)).stdout).not.toContain('mine');
    const policy = join(place.root, 'other.toml');
    writeFileSync(policy, '[filesystem]\ncache = "private"\n');
    expect((await run({ session: 'one', words: ['--policy', policy] }, look)).stdout).not.toContain('mine');
    const alone = await call(place, ['--warm', '-c', look]);
    expect(alone.stdout).not.toContain('mine');
    // Without a session each command has its own.
    expect(await call(place, ['--warm', '-c', make])).toMatchObject({ exitCode: 0 });
    expect((await call(place, ['--warm', '-c', look])).stdout).not.toContain('mine');
  });

  it('keep its directories for a workspace that was replaced by another directory', async () => {
    const replaced = join(place.root, 'replaced');
    mkdirSync(replaced);
    const of = { session: 'replaced', cwd: replaced };
    expect(await run(of, `echo mine > ${TMP}/secret`)).toMatchObject({ exitCode: 0 });
    // Held, so that the number is not given to the next one.
    execFileSync('mv', [replaced, `${replaced}-before`]);
    mkdirSync(replaced);
    expect((await run(of, `cat ${TMP}/secret`)).stdout).not.toContain('mine');
  });

  it('join another one by an id that its command gives, nor reach its directories by their names', async () => {
    expect(await run({ session: 'target' }, `echo mine > ${TMP}/secret`)).toMatchObject({ exitCode: 0 });
    const [secret = ''] = privateFiles('secret').filter((path) => readFileSync(path, 'utf8') === 'mine\n');
    expect(secret).not.toBe('');
    const forged = [
      CLIENT,
      process.execPath,
      CLI,
      '--warm',
      '--session',
      'target',
      '-c',
      `cat ${TMP}/secret`,
    ];
    writeFileSync(
      join(place.workspace, 'forged.sh'),
      [
        forged.map((word) => `'${word}'`).join(' '),
        `cat ${secret}`,
        `ls -d ${secret}`,
        `for p in /proc/[0-9]*; do cat "$p/root${secret}" "$p/root/tmp/secret" "$p/cwd/secret"; done`,
        'echo looked',
      ].join('\n'),
    );
    const { stdout } = await run({ session: 'attacker' }, 'sh forged.sh 2>/dev/null');
    expect(stdout).toContain('looked');
    expect(stdout).not.toContain('mine');
    // Landlock keeps nobody from asking whether a file is there.
    if (HOST.namespaces) expect(stdout).not.toContain(secret);
  });

  needsNamespaces('move what its next commands mount, and put a link there', async () => {
    // The workspace lies beneath /tmp in tests: the directories that lead to it are in the shared one.
    const [, , top = ''] = place.workspace.split('/');
    expect(place.workspace.startsWith('/tmp/')).toBe(true);
    const outside = join(place.root, 'outside');
    mkdirSync(outside);
    const of = { session: 'links' };
    const moved = await runScript(
      of,
      `mv /tmp/${top} /tmp/away; rm -rf /tmp/${top}/no-such; ln -s ${outside} /tmp/${top}; ls -d /tmp/away`,
    );
    expect(moved.stdout).not.toContain('/tmp/away');
    expect(await run(of, 'pwd; echo kept > /tmp/kept')).toMatchObject({
      stdout: place.workspace,
      exitCode: 0,
    });
    expect((await run(of, 'cat /tmp/kept')).stdout).toBe('kept');
    expect(readdirSync(outside)).toEqual([]);
  });

  needsNamespaces(
    'write beside its workspace in the shared /tmp, where the user would look for it in vain',
    async () => {
      const away = mkdtempSync('/tmp/one-session-');
      try {
        const cwd = join(away, 'workspace');
        mkdirSync(cwd);
        for (const _ of ['the first command', 'one on directories that are there'])
          expect(
            await runScript({ session: 'between', cwd }, 'echo x > ../beside; echo y > /tmp/y; cat /tmp/y'),
          ).toMatchObject({ stdout: 'y', stderr: expect.stringContaining('Read-only file system') });
        expect(readdirSync(away)).toEqual(['workspace']);
      } finally {
        rmSync(away, { recursive: true, force: true });
      }
    },
  );

  needsNamespaces('have us follow a link in its /tmp that stands where a view mounts something', async () => {
    const outside = join(place.root, 'elsewhere');
    mkdirSync(outside);
    const granted = `/tmp/granted-${process.pid}`;
    mkdirSync(join(granted, 'inner'), { recursive: true });
    const policy = join(place.root, 'granted.toml');
    writeFileSync(policy, `[filesystem]\nwrite = ["${granted}/inner"]\n`);
    const of = { session: 'planted', words: ['--policy', policy] };
    try {
      expect(await runScript(of, 'touch /tmp/of-planted')).toMatchObject({ exitCode: 0 });
      const [file = ''] = privateFiles('of-planted');
      const inTmp = join(dirname(file), `granted-${process.pid}`);
      // As if a command had got round the mounts that keep it from this.
      renameSync(inTmp, `${inTmp}-away`);
      symlinkSync(outside, inTmp);
      const wrote = await runScript(of, `echo x > ${granted}/inner/made && ls -A /tmp`);
      expect(wrote).toMatchObject({ exitCode: 0, stderr: '' });
      // The session goes on with another /tmp.
      expect(wrote.stdout).not.toContain('of-planted');
      expect(readdirSync(join(granted, 'inner'))).toEqual(['made']);
      expect(readdirSync(outside)).toEqual([]);
      await eventually(() => expect(privateFiles('of-planted')).toEqual([]), 60_000);
    } finally {
      rmSync(granted, { recursive: true, force: true });
    }
  });

  it('leave a program that runs as somebody else', async () => {
    const { stdout } = await runScript(
      { session: 'set-uid' },
      shared('t')
        .map((path) => `cp /bin/true ${path} && chmod 4755 ${path}; stat -c %a ${path}`)
        .join('; '),
    );
    expect(stdout).not.toMatch(/4755/);
    expect(stdout).toMatch(/^\d{3}(?:\n\d{3})*$/);
    expect(stdout.split('\n')).toHaveLength(SHARED.length);
  });

  needsNamespaces(
    'have more than its limit, however short its commands, and goes on with an empty /tmp',
    async () => {
      const policy = join(place.root, 'limited.toml');
      writeFileSync(policy, '[limits]\ntmp_bytes = 16000000\n');
      const of = { session: 'filled', words: ['--policy', policy] };
      const ends: (number | undefined)[] = [];
      for (let count = 0; count < 8; count++) {
        const filled = await runScript(of, `head -c 6000000 /dev/zero > /tmp/filled-${count}`);
        ends.push(filled.exitCode);
        if (filled.exitCode !== 0) {
          expect(filled.stderr).toContain('limit');
          break;
        }
      }
      expect(ends.at(-1)).not.toBe(0);
      expect(ends.length).toBeLessThan(6);
      expect(await run(of, 'ls -A /tmp | grep filled; echo small > /tmp/small')).toMatchObject({
        stdout: '',
        exitCode: 0,
      });
      expect((await run(of, 'cat /tmp/small')).stdout).toBe('small');
      await eventually(() => expect(privateFiles('filled-0')).toEqual([]), 60_000);
    },
  );
});

it.runIf(HOST.namespaces)(
  'a link in the workspace is no reason for a session to have other directories',
  async () => {
    symlinkSync('/tmp', join(place.workspace, 'to-tmp'));
    expect(await run({ session: 'linked' }, 'echo x > /tmp/by-name')).toMatchObject({ exitCode: 0 });
    expect((await run({ session: 'linked' }, 'cat to-tmp/by-name')).stdout).toBe('x');
  },
);
