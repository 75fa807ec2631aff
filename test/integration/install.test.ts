import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { changedSettings, claudeCodeChange } from '../../src/agents/index.ts';
import { cli, expectOneLine, makePlace, startCli } from '../cli/support.ts';

const place = makePlace();
afterAll(() => place.dispose());

let home = '';
let project = '';
beforeEach(() => {
  home = mkdtempSync(join(place.root, 'home-'));
  project = mkdtempSync(join(place.root, 'project-'));
});

const install = (...args: readonly string[]) =>
  cli(place, ['install', 'claude-code', ...args], { cwd: project, env: { HOME: home } });
const userFile = () => join(home, '.claude/settings.json');
const projectFile = () => join(project, '.claude/settings.local.json');
const read = (path: string) => readFileSync(path, 'utf8');
function write(path: string, text: string, mode = 0o600): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  chmodSync(path, mode);
}

const THEIRS = `{
\t"$schema": "https://json.schemastore.org/claude-code-settings.json",
\t"env": {"A": "1",   "B": "\\u00e9"},
\t"permissions": { "allow": ["Bash(npm test:*)"], "deny": [] },
\t"hooks": {
\t\t"PreToolUse": [
\t\t\t{"matcher": "Edit", "hooks": [{"type": "command", "command": "prettier"}]}
\t\t],
\t\t"Stop": [{"hooks": [{"type": "command", "command": "notify-send done"}]}]
\t},
\t"unknown": [1.0, 1e3, 12345678901234567890, null],
\t"10": "x", "2": "y"
}
`;

describe('sandbox-run install claude-code', () => {
  it('makes the settings of the user, which the hook then answers', async () => {
    const made = await install('--mode', 'rewrite');
    expect(made).toMatchObject({ exitCode: 0, stderr: '' });
    expect(made.stdout).toMatch(/settings\.json: hooks installed \(rewrite\)\n$/);
    const { hooks } = JSON.parse(read(userFile()));
    expect(Object.keys(hooks)).toEqual(['SessionStart', 'PreToolUse', 'SessionEnd']);
    expect(hooks.PreToolUse).toMatchObject([
      { matcher: 'Bash|Monitor', hooks: [{ type: 'command', onFailure: 'block' }] },
    ]);
    expect(statSync(userFile()).mode & 0o777).toBe(0o600);
    expect(readdirSync(dirname(userFile()))).toEqual(['settings.json']);
  });

  it('keeps everything that is there, byte by byte, and takes out exactly what it added', async () => {
    write(projectFile(), THEIRS, 0o640);
    expect((await install('--project')).exitCode).toBe(0);
    const installed = read(projectFile());
    for (const line of THEIRS.split('\n').filter((text) => !/^\t\t?[\]}]/.test(text)))
      expect(installed).toContain(line.replace(/,$/, ''));
    expect(JSON.parse(installed).hooks.PreToolUse).toHaveLength(2);
    expect(statSync(projectFile()).mode & 0o777).toBe(0o640);
    expect((await install('--project')).stdout).toMatch(/needs no change/);
    expect(read(projectFile())).toBe(installed);
    expect((await install('--project', '--uninstall')).exitCode).toBe(0);
    expect(read(projectFile())).toBe(THEIRS);
    expect((await install('--project', '--uninstall')).stdout).toMatch(/needs no change/);
  });

  it('replaces its own hooks when options change, and leaves those that stand beside them', async () => {
    await install();
    const settings = JSON.parse(read(userFile()));
    settings.hooks.PreToolUse[0].hooks.push({ type: 'command', command: 'mine' });
    write(userFile(), JSON.stringify(settings));
    await install('--mode', 'rewrite', '--autonomy', 'autonomous', '--timeout', '600');
    const now = JSON.parse(read(userFile())).hooks;
    const commands = now.PreToolUse.flatMap((group: { hooks: { command: string }[] }) => group.hooks).map(
      (entry: { command: string }) => entry.command,
    );
    expect(commands).toEqual([
      'mine',
      expect.stringMatching(
        /'--mode' 'rewrite' '--autonomy' 'autonomous' '--audit' '--timeout' '600' '--after' 'nothing' \|\| exit 2$/,
      ),
    ]);
    // With the network off nothing that the agent sees can be carried off.
    expect(now.PostToolUse).toBeUndefined();
    await install('--uninstall');
    expect(JSON.parse(read(userFile())).hooks).toEqual({
      PreToolUse: [{ matcher: 'Bash|Monitor', hooks: [{ type: 'command', command: 'mine' }] }],
    });
  });

  it.each([
    ['it is on record', '', [], true],
    ['nothing of it is remembered', '', ['--no-audit'], false],
    ['the policy has nothing on record', '[audit]\nenabled = false\n', [], false],
    ['the policy has it on record', '[audit]\nenabled = true\n', ['--no-audit'], true],
  ])(
    'in mode decide is told how commands ended only where it has a use: %s',
    async (_, text, args, isTold) => {
      const policy = join(home, 'told.toml');
      writeFileSync(policy, text, { mode: 0o600 });
      await install('--mode', 'decide', '--policy', policy, ...args);
      const { PreToolUse, PostToolUse, PostToolUseFailure } = JSON.parse(read(userFile())).hooks;
      for (const [{ matcher, hooks }] of [PostToolUse, PostToolUseFailure]) {
        expect(new RegExp(`^(?:${matcher})$`).test('Bash')).toBe(isTold);
        expect(new RegExp(`^(?:${matcher})$`).test('WebFetch')).toBe(true);
        expect(hooks[0].command.includes("'--ends'")).toBe(isTold);
      }
      expect(PreToolUse[0].hooks[0].command.includes("'--ends'")).toBe(isTold);
    },
  );

  it('shows what would change and writes nothing with --dry-run', async () => {
    const { stdout, exitCode } = await install('--dry-run');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/would change:\n@@ line 1 @@\n\+\{\n\+ {2}"hooks": \{\n/);
    expect(readdirSync(home)).toEqual([]);
    write(userFile(), THEIRS);
    expect((await install('--dry-run')).stdout).toMatch(/^\+\t\t\t\t"matcher"|^\+/m);
    expect(read(userFile())).toBe(THEIRS);
    expect((await install('--uninstall', '--dry-run')).stdout).toMatch(/needs no change/);
  });

  it.each([
    ['a comment', '{\n  // mine\n  "hooks": {}\n}\n'],
    ['a comma too many', '{"hooks": {},}'],
    ['no JSON', 'hooks:'],
    ['a list', '[]'],
    ['hooks that are a list', '{"hooks": []}'],
    ['an event that is no list', '{"hooks": {"PreToolUse": {}}}'],
    ['hooks twice', '{"hooks": {}, "hooks": {}}'],
    ['hooks twice, one of them written otherwise', '{"hooks": {}, "h\\u006foks": {}}'],
    ['an event twice', '{"hooks":{"PreToolUse":[],"PreToolUse":[]}}'],
    ['hooks of a group twice', '{"hooks":{"Stop":[{"hooks":[],"hooks":[]}]}}'],
    ['a command twice', '{"hooks":{"Stop":[{"hooks":[{"command":"a","command":"b"}]}]}}'],
    ['a switch twice', '{"disableAllHooks":false,"disableAllHooks":true}'],
  ])('leaves a file with %s as it is, and says so in one line', async (_, text) => {
    write(userFile(), text);
    const { exitCode, stderr } = await install();
    expect(exitCode).toBe(125);
    expectOneLine(stderr);
    expect(stderr).toContain('is left as it is');
    expect(read(userFile())).toBe(text);
    expect(readdirSync(dirname(userFile()))).toEqual(['settings.json']);
  });

  it('says what is wrong with a byte order mark', async () => {
    write(userFile(), '\ufeff{}\n');
    const { exitCode, stderr } = await install();
    expect(exitCode).toBe(125);
    expect(stderr).toMatch(/byte order mark/);
    expect(stderr).not.toMatch(/comment/);
  });

  it('says that hooks are off where the settings switch them off', async () => {
    write(userFile(), '{\n  "disableAllHooks": true\n}\n');
    for (let time = 0; time < 2; time += 1) {
      const { exitCode, stderr } = await install();
      expect(exitCode).toBe(1);
      expectOneLine(stderr);
      expect(stderr).toMatch(/"disableAllHooks" is true .* OFF/);
    }
    expect(JSON.parse(read(userFile())).hooks.PreToolUse).toHaveLength(1);
    expect(await install('--uninstall')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(read(userFile())).toBe('{\n  "disableAllHooks": true\n}\n');
  });

  it('says that hooks of a project are for this machine', async () => {
    expect((await install('--project')).stdout).toMatch(/do not commit/);
    expect(readdirSync(join(project, '.claude'))).toEqual(['settings.local.json']);
  });

  it.each([
    '{"hooks": {}}',
    '{"hooks": { }}\n',
    '{\n  "hooks": {\n    "PreToolUse": []\n  }\n}\n',
    '{"hooks":{"PostToolUse":[ ],"Stop":[]},"a":1}',
    '{"hooks":{"PreToolUse":[],"PostToolUse":[],"PostToolUseFailure":[]}}',
    '{}',
  ])('takes out of %j only what it added', async (text) => {
    write(userFile(), text);
    expect((await install()).exitCode).toBe(0);
    expect((await install('--mode', 'rewrite')).exitCode).toBe(0);
    expect(JSON.parse(read(userFile())).hooks.PreToolUse).toHaveLength(1);
    expect((await install('--uninstall')).exitCode).toBe(0);
    expect(read(userFile())).toBe(text);
  });

  it('leaves an empty file empty if there is nothing to take out', async () => {
    write(userFile(), '');
    expect((await install('--uninstall')).stdout).toMatch(/needs no change/);
    expect(read(userFile())).toBe('');
  });

  it('writes where a link of the user leads to, and keeps the link', async () => {
    const dotfiles = join(place.root, `dotfiles-${Date.now()}.json`);
    writeFileSync(dotfiles, '{}\n', { mode: 0o644 });
    mkdirSync(join(home, '.claude'));
    symlinkSync(dotfiles, userFile());
    expect((await install()).exitCode).toBe(0);
    expect(lstatSync(userFile()).isSymbolicLink()).toBe(true);
    expect(read(dotfiles)).toMatch(/PreToolUse/);
  });

  it('follows no link out of a project, which its commands could have made', async () => {
    const outside = join(place.root, `outside-${Date.now()}`);
    mkdirSync(outside);
    writeFileSync(join(outside, 'settings.local.json'), '{}\n');
    symlinkSync(outside, join(project, '.claude'));
    const through = await install('--project');
    expect(through.exitCode).toBe(125);
    expectOneLine(through.stderr);
    expect(read(join(outside, 'settings.local.json'))).toBe('{}\n');
  });

  it('writes to nothing but files', async () => {
    mkdirSync(userFile(), { recursive: true });
    expect((await install()).exitCode).toBe(125);
    symlinkSync('/nowhere/at/all', join(project, 'dangling'));
    mkdirSync(join(project, '.claude'));
    symlinkSync('../dangling', projectFile());
    expect((await install('--project')).exitCode).toBe(125);
  });

  it('is whole whoever else installs at the same time', async () => {
    write(projectFile(), THEIRS);
    const runs = Array.from({ length: 6 }, (_, index) =>
      startCli({ ...place, workspace: project, env: { ...place.env, HOME: home } }, [
        ...['install', 'claude-code', '--project', '--mode', index % 2 === 0 ? 'decide' : 'rewrite'],
      ]),
    );
    for (const { exitCode } of await Promise.all(runs)) expect(exitCode).toBe(0);
    expect(JSON.parse(read(projectFile())).hooks.PreToolUse).toHaveLength(2);
    expect(readdirSync(dirname(projectFile()))).toEqual(['settings.local.json']);
    await install('--project', '--uninstall');
    expect(read(projectFile())).toBe(THEIRS);
  });

  it('says in one line what is wrong with its arguments', async () => {
    for (const args of [
      ['--user', '--project'],
      ['--mode', 'x'],
    ]) {
      const { exitCode, stderr } = await install(...args);
      expect(exitCode).toBe(125);
      expectOneLine(stderr);
    }
    expectOneLine((await cli(place, ['install', 'nobody'])).stderr);
    const help = await cli(place, ['install', '--help']);
    expect(help.stdout).toMatch(/Examples:(.|\n)*Exit status: /);
  });
});

describe('changing the text of settings', () => {
  const sandbox = {};
  const change = claudeCodeChange({
    mode: 'decide',
    sandbox,
    program: ["/it's/node", '/a b/cli.cjs'],
  });
  const none = claudeCodeChange(undefined);

  it('adds and takes out the same, whatever else is there and however it is written', () => {
    const group = fc.record({
      matcher: fc.string(),
      hooks: fc.array(fc.record({ type: fc.constant('command'), command: fc.string() }), {
        minLength: 1,
        maxLength: 2,
      }),
    });
    const names = fc.constantFrom('PreToolUse', 'PostToolUse', 'Stop', '1', '__proto');
    const hooks = fc.dictionary(names, fc.array(group, { minLength: 1, maxLength: 2 }), { minKeys: 1 });
    const others = fc.dictionary(
      fc.string().filter((name) => name !== 'hooks' && name !== '__proto__'),
      fc.jsonValue(),
    );
    const settings = fc
      .tuple(others, fc.option(hooks))
      .map(([rest, given]) => (given === null ? rest : { ...rest, hooks: given }));
    fc.assert(
      fc.property(
        settings,
        fc.constantFrom(0, 1, 2, 4, '\t'),
        fc.constantFrom('', '\n'),
        (value, indent, end) => {
          const text = JSON.stringify(value, null, indent) + end;
          const installed = changedSettings(text, change, 'f') ?? '';
          const parsed = JSON.parse(installed);
          const wanted = change.wanted.find(({ event }) => event === 'PreToolUse');
          expect(parsed.hooks.PreToolUse.at(-1)).toEqual(wanted?.group);
          expect({ ...parsed, hooks: undefined }).toEqual({ ...JSON.parse(text), hooks: undefined });
          expect(changedSettings(installed, change, 'f')).toBe(installed);
          // No file says the same as an empty one.
          expect(JSON.parse(changedSettings(installed, none, 'f') ?? '{}')).toEqual(JSON.parse(text));
        },
      ),
    );
  });

  it.each([
    "'/n' '/c' 'hook' 'claude-code' | tee log",
    "'/n' '/c' 'hook' 'claude-code'; mine",
    'sandbox-run hook claude-code',
    "'/n' '/c' 'hook' 'claude-code' --mode rewrite",
  ])('does not take %s, which somebody wrote, for its own', (command) => {
    expect(none.isOurs(command)).toBe(false);
  });
});
