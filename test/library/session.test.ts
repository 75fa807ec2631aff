// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox, type Sandbox, type ShellSession, type TurnResult } from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { processesWith } from '../support/leftovers.ts';

const arena = makeArena();
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await createSandbox({
    workspace: arena.workspace,
    policyFiles: false,
    policy: { unsafe: { unjudged_commands: true }, limits: { kill_grace_seconds: 0.3 } },
  });
});
afterAll(() => sandbox.close());

const said = ({ status, exitCode, stdout }: TurnResult) => ({ status, exitCode, stdout });
const exited = (stdout: string, exitCode = 0) => ({ status: 'exited', exitCode, stdout });

describe('what lasts from command to command', () => {
  it('directory, variables, functions, options and the last status', async () => {
    await using shell = await sandbox.session();
    mkdirSync(join(arena.workspace, 'deep'), { recursive: true });
    const moved = await shell.run(
      'cd deep; x=1; export Y="a b"; greet() { echo "hello $1"; }; set -o pipefail; false',
    );
    expect(moved).toMatchObject({ exitCode: 1, cwdAfter: join(arena.workspace, 'deep'), restarted: false });
    expect(shell.cwd).toBe(join(arena.workspace, 'deep'));
    expect(said(await shell.run('echo $?'))).toEqual(exited('1\n'));
    expect(said(await shell.run('pwd; echo $x; greet you; sh -c \'echo "$Y"\'; false | true'))).toEqual(
      exited(`${arena.workspace}/deep\n1\nhello you\na b\n`, 1),
    );
  });

  it('a virtual environment that was activated', async () => {
    execFileSync('/usr/bin/python3', ['-m', 'venv', '--without-pip', join(arena.workspace, 'env')]);
    await using shell = await sandbox.session();
    const activated = await shell.run('. env/bin/activate');
    expect(activated).toMatchObject({ status: 'exited', exitCode: 0, stderr: '' });
    const program = `${arena.workspace}/env/bin/python`;
    expect(said(await shell.run('command -v python; python -c "import sys; print(sys.prefix)"'))).toEqual(
      exited(`${program}\n${arena.workspace}/env\n`),
    );
    await using other = await sandbox.session({ restore: shell.snapshot() });
    expect(said(await other.run('command -v python'))).toEqual(exited(`${program}\n`));
    expect(said(await shell.run('deactivate; command -v python || echo none'))).not.toMatchObject({
      stdout: program,
    });
  });

  it('jobs in the background, whose output comes with later commands', async () => {
    await using shell = await sandbox.session();
    const { words, letGo } = makeHold(arena.workspace);
    expect(await shell.run(`(${words}; echo late) & echo early`)).toMatchObject({
      stdout: 'early\n',
      stderr: '',
    });
    letGo();
    expect(said(await shell.run('wait'))).toEqual(exited('late\n'));
  });
});

describe('commands that a shell could stumble on', () => {
  const survive: readonly (readonly [string, Partial<TurnResult>])[] = [
    ['if', { exitCode: 2 }],
    ['echo "', { exitCode: 2 }],
    ['} ; echo out; {', { exitCode: 2, stdout: '' }],
    ['cat <<E\nnever closed', { exitCode: 2 }],
    ['cat <<E\nline\nE', { stdout: 'line\n' }],
    ['echo a # comment', { stdout: 'a\n' }],
    ['# only a comment', { exitCode: 0 }],
    ['', { exitCode: 0 }],
    [' \n\t\n', { exitCode: 0 }],
    ['return 4; echo no', { exitCode: 4, stdout: '' }],
    ['break; echo on', { stdout: 'on\n' }],
    ['set -u; echo "$nowhere"\necho no', { exitCode: 1, stdout: '' }],
    ['set +u', {}],
    ['echo "${nowhere:?is missing}"\necho no', { exitCode: 1, stdout: '' }],
    ['exec >hidden.txt; echo kept', { stdout: '' }],
    ['echo visible', { stdout: 'visible\n' }],
    ['exec 4>&- 5>&- 3<&-; echo still', { stdout: 'still\n' }],
    ['printf() { echo wrong; }; read() { echo wrong; }; eval() { echo wrong; }; :', {}],
    [
      'export() { echo wrong; }; trap() { echo wrong; }; pwd() { echo wrong; }; builtin() { echo wrong; }',
      {},
    ],
    ['printf x', { stdout: 'wrong\n' }],
    ['unset -f printf read eval export trap pwd', {}],
    ['PROMPT_COMMAND="echo prompt"; PS1="prompt$ "; PS0="x"; PS4="% "', { stdout: '' }],
    ['echo one', { stdout: 'one\n', stderr: '' }],
    ['unset PROMPT_COMMAND', {}],
    ['trap "echo debug" DEBUG; trap "echo error" ERR', {}],
    ['trap - DEBUG ERR', {}],
    ['IFS=/; set -f; set -x', {}],
    ['set +x +f; unset IFS', {}],
    ['POSIXLY_CORRECT=1; export A=1', {}],
    ['echo posix', { stdout: 'posix\n' }],
    ['unset POSIXLY_CORRECT; set +o posix', {}],
    ['alias echo="echo aliased"; shopt -s expand_aliases; alias .=false builtin=false printf=false', {}],
    ['echo x', { stdout: 'aliased x\n' }],
    ['unalias -a; shopt -u expand_aliases', {}],
    ['read x; echo "$? $x"; cat', { stdout: '1 \n' }],
    ['kill -TERM $$; echo on', { stdout: 'on\n' }],
    ['printf "\\0T0123\\0000\\0"', { stdout: '\0T0123\x000\0' }],
    [`echo ${'x'.repeat(60_000)} | wc -c`, { stdout: '60001\n' }],
    ['echo \'quotes\' "and" `echo these` $(echo too) \\\\', { stdout: 'quotes and these too \\\n' }],
    ['echo done', { stdout: 'done\n' }],
  ];
  it('all of them, and the shell lives on', async () => {
    await using shell = await sandbox.session();
    for (const [command, expected] of survive) {
      const result = await shell.run(command, { timeout: 10_000 });
      expect(result, command).toMatchObject({ status: 'exited', restarted: false, ...expected });
    }
  });

  const fatal: readonly (readonly [string, number])[] = [
    ['exit 3', 3],
    ['set -e; (exit 7); echo no', 7],
    ['exec sh -c "exit 5"', 5],
    ['kill -KILL $$', 137],
  ];
  it.each(fatal)('%s: a new shell goes on where the last one was', async (command, status) => {
    await using shell = await sandbox.session();
    mkdirSync(join(arena.workspace, 'deep'), { recursive: true });
    await shell.run('cd deep; export KEPT=yes; lost() { :; }');
    const result = await shell.run(command);
    expect(result.restarted).toBe(true);
    expect(result.status === 'signaled' ? 128 + 9 : result.exitCode).toBe(status);
    expect(said(await shell.run('pwd; echo $KEPT; type lost 2>&1 | grep -c "not found"'))).toEqual(
      exited(`${arena.workspace}/deep\nyes\n1\n`),
    );
  });

  it('tells none of them what its report is to be known by', async () => {
    await using shell = await sandbox.session();
    for (const before of ['true', 'false'])
      for (const long of ['', ` # ${'x'.repeat(4_000)}`]) {
        await shell.run(before);
        expect((await shell.run(`echo "$_" $?${long}`)).stdout).toBe(`: ${before === 'true' ? 0 : 1}\n`);
      }
  });

  it('refuses NUL, what is no string, and unknown options', async () => {
    await using shell = await sandbox.session();
    expect(await shell.run('echo a\0b')).toMatchObject({
      status: 'setup-failed',
      error: { code: 'usage.invalid' },
    });
    await expect(shell.run(['ls'] as unknown as string)).rejects.toThrow('must be a shell string');
    await expect(shell.run('ls', { cwd: '/' } as never)).rejects.toThrow('no option "cwd"');
    await expect(shell.run('ls', { env: { 'A;x': '1' } })).rejects.toThrow('cannot be set');
  });
});

describe('commands that hang', () => {
  const hanging = [
    'sleep 61',
    'sleep 61; echo next',
    'sleep 61\necho next',
    'while :; do :; done; echo next',
    'for i in 1 2 3 4 5; do sleep 61; done; echo next',
    'f() { while :; do sleep 0.01; done; }; f; echo next',
    'sleep 61 | cat; echo next',
    '(while :; do :; done); echo next',
    'x=$(sleep 61); echo next',
    'sleep 61 & wait; echo next',
    'mkfifo pipe; read x <pipe; echo next',
    'trap "" INT; sleep 61; trap - INT; echo next',
    'bash -c \'trap "" INT TERM; sleep 61; sleep 61\'; echo next',
    'python3 -c "import time,signal; signal.signal(2, lambda *a: None); time.sleep(30); time.sleep(31)"; echo next',
    'python3 -c "import time\ntry: time.sleep(61)\nexcept KeyboardInterrupt: pass"; echo next',
    'kill -STOP $$; echo next',
    "bash -c 'kill -STOP $$'; echo next",
    'set -m; sleep 61; echo next',
    'setsid -w sleep 61; echo next',
  ];
  it.each(hanging)('%s', async (command) => {
    await using shell = await sandbox.session();
    await shell.run('rm -f pipe; kept=1');
    // On a loaded machine programs take a while until they hang.
    const result = await shell.run(command, { timeout: 1_000 });
    expect(result).toMatchObject({ status: 'timed-out', stdout: '' });
    expect(result.durationMs).toBeLessThan(5_000);
    expect(await shell.run('echo alive $kept')).toMatchObject({
      stdout: command.startsWith('trap') ? expect.stringContaining('alive') : 'alive 1\n',
    });
  });

  it('one that stopped itself never goes on with its list before it is told to end it', {
    timeout: 20_000,
  }, async () => {
    await using shell = await sandbox.session();
    for (let round = 0; round < 20; round++)
      expect(await shell.run('kill -STOP $$; echo next', { timeout: 100 })).toMatchObject({
        ...{ status: 'timed-out', stdout: '' },
      });
  });

  // On a loaded machine a shell may take long until it reads what it is to run.
  const early = [
    'sleep 61; echo next',
    'while :; do :; done; echo next',
    'sleep 61\ntouch late',
    `: ${'x'.repeat(4_000)}; sleep 61; touch late`,
  ];
  it.each([
    ...early.map((command) => ['a time-out', command.replace(/x{9,}/, 'xx'), command] as const),
    ...early.map((command) => ['interrupt()', command.replace(/x{9,}/, 'xx'), command] as const),
  ])('%s ends what the shell has not read yet: %s', async (by, _, command) => {
    await using shell = await sandbox.session();
    rmSync(join(arena.workspace, 'late'), { force: true });
    const { words, letGo } = makeHold(arena.workspace);
    await shell.run(`kept=1; (${words}; kill -STOP $$; touch stopped) & :`);
    letGo();
    await eventually(() => expect(existsSync(join(arena.workspace, 'stopped'))).toBe(true));
    rmSync(join(arena.workspace, 'stopped'));
    const running = shell.run(command, { timeout: by === 'a time-out' ? 100 : 0 });
    if (by !== 'a time-out') await eventually(() => expect(shell.interrupt()).toBe(true));
    expect(await running).toMatchObject({
      status: by === 'a time-out' ? 'timed-out' : 'canceled',
      stdout: '',
      restarted: false,
    });
    expect(said(await shell.run('echo alive $kept'))).toEqual(exited('alive 1\n'));
    expect(existsSync(join(arena.workspace, 'late'))).toBe(false);
  });

  it('whatever cannot be interrupted costs the shell, not the session', async () => {
    await using shell = await sandbox.session();
    await shell.run('export KEPT=1; trap "" INT URG');
    const result = await shell.run('while :; do :; done', { timeout: 200 });
    expect(result).toMatchObject({ status: 'timed-out', restarted: true });
    expect(said(await shell.run('echo alive $KEPT'))).toEqual(exited('alive 1\n'));
  });

  it('names that are taken, and a shell that cannot report', async () => {
    await using shell = await sandbox.session();
    const taken = 'readonly __turn=1; echo fine';
    expect(await shell.run(taken, { timeout: 5_000 })).toMatchObject({
      ...exited('fine\n'),
      restarted: false,
    });
    // Nothing can be opened any more.
    const blind = await shell.run('ulimit -n 3; echo fine', { timeout: 0 });
    expect(blind).toMatchObject({ ...exited('fine\n'), restarted: true });
  });

  it('a shell that ends while it is interrupted was canceled, or timed out', {
    timeout: 20_000,
  }, async () => {
    await using shell = await sandbox.session();
    const [ends, hangs] = ["trap 'exit 5' INT", 'while :; do :; done'];
    await shell.run(ends);
    expect(await shell.run(hangs, { timeout: 200 })).toMatchObject({ status: 'timed-out', restarted: true });
    await shell.run(ends);
    const aborted = new AbortController();
    const options = { timeout: 0, signal: aborted.signal, onOutput: () => aborted.abort() };
    expect(await shell.run(`echo on; ${hangs}`, options)).toMatchObject({
      status: 'canceled',
      restarted: true,
    });
  });

  it('close() does not wait for a consumer that never settles', async () => {
    const shell = await sandbox.session();
    let seen = () => {};
    const shown = new Promise<void>((done) => {
      seen = done;
    });
    const onOutput = () => {
      seen();
      return new Promise<void>(() => {});
    };
    const turn = shell.run('echo x; sleep 60', { onOutput });
    await shown;
    await shell.close();
    expect(await turn).toMatchObject({ status: 'canceled' });
  });

  it('a background job of an earlier command is spared', async () => {
    await using shell = await sandbox.session();
    await shell.run('sleep 62 & job=$!; until grep -qx sleep /proc/$job/comm; do :; done');
    // The kernel says in ticks of 10 ms when a process began: one of the same tick is not told from the next command's.
    const begun = Date.now();
    await eventually(() => expect(Date.now()).toBeGreaterThan(begun + 30));
    await shell.run('bash -c \'trap "" INT; sleep 61\'', { timeout: 200 });
    expect(said(await shell.run('kill -0 $job && echo there'))).toEqual(exited('there\n'));
  });

  it('interrupt() and an aborted signal', async () => {
    await using shell = await sandbox.session();
    expect(shell.interrupt()).toBe(false);
    const running = shell.run('sleep 61; echo next');
    await eventually(() => expect(shell.interrupt()).toBe(true));
    expect(await running).toMatchObject({ status: 'canceled', stdout: '', restarted: false });
    const aborted = await shell.run('sleep 61; echo next', { signal: AbortSignal.timeout(200) });
    expect(aborted).toMatchObject({ status: 'canceled', stdout: '' });
    expect(await shell.run('echo no', { signal: AbortSignal.abort() })).toMatchObject({
      status: 'canceled',
      stdout: '',
    });
    expect(said(await shell.run('echo alive'))).toEqual(exited('alive\n'));
  });

  it('a time-out comes although JavaScript is busy', async () => {
    await using shell = await sandbox.session();
    const running = shell.run('sleep 1.5; date +%s%N > after', { timeout: 200 });
    await new Promise(setImmediate);
    const until = performance.now() + 2_500;
    while (performance.now() < until);
    expect(await running).toMatchObject({ status: 'timed-out' });
    expect(existsSync(join(arena.workspace, 'after'))).toBe(false);
  });
});

describe('output', () => {
  it('is that of the command alone, whole, and streamed on request', async () => {
    await using shell = await sandbox.session();
    expect((await shell.run('head -c 300000 /dev/zero | tr "\\0" x; echo e >&2')).stdout).toHaveLength(
      300_000,
    );
    let seen = 0;
    const result = await shell.run('head -c 3000000 /dev/zero', {
      onOutput: ({ bytes }) => {
        seen += bytes.length;
      },
    });
    expect(seen).toBe(3_000_000);
    expect(result.outputBytes.stdout).toBe(3_000_000);
    expect(result.truncated.stdout).toBe(3_000_000 - 1024 * 1024);
    expect(said(await shell.run('echo next'))).toEqual(exited('next\n'));
  });

  it('of jobs between two commands is kept for the next one, also after a streamed one', {
    timeout: 20_000,
  }, async () => {
    await using shell = await sandbox.session();
    const seen: string[] = [];
    const onOutput = ({ bytes }: { readonly bytes: Uint8Array }) =>
      void seen.push(Buffer.from(bytes).toString());
    const [late, again] = [makeHold(arena.workspace), makeHold(arena.workspace)];
    const later = `(${late.words}; echo late; touch was-late; head -c 3000000 /dev/zero) & echo early`;
    await shell.run(later, { onOutput });
    expect(seen.join('')).toBe('early\n');
    late.letGo();
    await eventually(() => expect(existsSync(join(arena.workspace, 'was-late'))).toBe(true));
    const { stdout, outputBytes } = await shell.run('wait; echo end');
    expect(stdout.slice(0, 5)).toBe('late\n');
    expect(outputBytes.stdout).toBe(3_000_009);
    await shell.run(`(${again.words}; echo again; touch was-again) & :`, { onOutput });
    again.letGo();
    await eventually(() => expect(existsSync(join(arena.workspace, 'was-again'))).toBe(true));
    await shell.run(':', { onOutput });
    expect(await shell.run('wait; echo end')).toMatchObject({
      stdout: expect.stringMatching(/^(?:again\n)?end\n$/),
    });
  });

  it('a consumer that fails interrupts the command', async () => {
    await using shell = await sandbox.session();
    const failing = shell.run('echo x; sleep 61', {
      onOutput: () => {
        throw new Error('no room');
      },
    });
    await expect(failing).rejects.toThrow('no room');
    expect(said(await shell.run('echo alive'))).toEqual(exited('alive\n'));
  });

  it('variables for one command alone', async () => {
    await using shell = await sandbox.session();
    expect(said(await shell.run('sh -c \'echo "$A"\'', { env: { A: "it's\nhere $x" } }))).toEqual(
      exited("it's\nhere $x\n"),
    );
    expect(said(await shell.run('echo "[$A]"'))).toEqual(exited('[]\n'));
  });
});

describe('snapshots', () => {
  it('directory and environment; what would change programs is left out', async () => {
    await using shell = await sandbox.session({ env: { START: 'here' } });
    mkdirSync(join(arena.workspace, 'deep'), { recursive: true });
    await shell.run(
      'cd deep; export A=$\'tab\\tnew\\nline "quoted" \\\\ $x ü\' LD_PRELOAD=x.so BASH_ENV=y GIT_DIR=z; B=1',
    );
    const kept = shell.snapshot();
    expect(kept).toMatchObject({
      cwd: join(arena.workspace, 'deep'),
      env: { START: 'here', A: 'tab\tnew\nline "quoted" \\ $x ü' },
    });
    expect(kept.env).not.toHaveProperty('B');
    await using other = await sandbox.session({ restore: JSON.parse(JSON.stringify(kept)) });
    expect(other.warnings.map((warning) => warning.split(' ')[0]).sort()).toEqual([
      'BASH_ENV',
      'GIT_DIR',
      'LD_PRELOAD',
    ]);
    expect(
      said(await other.run('pwd; echo "$A"; env | grep -c -e LD_PRELOAD -e BASH_ENV -e GIT_DIR')),
    ).toEqual(exited(`${arena.workspace}/deep\n${kept.env.A}\n0\n`, 1));
  });

  it.each([
    [{ cwd: '/etc/../root', env: {} }, 'no directory that the policy lets'],
    [{ cwd: 'relative', env: {} }, 'no directory'],
    [{ cwd: '/usr/none', env: {} }, 'no directory'],
    [{ cwd: '/usr', env: { A: 1 } }, 'must be a snapshot'],
    [{ env: {} }, 'must be a snapshot'],
  ])('%j is refused', async (restore, message) => {
    await expect(sandbox.session({ restore: restore as never })).rejects.toThrow(message);
  });
});

describe('the life of a session', () => {
  it('1,000 commands leak nothing', { timeout: 120_000 }, async () => {
    await using shell = await sandbox.session();
    const descriptors = () => readdirSync('/proc/self/fd').length;
    const threads = () => readdirSync('/proc/self/task').length;
    for (let i = 0; i < 50; i += 1) await shell.run('true');
    const [before, tasks] = [descriptors(), threads()];
    const memory = async () =>
      Number((await shell.run("sed -n 's/^VmRSS:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/$$/status")).stdout);
    // Not `ls | wc`: whether the shell has closed its end of the pipe by then is chance.
    const own = async () => (await shell.run('fds=(/proc/$$/fd/*); echo ${#fds[@]}')).stdout;
    const [resident, open] = [await memory(), await own()];
    for (let i = 0; i < 1000; i += 1) expect((await shell.run(`echo ${i}`)).stdout).toBe(`${i}\n`);
    // A leak stays. What the test runner has open at a moment does not.
    await eventually(() => {
      expect(descriptors()).toBeLessThanOrEqual(before);
      expect(threads()).toBeLessThanOrEqual(tasks);
    });
    expect(await memory()).toBeLessThan(resident + 1024);
    expect(await own()).toBe(open);
  });

  it('8 at a time, each on its own', async () => {
    const shells = await Promise.all(Array.from({ length: 8 }, () => sandbox.session()));
    const results = await Promise.all(
      shells.flatMap((shell: ShellSession, at) => [
        shell.run(`mine=${at}; sleep 0.2`),
        shell.run('echo $mine'),
        shell.run('echo $((mine * 2))'),
      ]),
    );
    expect(results.filter((_, at) => at % 3 > 0).map(({ stdout }) => stdout.trim())).toEqual(
      shells.flatMap((_, at) => [`${at}`, `${at * 2}`]),
    );
    await Promise.all(shells.map((shell) => shell.close()));
  });

  it('ends with everything in it, also with the sandbox while a command hangs', {
    timeout: 30_000,
  }, async () => {
    const own = await createSandbox({
      workspace: arena.workspace,
      policyFiles: false,
      policy: { unsafe: { unjudged_commands: true } },
    });
    const shell = await own.session();
    const marks = [1, 2, 3].map((which) => `64${process.pid}${which}`);
    await shell.run(`setsid sleep ${marks[0]} & sleep ${marks[1]} &`);
    const hanging = shell.run(`trap "" INT; sleep ${marks[2]}`);
    await eventually(() => expect(processesWith(`${marks[2]}`).length).toBeGreaterThan(0));
    await own.close();
    expect(await hanging).toMatchObject({ status: 'canceled' });
    await eventually(() => expect(marks.flatMap(processesWith)).toEqual([]));
    await expect(shell.run('echo')).rejects.toMatchObject({ code: 'session.closed' });
    await expect(own.session()).rejects.toMatchObject({ code: 'sandbox.closed' });
  });

  it('says why a shell cannot be started', async () => {
    await expect(sandbox.session({ cwd: 'not-there' })).rejects.toMatchObject({ code: 'cwd.unusable' });
    await expect(sandbox.session({ env: { A: 'x'.repeat(4_000_000) } })).rejects.toThrow();
  });

  it('tells what protected paths a command made, once, and takes them out of git’s way each time', async () => {
    const repository = join(arena.root, 'repository');
    execFileSync('git', ['init', '-q', repository]);
    await using own = await createSandbox({
      workspace: repository,
      policyFiles: false,
      policy: { unsafe: { unjudged_commands: true } },
    });
    await using shell = await own.session();
    const husky = join(repository, '.husky');
    expect((await shell.run('mkdir .husky')).leftBehind).toMatchObject([{ path: husky, done: 'shut' }]);
    expect((await shell.run('echo more')).leftBehind).toEqual([]);
    for (let turn = 0; turn < 2; turn += 1) {
      const planted = await shell.run('echo evil > .git/commondir');
      expect(planted.leftBehind).toMatchObject([{ path: join(repository, '.git/commondir'), done: 'shut' }]);
      expect(existsSync(join(repository, '.git/commondir'))).toBe(false);
    }
  });
});
