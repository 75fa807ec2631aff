import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { shellWord } from '../../src/base/shell-quote.ts';
import { CLI, cli, makePlace, startCli } from '../cli/support.ts';
import { ASKS_ABOUT_LOSSES } from '../support/unjudged-policy.ts';

// Plug-ins of a policy: modules and programs. What they are asked, how often, and what their answers do.

const place = makePlace();
afterAll(() => place.dispose());
const seen = join(place.root, 'seen');
const env = {
  XDG_CONFIG_HOME: join(place.root, 'configuration'),
  XDG_STATE_HOME: join(place.root, 'state'),
  CLAUDE_PROJECT_DIR: place.workspace,
};
/** In a line that a hook wrote. */
const ASKED = /'--asked' '([0-9a-f]+)'/;
const calls = () => (existsSync(seen) ? readFileSync(seen, 'utf8').trimEnd().split('\n') : []);

function setPolicy(hooks: string, more = ''): void {
  mkdirSync(join(env.XDG_CONFIG_HOME, 'sandbox-run'), { recursive: true });
  const path = join(env.XDG_CONFIG_HOME, 'sandbox-run/policy.toml');
  writeFileSync(path, `${more}\n${hooks}\n`, { mode: 0o600 });
}

/** A module that notes what it is asked, and gives an answer. */
function setModule(answer: string, more = ''): void {
  const path = join(place.root, 'plugin.mjs');
  const text = `import { appendFileSync } from 'node:fs';
    export const before_tool_use = (name, { command, cwd }) => (
      appendFileSync(${JSON.stringify(seen)}, [name, command, cwd].join(' ') + '\\n'), ${answer});`;
  writeFileSync(path, text, { mode: 0o600 });
  setPolicy(`[[hooks.plugins]]\npath = ${JSON.stringify(path)}`, more);
}

/** What the hook of an agent says in mode "rewrite": the line that runs instead is its `command`. */
async function hook(command: string, { session = 's', cwd = place.workspace } = {}) {
  const event = {
    ...{ session_id: session, transcript_path: '/nowhere', cwd, permission_mode: 'default' },
    ...{ hook_event_name: 'PreToolUse', tool_name: 'Bash', tool_input: { command } },
    tool_use_id: 't',
  };
  const ended = await startCli(place, ['hook', 'claude-code', '--mode', 'rewrite'], {
    env,
    input: JSON.stringify(event),
  });
  expect(ended).toMatchObject({ exitCode: 0, stderr: '' });
  const { permissionDecision, updatedInput } = JSON.parse(ended.stdout).hookSpecificOutput;
  return { decision: permissionDecision as string, line: String(updatedInput?.command) };
}

/** As the agent's shell runs a line. */
async function run(line: string, cwd = place.workspace) {
  const { exitCode, stdout, stderr } = await execa('bash', ['-c', line], {
    ...{ cwd, env: { ...place.env, ...env }, extendEnv: false, reject: false, stripFinalNewline: false },
    stdin: 'ignore',
  });
  return { status: exitCode, stdout, stderr };
}

beforeEach(() => {
  rmSync(seen, { force: true });
  rmSync(env.XDG_STATE_HOME, { recursive: true, force: true });
});

describe('a command of an agent, in mode "rewrite"', () => {
  it('is asked about once: by the hook', async () => {
    setModule('({})');
    const { decision, line } = await hook('echo out');
    expect(decision).toBe('allow');
    expect(calls()).toEqual([`Bash echo out ${place.workspace}`]);
    expect(await run(line)).toMatchObject({ status: 0, stdout: 'out\n' });
    expect(calls()).toHaveLength(1);
  });

  it('is asked about once where the agent asks its user, too', async () => {
    setModule('({})', ASKS_ABOUT_LOSSES);
    writeFileSync(join(place.workspace, 'kept'), 'by nobody else\n');
    const { decision, line } = await hook('rm kept');
    expect(decision).toBe('ask');
    expect(line).toContain('--approval');
    expect(await run(line)).toMatchObject({ status: 0 });
    expect(calls()).toHaveLength(1);
  });

  it('that a plug-in refuses is stopped by the hook', async () => {
    setModule('({ decision: "deny", reason: "not today" })');
    expect((await hook('echo out')).decision).toBe('deny');
    expect(calls()).toHaveLength(1);
  });

  it.each([
    ['another command', (line: string) => line.replace('echo out', 'echo two'), undefined],
    ['another session', (line: string) => line.replace('claude-code.s', 'claude-code.t'), undefined],
    ['another tool', (line: string) => line.replace("'--tool' 'Bash'", "'--tool' 'Other'"), undefined],
    ['another directory', (line: string) => line, 'sub'],
    [
      'a proof that nobody made',
      (line: string) => line.replace(ASKED, `'--asked' '${'0'.repeat(24)}'`),
      undefined,
    ],
    ['no proof', (line: string) => line.replace(ASKED, ''), undefined],
  ])('with %s, or a second time, it is asked about again', async (_, change, directory) => {
    setModule('({})');
    mkdirSync(join(place.workspace, 'sub'), { recursive: true });
    const { line } = await hook('echo out');
    const cwd = directory === undefined ? place.workspace : join(place.workspace, directory);
    expect(await run(change(line), cwd)).toMatchObject({ status: 0 });
    expect(calls()).toHaveLength(2);
    // What belongs to another command has not used it up.
    expect(await run(line)).toMatchObject({ status: 0 });
    expect(calls()).toHaveLength(2);
    expect(await run(line)).toMatchObject({ status: 0 });
    expect(calls()).toHaveLength(3);
  });

  it('is asked about by a plug-in that came since, and refused by one that cannot be used any more', async () => {
    setModule('({})');
    const first = await hook('echo out');
    const other = join(place.root, 'other.mjs');
    writeFileSync(other, 'export const before_tool_use = () => ({ decision: "deny", reason: "new" });');
    const policy = join(env.XDG_CONFIG_HOME, 'sandbox-run/policy.toml');
    const before = readFileSync(policy, 'utf8');
    writeFileSync(policy, `${before}\n[[hooks.plugins]]\npath = ${JSON.stringify(other)}\n`);
    expect(await run(first.line)).toMatchObject({ status: 126, stdout: '' });
    writeFileSync(policy, before);
    const second = await hook('echo out');
    const loose = join(place.root, 'plugin.mjs');
    chmodSync(loose, 0o666);
    const refused = await run(second.line);
    rmSync(loose);
    // It refuses the session as well, which begins with the run.
    expect(refused).toMatchObject({
      status: 125,
      stdout: '',
      stderr: expect.stringContaining('cannot be used'),
    });
  });

  it('cannot make itself a proof: it sees no state, and its own line is a command like any other', async () => {
    setModule('({})');
    // Looking is free, and shows nothing.
    const looking = await hook(`ls ${shellWord(env.XDG_STATE_HOME)}`);
    expect(await run(looking.line)).toMatchObject({ status: 2, stdout: '' });
    const { line } = await hook(`python3 -c "open('../st' + 'ate/sandbox-run/gate.db')" || exit 3`);
    expect(await run(line)).toMatchObject({ status: 3, stdout: '' });
    const ticket = ASKED.exec((await hook('echo out')).line)?.[1] ?? expect.fail();
    const forged = await hook(`${process.execPath} ${CLI} --asked ${ticket} -c 'echo forged'`);
    const before = calls().length;
    await run(forged.line);
    // Inside, this program reaches no proof: nothing was taken for it.
    expect(calls()).toHaveLength(before);
    expect(readdirSync(env.XDG_STATE_HOME).length).toBeGreaterThan(0);
  });

  it('grants nothing by its proof: what is asked about is asked about', async () => {
    setModule('({})', ASKS_ABOUT_LOSSES);
    const ticket = ASKED.exec((await hook('echo out')).line)?.[1] ?? expect.fail();
    writeFileSync(join(place.workspace, 'kept'), 'by nobody else\n');
    const args = ['--workspace', place.workspace, '--session', 'claude-code.s', '--tool', 'Bash'];
    const asked = await startCli(place, [...args, '--asked', ticket, '-c', 'rm kept'], { env });
    expect(asked.exitCode).toBe(126);
    const approval = `${ticket}.${'0'.repeat(32)}`;
    const approved = await startCli(place, [...args, '--approval', approval, '-c', 'rm kept'], { env });
    expect(approved.exitCode).toBe(126);
    expect(existsSync(join(place.workspace, 'kept'))).toBe(true);
  });

  it('with a proof of no form at all is an error in one line', async () => {
    setModule('({})');
    for (const ticket of ['x', '../gate.db', `${'0'.repeat(24)}.${'0'.repeat(24)}`])
      expect(await cli(place, ['--asked', ticket, '--', 'ls'], { env })).toMatchObject({
        exitCode: 125,
        stderr: expect.stringMatching(/^sandbox-run: --asked takes [^\n]+\n$/),
      });
  });
});

describe('a plug-in by command', () => {
  const program = join(place.root, 'plugin');

  /** What becomes of a run, and what `check` says. */
  async function outcome(text: string, { seconds = 60, command = [program] } = {}) {
    writeFileSync(program, `#!/bin/bash\n${text}\n`);
    chmodSync(program, 0o755);
    setPolicy(
      `[[hooks.plugins]]\ncommand = ${JSON.stringify(command)}`,
      `[approval]\nreviewer_timeout_seconds = ${seconds}`,
    );
    rmSync(join(place.workspace, 'trace'), { force: true });
    const ran = await cli(place, ['--tool', 'Bash', '-c', ': > trace'], { env });
    const checked = await cli(place, ['check', '-c', ': > trace'], { env });
    return {
      run: ran.exitCode,
      check: checked.exitCode,
      ran: existsSync(join(place.workspace, 'trace')),
      said: ran.stderr,
    };
  }
  const RUNS = { run: 0, check: 0, ran: true };
  const REFUSED = { run: 126, check: 126, ran: false };

  it('reads one question and is heard, in each form of an answer', async () => {
    expect(await outcome(`cat > ${seen}; echo '{}'`)).toMatchObject(RUNS);
    expect(JSON.parse(readFileSync(seen, 'utf8'))).toEqual({
      tool_name: 'run_command',
      tool_input: { command: ': > trace', cwd: place.workspace, tool: 'run_command' },
    });
    for (const answer of ['{"allowed": true}', '{"decision": "allow", "reason": "fine"}'])
      expect(await outcome(`echo '${answer}'`)).toMatchObject(RUNS);
    for (const answer of [
      '{"allowed": false, "reason": "not today"}',
      '{"decision": "deny", "reason": "not today"}',
    ])
      expect(await outcome(`echo '${answer}'`)).toMatchObject({
        ...REFUSED,
        said: expect.stringContaining('not today'),
      });
  });

  it("is told the agent's own name of its tool", async () => {
    await outcome(`[ -e ${seen} ] || cat > ${seen}; echo '{}'`);
    expect(JSON.parse(readFileSync(seen, 'utf8')).tool_name).toBe('Bash');
  });

  it.each([
    ['ends at once', 'exit 0'],
    ['fails behind its answer', "echo '{}'; exit 3"],
    ['is killed behind its answer', "echo '{}'; kill -KILL $$"],
    ['answers in part', 'printf \'{"allowed": tr\''],
    ['answers twice', "echo '{}'; echo '{}'"],
    ['answers and says something', "echo '{}'; echo done"],
    ['repeats the question', 'cat'],
    ['says it twice, and not the same', `echo '{"decision": "deny", "decision": "allow"}'`],
    ['says it twice behind an escape', `echo '{"decision": "deny", "decis\\u0069on": "allow"}'`],
    ['gives a reason alone', `echo '{"reason": "fine"}'`],
    ['says it as text', `echo '{"allowed": "true"}'`],
    ['gives a list', `echo '[{"allowed": true}]'`],
    ['says true', 'echo true'],
    ['answers in another language', "printf '\\x00\\x01\\xff'"],
    ['writes without an end', 'exec cat /dev/zero'],
  ])('that %s: nothing runs', async (_, text) => {
    expect(await outcome(text)).toMatchObject(REFUSED);
  });

  it.each([
    ['never answers, and heeds no signal', "trap '' TERM INT HUP; while :; do sleep 1; done"],
    ['answers and stays', "echo '{}'; sleep 600"],
  ])('that %s: nothing runs, in time', async (_, text) => {
    expect(await outcome(text, { seconds: 0.5 })).toMatchObject({
      ...REFUSED,
      said: expect.stringContaining('plugin'),
    });
  });

  it('is not used where commands could write it, its script, or what leads there', async () => {
    const inside = join(place.workspace, 'inside');
    writeFileSync(inside, "#!/bin/bash\necho '{}'\n", { mode: 0o755 });
    const link = join(place.root, 'link');
    symlinkSync(inside, link);
    const loose = join(place.root, 'loose');
    writeFileSync(loose, "echo '{}'\n");
    chmodSync(loose, 0o666);
    const good = join(place.root, 'good');
    writeFileSync(good, "echo '{}'\n", { mode: 0o644 });
    expect(await outcome('', { command: ['/usr/bin/bash', good] })).toMatchObject(RUNS);
    for (const command of [
      [inside],
      [link],
      ['/usr/bin/bash', inside],
      ['/usr/bin/bash', link],
      ['/usr/bin/bash', loose],
      ['bash', good],
      [join(place.root, 'missing')],
    ])
      expect(await outcome('', { command }), command.join(' ')).toMatchObject({
        ...REFUSED,
        said: expect.stringMatching(/^sandbox-run: [^\n]*cannot be used: [^\n]+\n$/),
      });
  });

  it.each([
    ['neither', '[[hooks.plugins]]\n'],
    ['both', '[[hooks.plugins]]\npath = "/a.mjs"\ncommand = ["/a"]\n'],
    ['a hash of a program', `[[hooks.plugins]]\ncommand = ["/a"]\nsha256 = "${'0'.repeat(64)}"\n`],
    ['an empty command', '[[hooks.plugins]]\ncommand = []\n'],
    ['a program as text', '[[hooks.plugins]]\ncommand = "/a"\n'],
  ])('of which the policy says %s is an error in one line', async (_, text) => {
    setPolicy(text);
    expect(await cli(place, ['--', 'ls'], { env })).toMatchObject({
      exitCode: 125,
      stderr: expect.stringMatching(/^sandbox-run: [^\n]*hooks\.plugins[^\n]+\n$/),
    });
  });

  it('ends the questions by its refusal, and is not asked behind one', async () => {
    setModule('({})');
    const before = readFileSync(join(env.XDG_CONFIG_HOME, 'sandbox-run/policy.toml'), 'utf8');
    writeFileSync(program, `#!/bin/bash\necho '{"decision": "deny"}'\n`, { mode: 0o755 });
    const own = `[[hooks.plugins]]\ncommand = [${JSON.stringify(program)}]\n`;
    setPolicy(`${own}${before}`);
    expect((await cli(place, ['--', 'ls'], { env })).exitCode).toBe(126);
    expect(calls()).toEqual([]);
    setPolicy(`${before}${own}`);
    expect((await cli(place, ['--', 'ls'], { env })).exitCode).toBe(126);
    expect(calls()).toHaveLength(1);
  });
});
