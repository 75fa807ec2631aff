import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { type ApprovalRequest, type Approver, createSandbox } from '../../src/index.ts';
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
async function asking(scope: 'once' | 'always', meanwhile: () => void = () => {}) {
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
    policy: { unsafe: { unjudged_commands: false } },
    gate: { approver },
  });
  return { asked, sandbox };
}

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
