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
import { GEMINI, geminiRuns, writeGeminiSettings } from './gemini-client.ts';

const shell = (command: string, more: Readonly<Record<string, unknown>> = {}): ToolCall => ({
  name: 'run_shell_command',
  args: { command, ...more },
});

const worlds: AgentWorld[] = [];
afterAll(() => {
  for (const world of worlds) world.dispose();
});
let world: AgentWorld;
beforeEach(() => {
  world = makeAgentWorld();
  worlds.push(world);
  writeGeminiSettings(world);
});
const settingsFile = () => join(world.home, '.gemini/settings.json');
describe.skipIf(GEMINI === undefined)('the real Gemini CLI', { timeout: 400_000 }, () => {
  it('runs commands in the sandbox, refuses what is refused, never runs what is asked about, and is told once, when its session begins, what holds', async () => {
    await world.install('gemini-cli');
    const loose = join(world.project, 'loose');
    writeFileSync(loose, 'not committed');
    const requests: string[] = [];
    const script = [
      shell(`echo 'it is' "q" \\\\ \`echo b\`; echo "$((1 + 1))" é`, { description: 'what it is for' }),
      shell('cat <<X\nfirst $(echo second)\nX'),
      shell(`echo x > ${world.outside}/secret`),
      shell(writeTo(join(world.outside, 'planted'))),
      shell(writeTo(join(world.project, 'made'))),
      shell('git clean -fdx'),
      shell('sudo ls'),
      shell('mkdir -p sub && pwd'),
      shell('pwd', { dir_path: 'sub' }),
      shell('exit 3'),
    ];
    const seen = await geminiRuns(world, script, requests);
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

    const [first = ''] = requests.filter((text) => text.includes('run_shell_command'));
    expect(first.split('Shell commands run in a sandbox').length - 1).toBe(1);
    expect(first).toContain(world.project);
    await eventually(() => expect(processesWith(world.root)).toEqual([]), 60_000);
  });

  it('runs nothing if sandbox-run is not there, does not start, takes too long, or is asked as Claude Code', async () => {
    await world.install('gemini-cli');
    const parts = takeApart(world, settingsFile());
    const attempt = (name: string) => shell(writeTo(join(world.project, name)));
    parts.replace('program', undefined);
    const seen = await geminiRuns(world, [
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
    for (const text of seen) expect(text).toMatch(/^Tool execution blocked: [\s\S]*the command was not run/);
    expect(readdirSync(world.project)).toEqual(['.git']);
  });

  it('runs commands unconfined without hooks, and after one that it did not wait for, as docs/agents says', async () => {
    await geminiRuns(world, [shell(writeTo(join(world.outside, 'one')))]);
    expect(existsSync(join(world.outside, 'one'))).toBe(true);
    await world.install('gemini-cli');
    const settings = JSON.parse(readFileSync(settingsFile(), 'utf8'));
    const [before] = settings.hooks.BeforeTool[0].hooks;
    Object.assign(before, { command: 'exec sleep 4', timeout: 500 });
    writeFileSync(settingsFile(), JSON.stringify(settings));
    await geminiRuns(world, [shell(writeTo(join(world.outside, 'two')))]);
    expect(existsSync(join(world.outside, 'two'))).toBe(true);
  });
});
