import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { cli, makePlace, startCli } from './support.ts';

// Whoever answers between a decision and a launch may end, be late, say nothing or too much: then nothing runs.

const place = makePlace();
const configuration = join(place.root, 'answers');
const env = { XDG_CONFIG_HOME: configuration, XDG_STATE_HOME: join(place.root, 'state') };
const trace = join(place.workspace, 'trace');
const GOOD = '{"flagged": false, "reason": "ordinary"}';
afterAll(() => place.dispose());

/** More than anything takes that answers or ends by itself, so that no row passes because it was late. */
const LONG = 60;
/** For what says nothing, ever. */
const SHORT = 0.5;

function set(policy: string, seconds: number): void {
  mkdirSync(join(configuration, 'sandbox-run'), { recursive: true });
  const common = `[security]\nautonomy = "autonomous"\n[approval]\nreviewer_timeout_seconds = ${seconds}\n`;
  writeFileSync(join(configuration, 'sandbox-run/policy.toml'), `${common}${policy}`, { mode: 0o600 });
}

describe('a plug-in', () => {
  function plugin(text: string, seconds = LONG): void {
    const path = join(place.root, 'plugin.mjs');
    writeFileSync(path, `${text}\n`);
    set(`[[hooks.plugins]]\npath = ${JSON.stringify(path)}\n`, seconds);
  }

  /** What becomes of a command: of `check` and of a run. */
  async function outcomes(call: typeof cli | typeof startCli) {
    rmSync(trace, { force: true });
    const [check, run] = await Promise.all([
      call(place, ['check', '--', 'ls'], { env }),
      call(place, ['-c', ': > trace'], { env }),
    ]);
    return {
      check: check.exitCode === 0 ? 'allowed' : 'refused',
      run: run.exitCode === 0 ? 'succeeded' : 'failed',
      ran: existsSync(trace),
    };
  }

  /** What becomes of the tool call of an agent, whose hook is always a process. */
  async function outcomeOfHook() {
    const event = {
      ...{ session_id: 's', transcript_path: '/nowhere', cwd: place.workspace, permission_mode: 'default' },
      ...{ hook_event_name: 'PreToolUse', tool_name: 'Bash', tool_input: { command: 'ls' } },
      tool_use_id: 't',
    };
    const { exitCode, stdout } = await startCli(place, ['hook', 'claude-code'], {
      env: { ...env, CLAUDE_PROJECT_DIR: place.workspace },
      input: JSON.stringify(event),
    });
    const isDenied = () => JSON.parse(stdout).hookSpecificOutput.permissionDecision === 'deny';
    // Nothing but status 2, or a clear answer, stops the call.
    return exitCode === 2 || (exitCode === 0 && isDenied()) ? 'stopped' : `let through (${exitCode})`;
  }

  const inProcesses = async () => {
    const [rest, hook] = await Promise.all([outcomes(startCli), outcomeOfHook()]);
    return { ...rest, hook };
  };
  const REFUSED = { check: 'refused', run: 'failed', ran: false };
  const answering = (answer: string) => `export const before_tool_use = () => ${answer};`;

  it('that allows is heard', async () => {
    plugin(answering('({ allowed: true })'));
    const heard = { check: 'allowed', run: 'succeeded', ran: true };
    expect(await inProcesses()).toEqual({ ...heard, hook: 'let through (0)' });
    plugin(answering('Promise.resolve({ allowed: true })'));
    expect(await outcomes(cli)).toEqual(heard);
  });

  it.each([
    ['refuses', answering('({ allowed: false })')],
    ['says nothing', answering('undefined')],
    ['says null', answering('null')],
    ['gives a reason alone', answering('({ reason: "fine" })')],
    ['gives two answers', answering('({ allowed: true, decision: "deny" })')],
    ['says true', answering('true')],
    ['says it as text', answering('({ allowed: "true" })')],
    ['says it as a number', answering('({ allowed: 1 })')],
    ['gives a list of answers', answering('[{ allowed: true }, { allowed: true }]')],
    ['gives an answer that throws when it is read', answering('({ get allowed() { throw null; } })')],
    ['says nothing later', answering('Promise.resolve()')],
    ['throws', answering('{ throw new Error("x"); }')],
    ['throws nothing', 'export const before_tool_use = () => { throw undefined; };'],
    ['rejects', answering('Promise.reject(new Error("x"))')],
    ['rejects with nothing', answering('Promise.reject()')],
    ['gives a promise that throws', answering('({ then() { throw new Error("x"); } })')],
    ['is no program', 'export const before_tool_use = ('],
  ])('that %s: nothing runs', async (_, text) => {
    plugin(text);
    expect(await outcomes(cli)).toEqual(REFUSED);
  });

  // Where the end of the process decides, each of them is one.
  it.each([
    ['refuses', LONG, answering('({ allowed: false })')],
    ['never answers', SHORT, answering('new Promise(() => {})')],
    [
      'answers when it is too late',
      SHORT,
      answering('new Promise((done) => setTimeout(() => done({ allowed: true }), 20_000).unref())'),
    ],
    ['ends the process as if all were well', LONG, answering('process.exit(0)')],
    ['does so in its own time', LONG, answering('new Promise(() => setTimeout(() => process.exit(0), 50))')],
    ['does so while it is loaded', LONG, `process.exit(0); ${answering('({ allowed: true })')}`],
    ['kills the process', LONG, answering('process.kill(process.pid, "SIGKILL") && new Promise(() => {})')],
    [
      'fails where nobody waits',
      LONG,
      answering('new Promise(() => setTimeout(() => { throw new Error("x"); }, 50))'),
    ],
    ['fails in a promise that nobody has', LONG, answering('{ Promise.reject(new Error("x")); }')],
    [
      'says that all is well before it refuses',
      LONG,
      answering('{ process.exitCode = 0; return { allowed: false }; }'),
    ],
    [
      'never loads and holds nothing',
      SHORT,
      `await new Promise(() => {}); ${answering('({ allowed: true })')}`,
    ],
  ])('that %s: nothing runs, in any process', async (what, seconds, text) => {
    plugin(text, seconds);
    const stopped = what === 'kills the process' ? expect.anything() : 'stopped';
    expect(await inProcesses()).toEqual({ ...REFUSED, hook: stopped });
  });

  it.each([
    ['prints', 'console.log(JSON.stringify({ hookSpecificOutput: { permissionDecision: "allow" } }));'],
    ['prints megabytes', 'for (let i = 0; i < 40; i += 1) console.log("x".repeat(100_000));'],
    ['closes standard output', 'import("node:fs").then(({ closeSync }) => closeSync(1)); await 0;'],
  ])('that %s and refuses: nothing runs', async (_, text) => {
    plugin(`export const before_tool_use = async () => { ${text} return { allowed: false }; };`);
    expect(await inProcesses()).toEqual({ ...REFUSED, hook: 'stopped' });
  });
});

describe('a reviewer', () => {
  const pids = join(place.root, 'pids');

  /** What becomes of a command that it is asked about; `allow` only if it said so clearly. */
  async function verdict(text: string, seconds = LONG): Promise<string> {
    const path = join(place.root, 'reviewer');
    writeFileSync(path, `#!/bin/bash\necho $$ >> ${pids}\n${text}\n`);
    chmodSync(path, 0o755);
    rmSync(pids, { force: true });
    set(`[network]\nmode = "open"\n[reviewer]\ncommand = [${JSON.stringify(path)}]\n`, seconds);
    const { exitCode, stderr } = await cli(
      place,
      ['check', '--taint', 'secret', '-c', 'curl -L http://localhost'],
      { env },
    );
    expect(stderr).toBe('');
    return exitCode === 0
      ? 'allow'
      : exitCode === 10
        ? 'ask'
        : exitCode === 126
          ? 'deny'
          : `failed ${exitCode}`;
  }
  const isAlive = (pid: string) =>
    existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));

  it('that has nothing to object to is heard', async () => {
    expect(await verdict(`cat > /dev/null; echo '${GOOD}'`)).toBe('allow');
  });

  it.each([
    ['ends at once', 'exit 0'],
    ['ends with a failure behind its answer', `echo '${GOOD}'; exit 3`],
    ['is killed behind its answer', `echo '${GOOD}'; kill -KILL $$`],
    ['is killed before it', 'kill -SEGV $$'],
    ['closes everything and ends well', 'exec <&- >&- 2>&-; exit 0'],
    ['answers in part', `printf '%s' '${GOOD.slice(0, 17)}'`],
    ['answers twice', `echo '${GOOD}'; echo '${GOOD}'`],
    ['answers and says something', `echo '${GOOD}'; echo done`],
    ['repeats the question', 'cat'],
    ['answers another one', `echo '{"allowed": true}'`],
    ['answers in another language', `printf '\\x00\\x01\\xff'`],
    ['writes megabytes', 'head -c 50000000 /dev/zero'],
    ['writes without an end', 'exec cat /dev/zero'],
    [
      'writes megabytes of nothing before its answer',
      `head -c 5000000 /dev/zero | tr '\\0' ' '; echo '${GOOD}'`,
    ],
    [
      'leaves somebody behind who holds its output',
      `(trap '' TERM; echo $BASHPID >> ${pids}; exec sleep 600) & exit 1`,
    ],
  ])('that %s: a person is asked, and it is gone', { timeout: 90_000 }, async (_, text) => {
    expect(await verdict(text)).toBe('ask');
    await isGone();
  });

  it.each([
    ['closes its output and stays', 'exec >&-; sleep 600'],
    ['answers and stays', `echo '${GOOD}'; sleep 600`],
    ['answers in parts, and stays before the last', `printf '%s' '${GOOD.slice(0, -1)}'; sleep 600`],
    ['never answers, and heeds no signal', `trap '' TERM INT HUP; while :; do sleep 1; done`],
    ['stops itself', 'kill -STOP $$'],
  ])('that %s: a person is asked in time, and it is gone', async (_, text) => {
    expect(await verdict(text, SHORT)).toBe('ask');
    await isGone();
  });

  async function isGone(): Promise<void> {
    // One that was ended before it could say so has written nothing.
    const started = existsSync(pids) ? readFileSync(pids, 'utf8').trim().split('\n') : [];
    for (const pid of started) await eventually(() => expect(isAlive(pid)).toBe(false), 60_000);
  }
});
