import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { cli, expectOneLine, makePlace } from '../cli/support.ts';
import { eventually } from '../support/eventually.ts';
import { HOST } from '../support/tiers.ts';
import { hookProcess } from './hook-process.ts';

const place = makePlace();
afterAll(() => place.dispose());
const project = place.workspace;

let at = 0;
let environment: Readonly<Record<string, string>> = {};
beforeEach(() => {
  at += 1;
  environment = {
    XDG_CONFIG_HOME: join(place.root, 'no-config'),
    XDG_STATE_HOME: join(place.root, `state-${at}`),
  };
});

type Fields = Readonly<Record<string, unknown>>;

/** As Codex 0.169 wrote it. */
const codexInput = (command: string, more: Fields = {}): Fields => ({
  session_id: '01a211d9-ee06-70a2-9dc6-d1f79eaae75f',
  turn_id: '01a211d9-ee27-7040-b432-12dbf4068034',
  transcript_path: '/home/me/.codex/sessions/2026/11/25/rollout.jsonl',
  cwd: project,
  hook_event_name: 'PreToolUse',
  model: 'gpt-5.1-codex',
  permission_mode: 'bypassPermissions',
  tool_name: 'Bash',
  tool_input: { command },
  tool_use_id: 'call_1',
  ...more,
});

/** As Gemini CLI 0.61 wrote it. */
const geminiInput = (command: string, more: Fields = {}, tools: Fields = {}): Fields => ({
  session_id: 'd3c6bb1e-8a3c-4f4e-9f0e-4d1f4b2c7a10',
  transcript_path: '/home/me/.gemini/tmp/work/chats/session.json',
  cwd: project,
  hook_event_name: 'BeforeTool',
  timestamp: '2026-11-25T09:05:12.123Z',
  tool_name: 'run_shell_command',
  tool_input: { command, description: 'what it is for', ...tools },
  ...more,
});

/** As the plug-in writes it for opencode 1.18. */
const opencodeInput = (command: string, more: Fields = {}, args: Fields = {}): Fields => ({
  event: 'before',
  session: 'ses_dee18d40cffeyZy5eA30jnzHDK',
  call: 'call_1',
  tool: 'bash',
  directory: project,
  args: { command, description: 'what it is for', ...args },
  ...more,
});

interface Answer {
  /** The command in place of the one that was asked for; `undefined`: it is refused. */
  readonly command: string | undefined;
  /** All that the tool gets. */
  readonly input: Fields | undefined;
  readonly reason: string | undefined;
}

/** What each agent sends, and how it reads an answer. */
const AGENTS = {
  codex: {
    input: codexInput,
    begin: codexInput('', { hook_event_name: 'SessionStart', source: 'startup' }),
    read: ({ hookSpecificOutput: said }: { hookSpecificOutput: Fields }): Answer => {
      expect(['allow', 'deny']).toContain(said.permissionDecision);
      // A yes without a command, and a no without a reason, are failures there, after which the command runs.
      expect(
        said.permissionDecision === 'allow' ? said.updatedInput : said.permissionDecisionReason,
      ).toBeTruthy();
      return answerOf(said.updatedInput, said.permissionDecisionReason);
    },
  },
  'gemini-cli': {
    input: geminiInput,
    begin: geminiInput('', { hook_event_name: 'SessionStart', source: 'startup' }),
    read: ({
      decision,
      reason,
      hookSpecificOutput: said,
    }: Fields & { hookSpecificOutput?: Fields }): Answer => {
      expect(['allow', 'deny']).toContain(decision);
      return answerOf(said?.tool_input, reason);
    },
  },
  opencode: {
    input: opencodeInput,
    begin: opencodeInput('', { event: 'start' }),
    read: ({ decision, args, reason }: Fields): Answer => {
      expect(['allow', 'deny']).toContain(decision);
      return answerOf(args, reason);
    },
  },
} as const;
const NAMES = ['codex', 'gemini-cli', 'opencode'] as const;
type Name = (typeof NAMES)[number];

function answerOf(input: unknown, reason: unknown): Answer {
  const given = input as Fields | undefined;
  return {
    input: given,
    command: given?.command as string | undefined,
    reason: reason as string | undefined,
  };
}

async function hook(
  name: string,
  input: Fields,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
) {
  const { stdout, stderr, exitCode } = await hookProcess(place, [name, ...args], {
    ...{ input: JSON.stringify(input), env: { ...environment, ...env } },
  });
  return { exitCode, stderr, answer: stdout === '' ? undefined : JSON.parse(stdout) };
}

async function answer(
  name: Name,
  command: string,
  args: readonly string[] = [],
  more: Fields = {},
): Promise<Answer> {
  const { exitCode, stderr, answer: said } = await hook(name, AGENTS[name].input(command, more), args);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  return AGENTS[name].read(said);
}

/** As the shell of an agent runs what it was given. */
async function run(line: string, more: { readonly cwd?: string; readonly terminal?: boolean } = {}) {
  const env = { ...place.env, ...environment };
  const { stdout, stderr, exitCode } = await execa('bash', ['-c', line], {
    ...{ cwd: more.cwd ?? project, env, extendEnv: false, reject: false, stdin: 'ignore' },
  });
  return { stdout, stderr, exitCode };
}

describe.each(NAMES)('the hooks of %s', (name) => {
  it('have the command run in the sandbox', async () => {
    const outside = join(place.root, `planted-${name}`);
    const script = `echo "it's" '$HOME' && python3 -c 'open("${outside}", "w")'`;
    const { command = '', input } = await answer(name, script);
    expect(input).toEqual({
      ...(AGENTS[name].input(script).tool_input ?? AGENTS[name].input(script).args ?? {}),
      command,
    });
    expect((await run(command)).stdout).toBe("it's $HOME");
    expect(existsSync(outside)).toBe(false);
    // The control: nothing else stops it.
    await run(script);
    expect(existsSync(outside)).toBe(true);
  });

  it('refuse what the policy refuses', async () => {
    const { command, reason } = await answer(name, 'sudo ls');
    expect(command).toBeUndefined();
    expect(reason).toMatch(/^Not run: "sudo ls"\nRule: dangerous\.privilege \(command\.denied\)/);
  });

  it('tell the model once what its commands may do, and never what only its user can do', async () => {
    const { answer: begun } = await hook(name, AGENTS[name].begin);
    const told = [JSON.stringify(begun)];
    for (const line of ['sudo ls', 'cat ~/.ssh/id_rsa', 'curl https://example.org/', 'touch ../x', 'false']) {
      const { command, reason = '' } = await answer(name, line);
      told.push(reason, command === undefined ? '' : (await run(command)).stderr);
    }
    const all = told.join('\n');
    expect(all.match(/Writable: |Allowed: /g)).toEqual(['Writable: ']);
    expect(all).not.toMatch(/\s--[a-z]/);
  });

  it('never ask: the run asks where the policy says, and runs nothing without an answer', async () => {
    writeFileSync(join(project, 'script.sh'), 'echo ran > ran\n');
    const args = ['--autonomy', 'supervised'];
    const { command = '' } = await answer(name, 'sh script.sh', args);
    expect(command).not.toContain('--approval');
    const { exitCode, stderr } = await run(command);
    expect(exitCode).toBe(126);
    expect(stderr).toContain('Not run: "sh script.sh"');
    expect(existsSync(join(project, 'ran'))).toBe(false);
  });

  it('wait for an answer where the policy has a queue', async () => {
    const policy = join(place.root, 'queue.toml');
    writeFileSync(policy, '[approval]\nask = "queue"\n[security]\nautonomy = "supervised"\n', {
      mode: 0o600,
    });
    writeFileSync(join(project, 'script.sh'), 'echo ran\n');
    const { command = '' } = await answer(name, 'sh script.sh', ['--policy', policy]);
    const running = run(command);
    let id = '';
    await eventually(async () => {
      const { stdout } = await cli(place, ['approvals', 'list', '--json'], { env: environment });
      id = JSON.parse(stdout.split('\n')[0] ?? '').id;
      expect(id).toBeTruthy();
    }, 15_000);
    expect((await cli(place, ['approvals', 'approve', id], { env: environment })).exitCode).toBe(0);
    expect(await running).toMatchObject({ exitCode: 0, stdout: 'ran' });
  });

  it('take no directory of the model for the workspace', async () => {
    const { command = '' } = await answer(name, 'pwd', [], name === 'codex' ? { cwd: '/var' } : {});
    expect(command).toContain(`'--workspace' '${project}'`);
    expect((await run(command, { cwd: '/var' })).stdout).toBe(project);
  });

  it.each(['decide', 'permit'])('take no mode %s', async (mode) => {
    const { exitCode, stderr } = await hook(name, AGENTS[name].input('ls'), ['--mode', mode]);
    expect(exitCode).toBe(2);
    expect(stderr).not.toBe('');
  });

  it('refuse what is not their input in every respect', async () => {
    for (const command of ['', 'a\0b', '\ud800', 7, ['ls']]) {
      const input = AGENTS[name].input(command as string);
      const { exitCode, answer: said } = await hook(name, input);
      expect(exitCode).toBe(0);
      expect(AGENTS[name].read(said).command).toBeUndefined();
    }
    const { answer: said } = await hook(name, { ...AGENTS[name].input('ls'), session_id: 7, session: 7 });
    expect(AGENTS[name].read(said).command).toBeUndefined();
  });

  it('say nothing about tools that run no commands', async () => {
    const other = name === 'opencode' ? { tool: 'edit' } : { tool_name: 'apply_patch' };
    const { exitCode, answer: said } = await hook(name, AGENTS[name].input('sudo ls', other));
    expect(exitCode).toBe(0);
    expect(said ?? { decision: 'none' }).toEqual({ decision: 'none' });
  });
});

describe('what the session has seen', () => {
  const reach = async (name: Name, after: Fields) => {
    expect((await hook(name, after)).exitCode).toBe(0);
    const { stdout } = await cli(place, ['session', 'list', '--json'], { env: environment });
    return stdout;
  };

  it('is remembered of what others wrote, and of secrets', async () => {
    const mcp = { hook_event_name: 'PostToolUse', tool_name: 'mcp__tickets__read', tool_response: 'x' };
    expect(await reach('codex', codexInput('', { ...mcp, tool_input: {} }))).toMatch(
      /codex\.01a211d9.*corruption/s,
    );
    const web = { hook_event_name: 'AfterTool', tool_name: 'web_fetch', tool_input: { prompt: 'x' } };
    expect(await reach('gemini-cli', geminiInput('', web))).toMatch(/gemini-cli\.d3c6.*corruption/s);
    const tool = { event: 'after', tool: 'tickets_read', args: {} };
    expect(await reach('opencode', opencodeInput('', tool))).toMatch(/opencode\.ses_.*corruption/s);
  });

  it('stops the agent if it cannot be remembered', async () => {
    const env = { XDG_STATE_HOME: '/dev/null/state' };
    const mcp = { hook_event_name: 'PostToolUse', tool_name: 'mcp__tickets__read', tool_input: {} };
    expect((await hook('codex', codexInput('', mcp), [], env)).answer).toMatchObject({ continue: false });
    const web = { hook_event_name: 'AfterTool', tool_name: 'web_fetch', tool_input: {} };
    expect((await hook('gemini-cli', geminiInput('', web), [], env)).answer).toMatchObject({
      continue: false,
    });
    const tool = opencodeInput('', { event: 'after', tool: 'tickets_read', args: {} });
    expect((await hook('opencode', tool, [], env)).answer).toMatchObject({ decision: 'stop' });
  });
});

describe('directories that a model names', () => {
  it('are where the command starts, if they lie in the project', async () => {
    const sub = join(project, 'sub');
    await run('mkdir -p sub');
    const gemini = await hook('gemini-cli', geminiInput('ls', {}, { dir_path: 'sub' }));
    expect(AGENTS['gemini-cli'].read(gemini.answer).command).toBeDefined();
    const { answer: said } = await hook(
      'opencode',
      opencodeInput('cat x', {}, { workdir: sub, timeout: 2000 }),
    );
    expect(AGENTS.opencode.read(said).command).toContain("'--timeout' '2'");
  });
});

describe('hooks of one agent that another one starts', () => {
  it.each([
    ['codex', codexInput('ls')],
    ['gemini-cli', geminiInput('ls')],
  ])(
    '%s is not served as Claude Code: status 2 with a reason stops the call in all of them',
    async (name, input) => {
      for (const mode of ['decide', 'rewrite']) {
        const { exitCode, stderr, answer: said } = await hook('claude-code', input, ['--mode', mode]);
        expect({ exitCode, said }).toEqual({ exitCode: 2, said: undefined });
        expectOneLine(stderr);
        expect(stderr).toContain(`sandbox-run install ${name}`);
      }
    },
  );

  it('Claude Code is not served as Codex', async () => {
    const { turn_id: _, ...claude } = codexInput('ls') as Record<string, unknown>;
    const { answer: said } = await hook('codex', claude);
    expect(AGENTS.codex.read(said).command).toBeUndefined();
  });
});

describe('sandbox-run confined', () => {
  it('says no where nothing of sandbox-run holds it, whatever variables say', async () => {
    const env = {
      SANDBOX_RUN: '1',
      SANDBOX_RUN_CONFINED: '1',
      container: 'sandbox-run',
      SHELL: '/usr/bin/sandbox-sh',
    };
    const { exitCode, stdout } = await cli(place, ['confined'], { env });
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^confined: NO \(.*\)\n$/);
  });

  it('says yes in the sandbox of a rewritten command', async () => {
    // Where commands can read it: the package as it is installed in a project.
    const { exitCode } = await run(
      `cp -r ${join(readPackage(), 'dist')} ${join(readPackage(), 'package.json')} .`,
    );
    expect(exitCode).toBe(0);
    const { command = '' } = await answer('codex', 'node dist/cli.cjs confined');
    expect(await run(command)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^confined: yes \(/),
    });
  });

  it('is told without this program by what it says in its help', async () => {
    const { stdout: help } = await cli(place, ['confined', '--help']);
    const line = /grep -c .*mountinfo/.exec(help)?.[0] ?? '';
    // The program itself is rarely where commands can find it.
    expect(readFileSync(join(readPackage(), 'README.md'), 'utf8')).toContain(`\`${line}\``);
    expect((await run(line)).stdout).toBe('0');
    const { command = '' } = await answer('codex', line);
    const own = readFileSync('/proc/self/mountinfo', 'utf8');
    expect(own).not.toMatch(/ \/ \/ ro.* - tmpfs sandbox-run /);
    expect((await run(command)).stdout).toBe(HOST.namespaces ? '1' : '0');
  });
});

const readPackage = () => join(import.meta.dirname, '../..');
