import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { findProgram } from '../../../../src/workspace/host/find-program.ts';

const top = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-find-')));
afterAll(() => rmSync(top, { recursive: true, force: true }));

function program(name: string, mode = 0o755): void {
  writeFileSync(join(top, name), '#!/bin/sh\n');
  chmodSync(join(top, name), mode);
}
for (const directory of ['a', 'b', 'hidden', 'a/tool-dir', 'b/tool-dir-too']) {
  mkdirSync(join(top, directory), { recursive: true });
}
program('a/one');
program('b/one');
program('b/two');
program('hidden/two');
program('hidden/three');
program('a/plain', 0o644);
program('b/plain');
program('a/only-plain', 0o644);
program('local');
mkdirSync(join(top, 'b/directory'));
symlinkSync('../b/two', join(top, 'a/link'));
symlinkSync('nowhere', join(top, 'a/dangling'));
symlinkSync('loop', join(top, 'a/loop'));

const visible = (path: string) => !path.startsWith(join(top, 'hidden'));
function find(name: string, searchPath: string, cwd = top) {
  const entries = searchPath
    .split(':')
    .map((entry) => (entry.startsWith('@') ? join(top, entry.slice(1)) : entry));
  const found = findProgram(name, entries.join(':'), cwd, visible);
  return found.kind === 'not-found' ? found.kind : `${found.kind} ${found.path.replace(`${top}/`, '')}`;
}

describe('findProgram', () => {
  it.each([
    ['takes the first match', 'one', '@a:@b', 'found a/one'],
    ['goes on where there is none', 'two', '@a:@b', 'found b/two'],
    ['finds nothing', 'nothing', '@a:@b', 'not-found'],
    ['passes over a match without execute permission', 'plain', '@a:@b', 'found b/plain'],
    ['says so if that was the only match', 'only-plain', '@b:@a', 'not-executable a/only-plain'],
    ['passes over what the sandbox will not show', 'two', '@hidden:@b', 'found b/two'],
    ['says so if that was the only match', 'three', '@hidden:@a', 'not-executable hidden/three'],
    ['does not take a directory', 'directory', '@b', 'not-executable b/directory'],
    ['follows links', 'link', '@a', 'found a/link'],
    ['takes a dangling link for nothing', 'dangling', '@a', 'not-found'],
    ['takes a loop for nothing', 'loop', '@a', 'not-found'],
    ['passes over entries that are no directories', 'one', '@a/plain:@nowhere:@b', 'found b/one'],
    ['takes an empty entry for the working directory', 'local', '@a::@b', 'found local'],
    ['takes an empty PATH for the working directory', 'local', '', 'found local'],
    ['takes a relative entry from the working directory', 'one', 'b', 'found b/one'],
    ['takes a name with a slash as a path', 'b/one', '@a', 'found b/one'],
    ['takes ./ as a path', './local', '@a', 'found local'],
    ['does not search for a path', 'x/one', '@a', 'not-found'],
    ['does not run a path that is a directory', './b', '', 'not-executable b'],
    ['knows that no program has no name', '', '@a', 'not-found'],
  ])('%s: %s in %s', (_, name, searchPath, expected) => {
    expect(find(name, searchPath)).toBe(expected);
  });

  it('takes absolute paths and those from the working directory', () => {
    expect(find(join(top, 'a/one'), '')).toBe('found a/one');
    expect(find('../b/two', '', join(top, 'a'))).toBe('found b/two');
  });

  it.each([
    ['a/only-plain', 'it has no execute permission'],
    ['b/directory', 'it is not a file'],
    [
      'hidden/three',
      'it is outside of what the sandbox may execute; allow its directory with the option readable',
    ],
  ])('says why %s cannot be executed', (name, reason) => {
    expect(findProgram(`./${name}`, '', top, visible)).toMatchObject({ kind: 'not-executable', reason });
  });
});
