import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { processesWith } from '../support/leftovers.ts';
import {
  type AgentWorld,
  AS_CLAUDE_CODE,
  makeAgentWorld,
  TOO_LONG,
  type ToolCall,
  takeApart,
  writeTo,
} from './agents-support.ts';
import { CODEX, codexRuns, writeCodexSettings } from './codex-client.ts';

const exec = (cmd: string, more: Readonly<Record<string, unknown>> = {}): ToolCall => ({
  name: 'exec_command',
  args: { cmd, ...more },
});

const worlds: AgentWorld[] = [];
afterAll(() => {
  for (const world of worlds) world.dispose();
});
let world: AgentWorld;
beforeEach(() => {
  world = makeAgentWorld();
  worlds.push(world);
  writeCodexSettings(world);
});
const hooksFile = () => join(world.home, '.codex/hooks.json');
const change = (path: string, what: RegExp, by: string) =>
  writeFileSync(path, readFileSync(path, 'utf8').replace(what, by));

describe.skipIf(CODEX === undefined)('the real Codex, with hooks', { timeout: 400_000 }, () => {
  it('runs commands in the sandbox, refuses what is refused, never runs what is asked about, and is told once, when its session begins, what holds', async () => {
    await world.install('codex');
    const loose = join(world.project, 'loose');
    writeFileSync(loose, 'not committed');
    const requests: string[] = [];
    const script = [
      exec(`echo 'it is' "q" \\\\ \`echo b\`; echo "$((1 + 1))" é`),
      exec('cat <<X\nfirst $(echo second)\nX'),
      exec(`echo x > ${world.outside}/secret`),
      exec(writeTo(join(world.outside, 'planted'))),
      exec(writeTo(join(world.project, 'made'))),
      exec('git clean -fdx'),
      exec('echo "'),
      exec('pwd', { workdir: '/var' }),
      exec('exit 3'),
    ];
    const seen = await codexRuns(world, script, { requests });
    expect(seen[0]).toContain('it is q \\ b\n2 é\n');
    expect(seen[1]).toContain('first second\n');
    expect(seen[2]).toMatch(/blocked by PreToolUse hook: Not run: .*\nRule: paths\.escapes_workspace/);
    expect(seen[3]).toMatch(/FileNotFoundError|PermissionError/);
    expect(existsSync(join(world.outside, 'planted'))).toBe(false);
    expect(existsSync(join(world.project, 'made'))).toBe(true);
    expect(seen[5]).toMatch(/exited with code 126[\s\S]*Not run: "git clean -fdx"/);
    expect(existsSync(loose)).toBe(true);
    expect(seen[6]).toMatch(/Not run: [\s\S]*syntax/);
    // A directory that the model names does not make another workspace.
    expect(seen[7]).toContain(`Output:\n${world.project}\n`);
    expect(seen[8]).toContain('exited with code 3');

    const [first = ''] = requests.filter((text) => text.includes('shell'));
    expect(first.split('Shell commands run in a sandbox').length - 1).toBe(1);
    expect(first).toContain(world.project);
    await eventually(() => expect(processesWith(world.root)).toEqual([]), 60_000);
  });

  it('has no answer to a question from the terminal that the model types on', async () => {
    await world.install('codex');
    const loose = join(world.project, 'loose');
    writeFileSync(loose, 'not committed');
    const typed = (chars: string) => (outputs: readonly string[]) => ({
      name: 'write_stdin',
      args: { session_id: Number(/session ID (\d+)/.exec(outputs.at(-1) ?? '')?.[1] ?? 1), chars },
    });
    const seen = await codexRuns(world, [
      exec('read line; echo "got $line"', { tty: true, yield_time_ms: 1500 }),
      typed('hello\n'),
      exec('git clean -fdx', { tty: true, yield_time_ms: 8000 }),
      typed('once\n'),
    ]);
    // The control: what is typed arrives.
    expect(seen[1]).toContain('got hello');
    expect(seen[2]).toContain('Not run: "git clean -fdx"');
    expect(existsSync(loose)).toBe(true);
  });

  it('runs nothing if sandbox-run is not there, does not start, or takes too long, and is not served by the hook of Claude Code, whose questions it would run', async () => {
    await world.install('codex');
    const parts = takeApart(world, hooksFile());
    const attempt = (name: string) => exec(writeTo(join(world.project, name)));
    parts.replace('program', undefined);
    const seen = await codexRuns(world, [
      attempt('without'),
      () => {
        parts.replace('start', undefined);
        return attempt('unstarted');
      },
      () => {
        parts.replace('timeout', TOO_LONG);
        return attempt('late');
      },
      () => {
        parts.replace('program', AS_CLAUDE_CODE);
        return attempt('other-agent');
      },
    ]);
    expect(seen).toHaveLength(4);
    for (const text of seen.slice(0, 3))
      expect(text).toMatch(/blocked by PreToolUse hook: [\s\S]*the command was not run/);
    expect(seen[3]).toMatch(/these are the hooks of codex[\s\S]*sandbox-run install codex/);
    expect(readdirSync(world.project)).toEqual(['.git']);
  });

  it('runs commands unconfined where nobody trusted its hooks, and after a hook that it did not wait for, as docs/agents says', async () => {
    await world.install('codex');
    const outside = [exec(writeTo(join(world.outside, 'one')))];
    await codexRuns(world, outside, { trusted: false });
    expect(existsSync(join(world.outside, 'one'))).toBe(true);
    change(hooksFile(), /'110'(?: '[^']*')+? '[^']*cli\.cjs'/g, "'110' '/bin/sh' '-c' 'exec sleep 4'");
    change(hooksFile(), /"timeout": 120/g, '"timeout": 1');
    await codexRuns(world, [exec(writeTo(join(world.outside, 'two')))]);
    expect(existsSync(join(world.outside, 'two'))).toBe(true);
  });

  it('runs them within its own sandbox, too', async () => {
    await world.install('codex');
    const seen = await codexRuns(
      world,
      [
        exec('echo hello'),
        exec(writeTo(join(world.outside, 'planted'))),
        exec(writeTo(join(world.project, 'made'))),
      ],
      { sandbox: 'workspace-write' },
    );
    expect(seen[0]).toContain('hello');
    expect(existsSync(join(world.outside, 'planted'))).toBe(false);
    expect(existsSync(join(world.project, 'made'))).toBe(true);
  });
});

describe.skipIf(CODEX === undefined)(
  'the real Codex, with sandbox-run as its MCP server',
  { timeout: 400_000 },
  () => {
    const shell = (command: string): ToolCall => ({
      name: 'shell',
      namespace: 'mcp__sandbox_run',
      args: { command },
    });

    it('runs its commands there, has no other shell, and its own sandbox does not matter', async () => {
      await world.install('codex', '--mcp');
      const seen = await codexRuns(
        world,
        [
          shell('echo hello'),
          shell(writeTo(join(world.outside, 'planted'))),
          shell('sudo ls'),
          exec('echo other'),
        ],
        { sandbox: 'workspace-write' },
      );
      expect(seen[0]).toContain('hello');
      expect(existsSync(join(world.outside, 'planted'))).toBe(false);
      expect(seen[2]).toMatch(/command\.denied/);
      expect(seen[3]).toBe('unsupported call: exec_command');
    });

    it('fails every call without default_tools_approval_mode, which install writes', async () => {
      await world.install('codex', '--mcp');
      change(join(world.home, '.codex/config.toml'), /^default_tools_approval_mode.*\n/m, '');
      const [seen] = await codexRuns(world, [shell('echo hello')], { sandbox: 'workspace-write' });
      expect(seen).toMatch(/requires approval/);
    });

    it('does not start where the server does not', async () => {
      await world.install('codex', '--mcp');
      change(join(world.home, '.codex/config.toml'), /"[^"]*cli\.cjs"/, '"/nowhere/cli.cjs"');
      await expect(codexRuns(world, [exec('echo other')])).rejects.toThrow(/sandbox-run/);
    });
  },
);
