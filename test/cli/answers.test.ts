import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { UNCLEAR_REPLIES } from '../support/unclear-replies.ts';
import { cli, makePlace } from './support.ts';

// Whoever answers between a decision and a launch may end, be late, say nothing or too much: then nothing runs.

const place = makePlace();
const configuration = join(place.root, 'answers');
const env = { XDG_CONFIG_HOME: configuration, XDG_STATE_HOME: join(place.root, 'state') };
const trace = join(place.workspace, 'trace');
const GOOD = '{"flagged": false, "reason": "ordinary"}';
afterAll(() => place.dispose());

function set(policy: string): void {
  mkdirSync(join(configuration, 'sandbox-run'), { recursive: true });
  const common = '[security]\nautonomy = "autonomous"\n[approval]\nreviewer_timeout_seconds = 2\n';
  writeFileSync(join(configuration, 'sandbox-run/policy.toml'), `${common}${policy}`, { mode: 0o600 });
}

describe('a plug-in', () => {
  function plugin(text: string): void {
    const path = join(place.root, 'plugin.mjs');
    writeFileSync(path, `${text}\n`);
    set(`[[hooks.plugins]]\npath = ${JSON.stringify(path)}\n`);
  }

  /** What becomes of a command: of `check`, of a run and of an agent's hook. */
  async function outcomes() {
    rmSync(trace, { force: true });
    const event = {
      ...{ session_id: 's', transcript_path: '/nowhere', cwd: place.workspace, permission_mode: 'default' },
      ...{
        hook_event_name: 'PreToolUse',
        tool_name: 'Bash',
        tool_input: { command: 'ls' },
        tool_use_id: 't',
      },
    };
    const [check, run, hook] = await Promise.all([
      cli(place, ['check', '--', 'ls'], { env }),
      cli(place, ['-c', ': > trace'], { env }),
      cli(place, ['hook', 'claude-code'], {
        env: { ...env, CLAUDE_PROJECT_DIR: place.workspace },
        input: JSON.stringify(event),
      }),
    ]);
    const isDenied = () => JSON.parse(hook.stdout).hookSpecificOutput.permissionDecision === 'deny';
    return {
      check: check.exitCode === 0 ? 'allowed' : 'refused',
      run: run.exitCode === 0 ? 'succeeded' : 'failed',
      ran: existsSync(trace),
      // Of an agent's hook nothing but status 2, or a clear answer, stops the call.
      hook:
        hook.exitCode === 2 || (hook.exitCode === 0 && isDenied())
          ? 'stopped'
          : `let through (${hook.exitCode})`,
    };
  }
  const REFUSED = { check: 'refused', run: 'failed', ran: false, hook: 'stopped' };
  const answering = (answer: string) => `export const before_tool_use = () => ${answer};`;

  it('that allows is heard', async () => {
    for (const answer of ['({ allowed: true })', 'Promise.resolve({ allowed: true })']) {
      plugin(answering(answer));
      expect(await outcomes()).toMatchObject({ check: 'allowed', run: 'succeeded', ran: true });
    }
  });

  it.each([
    ['refuses', answering('({ allowed: false })')],
    ['says nothing', answering('undefined')],
    ['says null', answering('null')],
    ['gives an empty answer', answering('({})')],
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
    ['never answers', answering('new Promise(() => {})')],
    [
      'answers when it is too late',
      answering('new Promise((done) => setTimeout(() => done({ allowed: true }), 20_000).unref())'),
    ],
    ['gives a promise that throws', answering('({ then() { throw new Error("x"); } })')],
    ['ends the process as if all were well', answering('process.exit(0)')],
    ['does so in its own time', answering('new Promise(() => setTimeout(() => process.exit(0), 50))')],
    ['does so while it is loaded', `process.exit(0); ${answering('({ allowed: true })')}`],
    ['kills the process', answering('process.kill(process.pid, "SIGKILL") && new Promise(() => {})')],
    [
      'fails where nobody waits',
      answering('new Promise(() => setTimeout(() => { throw new Error("x"); }, 50))'),
    ],
    ['fails in a promise that nobody has', answering('{ Promise.reject(new Error("x")); }')],
    [
      'says that all is well before it refuses',
      answering('{ process.exitCode = 0; return { allowed: false }; }'),
    ],
    [
      'never loads',
      `await new Promise(() => setInterval(() => {}, 1e6)); ${answering('({ allowed: true })')}`,
    ],
    ['never loads and holds nothing', `await new Promise(() => {}); ${answering('({ allowed: true })')}`],
    ['is no program', 'export const before_tool_use = ('],
  ])('that %s: nothing runs', { timeout: 60_000 }, async (what, text) => {
    plugin(text);
    const found = await outcomes();
    if (what === 'kills the process') expect(found).toMatchObject({ ...REFUSED, hook: expect.anything() });
    else expect(found).toEqual(REFUSED);
  });

  it.each([
    ['prints', 'console.log(JSON.stringify({ hookSpecificOutput: { permissionDecision: "allow" } }));'],
    ['prints megabytes', 'for (let i = 0; i < 40; i += 1) console.log("x".repeat(100_000));'],
    ['closes standard output', 'import("node:fs").then(({ closeSync }) => closeSync(1)); await 0;'],
  ])('that %s and refuses: nothing runs', { timeout: 60_000 }, async (_, text) => {
    plugin(`export const before_tool_use = async () => { ${text} return { allowed: false }; };`);
    expect(await outcomes()).toEqual(REFUSED);
  });
});

describe('a reviewer', () => {
  const pids = join(place.root, 'pids');

  /** What becomes of a command that it is asked about; `allow` only if it said so clearly. */
  async function verdict(text: string): Promise<string> {
    const path = join(place.root, 'reviewer');
    writeFileSync(path, `#!/bin/bash\necho $$ >> ${pids}\n${text}\n`);
    chmodSync(path, 0o755);
    rmSync(pids, { force: true });
    set(`[network]\nmode = "open"\n[reviewer]\ncommand = [${JSON.stringify(path)}]\n`);
    const { exitCode, stderr } = await cli(
      place,
      ['check', '--taint', 'secret', '-c', 'curl http://localhost'],
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
    ['closes its output and stays', 'exec >&-; sleep 600'],
    ['closes everything and ends well', 'exec <&- >&- 2>&-; exit 0'],
    ['answers and stays', `echo '${GOOD}'; sleep 600`],
    ['answers in parts, and stays before the last', `printf '%s' '${GOOD.slice(0, -1)}'; sleep 600`],
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
    ['never answers, and heeds no signal', `trap '' TERM INT HUP; while :; do sleep 1; done`],
    [
      'leaves somebody behind who holds its output',
      `(trap '' TERM; echo $BASHPID >> ${pids}; exec sleep 600) & exit 1`,
    ],
    ['stops itself', 'kill -STOP $$'],
    ...UNCLEAR_REPLIES.slice(0, 6).map(
      ([what, reply]) => [`answers with ${what}`, `cat <<'END'\n${reply}\nEND`] as const,
    ),
  ] as const)('that %s: a person is asked, and it is gone', { timeout: 60_000 }, async (_, text) => {
    expect(await verdict(text)).toBe('ask');
    for (const pid of readFileSync(pids, 'utf8').trim().split('\n'))
      await eventually(() => expect(isAlive(pid)).toBe(false));
  });
});
