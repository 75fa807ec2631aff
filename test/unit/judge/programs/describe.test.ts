import { describe, expect, it } from 'vitest';
import {
  describeCommand,
  findProgram,
  PROGRAM_ROWS,
  programName,
} from '../../../../src/judge/programs/program-table.ts';
import { commandIn } from '../../../support/simple-command.ts';

describe('programName', () => {
  it.each([
    ['ls', 'ls'],
    ['/bin/ls', 'ls'],
    ['/usr/bin/git status', 'git'],
    ['"ls" -l', 'ls'],
    ['./git status', undefined],
    ['bin/git', undefined],
    ['/usr/bin/../../work/git', undefined],
    ['/work/bin/git', undefined],
    ['PATH=./bin git', undefined],
    ['A=b git', 'git'],
  ])('of %s is %s', (source, expected) => {
    expect(programName(commandIn(source))).toBe(expected);
  });

  it('is none for a file of the workspace that lies on PATH', () => {
    expect(programName(commandIn('git status'), (name) => name === 'git')).toBeUndefined();
  });
});

describe('describeCommand', () => {
  it.each([
    ['git push', 'push'],
    ['git -C d --no-pager push', 'push'],
    ['git -c a=b --git-dir=x push', 'push'],
    ['git --no-pager stash drop', 'stash drop'],
    ['git remote -v add x y', 'remote add'],
    ['npm --prefix web install', 'install'],
    ['npm -s --loglevel silent i', 'i'],
    ['cargo --color never -q add x', 'add'],
    ['pip --quiet install x', 'install'],
    ['uv pip install x', 'pip install'],
    ['go mod tidy', 'mod'],
    ['git unknown-verb', ''],
  ])('finds the verb of %s', (source, expected) => {
    expect(describeCommand(commandIn(source))?.verbs.slice(0, 2).join(' ')).toBe(expected);
  });

  it('has nothing to say about assignments alone', () => {
    expect(describeCommand(commandIn('A=b'))).toBeUndefined();
  });

  it.each([
    ['python3.12', 'python'],
    ['gcc-13', 'gcc'],
    ['mkfs.ext4', 'mkfs'],
    ['clang++-17', 'clang++'],
    ['mkfs.f2fs', 'mkfs'],
    ['vim.tiny', 'vim'],
    ['ld-2.31.so', 'ld.so'],
  ])('knows %s as %s', (name, expected) => {
    expect(findProgram(name)?.name).toBe(expected);
  });

  it('knows well over a thousand programs', () => {
    expect(PROGRAM_ROWS.flatMap(({ names }) => names.split(' ')).length).toBeGreaterThan(1000);
  });
});
