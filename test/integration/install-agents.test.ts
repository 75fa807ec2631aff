import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { parse, stringify } from 'smol-toml';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { changedToml, type TomlTable } from '../../src/agents/index.ts';
import { CLI, cli, expectOneLine, makePlace } from '../cli/support.ts';

const place = makePlace();
afterAll(() => place.dispose());

let home = '';
let project = '';
beforeEach(() => {
  home = mkdtempSync(join(place.root, 'home-'));
  project = mkdtempSync(join(place.root, 'project-'));
});

const install = (...args: readonly string[]) =>
  cli(place, ['install', ...args], { cwd: project, env: { HOME: home, XDG_CONFIG_HOME: '' } });
const at = (path: string) => join(home, path);
const read = (path: string) => readFileSync(at(path), 'utf8');
function write(path: string, text: string): void {
  mkdirSync(dirname(at(path)), { recursive: true });
  writeFileSync(at(path), text);
}

describe('sandbox-run install', () => {
  it.each([
    ['codex', '.codex/hooks.json', ['SessionStart', 'PreToolUse', 'PostToolUse', 'SessionEnd'], 120],
    [
      'gemini-cli',
      '.gemini/settings.json',
      ['SessionStart', 'BeforeTool', 'AfterTool', 'SessionEnd'],
      120_000,
    ],
  ])(
    '%s: hooks that block what they cannot answer, and nothing else changes',
    async (agent, path, events, timeout) => {
      const theirs = '{\n  "mine": [1.0, 1e3],\n  "hooks": {\n    "Stop": []\n  }\n}\n';
      write(path, theirs);
      expect(await install(agent)).toMatchObject({ exitCode: 0, stderr: '' });
      const { hooks } = JSON.parse(read(path));
      expect(Object.keys(hooks)).toEqual(['Stop', ...events]);
      for (const event of events) {
        const [{ hooks: list }] = hooks[event];
        expect(list).toMatchObject([{ type: 'command', timeout }]);
        expect(list[0].command).toMatch(
          new RegExp(
            `^'/bin/sh' '-c' '"\\$@" \\|\\| \\{ .*exit 2; \\}' .*'hook' '${agent}' '--mode' 'rewrite' '--audit'$`,
          ),
        );
      }
      expect((await install(agent)).stdout).toMatch(/needs no change/);
      await install(agent, '--autonomy', 'supervised');
      expect(read(path).match(/'--autonomy' 'supervised'/g)).toHaveLength(events.length);
      expect((await install(agent, '--uninstall')).stdout).toMatch(/hooks taken out/);
      expect(read(path)).toBe(theirs);
    },
  );

  it('codex: says that nothing runs its hooks yet, and that they are switched off', async () => {
    expect((await install('codex')).stdout).toMatch(/Codex runs NO hook before you trust it/);
    write('.codex/config.toml', '[features]\nhooks = false\n');
    const { exitCode, stderr } = await install('codex');
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/"features\.hooks" is false .* OFF/);
  });

  it('gemini-cli: says that its hooks are switched off', async () => {
    for (const hooksConfig of [{ enabled: false }, { disabled: ['sandbox-run'] }]) {
      write('.gemini/settings.json', JSON.stringify({ hooksConfig }));
      expect((await install('gemini-cli')).exitCode).toBe(1);
    }
  });

  it('codex --mcp: the server in place of the shell tool, and either that or hooks', async () => {
    const theirs =
      '# mine\nmodel = "m"\n[features]\ngoals = true # keep\n\n[mcp_servers.other]\ncommand = "x"';
    write('.codex/config.toml', theirs);
    await install('codex');
    const { exitCode, stdout } = await install(
      'codex',
      '--mcp',
      '--profile',
      'read-only',
      '--timeout',
      '600',
    );
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/hooks taken out\n.*MCP server .* installed\n/);
    // The file held nothing but our hooks, so it goes with them.
    expect(existsSync(at('.codex/hooks.json'))).toBe(false);
    expect(parse(read('.codex/config.toml'))).toMatchObject({
      model: 'm',
      features: { goals: true, shell_tool: false },
      mcp_servers: {
        other: { command: 'x' },
        'sandbox-run': {
          command: process.execPath,
          args: [CLI, 'mcp', '--profile', 'read-only', '--audit', '--timeout', '600'],
          default_tools_approval_mode: 'approve',
          required: true,
        },
      },
    });
    expect((await install('codex', '--mcp', '--profile', 'read-only', '--timeout', '600')).stdout).toMatch(
      /no change/,
    );
    expect((await install('codex', '--uninstall')).stdout).toMatch(/MCP server .* taken out/);
    expect(read('.codex/config.toml')).toBe(`${theirs}\n`);
  });

  it.each([
    ['claude-code', [], '.claude/settings.json'],
    ['codex', [], '.codex/hooks.json'],
    ['codex', ['--mcp'], '.codex/config.toml'],
    ['gemini-cli', [], '.gemini/settings.json'],
  ])('%s %j: takes away the file that it made', async (agent, options, path) => {
    expect((await install(agent, ...options)).exitCode).toBe(0);
    expect(existsSync(at(path))).toBe(true);
    expect((await install(agent, '--uninstall')).exitCode).toBe(0);
    expect(existsSync(at(path))).toBe(false);
  });

  it.each([
    ['no TOML', 'model ='],
    ['a shell tool that is on', '[features]\nshell_tool = true\n'],
    ['another server of the name', '[mcp_servers.sandbox-run]\ncommand = "other"\n'],
    ['features in one line', 'features = { goals = true }\n'],
  ])('codex --mcp: leaves settings with %s as they are, and says so in one line', async (_, text) => {
    write('.codex/config.toml', text);
    await install('codex');
    const hooks = read('.codex/hooks.json');
    const { exitCode, stderr } = await install('codex', '--mcp');
    expect(exitCode).toBe(125);
    expectOneLine(stderr);
    expect(stderr).toContain('is left as it is');
    expect(read('.codex/config.toml')).toBe(text);
    // All or nothing: the hooks are still there.
    expect(read('.codex/hooks.json')).toBe(hooks);
  });

  it('opencode: a plug-in, and never in the place of somebody else’s', async () => {
    const path = '.config/opencode/plugin/sandbox-run.js';
    expect((await install('opencode', '--dry-run')).stdout).toMatch(/would change:\n/);
    expect(existsSync(at(path))).toBe(false);
    expect((await install('opencode')).stdout).toMatch(/plug-in installed/);
    const { SandboxRun } = await import(at(path));
    expect(Object.keys(await SandboxRun({ directory: project }))).toEqual([
      'experimental.chat.system.transform',
      'tool.execute.before',
      'tool.execute.after',
    ]);
    expect((await install('opencode', '--uninstall')).exitCode).toBe(0);
    expect(existsSync(at(path))).toBe(false);
    expect((await install('opencode', '--uninstall')).stdout).toMatch(/needs no change/);
    write(path, 'export const mine = 1;\n');
    for (const args of [[], ['--uninstall']]) {
      const { exitCode, stderr } = await install('opencode', ...args);
      expect(exitCode).toBe(125);
      expectOneLine(stderr);
    }
    expect(read(path)).toBe('export const mine = 1;\n');
  });

  it('claude-code: confines unless something else is asked for', async () => {
    expect((await install('claude-code')).stdout).toMatch(/hooks installed \(rewrite\)/);
    expect(read('.claude/settings.json')).toContain("'--mode' 'rewrite'");
    await install('claude-code', '--mode', 'decide');
    expect(read('.claude/settings.json')).not.toContain("'--mode' 'rewrite'");
  });

  it.each([
    ['codex', '--mode', 'decide'],
    ['codex', '--mcp', '--mode', 'rewrite'],
    ['gemini-cli', '--mcp'],
    ['nobody'],
  ])('%s %s: one line', async (...args) => {
    const { exitCode, stderr } = await install(...args.filter((word) => word !== undefined));
    expect(exitCode).toBe(125);
    expectOneLine(stderr);
  });
});

describe('changing the text of TOML', () => {
  const wanted: readonly TomlTable[] = [
    { name: ['features'], values: { shell_tool: false } },
    { name: ['mcp_servers', 'sandbox-run'], values: { command: '/it\'s "a"/\\node', args: ['a b', 'é'] } },
  ];

  it('adds and takes out the same, whatever else is there', () => {
    const key = fc.stringMatching(/^[a-z]{1,6}$/).filter((name) => !['features'].includes(name));
    const value = fc.oneof(
      fc.boolean(),
      fc.integer({ min: -1e9, max: 1e9 }),
      fc.string(),
      fc.array(fc.string()),
    );
    const table = fc.dictionary(key, value, { noNullPrototype: true });
    const root = fc.record(
      { features: table, mcp_servers: fc.dictionary(key, table, { noNullPrototype: true }), others: table },
      { requiredKeys: [], noNullPrototype: true },
    );
    fc.assert(
      fc.property(root, fc.constantFrom('', '# a comment\n'), (before, comment) => {
        const text = `${comment}${stringify(before)}`;
        const theirs = text === '' || text.endsWith('\n') ? text : `${text}\n`;
        const installed = changedToml(theirs, wanted, 'f') ?? '';
        const after = parse(installed) as { features: object; mcp_servers: object };
        expect(after.features).toMatchObject({ ...before.features, shell_tool: false });
        expect(after.mcp_servers).toMatchObject({ ...before.mcp_servers, 'sandbox-run': wanted[1]?.values });
        expect(changedToml(installed, wanted, 'f')).toBe(installed);
        expect(changedToml(installed, [], 'f')).toBe(theirs);
      }),
    );
  });
});
