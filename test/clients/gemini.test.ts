import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { processesWith } from '../support/leftovers.ts';
import { type AgentWorld, makeAgentWorld, type ToolCall, writeTo } from './agents-support.ts';
import { GEMINI, geminiRuns, writeGeminiSettings } from './gemini-client.ts';

const shell = (command: string, more: Readonly<Record<string, unknown>> = {}): ToolCall => ({
  name: 'run_shell_command',
  args: { command, ...more },
});

const worlds: AgentWorld[] = [];
afterAll(() => {
  for (const world of worlds) world.dispose();
}, 120_000);
let world: AgentWorld;
beforeEach(() => {
  world = makeAgentWorld();
  worlds.push(world);
  writeGeminiSettings(world);
});
const settingsFile = () => join(world.home, '.gemini/settings.json');
const change = (what: RegExp, by: string) =>
  writeFileSync(settingsFile(), readFileSync(settingsFile(), 'utf8').replace(what, by));

describe.skipIf(GEMINI === undefined)('the real Gemini CLI', { timeout: 400_000 }, () => {
  it('runs commands in the sandbox, refuses what is refused, and never runs what is asked about', async () => {
    await world.install('gemini-cli');
    const loose = join(world.project, 'loose');
    writeFileSync(loose, 'not committed');
    const seen = await geminiRuns(world, [
      shell(`echo 'it is' "q" \\\\ \`echo b\`; echo "$((1 + 1))" é`, { description: 'what it is for' }),
      shell('cat <<X\nfirst $(echo second)\nX'),
      shell(`cat ${world.outside}/secret`),
      shell(writeTo(join(world.outside, 'planted'))),
      shell(writeTo(join(world.project, 'made'))),
      shell('git clean -fdx'),
      shell('sudo ls'),
      shell('mkdir -p sub && pwd'),
      shell('pwd', { dir_path: 'sub' }),
      shell('exit 3'),
    ]);
    expect(seen[0]).toContain('Output: it is q \\ b\n2 é\n');
    expect(seen[1]).toContain('first second\n');
    expect(seen[2]).toMatch(/^Tool execution blocked: Not run: .*\nRule: paths\.escapes_workspace/);
    expect(seen[3]).toMatch(/FileNotFoundError|PermissionError/);
    expect(existsSync(join(world.outside, 'planted'))).toBe(false);
    expect(existsSync(join(world.project, 'made'))).toBe(true);
    expect(seen[5]).toMatch(/Not run: "git clean -fdx"[\s\S]*Exit Code: 126/);
    expect(existsSync(loose)).toBe(true);
    expect(seen[6]).toMatch(/dangerous\.privilege/);
    expect(seen[7]).toContain(`${world.project}\n`);
    expect(seen[8]).toContain(`${world.project}/sub\n`);
    expect(seen[9]).toContain('Exit Code: 3');
  });

  it('is told once, when its session begins, what holds for its commands', async () => {
    await world.install('gemini-cli');
    const requests: string[] = [];
    await geminiRuns(world, [shell('pwd')], requests);
    const [first = ''] = requests.filter((text) => text.includes('run_shell_command'));
    expect(first.split('Shell commands run in a sandbox').length - 1).toBe(1);
    expect(first).toContain(world.project);
    await eventually(() => expect(processesWith(world.root)).toEqual([]), 20_000);
  });

  it.each([
    ['is not there', /'[^']*cli\.cjs'/g, "'/nowhere/cli.cjs'"],
    ['takes too long', /'110'(?: '[^']*')+? '[^']*cli\.cjs'/g, "'1' '/bin/sh' '-c' 'sleep 60'"],
    ['is asked as Claude Code', /'hook' 'gemini-cli'/g, "'hook' 'claude-code'"],
  ])('runs nothing if sandbox-run %s', async (_, what, by) => {
    await world.install('gemini-cli');
    change(what, by);
    const [seen] = await geminiRuns(world, [shell(writeTo(join(world.project, 'made')))]);
    expect(seen).toMatch(/^Tool execution blocked: [\s\S]*the command was not run/);
    expect(existsSync(join(world.project, 'made'))).toBe(false);
  });

  it('runs commands unconfined without hooks, and after one that it did not wait for, as docs/agents says', async () => {
    await geminiRuns(world, [shell(writeTo(join(world.outside, 'one')))]);
    expect(existsSync(join(world.outside, 'one'))).toBe(true);
    await world.install('gemini-cli');
    change(/'110'(?: '[^']*')+? '[^']*cli\.cjs'/g, "'110' '/bin/sh' '-c' 'sleep 4'");
    change(/"timeout": 120000/g, '"timeout": 500');
    await geminiRuns(world, [shell(writeTo(join(world.outside, 'two')))]);
    expect(existsSync(join(world.outside, 'two'))).toBe(true);
  });
});
