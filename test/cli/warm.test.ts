import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { patience } from '../support/slow-host.ts';
import { HOST } from '../support/tiers.ts';
import { CLI, cli, serversOf, startCli } from './support.ts';
import {
  CLIENT,
  call,
  endServersOf,
  idle,
  makeWarmPlace,
  pathOf,
  programOf,
  startCall,
  WARM,
  warmUp,
} from './warm-support.ts';

const place = makeWarmPlace();
let server = 0;
/** So long that nothing ends by itself, and as nobody else sleeps. */
const long = (seconds: number) => `${seconds}.${process.pid}`;

beforeAll(async () => {
  server = await warmUp(place);
}, patience(60_000));
afterAll(() => place.dispose());

const HOOK = ['hook', 'claude-code', '--mode', 'rewrite'];
const toolCall = (command: string) =>
  JSON.stringify({
    ...{ session_id: 'one', hook_event_name: 'PreToolUse', tool_name: 'Bash', tool_use_id: 'call' },
    ...{ cwd: place.workspace, tool_input: { command } },
  });

describe('a call that is handed over to a warm server', () => {
  it('is done by it: no Node is started for it', async () => {
    const running = startCall(place, ['--warm', '--', 'sleep', long(60)]);
    await eventually(() => expect(childrenOf(`sleep\0${long(60)}`)).toHaveLength(1));
    expect(programOf(running.pid)).toBe(CLIENT);
    running.kill('SIGTERM');
    expect((await running).exitCode).toBe(143);
    await eventually(() => expect(childrenOf(`sleep\0${long(60)}`)).toEqual([]));
  });

  it.each([
    ['output and error', ['-c', 'echo out; echo err >&2']],
    ['an exit status', ['-c', 'exit 7']],
    ['a signal', ['-c', 'kill -9 $$']],
    ['an argument vector', ['--', 'printf', '%s\\n', 'a b', "c'd", '$e', '']],
    ['standard input', ['--', 'cat']],
    ['variables that are passed', ['--env', 'GIVEN', '--', 'printenv', 'GIVEN']],
    ['a program that is not there', ['--', 'no-such-program']],
    ['a time-out', ['--timeout', '0.2', '--', 'sleep', '60']],
    ['a directory that is refused', ['--workspace', '/no/such', '--', 'true']],
    ['an option that there is not', ['--no-such-option', '--', 'true']],
    ['help', ['--help']],
    ['a file in the workspace', ['-c', 'echo content > made-by-test; cat made-by-test; rm made-by-test']],
    ['what it may not write', ['-c', 'echo x > /etc/sandbox-run-test']],
    ['a result', ['--json', '-c', 'echo out; exit 3']],
  ])('gives the same as one that is not: %s', async (_, words) => {
    const options = { input: 'typed\n', env: { GIVEN: 'a variable' } };
    const cold = await cli(place, words, options);
    const isOurs = (await call(place, ['--warm', ...words], options)) as typeof cold;
    // Only what is another one each time.
    const plain = (text: string) =>
      text.replaceAll(/"durationMs":[\d.]+|after \d+\.\d s|"usage":\{[^}]*\}/g, '');
    expect(isOurs.exitCode).toBe(cold.exitCode);
    expect(plain(isOurs.stderr)).toBe(plain(cold.stderr));
    if (!words.includes('--json')) expect(plain(isOurs.stdout)).toBe(plain(cold.stdout));
    else expect(JSON.parse(isOurs.stdout)).toMatchObject({ stdout: 'out\n', exitCode: 3 });
  });

  it('starts where the caller is, and takes paths from there', async () => {
    mkdirSync(join(place.workspace, 'inner'), { recursive: true });
    const inner = join(place.workspace, 'inner');
    const found = await call(place, ['--warm', '--workspace', '..', '--', 'pwd'], { cwd: inner });
    expect(found.stdout).toBe(`${inner}\n`);
  });

  it('has the variables of its own caller, whoever called before', async () => {
    for (const GIVEN of ['one', 'two', 'one']) {
      const ran = await call(place, ['--warm', '--env', 'GIVEN', '--', 'printenv', 'GIVEN'], {
        env: { GIVEN },
      });
      expect(ran.stdout).toBe(`${GIVEN}\n`);
    }
  });

  it('is told what it was denied by the variables of its own caller, whoever called before', async () => {
    const data = join(place.root, 'data');
    mkdirSync(join(data, 'goose'), { recursive: true });
    writeFileSync(join(data, 'goose/session'), 'x');
    for (const XDG_DATA_HOME of ['/no/such', data, '/no/such']) {
      const words = ['--json', '-c', `echo x >> ${data}/goose/session`];
      const told = await call(place, ['--warm', ...words], { env: { XDG_DATA_HOME } });
      const [denial] = JSON.parse(told.stdout).denials;
      const isSecret = /secret/.test(denial.notProposed ?? '');
      expect({ XDG_DATA_HOME, isSecret }).toEqual({ XDG_DATA_HOME, isSecret: XDG_DATA_HOME === data });
    }
  });

  it('sees a policy that was changed since the last one', async () => {
    const policy = join(place.root, 'config/sandbox-run/policy.toml');
    mkdirSync(join(policy, '..'), { recursive: true });
    const run = () => call(place, ['--warm', '--', 'printenv', 'SAID']);
    writeFileSync(policy, '[environment.set]\nSAID = "one"\n');
    expect((await run()).stdout).toBe('one\n');
    writeFileSync(policy, '[environment.set]\nSAID = "two"\n');
    expect((await run()).stdout).toBe('two\n');
    writeFileSync(policy, 'no policy');
    expect((await run()).exitCode).toBe(125);
    rmSync(policy);
    expect((await run()).exitCode).toBe(1);
  });

  it('cannot write the hooks of a repository that came since the last one', async () => {
    expect((await call(place, ['--warm', '--', 'true'])).exitCode).toBe(0);
    const hooks = join(place.workspace, 'cloned/.git/hooks');
    mkdirSync(hooks, { recursive: true });
    mkdirSync(join(hooks, '../objects'));
    mkdirSync(join(hooks, '../refs'));
    writeFileSync(join(hooks, '../HEAD'), 'ref: refs/heads/main\n');
    writeFileSync(join(hooks, 'pre-commit'), 'of the user');
    try {
      const words = ['--', 'python3', '-c', 'open("cloned/.git/hooks/pre-commit", "w").write("other")'];
      const cold = await cli(place, words);
      expect(cold.stderr).toContain(
        'put back, because commands may not change it: cloned/.git/hooks/pre-commit',
      );
      expect(readFileSync(join(hooks, 'pre-commit'), 'utf8')).toBe('of the user');
      expect((await call(place, ['--warm', ...words])).stderr).toBe(cold.stderr);
      expect(readFileSync(join(hooks, 'pre-commit'), 'utf8')).toBe('of the user');
    } finally {
      rmSync(join(place.workspace, 'cloned'), { recursive: true });
    }
  });

  describe('sees, whatever came between two calls', () => {
    const at = (path: string) => join(place.workspace, 'between', path);
    const touch = (path: string, text = '') => {
      mkdirSync(dirname(at(path)), { recursive: true });
      writeFileSync(at(path), text);
    };
    const repository = (path: string) => {
      for (const part of ['hooks', 'objects', 'refs']) mkdirSync(at(`${path}/${part}`), { recursive: true });
      touch(`${path}/HEAD`, 'ref: refs/heads/main\n');
      touch(`${path}/config`, '[core]\n');
      touch(`${path}/hooks/pre-commit`, 'of the user');
    };
    /** With the times that it had, as far as anybody can set them. */
    const backdated = (path: string, change: () => void) => {
      const { atime, mtime } = statSync(at(path));
      change();
      utimesSync(at(path), atime, mtime);
    };
    const asRoot = process.getuid?.() === 0;

    interface Move {
      readonly name: string;
      readonly before?: () => void;
      readonly move: () => void;
      /** A command must not write it then. */
      readonly shut: string;
      readonly after?: () => void;
      /** It is not put back: it goes, or it is told. */
      readonly stays?: 'aside' | 'told';
    }
    const MOVES: readonly Move[] = [
      {
        name: 'a repository in a directory that was there, with its old times',
        before: () => mkdirSync(at('a/deep/place'), { recursive: true }),
        move: () => backdated('a/deep/place', () => repository('a/deep/place/.git')),
        shut: 'a/deep/place/.git/hooks/pre-commit',
      },
      {
        name: 'what makes a repository of a directory that was there',
        before: () => {
          repository('bare');
          rmSync(at('bare/HEAD'));
        },
        move: () => backdated('bare', () => touch('bare/HEAD', 'ref: refs/heads/main\n')),
        shut: 'bare/hooks/pre-commit',
      },
      {
        name: 'two directories that have changed places',
        before: () => {
          repository('one/inner/.git');
          mkdirSync(at('two/inner'), { recursive: true });
        },
        move: () => {
          renameSync(at('one'), at('three'));
          renameSync(at('two'), at('one'));
          renameSync(at('three'), at('two'));
        },
        shut: 'two/inner/.git/hooks/pre-commit',
      },
      {
        name: 'a tree that was moved in',
        before: () => {
          mkdirSync(at('into'), { recursive: true });
          repository('../../elsewhere/tree/.git');
        },
        move: () => backdated('into', () => renameSync(join(place.root, 'elsewhere/tree'), at('into/tree'))),
        shut: 'into/tree/.git/hooks/pre-commit',
        after: () => rmSync(join(place.root, 'elsewhere'), { recursive: true }),
      },
      {
        name: 'a file of git that leads to a repository, in the place of another name',
        before: () => touch('module/.notgit', 'gitdir: ../bare'),
        move: () => renameSync(at('module/.notgit'), at('module/.git')),
        shut: 'module/.git',
        stays: 'aside',
      },
      {
        name: 'a setting that names hooks, in a file of the same length and time',
        before: () => {
          repository('set/.git');
          touch('set/mine/pre-commit');
          touch('set/.git/config', '[core]\n\thooksPatX = mine\n');
        },
        move: () =>
          backdated('set/.git/config', () => touch('set/.git/config', '[core]\n\thooksPath = mine\n')),
        shut: 'set/mine/pre-commit',
      },
      {
        name: 'a link to a repository that leads elsewhere now',
        before: () => {
          repository('real');
          // So that only the link makes one of it.
          rmSync(at('real/HEAD'));
          mkdirSync(at('linked'));
          mkdirSync(at('nothing'));
          symlinkSync('../nothing', at('linked/.git'));
        },
        move: () => {
          rmSync(at('linked/.git'));
          symlinkSync('../real', at('linked/.git'));
        },
        shut: 'real/hooks/pre-commit',
        stays: 'told',
      },
      ...(asRoot
        ? [
            {
              name: 'what is mounted over a directory',
              before: () => {
                mkdirSync(at('mounted'), { recursive: true });
                repository('../../mounted/.git');
              },
              move: () => execFileSync('mount', ['--bind', join(place.root, 'mounted'), at('mounted')]),
              shut: 'mounted/.git/hooks/pre-commit',
              after: () => {
                execFileSync('umount', [at('mounted')]);
                rmSync(join(place.root, 'mounted'), { recursive: true });
              },
            },
          ]
        : []),
    ];

    it.each(MOVES)('$name', async ({ before, move, shut, after, stays }) => {
      mkdirSync(at('.'), { recursive: true });
      before?.();
      try {
        // More often than the kernel takes to be asked for each change.
        for (let i = 0; i < 4; i += 1) expect((await call(place, ['--warm', '--', 'true'])).exitCode).toBe(0);
        move();
        const write = (path: string) =>
          call(place, ['--warm', '--', 'python3', '-c', `open(${JSON.stringify(at(path))}, "a").write("x")`]);
        const was = readFileSync(at(shut));
        // Refused at once, or put back when the command ends (a repository in the workspace is content of it).
        const { stderr } = await write(shut);
        expect(stderr).toMatch(/Read-only file system|put back|set aside/);
        // What leads to a repository is set aside, and what lies behind a link is told and stays.
        if (stays === undefined) expect(readFileSync(at(shut))).toEqual(was);
        else if (stays === 'aside') expect(existsSync(at(shut))).toBe(false);
        else expect(stderr).toContain('could not be put back');
        expect(await write('free')).toMatchObject({ exitCode: 0, stderr: '' });
      } finally {
        after?.();
        rmSync(at('.'), { recursive: true });
      }
    });
  });

  it('reads the key of the audit trail as it is now', async () => {
    const policy = join(place.root, 'config/sandbox-run/policy.toml');
    const key = join(place.root, 'audit-key');
    writeFileSync(key, 'k'.repeat(64), { mode: 0o600 });
    mkdirSync(dirname(policy), { recursive: true });
    writeFileSync(policy, `[audit]\nenabled = true\nhmac_key_file = "${key}"\n`);
    try {
      const run = () => call(place, ['--warm', '--', 'echo', 'ran']);
      expect(await run()).toMatchObject({ exitCode: 0, stdout: 'ran\n' });
      chmodSync(key, 0o644);
      const refused = await run();
      expect(refused).toMatchObject({ exitCode: 125, stdout: '' });
      expect(refused.stderr).toContain('can be used by others');
    } finally {
      rmSync(policy);
    }
  });

  it('does not wait for a policy that is a named pipe: its caller does', async () => {
    const pipe = join(place.root, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const running = startCall(place, ['--warm', '--policy', pipe, '--', 'true']);
    try {
      await eventually(() => expect(programOf(running.pid)).toBe(realpathSync(process.execPath)));
      expect((await call(place, ['--warm', '--', 'echo', 'free'])).stdout).toBe('free\n');
    } finally {
      running.kill('SIGKILL');
      await running;
    }
  });

  it('starts no second server where one is, though that leaves the call to its caller', async () => {
    expect((await call(place, ['--warm', '--no-such-option'])).exitCode).toBe(125);
    expect(serversOf(place.root)).toEqual([server]);
  });

  it('is refused as another one is, and leaves nothing in the one after it', async () => {
    const refused = await call(place, ['--warm', '-c', 'sudo id']);
    expect(refused.exitCode).toBe(126);
    expect((await call(place, ['--warm', '-c', 'echo clean'])).stdout).toBe('clean\n');
  });

  it.each([
    ['standard input', '"$@" --policy /dev/stdin -- printenv SAID < "$0"'],
    ['a descriptor', '"$@" --policy=/dev/./fd/9 -- printenv SAID 9< "$0"'],
    ['a process substitution', '"$@" --policy <(cat "$0") -- printenv SAID'],
  ])('means its own descriptors by a path, and not those of the server: %s', async (_, script) => {
    const policy = join(place.root, 'given.toml');
    writeFileSync(policy, '[environment.set]\nSAID = "given"\n');
    const ran = await shell(script, policy, [...WARM, '--warm']);
    expect(ran).toMatchObject({ exitCode: 0, stdout: 'given' });
  });

  it.each([
    ['a hook is stopped', HOOK, 2],
    ['a command has failed', ['--warm', '--json', '--', 'true'], 125],
  ])('fails where its output cannot be written, as without a server: %s', async (_, words, status) => {
    const input = toolCall('ls');
    expect((await shell('"$@" > /dev/full', '-', [process.execPath, CLI, ...words], input)).exitCode).toBe(
      status,
    );
    const warm = await shell('"$@" > /dev/full', '-', [...WARM, ...words], input);
    expect(warm.exitCode).toBe(status);
    expect(warm.stderr).toContain('standard output cannot be written');
  });

  it('of a hook ends by a signal, however long the answer takes', async () => {
    // Takes the call, and says no more.
    const path = await addressOf();
    let isTaken = false;
    const fake = createServer((socket) => {
      socket.on('error', () => {});
      socket.write('A', () => {
        isTaken = true;
      });
    });
    await new Promise<void>((done) => fake.listen(path, done));
    const running = startCall(place, HOOK, { input: toolCall('ls') });
    try {
      await eventually(() => expect(isTaken).toBe(true));
      running.kill('SIGTERM');
      expect((await running).signal).toBe('SIGTERM');
    } finally {
      running.kill('SIGKILL');
      await running;
      fake.close();
      server = await warmUp(place);
    }
  });

  it('loses no signal that comes while it is told that its call is taken', async () => {
    const path = await addressOf();
    let caller: number | undefined;
    const fake = createServer((socket) => {
      socket.on('error', () => {});
      socket.write('H');
      socket.on('data', (bytes) => {
        const last = bytes.at(-1) ?? 0;
        // The exit status is the signal.
        if (last === constants.signals.SIGINT) socket.end(Buffer.from([0x58, 1, 0, 0, 0, last]));
        // At once: until the client runs again, a command may have said something already.
        else socket.write('A', () => process.kill(caller ?? 0, 'SIGINT'));
      });
    });
    await new Promise<void>((done) => fake.listen(path, done));
    try {
      for (let time = 0; time < 30; time++) {
        const running = startCall(place, ['--warm', '--', 'true']);
        caller = running.pid;
        const { exitCode, signal } = await running;
        expect({ exitCode, signal }).toEqual({ exitCode: 2, signal: undefined });
      }
    } finally {
      fake.close();
      server = await warmUp(place);
    }
  });

  it('says where its question waits, though an earlier one was to be quiet', async () => {
    const words = ['--warm', '--ask', 'queue', '--autonomy', 'supervised'];
    expect((await call(place, [...words, '--quiet', '-c', 'true'])).exitCode).toBe(0);
    const asking = startCall(place, [...words, '-c', 'rm -rf made-by-test']);
    try {
      let said = '';
      asking.stderr.on('data', (bytes) => {
        said += String(bytes);
      });
      await eventually(() => expect(said).toContain('waits for an answer'), 60_000);
    } finally {
      asking.kill('SIGTERM');
      await asking;
    }
  });

  it('is not mixed with others that run at the same time', async () => {
    const words = Array.from({ length: 12 }, (_, at) => `call-${at}`);
    const others = join(place.workspace, 'others');
    mkdirSync(others);
    // None goes on before all of them are there.
    const all = await Promise.all(
      words.map((word) =>
        call(place, [
          '--warm',
          '-c',
          `echo ${word}; : > others/${word}; until [ $(ls others | wc -l) -eq ${words.length} ]; do sleep 0.02; done; echo ${word} >&2`,
        ]),
      ),
    );
    rmSync(others, { recursive: true });
    expect(all.map(({ stdout }) => stdout)).toEqual(words.map((word) => `${word}\n`));
    expect(all.map(({ stderr }) => stderr)).toEqual(words.map((word) => `${word}\n`));
  });

  it('does not wait for another one whose output nobody reads', async () => {
    const stuck = startCall(place, [
      '--warm',
      '--json',
      '--max-output',
      '8M',
      '-c',
      'head -c 4000000 /dev/zero | tr "\\0" x; : > all-written',
    ]);
    stuck.stdout.pause();
    const written = join(place.workspace, 'all-written');
    await eventually(() => expect(existsSync(written)).toBe(true), 60_000);
    rmSync(written);
    // The first of these may still come before the result of that one.
    await call(place, ['--warm', '--', 'true']);
    expect((await call(place, ['--warm', '--', 'echo', 'free'])).stdout).toBe('free\n');
    stuck.kill('SIGKILL');
    await stuck;
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('gets %s that its caller gets', async (signal, status) => {
    const running = startCall(place, ['--warm', '-c', `echo begun; sleep ${long(61)}`]);
    await once(running.stdout);
    running.kill(signal);
    expect((await running).exitCode).toBe(status);
    await eventually(() => expect(childrenOf(`sleep\0${long(61)}`)).toEqual([]));
  });

  it('ends with its caller, however that ends', async () => {
    const running = startCall(place, ['--warm', '-c', `echo begun; sleep ${long(62)}`]);
    await once(running.stdout);
    await eventually(() => expect(childrenOf(`sleep\0${long(62)}`)).toHaveLength(1));
    running.kill('SIGKILL');
    await running;
    await eventually(() => expect(childrenOf(`sleep\0${long(62)}`)).toEqual([]));
  });

  it('is a hook of an agent: answered as without a server, and its rewritten command runs there', async () => {
    const { exitCode, stdout, stderr } = await startCli(place, HOOK, {
      input: toolCall('echo from the agent'),
    });
    const cold = { exitCode, stdout, stderr };
    const warm = await call(place, HOOK, { input: toolCall('echo from the agent') });
    expect(warm).toEqual({ ...cold, signal: undefined });
    const { command } = JSON.parse(warm.stdout).hookSpecificOutput.updatedInput;
    expect(command.startsWith(`'${CLIENT}' `)).toBe(true);
    const { execa } = await import('execa');
    const ran = await execa('/bin/bash', ['-c', command], {
      cwd: place.workspace,
      env: place.env,
      extendEnv: false,
    });
    expect(ran.stdout).toBe('from the agent');
  });

  it('is a rewritten command that runs under the policy as it is by then, not as its hook found it', async () => {
    const policy = join(place.root, 'config/sandbox-run/policy.toml');
    mkdirSync(dirname(policy), { recursive: true });
    const say = (word: string) => writeFileSync(policy, `[environment.set]\nSAID = "${word}"\n`);
    const { execa } = await import('execa');
    try {
      for (const word of ['two', 'six']) {
        say('one');
        // What was changed just now is not looked at ahead of the run.
        await eventually(() => expect(statSync(policy).ctimeMs).toBeLessThan(Date.now() - 200));
        const answer = await call(place, HOOK, { input: toolCall('printenv SAID') });
        const { command } = JSON.parse(answer.stdout).hookSpecificOutput.updatedInput;
        // It has looked at what the run will need: it does so as soon as it has answered.
        await idle(server);
        // As long as before, and the same file.
        say(word);
        const ran = await execa('/bin/bash', ['-c', command], {
          ...{ cwd: place.workspace, env: place.env, extendEnv: false, reject: false },
        });
        expect(ran.stdout).toBe(word);
      }
    } finally {
      rmSync(policy);
    }
  });

  it('is one of sandbox-sh', async () => {
    const env = { SANDBOX_SH_WORKSPACE: place.workspace };
    const ran = await call(place, ['sandbox-sh', '-ec', 'echo "$0 $1"; false; echo not', 'name', 'one'], {
      env,
    });
    expect(ran).toMatchObject({ exitCode: 1, stdout: 'name one\n' });
  });

  it('has the limits of its caller, also where those of the server are others', async () => {
    const { execa } = await import('execa');
    const { stdout } = await execa(
      '/bin/sh',
      [
        '-c',
        'ulimit -f 4242; umask 027; exec "$@"',
        'sh',
        CLIENT,
        process.execPath,
        CLI,
        '--warm',
        '-c',
        'ulimit -f; umask',
      ],
      { cwd: place.workspace, env: place.env, extendEnv: false },
    );
    const [size, mask] = stdout.split('\n');
    expect(Number(size)).toBeLessThanOrEqual(4242 * 2);
    expect(mask).toBe('0027');
  });
});

describe('one session of an agent', () => {
  const PORT = 8123;
  const SERVER = [
    'import socket',
    `server = socket.create_server(("127.0.0.1", ${PORT}))`,
    'open("listens", "w").close()',
    'while True:',
    '  one, _ = server.accept()',
    '  one.sendall(b"from the server")',
    '  one.close()',
  ].join('\n');
  const CONNECT = [
    'import socket',
    'try:',
    `  print(socket.create_connection(("localhost", ${PORT})).recv(99).decode())`,
    'except OSError as error:',
    '  print(error.strerror)',
  ].join('\n');
  /** The line that an agent's shell runs for a call of its model, with the hook's answer about it. */
  const lineFor = async (
    of: { readonly words?: readonly string[]; readonly session: string; readonly cwd?: string },
    input: Readonly<Record<string, unknown>>,
  ) => {
    const cwd = of.cwd ?? place.workspace;
    const asked = JSON.stringify({
      ...{ session_id: of.session, hook_event_name: 'PreToolUse', tool_name: 'Bash', tool_use_id: 'call' },
      ...{ cwd, tool_input: input },
    });
    const { stdout } = await call(place, [...HOOK, ...(of.words ?? [])], { input: asked, cwd });
    return JSON.parse(stdout).hookSpecificOutput.updatedInput.command as string;
  };
  const inShell = async (line: string, cwd = place.workspace) => {
    const { execa } = await import('execa');
    return execa('/bin/bash', ['-c', line], { cwd, env: place.env, extendEnv: false, reject: false });
  };
  const connects = async (of: Parameters<typeof lineFor>[0], timeout?: number) =>
    (await inShell(await lineFor(of, { command: `python3 -c '${CONNECT}'`, timeout }), of.cwd)).stdout;

  it.runIf(HOST.namespaces)(
    'reaches in its next commands what one in the background serves, and no other session does',
    async () => {
      const listens = join(place.workspace, 'listens');
      const command = `python3 -c '${SERVER}'`;
      const serving = inShell(await lineFor({ session: 'served' }, { command, run_in_background: true }));
      try {
        await eventually(() => expect(existsSync(listens)).toBe(true), 60_000);
        expect(await connects({ session: 'served' })).toBe('from the server');
        expect(await connects({ session: 'served' }, 5_000)).toBe('from the server');
        // A new repository needs its hooks protected, so the server prepares another sandbox.
        mkdirSync(join(place.workspace, 'came/.git/hooks'), { recursive: true });
        execFileSync('git', ['init', '-q', join(place.workspace, 'came')]);
        expect(await connects({ session: 'served' })).toBe('from the server');

        expect(await connects({ session: 'another' })).toBe('Connection refused');
        const beside = join(place.root, 'beside');
        mkdirSync(beside);
        expect(await connects({ session: 'served', cwd: beside })).toBe('Connection refused');
        const policy = join(place.root, 'less.toml');
        writeFileSync(policy, '[filesystem]\ncache = "private"\n');
        expect(await connects({ session: 'served', words: ['--policy', policy] })).toBe('Connection refused');
        // The id that counts is the one that the agent gave.
        const forged = [
          CLIENT,
          process.execPath,
          CLI,
          '--warm',
          '--session',
          'served',
          '--',
          'python3',
          '-c',
        ];
        const words = [...forged, CONNECT].map((word) => `'${word}'`).join(' ');
        writeFileSync(join(place.workspace, 'forged.sh'), `${words}\npython3 -c '${CONNECT}'\n`);
        const inside = await inShell(await lineFor({ session: 'another' }, { command: 'sh forged.sh' }));
        expect(inside.stdout).toContain('Connection refused');
        expect(inside.stdout).not.toContain('from the server');
      } finally {
        rmSync(listens, { force: true });
        for (const pid of processesOf(SERVER)) process.kill(pid, 'SIGKILL');
        await serving;
      }
    },
  );
});

describe('the socket of a server', () => {
  const TRY =
    'import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print("connected")';

  it('is for its user alone', () => {
    const path = pathOf(server);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700);
  });

  it('is out of the reach of commands', async () => {
    const words = ['python3', '-c', TRY, pathOf(server)];
    const { execa } = await import('execa');
    expect((await execa(words[0] ?? '', words.slice(1))).stdout).toBe('connected');
    const tried = await call(place, ['--warm', '--', ...words]);
    expect(tried.exitCode).not.toBe(0);
    expect(tried.stdout).toBe('');
  });

  it('serves nobody who is more confined than the server: such a call is its own', async () => {
    const { execa } = await import('execa');
    const words = [CLIENT, process.execPath, CLI, '--warm', '--', 'sleep', long(64)];
    const running = execa('setpriv', ['--no-new-privs', ...words], {
      ...{ cwd: place.workspace, env: place.env, extendEnv: false, reject: false },
    });
    await eventually(() => expect(childrenOf(`sleep\0${long(64)}`)).toHaveLength(1));
    expect(programOf(running.pid)).toBe(realpathSync(process.execPath));
    running.kill('SIGTERM');
    expect((await running).exitCode).toBe(143);
  });
});

describe('a policy with plug-ins', () => {
  it('has them as they are now, also while an earlier call still runs', async () => {
    const plugin = join(place.root, 'plugin.mjs');
    const allowing = 'export const before_tool_use = () => ({ allowed: true });\n';
    writeFileSync(plugin, allowing);
    const policy = join(place.root, 'config/sandbox-run/policy.toml');
    mkdirSync(join(policy, '..'), { recursive: true });
    server = await warmUp(place);
    writeFileSync(policy, `[[hooks.plugins]]\npath = "${plugin}"\n`);
    const running = startCall(place, ['--warm', '-c', `echo begun; sleep ${long(65)}`]);
    try {
      await once(running.stdout);
      expect(programOf(running.pid)).toBe(CLIENT);
      writeFileSync(plugin, allowing.replace('true', 'false, reason: "not any more"'));
      const next = await call(place, ['--warm', '-c', 'echo ran']);
      expect(next).toMatchObject({ exitCode: 126, stdout: '' });
      expect(next.stderr).toContain('not any more');
    } finally {
      rmSync(policy);
      running.kill('SIGTERM');
      await running;
    }
  });
});

describe('a server that is not what it should be', () => {
  it('that was ended leaves calls to their callers, and the next is started', async () => {
    await endServers();
    expect((await call(place, ['--warm', '--', 'echo', 'cold'])).stdout).toBe('cold\n');
    await eventually(() => expect(serversOf(place.root)).toHaveLength(1), 60_000);
    [server = 0] = serversOf(place.root);
  });

  it('that dies in the middle of a command fails it: it is not run again', async () => {
    server = await warmUp(place);
    const running = startCall(place, ['--warm', '-c', `echo begun; sleep ${long(63)}`]);
    await once(running.stdout);
    process.kill(server, 'SIGKILL');
    const ended = await running;
    expect(ended.exitCode).toBe(125);
    expect(ended.stdout).toBe('begun\n');
    expect(ended.stderr).toMatch(/^sandbox-run: the warm server ended in the middle of this call/);
    await eventually(() => expect(childrenOf(`sleep\0${long(63)}`)).toEqual([]));
  });

  it.each([
    ['takes a call and says no more', Buffer.from('HA')],
    ['says nonsense', Buffer.from('HA\xff\xff\xff\xff\xffnonsense', 'latin1')],
    ['ends after a part of a frame', Buffer.from([0x48, 0x41, 0x4f, 9, 0, 0, 0, 0x61])],
  ])('that %s stops the tool call of a hook', async (_, said) => {
    const path = await addressOf();
    const fake = createServer((socket) => {
      socket.on('error', () => {});
      socket.resume();
      socket.end(said);
    });
    await new Promise<void>((done) => fake.listen(path, done));
    try {
      const ended = await call(place, HOOK, { input: toolCall('ls') });
      expect(ended.exitCode).toBe(2);
      expect(ended.stdout).not.toContain('allow');
    } finally {
      await new Promise((done) => fake.close(done));
    }
  });

  it('that is stopped holds nothing of a call that it was not there to take', async () => {
    server = await warmUp(place);
    process.kill(server, 'SIGSTOP');
    try {
      // Whoever started it reads its output to the end, which comes with the last who has it.
      expect(await call(place, ['--warm', '--', 'echo', 'own'])).toMatchObject({
        exitCode: 0,
        stdout: 'own\n',
      });
    } finally {
      process.kill(server, 'SIGCONT');
    }
  });

  it('that was stopped for longer than its caller waits does not begin what that one did itself', async () => {
    server = await warmUp(place);
    process.kill(server, 'SIGSTOP');
    const file = join(place.workspace, 'begun');
    const hold = makeHold(place.workspace);
    const running = startCall(place, ['--warm', '-c', `echo x >> begun; ${hold.words}`]);
    try {
      // By its caller: the server is stopped.
      await eventually(() => expect(readFileSync(file, 'utf8')).toBe('x\n'), 60_000);
      process.kill(server, 'SIGCONT');
      expect((await call(place, ['--warm', '-c', 'cat begun'])).stdout).toBe('x\n');
      hold.letGo();
      expect((await running).exitCode).toBe(0);
      // It serves again, and has not begun the earlier one.
      expect((await call(place, ['--warm', '-c', 'cat begun'])).stdout).toBe('x\n');
    } finally {
      process.kill(server, 'SIGCONT');
      rmSync(file, { force: true });
    }
  });

  it('that accepts and says nothing is not waited for for long: the hook answers by itself', async () => {
    const path = await addressOf();
    const fake = createServer((socket) => void socket.on('error', () => {}).resume());
    await new Promise<void>((done) => fake.listen(path, done));
    try {
      const ended = await call(place, HOOK, { input: toolCall('ls') });
      expect(ended.exitCode).toBe(0);
      expect(JSON.parse(ended.stdout).hookSpecificOutput.permissionDecision).toBe('allow');
    } finally {
      fake.close();
    }
  });

  it('is waited for where no other can do the call, as when up has started it on a slow machine', async () => {
    const path = await addressOf();
    const exit = Buffer.from([0x41, 0x58, 1, 0, 0, 0, 7]);
    // After the time that other calls have for it.
    const fake = createServer((socket) => {
      socket.on('error', () => {}).once('data', () => setTimeout(() => socket.end(exit), 2_500));
      socket.write('H');
    });
    await new Promise<void>((done) => fake.listen(path, done));
    try {
      const env = { ...place.env, SANDBOX_RUN_WARM_AT: path };
      expect(await call(place, ['up', 'web', '--', 'true'], { env })).toMatchObject({ exitCode: 7 });
    } finally {
      fake.close();
    }
  });
});

/** Where the calls of this place look for their server, once there is none. */
async function addressOf(): Promise<string> {
  await endServers();
  const path = pathOf(await warmUp(place));
  await endServers();
  return path;
}

async function endServers(): Promise<void> {
  await endServersOf(place.root);
  for (const name of readdirSync(place.state)) if (name.startsWith('warm-')) rmSync(join(place.state, name));
}

/** Processes with exactly this command line, wherever they run. */
function childrenOf(words: string): readonly string[] {
  return readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, 'utf8') === `${words}\0`;
    } catch {
      return false;
    }
  });
}

/** Runs a script of bash with a word and the words of a call. */
async function shell(script: string, word: string, words: readonly string[], input = '') {
  const { execa } = await import('execa');
  return execa('/bin/bash', ['-c', script, word, ...words], {
    ...{ cwd: place.workspace, env: place.env, extendEnv: false, reject: false, input },
  });
}

const once = (stream: NodeJS.ReadableStream) =>
  new Promise<void>((done) => void stream.once('data', () => done()));

/** Processes of which an argument is this. */
function processesOf(word: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(word);
      } catch {
        return false;
      }
    });
}
