import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type ApprovalRequest,
  type ApprovalScope,
  type Approver,
  createSandbox,
  type SandboxOptions,
} from '../../src/index.ts';
import { makePlace } from './support.ts';

// An approval is good for what was shown: for these directories, files and matches, as they were then.

const place = makePlace();
const before = process.env.XDG_STATE_HOME;
let states = 0;
beforeEach(() => {
  process.env.XDG_STATE_HOME = join(place.root, `state-${++states}`);
  rmSync(place.workspace, { recursive: true, force: true });
  mkdirSync(place.workspace);
});
afterAll(() => {
  if (before === undefined) delete process.env.XDG_STATE_HOME;
  else process.env.XDG_STATE_HOME = before;
  place.dispose();
});

const at = (name: string) => join(place.workspace, name);
function write(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(at(name)), { recursive: true });
    writeFileSync(at(name), text);
  }
}

/** A sandbox in which everything is asked about; `meanwhile` happens before the answer is given. */
async function asking(
  scope: ApprovalScope,
  meanwhile: () => void = () => {},
  more: Omit<SandboxOptions, 'workspace'> = {},
) {
  const asked: ApprovalRequest[] = [];
  const approver: Approver = {
    ask: async (request) => {
      asked.push(request);
      meanwhile();
      return { approved: true, scope, by: 'test' };
    },
  };
  const sandbox = await createSandbox({
    workspace: place.workspace,
    autonomy: 'supervised',
    policy: JUDGED,
    ...more,
    gate: { approver },
  });
  return { asked, sandbox };
}

function git(...args: readonly string[]): void {
  const settings = ['-c', 'user.name=a', '-c', 'user.email=a@example.org', '-c', 'init.defaultBranch=main'];
  execFileSync('git', [...settings, ...args], { cwd: place.workspace, stdio: 'ignore' });
}

/** A repository in which `f` is committed. */
function repository(): void {
  git('init', '-q');
  write({ f: 'committed\n' });
  git('add', '.');
  git('commit', '-qm', 'one');
}

const JUDGED = { unsafe: { unjudged_commands: false }, workspace: { undo: 'never' } } as const;
const VOID = { status: 'denied', error: { code: 'approval.void' } };

describe('an approval that is given later', () => {
  it.each<[string, string, Readonly<Record<string, string>>, () => void]>([
    [
      'the directory was swapped',
      'cd A && rm -f x',
      { 'A/x': 'x', 'B/x': 'mine' },
      () => {
        renameSync(at('A'), at('C'));
        renameSync(at('B'), at('A'));
      },
    ],
    ['a pattern matches more', 'rm A/*', { 'A/x': 'x' }, () => write({ 'A/mine': 'mine' })],
    ['a pattern matches more, further down', 'rm -r ./*/x', { 'A/x': 'x' }, () => write({ 'B/x': 'mine' })],
    ['a directory that goes has more in it', 'rm -r A', { 'A/x': 'x' }, () => write({ 'A/in/mine': 'mine' })],
    [
      'a file in a directory that goes was replaced',
      'rm -r A',
      { 'A/in/x': 'x' },
      () => write({ 'A/in/x': 'y' }),
    ],
    ['a file that goes was replaced', 'rm x', { x: 'x' }, () => write({ x: 'mine' })],
    ['a file that is written over was replaced', 'cp a x', { a: 'a', x: 'x' }, () => write({ x: 'mine' })],
    ['a file that is moved was replaced', 'mv x y', { x: 'x' }, () => write({ x: 'mine' })],
    ['a match was replaced', 'rm A/*', { 'A/x': 'x' }, () => write({ 'A/x': 'mine' })],
    [
      'a sourced file changed',
      'bash s.sh',
      { 's.sh': '. ./lib.sh\n', 'lib.sh': ':' },
      () => write({ 'lib.sh': 'touch out' }),
    ],
    [
      'a sourced file of the directory of the script changed',
      'bash d/s.sh',
      { 'd/s.sh': 'source "$(dirname "$0")/lib.sh"\n', 'd/lib.sh': ':' },
      () => write({ 'd/lib.sh': 'touch out' }),
    ],
    [
      'a file that a sourced file sources changed',
      'bash s.sh',
      { 's.sh': 'source lib.sh', 'lib.sh': 'source more.sh', 'more.sh': ':' },
      () => write({ 'more.sh': 'touch out' }),
    ],
    [
      'a sourced file came',
      'bash s.sh',
      { 's.sh': '[ -e lib.sh ] && . ./lib.sh; true' },
      () => write({ 'lib.sh': 'touch out' }),
    ],
    [
      'a required module changed',
      'node j.js',
      { 'j.js': "require('./m')", 'm.js': '' },
      () => write({ 'm.js': 'evil()' }),
    ],
    [
      'an imported module changed',
      'node j.mjs',
      { 'j.mjs': "import { x } from './lib/m.mjs';", 'lib/m.mjs': 'export const x = 1' },
      () => write({ 'lib/m.mjs': 'export const x = 2' }),
    ],
    [
      'a module of Python changed',
      'python3 p.py',
      { 'p.py': 'import helper\n', 'helper.py': '' },
      () => write({ 'helper.py': 'evil()' }),
    ],
    [
      'what a program of the workspace sources changed',
      'bash -c ./run.sh',
      { 'run.sh': '#!/bin/sh\n. ./lib.sh\n', 'lib.sh': ':' },
      () => write({ 'lib.sh': 'touch out' }),
    ],
  ])('is void where %s', async (_, command, files, meanwhile) => {
    write(files);
    const { asked, sandbox } = await asking('once', meanwhile);
    await using _sandbox = sandbox;
    const result = await sandbox.run(command);
    expect([asked.length, result]).toMatchObject([1, VOID]);
  });

  it.each([
    ['rm A/*', { 'A/x': 'x' }],
    ['rm -r A', { 'A/in/x': 'x' }],
    ['cd A && rm -f x', { 'A/x': 'x' }],
    ['bash s.sh', { 's.sh': '. ./lib.sh\n', 'lib.sh': ':' }],
    ['cp A/x .', { 'A/x': 'x' }],
  ])('holds where nothing of it changed: %s (control)', async (command, files) => {
    write(files);
    const { sandbox } = await asking('once', () => write({ beside: 'x' }));
    await using _sandbox = sandbox;
    expect(await sandbox.run(command)).toMatchObject({ status: 'exited', exitCode: 0 });
  });
});

describe('an approval for always', () => {
  it.each<[string, string, Readonly<Record<string, string>>, string]>([
    ['a sourced file', 'bash s2.sh', { 's2.sh': '. ./lib.sh\n', 'lib.sh': ':\n' }, 'lib.sh'],
    ['a required module', 'node j.js', { 'j.js': "require('./m')\n", 'm.js': '\n' }, 'm.js'],
  ])('is asked again once %s changed', async (_, command, files, changed) => {
    write(files);
    const { asked, sandbox } = await asking('always');
    await using _sandbox = sandbox;
    await sandbox.run(command);
    await sandbox.run(command);
    expect([asked.length, asked[0]?.unseen ?? []]).toEqual([1, []]);
    write({ [changed]: ' \n' });
    await sandbox.run(command);
    expect(asked).toHaveLength(2);
  });

  it.each([
    ['bash s.sh', { 's.sh': 'lib=./lib.sh; . "$lib"\n', 'lib.sh': ':\n' }, /\$lib/],
    ['bash s.sh', { 's.sh': 'eval "$(cat x)"\n' }, /eval/],
    ['node j.js', { 'j.js': 'require(process.argv[2] ?? "fs")\n' }, /require/],
    ['node j.js', { 'j.js': "require('mod')\n", 'node_modules/mod/index.js': '' }, /mod/],
    ['python3 p.py', { 'p.py': 'import importlib\nimportlib.import_module("os")\n' }, /import/],
    ['python3 < p.py', { 'p.py': 'pass' }, /input/],
  ])('is not given where what runs cannot be known: %s, %o', async (command, files, named) => {
    write(files);
    const { asked, sandbox } = await asking('always');
    await using _sandbox = sandbox;
    const first = await sandbox.run(command);
    expect(first).toMatchObject({ approval: { approved: true, scope: 'once' } });
    await sandbox.run(command);
    expect(asked).toHaveLength(2);
    expect(asked[0]?.unseen?.join()).toMatch(named);
  });
});

describe('an approval for longer than once', () => {
  // What is done before each of two runs of the same line.
  const LOSSES: readonly (readonly [string, () => void])[] = [
    ['rm -f u5', () => write({ u5: `${Math.random()}` })],
    ['rm f u5', () => write({ f: `${Math.random()}`, u5: 'x' })],
    ['f=u5; rm -f "$f"', () => write({ u5: `${Math.random()}` })],
    ['find . -name u5 -delete', () => write({ u5: `${Math.random()}` })],
    ['mv u5 /tmp/', () => write({ u5: `${Math.random()}` })],
    ['git reset --hard', () => write({ f: `${Math.random()}` })],
    ['git reset -q --hard HEAD', () => write({ f: `${Math.random()}` })],
    ['git checkout .', () => write({ f: `${Math.random()}` })],
    ['git checkout -f', () => write({ f: `${Math.random()}` })],
    ['git restore f', () => write({ f: `${Math.random()}` })],
    ['git show HEAD:f > f', () => write({ f: `${Math.random()}` })],
    ['git clean -fd', () => write({ 'd/u5': `${Math.random()}` })],
    [
      'git stash drop',
      () => {
        write({ f: `${Math.random()}` });
        git('stash');
      },
    ],
    ['bash -c "git clean -fd"', () => write({ 'd/u5': `${Math.random()}` })],
    ['sh gone.sh', () => write({ 'gone.sh': 'rm -f u5\n', u5: `${Math.random()}` })],
  ];
  const LEVELS = ['contained', 'supervised'] as const;
  const SCOPES = ['session', 'always'] as const;
  const all = LOSSES.flatMap(([command, prepare]) =>
    LEVELS.flatMap((autonomy) => SCOPES.map((scope) => [command, autonomy, scope, prepare] as const)),
  );

  it.each(all)(
    'is not given for work that is lost: %s (%s, %s)',
    async (command, autonomy, scope, prepare) => {
      repository();
      const { asked, sandbox } = await asking(scope, () => {}, { autonomy, session: `s${states}` });
      await using _sandbox = sandbox;
      prepare();
      const first = await sandbox.run(command);
      expect(first).toMatchObject({ status: 'exited', approval: { approved: true, scope: 'once' } });
      prepare();
      await sandbox.run(command);
      expect(asked).toHaveLength(2);
    },
  );

  it('is not used where nothing was lost when it was given, and something is now', async () => {
    repository();
    const { asked, sandbox } = await asking('always');
    await using _sandbox = sandbox;
    for (const _ of [1, 2]) await sandbox.run('git reset -q --hard');
    expect(asked).toHaveLength(1);
    write({ f: 'work' });
    await sandbox.run('git reset -q --hard');
    expect(asked).toHaveLength(2);
  });

  const rules = [{ program: 'rm', verdict: 'ask' as const }];
  it('is not given for a loss that a rule of the policy asks about', async () => {
    const policy = { ...JUDGED, commands: { rules } };
    const { asked, sandbox } = await asking('always', () => {}, { autonomy: 'autonomous', policy });
    await using _sandbox = sandbox;
    for (const text of ['one', 'two']) {
      write({ u5: text });
      await sandbox.run('rm -f u5');
    }
    expect(asked).toHaveLength(2);
  });

  it('is given where nothing is lost, for what tools make anew, too (control)', async () => {
    const { asked, sandbox } = await asking('always');
    await using _sandbox = sandbox;
    for (const command of ['mkdir -p made', 'rm -rf dist'])
      for (const _ of [1, 2]) await sandbox.run(command);
    expect(asked.map(({ command }) => command)).toEqual(['mkdir -p made', 'rm -rf dist']);
  });

  it.each<[string, Omit<SandboxOptions, 'workspace'>]>([
    ['time limit', { timeout: 9_000 }],
    ['limit of its output', { maxOutput: 5_000 }],
    ['limit of memory', { policy: { ...JUDGED, limits: { memory: 2 ** 31 } } }],
    ['time for an answer', { policy: { ...JUDGED, approval: { timeout_seconds: 7 } } }],
    ['way of asking', { policy: { ...JUDGED, approval: { ask: 'queue' } } }],
    ['amount that is explained', { policy: { ...JUDGED, sandbox: { explain: 'never' } } }],
    ['number of actions', { policy: { ...JUDGED, security: { max_actions_per_hour: 9 } } }],
  ])('holds under another %s', async (_, more) => {
    const first = await asking('always');
    await first.sandbox.run('mkdir -p made', { timeout: 30_000 });
    await first.sandbox.close();
    const { asked, sandbox } = await asking('always', () => {}, more);
    await using _sandbox = sandbox;
    expect(await sandbox.run('mkdir -p made')).toMatchObject({ status: 'exited' });
    expect([first.asked.length, asked.length]).toEqual([1, 0]);
  });

  it.each<[string, Omit<SandboxOptions, 'workspace'>]>([
    ['writable path', { policy: { ...JUDGED, filesystem: { write: [place.other] } } }],
    ['network', { policy: { ...JUDGED, network: { mode: 'open' } } }],
    ['variable', { policy: { ...JUDGED, environment: { set: { NODE_ENV: 'x' } } } }],
    ['file mode', { policy: { ...JUDGED, limits: { umask: '000' } } }],
  ])('does not hold with another %s', async (_, more) => {
    const first = await asking('always');
    await first.sandbox.run('mkdir -p made');
    await first.sandbox.close();
    const { asked, sandbox } = await asking('always', () => {}, more);
    await using _sandbox = sandbox;
    await sandbox.run('mkdir -p made');
    expect(asked).toHaveLength(1);
  });

  it('holds for a script that was changed and put back byte for byte, and for no other', async () => {
    const script = (text: string) => {
      rmSync(at('run.sh'), { force: true });
      write({ 'run.sh': text });
      chmodSync(at('run.sh'), 0o755);
    };
    const { asked, sandbox } = await asking('always');
    await using _sandbox = sandbox;
    const counts: number[] = [];
    for (const text of ['#!/bin/sh\n:\n', '#!/bin/sh\ntrue\n', '#!/bin/sh\n:\n', '#!/bin/sh\n;\n']) {
      script(text);
      await sandbox.run('./run.sh');
      counts.push(asked.length);
    }
    expect(counts).toEqual([1, 2, 2, 3]);
  });
});

describe('an approval of what check() showed', () => {
  it.each<[string, string, Readonly<Record<string, string>>, () => void]>([
    ['a file that is written over was replaced', 'cp a x', { a: 'a', x: 'x' }, () => write({ x: 'mine' })],
    ['a pattern matches more', 'rm A/*', { 'A/x': 'x' }, () => write({ 'A/mine': 'mine' })],
    ['nothing changed', 'rm A/*', { 'A/x': 'x' }, () => {}],
  ])('is void where %s, and only then', async (what, command, files, meanwhile) => {
    write(files);
    const { sandbox } = await asking('once');
    await using _sandbox = sandbox;
    const { request } = await sandbox.check(command);
    meanwhile();
    const approved = { fingerprint: request?.fingerprint ?? '' };
    const result = await sandbox.run(command, { approved });
    expect(result.status).toBe(what === 'nothing changed' ? 'exited' : 'denied');
  });
});
