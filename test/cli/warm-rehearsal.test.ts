import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { leftIn } from '../support/leftovers.ts';
import { patience } from '../support/slow-host.ts';
import { HOST } from '../support/tiers.ts';
import { serversOf, startCli } from './support.ts';
import { call, makeWarmPlace, type WarmPlace, warmUp } from './warm-support.ts';

/** A place for one test. They run beside each other: most of their time they wait for servers. */
function makeOwnPlace({ onTestFinished }: Pick<TestContext, 'onTestFinished'>): WarmPlace {
  const place = makeWarmPlace();
  onTestFinished(() => place.dispose());
  return place;
}

function makePolicy(place: WarmPlace, text: string): void {
  const directory = join(place.root, 'config/sandbox-run');
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'policy.toml'), text);
}

const hookOf = (mode: string) => [
  'hook',
  'claude-code',
  '--mode',
  mode,
  ...(mode === 'decide' ? ['--after', 'outside'] : []),
];

const event = (place: WarmPlace, name: string, more: object = {}) =>
  JSON.stringify({ session_id: 'one', cwd: place.workspace, hook_event_name: name, ...more });
const toolCall = (place: WarmPlace, command: string) =>
  event(place, 'PreToolUse', { tool_name: 'Bash', tool_use_id: 'call', tool_input: { command } });

/** Processor time of a process in ticks. */
function timeOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

/** A session begins, and its server has nothing to do any more. */
async function begin(place: WarmPlace, words: readonly string[]): Promise<number> {
  const started = await call(place, words, { input: event(place, 'SessionStart') });
  expect(started).toMatchObject({ exitCode: 0, stderr: '' });
  await eventually(() => {
    expect(serversOf(place.root)).toHaveLength(1);
    expect(readdirSync(place.state).some((name) => name.startsWith('warm-'))).toBe(true);
  });
  const [server = 0] = serversOf(place.root);
  let before = -1;
  await eventually(async () => {
    const now = timeOf(server);
    const was = before;
    before = now;
    await new Promise((done) => setTimeout(done, 500));
    expect(now).toBe(was);
  });
  return server;
}

function filesBeneath(directory: string): readonly string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));
}

describe.concurrent('a server of a session that begins makes itself ready for its calls', () => {
  it(
    'and runs, records, counts, remembers and asks nothing by that',
    async (test) => {
      const place = makeOwnPlace(test);
      const marker = join(place.root, 'reviewed');
      const reviewer = join(place.root, 'reviewer');
      writeFileSync(
        reviewer,
        `#!/bin/sh\ncat > /dev/null\necho asked >> ${marker}\necho '{"verdict": "ask", "reason": "no"}'\n`,
      );
      chmodSync(reviewer, 0o755);
      makePolicy(
        place,
        [
          '[security]\nautonomy = "supervised"\nmax_actions_per_hour = 100',
          '[approval]\nask = "queue"',
          '[audit]\nenabled = true',
          `[reviewer]\ncommand = ["${reviewer}"]`,
        ].join('\n'),
      );
      await begin(place, hookOf('rewrite'));
      // It has made what commands get their caches from, so it has made what they run in.
      expect(existsSync(join(place.state, 'caches'))).toBe(true);
      expect(readdirSync(place.workspace)).toEqual([]);
      expect(existsSync(marker)).toBe(false);
      const audit = join(place.state, 'audit');
      const recorded = () =>
        (existsSync(audit) ? filesBeneath(audit) : []).map((path) => readFileSync(path, 'utf8'));
      expect(recorded().join('')).toBe('');
      // As a process of its own: in this one it would lend it its directories, in which the places of other tests would be made then.
      const say = async (...words: readonly string[]) => (await startCli(place, words)).stdout;
      const remembered = async () => [
        await say('session', 'list', '--json'),
        await say('approvals', 'list', '--json'),
      ];
      expect((await remembered()).join('')).not.toContain('claude-code');
      expect(await say('budget', 'show', '--json')).toMatch(/"used": ?0/);

      // All of that is seen where there is something to see.
      const asked = await call(place, hookOf('rewrite'), { input: toolCall(place, 'rm -rf build') });
      expect(JSON.parse(asked.stdout).hookSpecificOutput.permissionDecision).toBe('ask');
      expect((await remembered()).join('')).toContain('claude-code');
    },
    patience(120_000),
  );

  it(
    'in mode decide as well, and leaves no state where there was none',
    async (test) => {
      const place = makeOwnPlace(test);
      await begin(place, hookOf('decide'));
      expect(filesBeneath(place.state).filter((path) => !/warm-[^/]*$/.test(path))).toEqual([]);
      expect(readdirSync(place.workspace)).toEqual([]);
      const answer = await call(place, hookOf('decide'), { input: toolCall(place, 'ls') });
      expect(JSON.parse(answer.stdout).hookSpecificOutput.permissionDecision).toBe('allow');
    },
    patience(120_000),
  );

  it.runIf(HOST.namespaces)(
    'and lends what it has made to the first call, whose directory and variables are its own',
    async (test) => {
      const place = makeOwnPlace(test);
      const server = await begin(place, hookOf('rewrite'));
      const made = leftIn(place.tmp);
      // One of the sandbox, one of the session.
      expect(made).toHaveLength(2);
      const answer = await call(place, hookOf('rewrite'), {
        input: toolCall(place, 'echo "$PWD $LANG"; echo x > made'),
      });
      const { command } = JSON.parse(answer.stdout).hookSpecificOutput.updatedInput;
      const { execa } = await import('execa');
      const ran = await execa('/bin/bash', ['-c', command], {
        ...{ cwd: place.workspace, env: place.env, extendEnv: false },
      });
      expect(ran.stdout).toBe(`${place.workspace} C.UTF-8`);
      expect(readFileSync(join(place.workspace, 'made'), 'utf8')).toBe('x\n');
      // The directory that is private to the sandbox is the one that was there.
      expect(leftIn(place.tmp)).toEqual(made);
      expect(serversOf(place.root)).toEqual([server]);
    },
    patience(120_000),
  );

  it.runIf(HOST.namespaces)(
    'and leaves nothing of it where the session ends without a call',
    async (test) => {
      const place = makeOwnPlace(test);
      await begin(place, hookOf('rewrite'));
      expect(leftIn(place.tmp)).toHaveLength(2);
      // The server has to have seen the session to end with it.
      await call(place, hookOf('rewrite'), { input: event(place, 'SessionStart') });
      await call(place, hookOf('rewrite'), { input: event(place, 'SessionEnd') });
      await eventually(() => expect(serversOf(place.root)).toEqual([]), 60_000);
      expect(leftIn(place.tmp)).toEqual([]);
    },
    patience(120_000),
  );

  it(
    'and ends with a session that was over before it listened',
    async (test) => {
      const place = makeOwnPlace(test);
      const hook = async (name: string) => call(place, hookOf('rewrite'), { input: event(place, name) });
      expect(await hook('SessionStart')).toMatchObject({ exitCode: 0 });
      // Positive control: it is on its way.
      await eventually(() => expect(serversOf(place.root)).toHaveLength(1), 60_000);
      const [server = 0] = serversOf(place.root);
      process.kill(server, 'SIGSTOP');
      expect(await hook('SessionEnd')).toMatchObject({ exitCode: 0 });
      process.kill(server, 'SIGCONT');
      await eventually(() => expect(serversOf(place.root)).toEqual([]), 60_000);
      expect(filesBeneath(place.state).filter((path) => /warm-/.test(path))).toEqual([]);
      // A session that goes on under its name has one.
      await hook('SessionEnd');
      await begin(place, hookOf('rewrite'));
    },
    patience(120_000),
  );

  it(
    'and ends with sessions that were over while it was stopped',
    async (test) => {
      const place = makeOwnPlace(test);
      const hook = async (name: string, session_id: string) =>
        call(place, hookOf('rewrite'), { input: event(place, name, { session_id }) });
      const server = await begin(place, hookOf('rewrite'));
      await hook('SessionStart', 'two');
      process.kill(server, 'SIGSTOP');
      await Promise.all([hook('SessionEnd', 'one'), hook('SessionEnd', 'two')]);
      process.kill(server, 'SIGCONT');
      await eventually(() => expect(serversOf(place.root)).toEqual([]), 60_000);
    },
    patience(120_000),
  );

  it(
    'and ends with one that it has never heard of, where no other is known',
    async (test) => {
      const place = makeOwnPlace(test);
      await warmUp(place);
      expect(await call(place, hookOf('rewrite'), { input: event(place, 'SessionEnd') })).toMatchObject({
        exitCode: 0,
      });
      await eventually(() => expect(serversOf(place.root)).toEqual([]), 60_000);
    },
    patience(120_000),
  );

  it(
    'and is not started again by what comes after the end of the session',
    async (test) => {
      const place = makeOwnPlace(test);
      await begin(place, hookOf('rewrite'));
      await call(place, hookOf('rewrite'), { input: event(place, 'SessionEnd') });
      await eventually(() => expect(serversOf(place.root)).toEqual([]), 60_000);
      const after = {
        tool_name: 'Bash',
        tool_use_id: 'late',
        tool_input: { command: 'ls' },
        tool_response: {},
      };
      for (const late of [event(place, 'PostToolUse', after), event(place, 'Notification')])
        expect(await call(place, hookOf('rewrite'), { input: late })).toMatchObject({ exitCode: 0 });
      // It is started before the hook has ended, if at all.
      expect(serversOf(place.root)).toEqual([]);
    },
    patience(120_000),
  );

  it(
    'but not where the policy has plug-ins, which each call has to find as they are',
    async (test) => {
      const place = makeOwnPlace(test);
      const marker = join(place.root, 'loaded');
      const plugin = join(place.root, 'plugin.mjs');
      writeFileSync(
        plugin,
        `import { appendFileSync } from 'node:fs';\nappendFileSync(${JSON.stringify(marker)}, process.pid + '\\n');\nexport const before_tool_use = () => ({ allowed: true });\n`,
      );
      makePolicy(place, `[[hooks.plugins]]\npath = "${plugin}"\n`);
      const server = await begin(place, hookOf('rewrite'));
      const loadedBy = () => (existsSync(marker) ? readFileSync(marker, 'utf8').split('\n') : []);
      expect(loadedBy()).not.toContain(String(server));
      const answer = await call(place, hookOf('rewrite'), { input: toolCall(place, 'ls') });
      expect(JSON.parse(answer.stdout).hookSpecificOutput.permissionDecision).toBe('allow');
      expect(loadedBy()).toContain(String(server));
    },
    patience(120_000),
  );

  it.for(['codex', 'gemini-cli'])('for %s as well', { timeout: patience(120_000) }, async (agent, test) => {
    const place = makeOwnPlace(test);
    const words = ['hook', agent, '--mode', 'rewrite'];
    await begin(place, words);
    // It has made what commands get their caches from, so it has made what they run in.
    expect(existsSync(join(place.state, 'caches'))).toBe(true);
    // It is a server of the session that it was started for, which it has heard nothing of.
    expect(await call(place, words, { input: event(place, 'SessionEnd') })).toMatchObject({ exitCode: 0 });
    await eventually(() => expect(serversOf(place.root)).toEqual([]), 60_000);
  });
});
