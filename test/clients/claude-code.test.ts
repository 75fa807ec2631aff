import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI } from '../cli/support.ts';
import { eventually } from '../support/eventually.ts';
import { processesWith } from '../support/leftovers.ts';
import { HOST } from '../support/tiers.ts';
import { CALLS, type CallRow, LONGEST_RESULT, PAGE, SECRET, TOKEN, type World } from './claude-calls.ts';
import type { ToolCall, ToolResult, Turn } from './claude-model.ts';
import { claudePackage } from './claude-package.ts';
import {
  type ClaudePlace,
  type ClaudeRun,
  type Hooks,
  makeClaudePlace,
  runClaude,
} from './claude-session.ts';

const claude = claudePackage();
if ('missing' in claude)
  process.stderr.write(
    `\n${'!'.repeat(80)}\nClaude Code is NOT TESTED: ${claude.missing}\n${'!'.repeat(80)}\n`,
  );
const program = 'missing' in claude ? '' : claude.program;

/** All of a session's time: about 30 calls, on a machine that does other things, too. */
const SESSION_MS = 150_000;
/** The user lets the agent do everything, so what is refused is refused by the hooks. */
const ALLOWED = ['Bash', 'Monitor', 'Read', 'Write'];

const page = createServer((_, response) => response.end(PAGE));
const places: ClaudePlace[] = [];
await new Promise<void>((done) => page.listen(0, '127.0.0.1', done));
afterAll(() => {
  page.close();
  for (const place of places) place.dispose();
});

function makePlace(hooks: Hooks): ClaudePlace & { readonly world: World } {
  const place = makeClaudePlace(CLI, hooks, ALLOWED);
  places.push(place);
  const { project, root } = place;
  const secretFile = join(root, 'secret.txt');
  writeFileSync(secretFile, SECRET);
  const git = (...args: readonly string[]) =>
    execFileSync('git', args, { cwd: project, env: place.env, stdio: 'pipe' });
  git('init', '-q');
  git('config', '--global', 'user.name', 'Tester');
  git('config', '--global', 'user.email', 'tester@example.org');
  mkdirSync(join(project, 'sub'));
  writeFileSync(join(project, 'sub/file.txt'), 'in the file\n');
  mkdirSync(join(project, 'precious'));
  writeFileSync(join(project, 'precious/work.txt'), 'not committed\n');
  writeFileSync(join(project, '.gitignore'), 'precious\n');
  const { port } = page.address() as AddressInfo;
  const world = {
    ...{ project, secretFile, planted: join(root, 'planted') },
    page: `http://127.0.0.1:${port}/`,
    // As long as a day, and in no other command line.
    seconds: `${80_000 + Math.random() * 1000}`,
  };
  return { ...place, world };
}

function turnsOf(rows: readonly CallRow[], world: World): readonly Turn[] {
  const turns: CallRow[][] = [];
  for (const row of rows)
    if (row.isTogether) turns.at(-1)?.push(row);
    else turns.push([row]);
  return turns.map(
    (turn) => (seen: readonly ToolResult[]) => Promise.all(turn.map(({ call }) => call(world, seen))),
  );
}

const bash = (command: string): readonly ToolCall[] => [
  { tool: 'Bash', input: { command, description: 'Does something' } },
];

describe.skipIf(program === '').each<Hooks>(['none', 'decide', 'rewrite'])(
  'Claude Code, hooks: %s',
  (hooks) => {
    let root: string;
    let world: World;
    let run: ClaudeRun;
    beforeAll(async () => {
      const place = makePlace(hooks);
      root = place.root;
      world = place.world;
      const env = { ...place.env, SOME_TOKEN: TOKEN };
      run = await runClaude(program, { ...place, env }, turnsOf(CALLS, world), { timeoutMs: SESSION_MS });
    }, SESSION_MS + 10_000);

    it('goes through the whole script, and nowhere but to loopback', () => {
      expect(run).toMatchObject({ status: 0, stderr: '', outside: [] });
      expect(run.results).toHaveLength(CALLS.length);
    });

    it.each(CALLS.map((row, at) => ({ ...row, at })))('shows the model: $what', ({ sees, at }) => {
      const { text, isError } = run.results[at] ?? { text: 'no result', isError: undefined };
      const expected = sees(world)[hooks];
      if (typeof expected.text === 'string') expect(text).toBe(expected.text);
      else expect(text).toMatch(expected.text);
      if (expected.isError !== undefined) expect(isError).toBe(expected.isError);
      expect(text.length).toBeLessThan(LONGEST_RESULT);
    });

    it('has nothing of the machinery in what the model sees', () => {
      for (const { text } of run.results) expect(text).not.toMatch(/--approval|cli\.cjs|\bat .*:\d+:\d+/);
    });

    const isHooked = hooks !== 'none';
    it(`${isHooked ? 'keeps' : 'does not keep'} the user's files as they were`, () => {
      expect(existsSync(world.planted)).toBe(!isHooked);
      expect(existsSync(join(world.project, '.git/hooks/pre-push'))).toBe(!isHooked);
      expect(existsSync(join(world.project, 'precious/work.txt'))).toBe(isHooked);
      expect(existsSync(join(world.project, '.git/hooks/pre-commit'))).toBe(false);
      expect(existsSync(join(world.project, 'half-run'))).toBe(false);
      expect(readFileSync(world.secretFile, 'utf8')).toBe(SECRET);
    });

    it(hooks === 'rewrite' ? 'leaves no process behind' : 'leaves a process behind', async () => {
      const left = () => processesWith(`sleep\0${world.seconds}`);
      try {
        if (hooks === 'rewrite') await eventually(() => expect(left()).toEqual([]));
        else expect(left()).not.toEqual([]);
      } finally {
        for (const pid of left()) process.kill(pid, 'SIGKILL');
      }
    });

    it('leaves nothing running that knows the place', async () => {
      await eventually(() => expect(processesWith(root)).toEqual([]));
    });
  },
);

describe.skipIf(program === '').each<Hooks>(['decide', 'rewrite'])(
  'a person who answers, hooks: %s',
  (hooks) => {
    it(
      'is asked about each run, and it runs or not as they say',
      async () => {
        const place = makePlace(hooks);
        const work = join(place.project, 'precious/work.txt');
        const remove = bash('rm -rf precious && echo gone');
        // What is there while a question waits, and what is answered.
        const found: boolean[] = [];
        const answers = [false, true];
        const answer = () => {
          found.push(existsSync(work));
          return answers.shift() ?? false;
        };
        const run = await runClaude(program, place, [remove, remove], { answer, timeoutMs: SESSION_MS });
        expect(found).toEqual([true, true]);
        expect(run.results).toMatchObject([
          { text: 'The user said no.', isError: true },
          { text: 'gone', isError: false },
        ]);
        expect(existsSync(work)).toBe(false);
        expect(run.questions[0]).toMatchObject({ tool_name: 'Bash', decision_reason_type: 'hook' });
        expect(String(run.questions[0]?.decision_reason)).toMatch(/\brm\b/);
      },
      SESSION_MS,
    );
  },
);

describe.skipIf(program === '')('a hook that does not work', () => {
  it.each([
    ['its program is gone', (line: string) => line.replaceAll('/dist/cli.cjs', '/dist/no-cli.cjs')],
    ['it dies', (line: string) => line.replaceAll("'hook'", "'--bogus'")],
  ])(
    'blocks every command: %s',
    async (_, broken) => {
      const place = makePlace('rewrite');
      const settings = join(place.home, '.claude/settings.json');
      writeFileSync(settings, broken(readFileSync(settings, 'utf8')));
      const run = await runClaude(program, place, [bash('echo ran > ran.txt')], { timeoutMs: SESSION_MS });
      expect(run.results[0]?.isError).toBe(true);
      expect(existsSync(join(place.project, 'ran.txt'))).toBe(false);
    },
    SESSION_MS,
  );
});

describe.skipIf(program === '' || !HOST.namespaces)('a server in the background', () => {
  it(
    'is reached by the commands of the next session after /clear, whose model is told of it and ends it',
    async () => {
      const place = makePlace('rewrite');
      const word = `of-${Math.random()}`;
      writeFileSync(
        join(place.project, 'serve.mjs'),
        `import { createServer } from 'node:http';
createServer((_, response) => response.end('served')).listen(8123, '127.0.0.1');`,
      );
      const serve = { command: `node serve.mjs ${word}`, description: 'Serves', run_in_background: true };
      const fetch = bash(
        `node -e "const get = (tries) => fetch('http://localhost:8123').then((r) => r.text()).then(console.log, () => tries > 0 && setTimeout(get, 200, tries - 1)); get(100)"`,
      );
      const stop = (seen: readonly ToolResult[]) =>
        bash(/stop it with: (kill \d+)/.exec(seen.at(-1)?.text ?? '')?.[1] ?? 'false');
      // Headless, Claude Code waits for what runs in the background.
      const turns: readonly Turn[] = [[{ tool: 'Bash', input: serve }], fetch, [], fetch, stop, []];
      const prompts = ['go', '/clear', 'go'];
      const run = await runClaude(program, place, turns, {
        answer: () => false,
        prompts,
        timeoutMs: SESSION_MS,
      });
      const [, before, after, stopped] = run.results;
      expect(before?.text).toContain('served');
      expect(new Set(run.messages.map(({ session_id: session }) => session)).size).toBeGreaterThan(1);
      expect(after?.text).toContain('served');
      expect(after?.text).toContain('reach it at localhost:8123');
      expect(stopped).toMatchObject({ isError: false, text: 'In the background: nothing runs any more.' });
      expect(run.status).toBe(0);
      await eventually(() => expect(processesWith(word)).toEqual([]), 60_000);
    },
    SESSION_MS,
  );
});
