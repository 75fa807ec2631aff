import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { processesWith } from '../support/leftovers.ts';
import { type AgentWorld, makeAgentWorld, type ToolCall, writeTo } from './agents-support.ts';
import { OPENCODE, opencodeRuns, pluginOf } from './opencode-client.ts';

const bash = (command: string, more: Readonly<Record<string, unknown>> = {}): ToolCall => ({
  name: 'bash',
  args: { command, description: 'what it is for', ...more },
});

const worlds: AgentWorld[] = [];
afterAll(() => {
  for (const world of worlds) world.dispose();
});
let world: AgentWorld;
beforeEach(() => {
  world = makeAgentWorld();
  worlds.push(world);
});
const change = (what: RegExp, by: string) =>
  writeFileSync(pluginOf(world), readFileSync(pluginOf(world), 'utf8').replace(what, by));

describe.skipIf(OPENCODE === undefined)('the real opencode', { timeout: 400_000 }, () => {
  it('runs commands in the sandbox, refuses what is refused, and never runs what is asked about', async () => {
    await world.install('opencode');
    const loose = join(world.project, 'loose');
    writeFileSync(loose, 'not committed');
    const requests: string[] = [];
    const script = [
      bash(`echo 'it is' "q" \\\\ \`echo b\`; echo "$((1 + 1))" é`),
      bash('cat <<X\nfirst $(echo second)\nX'),
      bash(`echo x > ${world.outside}/secret`),
      bash(writeTo(join(world.outside, 'planted'))),
      bash(writeTo(join(world.project, 'made'))),
      bash('git clean -fdx'),
      bash('sudo ls'),
      bash('sleep 7391', { timeout: 1500 }),
      bash('exit 3'),
    ];
    const seen = await opencodeRuns(world, script, { requests });
    expect(seen[0]).toBe('it is q \\ b\n2 é\n');
    expect(seen[1]).toBe('first second\n');
    expect(seen[2]).toMatch(/^Not run: .*\nRule: paths\.escapes_workspace/);
    expect(seen[3]).toMatch(/FileNotFoundError|PermissionError/);
    expect(existsSync(join(world.outside, 'planted'))).toBe(false);
    expect(existsSync(join(world.project, 'made'))).toBe(true);
    expect(seen[5]).toMatch(/^Not run: "git clean -fdx"/);
    expect(existsSync(loose)).toBe(true);
    expect(seen[6]).toMatch(/dangerous\.privilege/);
    expect(seen[7]).toMatch(/timeout|time/);
    await eventually(() => expect(processesWith('7391')).toEqual([]), 60_000);
    expect(seen).toHaveLength(9);

    // In the instructions of each request is, once, what holds for its commands.
    const withTools = requests.filter((text) => text.includes('"tools":['));
    expect(withTools).toHaveLength(script.length + 1);
    for (const text of withTools)
      expect(text.split('Shell commands run in a sandbox').length - 1, text.slice(0, 300)).toBe(1);
    expect(withTools[0]).toContain(`Workspace: ${world.project};`);
  });

  it('runs nothing if sandbox-run is not there, or takes too long', async () => {
    await world.install('opencode');
    const program = join(world.root, 'program');
    change(
      /(PROGRAM = ).*\n(.*WORDS = ).*\n(.*DEADLINE_MS = ).*/,
      `$1${JSON.stringify(program)};\n$2["60"];\n$33000;`,
    );
    const seen = await opencodeRuns(world, [
      bash(writeTo(join(world.project, 'without'))),
      () => {
        symlinkSync('/bin/sleep', program);
        return bash(writeTo(join(world.project, 'late')));
      },
    ]);
    expect(seen).toHaveLength(2);
    for (const text of seen) expect(text).toMatch(/^Not run: the hook of sandbox-run failed/);
    expect(readdirSync(world.project)).toEqual(['.git']);
  });

  it('runs commands unconfined where the plug-in is not loaded, as docs/agents says', async () => {
    await world.install('opencode');
    await opencodeRuns(world, [bash(writeTo(join(world.outside, 'one')))], { args: ['--pure'] });
    expect(existsSync(join(world.outside, 'one'))).toBe(true);
  });
});
