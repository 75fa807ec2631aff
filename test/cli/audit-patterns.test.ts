import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { PATTERNS } from '../../src/gate/index.ts';
import { cli } from './support.ts';
import { endServersOf, makeWarmPlace } from './warm-support.ts';

// Patterns over several commands, found in a trail that this program wrote while it ran the commands.

const place = makeWarmPlace();
afterAll(() => place.dispose());
const env = {
  XDG_CONFIG_HOME: join(place.root, 'configuration'),
  XDG_STATE_HOME: join(place.root, 'state'),
};
const git = (...args: readonly string[]) =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@localhost', ...args], {
    cwd: place.workspace,
    env: { ...process.env, HOME: place.root },
  });

beforeEach(async () => {
  // One of the test before writes into what is removed here.
  await endServersOf(env.XDG_STATE_HOME);
  rmSync(env.XDG_STATE_HOME, { recursive: true, force: true });
  rmSync(place.workspace, { recursive: true, force: true });
  mkdirSync(place.workspace);
  mkdirSync(join(env.XDG_CONFIG_HOME, 'sandbox-run'), { recursive: true });
  writeFileSync(
    join(env.XDG_CONFIG_HOME, 'sandbox-run/policy.toml'),
    '[audit]\nenabled = true\n[workspace]\nundo = "never"\n',
    {
      mode: 0o600,
    },
  );
  git('init', '-q');
  writeFileSync(join(place.workspace, 'kept'), 'nobody else has this\n');
});

const run = (command: string, ...options: readonly string[]) =>
  cli(place, ['--session', 's', ...options, '-c', command], { env });

async function recordsOf(type: 'event' | 'decision' | 'result') {
  const { stdout } = await cli(place, ['audit', 'search', '--type', type, '--json'], { env });
  return stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** The codes of the patterns in the trail, once all records were looked at. */
async function patternsAfter(commands: readonly string[]): Promise<readonly string[]> {
  for (const command of commands) await run(command);
  return [...new Set((await recordsOf('event')).map(({ code }) => String(code)))].filter((code) =>
    PATTERNS.some((pattern) => pattern.code === code),
  );
}

/** Each with commands that raise it, and with the like that does not. */
const CASES: Readonly<Record<string, readonly [raise: readonly string[], not: readonly string[]]>> = {
  create_then_execute: [
    ["printf '#!/bin/sh\\necho hi\\n' > drop", 'chmod +x drop', './drop'],
    ["printf '#!/bin/sh\\necho hi\\n' > drop", 'cat drop', 'ls -l drop'],
  ],
  repeated_approval_requests: [
    ['rm kept', 'rm -f kept', 'rm -rf kept'],
    ['rm kept', 'rm -f kept', 'git log --oneline'],
  ],
  path_traversal_series: [
    // As far up as there is anything: a command has a /tmp of its own.
    ['cat ../../../../../../srv/a', 'head ../../../../../../srv/key', 'cat ../../../../../../srv/../mnt/d'],
    ['cat ../a', 'cat ../a', 'cat ../a', 'ls sub/../'],
  ],
  unusual_flags: [
    ["git -c core.pager='sh -c id' log", "tar --checkpoint=1 --checkpoint-action='exec=id' -cf x kept"],
    [
      "git -c core.pager='sh -c id' log",
      "git -c core.pager='sh -c id' log",
      'tar -czf x.tgz kept',
      'git log -p -n 3',
    ],
  ],
  network_attempts: [
    ['curl https://a.example/x', 'wget https://a.example/x', 'ssh b.example id'],
    ['curl https://a.example/x', 'curl -s https://a.example/x', 'curl -L https://a.example/x', 'ls'],
  ],
  many_refusals: [
    Array.from({ length: 10 }, (_, index) => `sudo ls ${index}`),
    Array.from({ length: 9 }, (_, index) => `sudo ls ${index}`),
  ],
};

describe('a pattern over several commands', () => {
  it('has a case here and a row in the docs, each', () => {
    const page = readFileSync(fileURLToPath(new URL('../../docs/gate.md', import.meta.url)), 'utf8');
    for (const { code } of PATTERNS) expect(page).toContain(`| \`${code}\` |`);
    expect(Object.keys(CASES).sort()).toEqual(PATTERNS.map(({ code }) => code).sort());
  });

  it.each(Object.entries(CASES))(
    '%s is found in what was run, and not in the like of it',
    async (code, [raise, not]) => {
      expect(await patternsAfter(raise)).toContain(code);
      rmSync(env.XDG_STATE_HOME, { recursive: true, force: true });
      expect(await patternsAfter(not)).not.toContain(code);
    },
  );

  it('is not found in a day of work with git, npm and make', async () => {
    writeFileSync(
      join(place.workspace, 'Makefile'),
      'all: out\nout: in.txt\n\tcp in.txt out\ntest: all\n\tgrep -q x out\nclean:\n\trm -f out\n',
    );
    writeFileSync(join(place.workspace, 'in.txt'), 'x\n');
    writeFileSync(
      join(place.workspace, 'package.json'),
      '{"name": "a", "version": "1.0.0", "scripts": {"test": "node test.js", "build": "node -e 1"}}',
    );
    writeFileSync(join(place.workspace, 'test.js'), "require('node:assert').ok(true);\n");
    writeFileSync(join(place.workspace, 'build.sh'), 'make all\n');
    chmodSync(join(place.workspace, 'build.sh'), 0o755);
    git('add', '.');
    git('commit', '-qm', 'first');
    const day = [
      'git status --short',
      'git diff --stat HEAD',
      'git log --oneline -5',
      'npm test',
      'npm run build',
      'make',
      'make test',
      './build.sh',
      'make clean && make',
      "sed -i 's/x/xx/' in.txt && make test",
      'find . -name "*.js" -exec grep -n ok {} +',
      'grep -rn ok . | head',
      'rg -n ok',
      'node test.js',
      'mkdir -p src && printf "console.log(1)\\n" > src/a.js && cat src/a.js',
      'git add -A && git -c user.name=a -c user.email=a@localhost commit -qm second',
      'git checkout -q -b topic && git diff master...topic --stat || true',
      'tar -czf /tmp/out.tgz src && tar -tzf /tmp/out.tgz',
      'ls -la ..; cat ../missing',
      'curl -s http://localhost:1/ || true',
      'git push',
    ];
    expect(await patternsAfter(day)).toEqual([]);
    const decisions = await recordsOf('decision');
    expect(decisions).toHaveLength(day.length);
    // Most of it ran: this control would say nothing of a day in which all was refused.
    expect((await recordsOf('result')).length).toBeGreaterThan(day.length * 0.75);
  });
});

describe('the audit trail', () => {
  const agent = { ...env, HOME: join(place.root, 'home'), CLAUDE_PROJECT_DIR: place.workspace };

  /** What an agent runs in place of a command, by the hook that is in its settings; `false`: nothing is. */
  async function runByAgent(command: string): Promise<void> {
    const settings = JSON.parse(readFileSync(join(agent.HOME, '.claude/settings.json'), 'utf8'));
    const line: string = settings.hooks.PreToolUse[0].hooks[0].command;
    const event = {
      ...{ session_id: 's', transcript_path: '/nowhere', cwd: place.workspace, permission_mode: 'default' },
      ...{ hook_event_name: 'PreToolUse', tool_name: 'Bash', tool_input: { command }, tool_use_id: 't' },
    };
    const options = { cwd: place.workspace, env: { ...place.env, ...agent }, input: JSON.stringify(event) };
    const answer = JSON.parse(execFileSync('bash', ['-c', line], options).toString()).hookSpecificOutput;
    if (answer.permissionDecision === 'allow')
      execFileSync('bash', ['-c', answer.updatedInput.command], { ...options, input: '' });
  }
  const setPolicy = (text: string) =>
    writeFileSync(join(env.XDG_CONFIG_HOME, 'sandbox-run/policy.toml'), text, { mode: 0o600 });

  it.each([
    ['is turned on by install', [], '', true],
    ['is not with --no-audit', ['--no-audit'], '', false],
    ['is not where the policy says no', [], '[audit]\nenabled = false\n', false],
    ['is with --no-audit where the policy has it on', ['--no-audit'], '[audit]\nenabled = true\n', true],
  ])('%s', async (_, args, policy, isOn) => {
    setPolicy(policy);
    rmSync(agent.HOME, { recursive: true, force: true });
    const installed = await cli(place, ['install', 'claude-code', ...args], { env: agent });
    expect(installed).toMatchObject({ exitCode: 0, stderr: '' });
    await runByAgent('echo by the agent');
    await runByAgent('sudo ls');
    const trail = join(env.XDG_STATE_HOME, 'sandbox-run/audit');
    expect(existsSync(trail)).toBe(isOn);
    if (!isOn) return;
    expect(await recordsOf('decision')).toMatchObject([
      { command: 'echo by the agent', outcome: 'launch', session: 'claude-code.s' },
      { command: 'sudo ls', outcome: 'command.denied' },
    ]);
    expect(await recordsOf('result')).toMatchObject([{ exitCode: 0, durationMs: expect.any(Number) }]);
    for (const name of ['', ...readdirSync(trail)]) expect(statSync(join(trail, name)).mode & 0o077).toBe(0);
  });

  it('is turned on by one option of a run', async () => {
    setPolicy('');
    await run('echo a');
    expect(existsSync(join(env.XDG_STATE_HOME, 'sandbox-run/audit'))).toBe(false);
    await run('echo b', '--audit');
    expect(await recordsOf('decision')).toMatchObject([{ command: 'echo b' }]);
  });
});

describe('a record', () => {
  it('has command, arguments, directory, exit code, duration, and who approved what for how long', async () => {
    const command = ['sh', '-c', 'exit 3', 'a b'];
    await cli(place, ['--session', 's', '--', ...command], { env });
    await run('rm kept', '--approved');
    writeFileSync(join(place.workspace, 'kept'), 'again\n');
    await run('rm kept');
    const [first, approved, refused] = await recordsOf('decision');
    const results = await recordsOf('result');
    expect(first).toMatchObject({ command, cwd: place.workspace, outcome: 'launch', session: 's' });
    expect(results[0]).toMatchObject({
      request: first.request,
      exitCode: 3,
      durationMs: expect.any(Number),
    });
    expect(approved.approval).toEqual({ approved: true, scope: 'once', by: 'the caller' });
    expect(refused).toMatchObject({ outcome: 'command.needs_approval', command: 'rm kept' });
  });

  it('has no secret of the arguments', async () => {
    const secret = 'ghp_0123456789abcdefghijABCDEFGHIJ012345';
    await run(`echo ${secret} --password=hunter2secret`);
    await run(`git -c http.extraHeader='Authorization: Bearer ${secret}' -c core.pager=${secret} log`);
    const all = JSON.stringify([...(await recordsOf('decision')), ...(await recordsOf('event'))]);
    expect(all).not.toContain(secret);
    expect(all).not.toContain('hunter2secret');
    expect(all).toContain('core.pager');
  });
});
