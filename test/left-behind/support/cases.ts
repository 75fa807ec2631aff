import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isBeneath } from '../../../src/base/absolute-path.ts';
import type { Sandbox } from '../../../src/index.ts';
import type { LeftBehind } from '../../../src/model/index.ts';
import { makeDirectory } from '../../support/state-home.ts';
import { HOST_TIERS, rowsFor, sandboxIn, type Tier } from '../../support/tiers.ts';

/**
 * A way out of the sandbox by what is left behind: a project as people have it, what a command does in it, and what its
 * user does outside afterwards. All texts are bash, run in the project. They know `$MARK`, a file outside of the project that
 * must not come to be, and `plant FILE`, which makes a program that makes it.
 */
export interface Case {
  readonly name: string;
  readonly tool: string;
  /** What is there before, beside a repository with one commit. */
  readonly make?: string;
  /** One command each; `outside`: what the user does meanwhile. */
  readonly attack: string | readonly (string | { readonly outside: string })[];
  /** In one sandbox; in a sandbox each; in one shell session; each a background job. */
  readonly by?: 'commands' | 'sandboxes' | 'session' | 'job';
  readonly later: string;
  /**
   * `shut`: the mark does not come to be, and what was taken away is said, or the attack met a read-only file. `told`: the
   * result names the path. `not covered`: the mark comes to be, and `why` stands in SECURITY.md.
   */
  readonly expected: 'shut' | 'told' | 'not covered';
  /** What commands may write besides, relative. */
  readonly writable?: readonly string[];
  /** What the result has to name, relative; also by what is around it. Default: anything. */
  readonly path?: string;
  /** What has to work outside all the same, with the user's own work and settings in it. */
  readonly still?: string;
  readonly why?: string;
  /** On which tiers beside the strongest. Default: it is one of a table of which the other tiers run a sample. */
  readonly on?: 'each tier';
}

interface Attempt {
  readonly work: string;
  /** Runs as the user does, and gives the exit status. */
  readonly outside: (script: string) => Promise<{ readonly status: number; readonly output: string }>;
  readonly prelude: string;
  readonly isMarked: () => boolean;
  readonly unmark: () => void;
}

const run = promisify(execFile);
const SECURITY = readFileSync(fileURLToPath(new URL('../../../SECURITY.md', import.meta.url)), 'utf8');
const HELD =
  /Read-only file system|Device or resource busy|Permission denied|Operation not permitted|cross-device|failed to access/;
/** Only what hangs takes so long. */
const LATER_MS = 100_000;
/** Thousands of directories, on a machine that has other work. */
const SLOW_MS = 240_000;
const WORDS = /\s+/g;

/** Runs commands by hand where a case is more than a list of them. */
export interface Hands extends Pick<Attempt, 'work' | 'prelude' | 'outside' | 'isMarked'> {}

/** Declares tests that need their own course, on each tier of this host. */
export function describeByHand(name: string, test: (hands: Hands, sandbox: Sandbox) => Promise<void>): void {
  describe(name, () => {
    const attempt = makeAttempts();
    it.each(HOST_TIERS)('$name', async (tier) => {
      const hands = await attempt({});
      await using sandbox = await sandboxIn(tier, { workspace: hands.work, policyFiles: false });
      await test(hands, sandbox);
    });
  });
}

/**
 * Bash that makes the mark if a command of the user opens a FIFO to read it, which hangs until another program writes there. Here
 * another one does.
 */
export const hangsAt = (fifo: string, command: string): string =>
  `if test -p ${fifo}; then (while exec 3> ${fifo}; do touch "$MARK"; exec 3>&-; done) & ${command}; kill $!; fi`;

/** Declares the tests of a family: each case without us and on the strongest tier of this host, a sample on the other ones. */
export function describeCases(family: string, cases: readonly Case[]): void {
  describe(family, () => {
    const attempt = makeAttempts();

    describe.concurrent('without a sandbox it works', () => {
      it.each(cases.map((one) => [one.name, one] as const))('%s', { timeout: SLOW_MS }, async (_, one) => {
        const { outside, isMarked, unmark } = await attempt(one);
        const said: string[] = [];
        for (const step of attacksOf(one))
          said.push((await outside(typeof step === 'string' ? step : step.outside)).output);
        unmark();
        said.push((await outside(one.later)).output);
        expect(isMarked(), said.join('\n--\n')).toBe(true);
      });
    });

    describe.concurrent.each(HOST_TIERS)('$name', (tier) => {
      const rows = rowsFor(tier, cases, ({ on }) => on === 'each tier');
      it.each(rows.map((one) => [`${one.name}: ${one.expected}`, one] as const))(
        '%s',
        { timeout: SLOW_MS },
        async (_, one) => {
          await expectOutcome(one, await attempt(one), tier);
        },
      );
    });
  });
}

/** What people have commands do every day. */
export interface Work {
  readonly name: string;
  readonly make?: string;
  /** What commands may write besides, relative. */
  readonly writable?: readonly string[];
  /**
   * Each a command that has to succeed; those of a list within the list run at the same time: the file `.ended-N` is there once
   * the command with that number, from 0, has ended.
   */
  readonly work: readonly (string | readonly string[])[];
  /** What has to hold outside afterwards: bash that ends with 0. */
  readonly proof: string;
  /** What the results may tell of, relative; nothing else is to be said. */
  readonly told?: readonly string[];
}

/** Declares tests of work that has to go on as if nobody looked. */
export function describeWork(family: string, works: readonly Work[]): void {
  describe(family, () => {
    const attempt = makeAttempts();
    describe.concurrent.each(HOST_TIERS)('$name', (tier) => {
      it.each(rowsFor(tier, works).map((one) => [one.name, one] as const))(
        '%s',
        { timeout: SLOW_MS },
        async (_, one) => {
          const { work, prelude, outside } = await attempt(one);
          await using sandbox = await sandboxIn(tier, optionsOf(work, one));
          const said: string[] = [];
          for (const step of one.work) {
            const texts = typeof step === 'string' ? [step] : step;
            const results = await Promise.all(
              texts.map(async (text, number) => {
                const result = await sandbox.run(`${prelude}set -e\n${text}`);
                if (texts.length > 1) writeFileSync(join(work, `.ended-${number}`), '');
                return result;
              }),
            );
            for (const { stdout, stderr, exitCode, leftBehind } of results) {
              said.push(stdout, stderr);
              expect(exitCode, said.join('')).toBe(0);
              const unexpected = leftBehind.filter(
                ({ path, done }) => done !== 'told' || !one.told?.includes(relative(work, path)),
              );
              expect(unexpected, said.join('')).toEqual([]);
            }
          }
          const proof = await outside(`set -e\n${one.proof}`);
          expect(proof.status, `${said.join('')}\n${proof.output}`).toBe(0);
        },
      );
    });
  });
}

async function expectOutcome(one: Case, attempt: Attempt, tier: Tier): Promise<void> {
  const { work, outside, isMarked, unmark } = attempt;
  const { left, printed } = await attackInside(one, attempt, tier);
  expect(isMarked(), 'the command itself wrote outside').toBe(false);
  unmark();
  const later = await outside(one.later);
  const said = `${printed}\n${JSON.stringify(left, null, 1)}\n${later.output}`;
  const names = ({ path }: LeftBehind) => {
    const wanted = join(work, one.path ?? '.');
    // What is around it, too: it goes with it. But not the whole project.
    return isBeneath(path, wanted) || (path !== work && isBeneath(wanted, path));
  };
  switch (one.expected) {
    case 'shut': {
      expect(isMarked(), said).toBe(false);
      const isSaid = left.some((some) => some.done !== 'told' && names(some));
      expect(isSaid || HELD.test(printed), said).toBe(true);
      break;
    }
    case 'told':
      expect(left.filter(names), said).not.toEqual([]);
      break;
    case 'not covered':
      expect(isMarked(), said).toBe(true);
      expect(SECURITY.replace(WORDS, ' ')).toContain((one.why ?? 'no reason is given').replace(WORDS, ' '));
      break;
  }
  if (one.still === undefined) return;
  const after = await outside(one.still);
  expect(after.status, `${said}\n${after.output}`).toBe(0);
}

async function attackInside(one: Case, { work, prelude, outside }: Attempt, tier: Tier) {
  const left: LeftBehind[] = [];
  const printed: string[] = [];
  const note = (result: {
    leftBehind: readonly LeftBehind[];
    status: string;
    stderr: string;
    stdout: string;
  }) => {
    expect(result.status, result.stderr).toBe('exited');
    left.push(...result.leftBehind);
    printed.push(result.stdout, result.stderr);
  };
  const options = optionsOf(work, one);
  if (one.by === 'sandboxes') {
    for (const step of attacksOf(one)) {
      await using sandbox = await sandboxIn(tier, options);
      note(await sandbox.run(`${prelude}${step}\ntrue`));
    }
    return { left, printed: printed.join('') };
  }
  await using sandbox = await sandboxIn(tier, options);
  await using shell = one.by === 'session' ? await sandbox.session() : undefined;
  for (const step of attacksOf(one)) {
    if (typeof step !== 'string') {
      await outside(step.outside);
      continue;
    }
    const text = `${prelude}${step}\ntrue`;
    if (shell !== undefined) note(await shell.run(text));
    else if (one.by === 'job') note(await (await sandbox.run(text, { background: true })).wait());
    else note(await sandbox.run(text));
  }
  return { left, printed: printed.join('') };
}

const optionsOf = (work: string, { writable = [] }: Pick<Case, 'writable'>) => ({
  workspace: work,
  policyFiles: false,
  writable: writable.map((path) => join(work, path)),
});

const attacksOf = ({ attack }: Case) => (typeof attack === 'string' ? [attack] : attack);

/** To be called while tests are declared; cleaned up after them. */
function makeAttempts(): (one: Pick<Case, 'make'>) => Promise<Attempt> {
  const root = makeDirectory(join(realpathSync(tmpdir()), 'left-behind-'));
  const template = join(root, 'template');
  let count = 0;
  beforeAll(() => makeTemplate(template));
  afterAll(async () => {
    // What attacks shut is opened again where it has to be. It takes a minute on a busy machine, and vitest does not take a process that is silent so long for a living one.
    const remove = 'rm -rf "$0" 2>/dev/null || { chmod -R u+rwX "$0"; rm -rf "$0"; }';
    await run('bash', ['-c', remove, root]);
  }, 2 * SLOW_MS);
  return (one) => makeAttempt(join(root, `${++count}`), template, one);
}

function makeTemplate(directory: string): void {
  const script = `
    git init -q -b main . && git config user.name me && git config user.email me@localhost
    printf '# mine\\n[core]\\n\\tabbrev = 9\\n' >> .git/config
    echo one > file && git add . && git commit -q -m first`;
  mkdirSync(directory);
  execFileSync('bash', ['-ec', script], { cwd: directory, env: userEnvironment(directory), stdio: 'pipe' });
}

async function makeAttempt(
  directory: string,
  template: string,
  { make = '' }: Pick<Case, 'make'>,
): Promise<Attempt> {
  const work = join(directory, 'work');
  const home = join(directory, 'home');
  const mark = join(directory, 'mark');
  mkdirSync(home, { recursive: true });
  await run('cp', ['-a', template, work]);
  const prelude = `MARK='${mark}'
export GIT_AUTHOR_NAME=me GIT_AUTHOR_EMAIL=me@localhost GIT_COMMITTER_NAME=me GIT_COMMITTER_EMAIL=me@localhost
plant() { mkdir -p "$(dirname "$1")"; printf '#!/bin/sh\\ntouch "%s"\\n' "$MARK" > "$1"; chmod +x "$1"; }
`;
  const outside: Attempt['outside'] = async (script) => {
    const options = { cwd: work, env: userEnvironment(home), timeout: LATER_MS };
    const running = run('bash', ['-c', `${prelude}${script}`], options);
    running.child.stdin?.end();
    try {
      const { stdout, stderr } = await running;
      return { status: 0, output: `${stdout}${stderr}` };
    } catch (error) {
      const { code, stdout, stderr } = error as { code?: number; stdout?: string; stderr?: string };
      return { status: code ?? -1, output: `${stdout}${stderr}` };
    }
  };
  const made = await outside(`set -e\n${make}`);
  expect(made.status, made.output).toBe(0);
  return {
    work,
    prelude,
    outside,
    isMarked: () => existsSync(mark),
    unmark: () => rmSync(mark, { force: true }),
  };
}

/** Nothing of the machine's or of whoever runs the tests. */
function userEnvironment(home: string): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH,
    HOME: home,
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    npm_config_offline: 'true',
    npm_config_update_notifier: 'false',
  };
}
