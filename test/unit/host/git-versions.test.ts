import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createVersions } from '../../../src/host/git/versions.ts';
import { textOfPath } from '../../../src/util/path-text.ts';

let workspace: string;
const at = (name: string) => join(workspace, name);
const write = (name: string, content = name) => {
  writeFileSync(at(name), content);
  // Of another second than the index, which is how git knows without reading.
  utimesSync(at(name), 1_000_000_000, 1_000_000_000);
};
const git = (...args: string[]) =>
  execFileSync('git', ['-C', workspace, '-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
    stdio: 'pipe',
  });

beforeEach(() => {
  workspace = mkdtempSync(join(realpathSync(tmpdir()), 'git-versions-'));
  git('init', '-q');
  mkdirSync(at('src/deep'), { recursive: true });
  for (const name of ['a.txt', 'b.txt', 'src/one.js', 'src/deep/two.js']) write(name);
  git('add', '.');
  git('commit', '-qm', 'first');
});
afterEach(() => rmSync(workspace, { recursive: true }));

describe.each(['2', '4'])('an index of version %s', (version) => {
  const versions = () => {
    git('update-index', '--index-version', version);
    return createVersions();
  };

  it('has what was committed', () => {
    expect(versions().lostWith(at('a.txt'))).toBeUndefined();
    expect(versions().lostWith(at('src'))).toBeUndefined();
    expect(versions().changedFrom(workspace)).toBeUndefined();
  });

  it('does not have what is not tracked, however deep', () => {
    write('src/deep/new.js');
    expect(versions().lostWith(at('src'))).toBe(at('src/deep/new.js'));
    expect(versions().lostWith(at('a.txt'))).toBeUndefined();
    expect(versions().changedFrom(workspace)).toBeUndefined();
  });

  it('does not have what was changed since', () => {
    write('src/one.js', 'longer than it was');
    expect(versions().lostWith(at('src/one.js'))).toBe(at('src/one.js'));
    expect(versions().changedFrom(workspace)).toBe(at('src/one.js'));
    expect(versions().changedFrom(workspace, at('src/deep'))).toBeUndefined();
  });

  it('notices a change of the same length by its time', () => {
    writeFileSync(at('a.txt'), 'A.TXT');
    expect(versions().lostWith(at('a.txt'))).toBe(at('a.txt'));
  });

  it('knows names that are not UTF-8 from each other, and from what they are shown as', () => {
    const odd = (name: string) => Buffer.concat([Buffer.from(`${workspace}/`), Buffer.from(name, 'latin1')]);
    const put = (name: string) => {
      writeFileSync(odd(name), name);
      utimesSync(odd(name), 1_000_000_000, 1_000_000_000);
    };
    mkdirSync(odd('d\xff'));
    put('d\xff/kept\xfe');
    git('add', '.');
    git('commit', '-qm', 'second');
    const text = (name: string) => textOfPath(odd(name));
    expect(versions().lostWith(text('d\xff'))).toBeUndefined();
    put('d\xff/new\xfe');
    expect(versions().lostWith(at('d*'))).toBe(text('d\xff/new\xfe'));
    expect(versions().lostWith(workspace, (path) => !path.includes('/.git'))).toBe(text('d\xff/new\xfe'));
    unlinkSync(odd('d\xff/new\xfe'));
    writeFileSync(odd('d\xff/kept\xfe'), 'longer than it was');
    expect(versions().changedFrom(workspace)).toBe(text('d\xff/kept\xfe'));
  });

  it('has nothing of a commit that was staged only', () => {
    write('a.txt', 'staged, and nowhere else');
    git('add', 'a.txt');
    expect(versions().changedFrom(workspace)).toBe(workspace);
    git('commit', '-qm', 'second');
    expect(versions().changedFrom(workspace)).toBeUndefined();
  });

  it('brings back what is gone', () => {
    unlinkSync(at('a.txt'));
    expect(versions().lostWith(at('a.txt'))).toBeUndefined();
    expect(versions().changedFrom(workspace)).toBeUndefined();
  });

  it('is asked about what a pattern matches, without hidden files', () => {
    write('c.txt');
    write('.d.txt');
    expect(versions().lostWith(at('*.txt'))).toBe(at('c.txt'));
    expect(versions().lostWith(at('[ab].txt'))).toBe(at('c.txt'));
    unlinkSync(at('c.txt'));
    expect(versions().lostWith(at('*.txt'))).toBeUndefined();
    expect(versions().lostWith(at('.*.txt'))).toBe(at('.d.txt'));
  });
});

describe('without a repository', () => {
  it('nothing is had, and nothing is changed', () => {
    rmSync(at('.git'), { recursive: true });
    const versions = createVersions();
    expect(versions.lostWith(at('a.txt'))).toBe(at('a.txt'));
    expect(versions.lostWith(at('nothing'))).toBeUndefined();
    expect(versions.changedFrom(workspace)).toBeUndefined();
  });

  it('an index that is none of git has nothing', () => {
    writeFileSync(at('.git/index'), 'DIRC, and then something else');
    expect(createVersions().lostWith(at('a.txt'))).toBe(at('a.txt'));
  });
});

it('a further working tree of a repository has what was committed', () => {
  git('worktree', 'add', '-q', 'tree');
  const versions = createVersions();
  expect(versions.lostWith(at('tree/src'))).toBeUndefined();
  expect(versions.changedFrom(at('tree'))).toBeUndefined();
  write('tree/src/new.js');
  expect(versions.lostWith(at('tree/src'))).toBe(at('tree/src/new.js'));
});

it('looks at those files only that count, of however many', () => {
  mkdirSync(at('many'));
  for (let number = 0; number < 20_001; number++) writeFileSync(at(`many/${number}`), '');
  const versions = createVersions();
  const counts = (end: string) => (path: string, isDirectory: boolean) =>
    isDirectory ? !path.endsWith('/.git') : path.endsWith(end);
  expect(versions.lostWith(workspace, counts('.tgz'))).toBeUndefined();
  expect(versions.lostWith(workspace, counts('/20000'))).toBe(at('many/20000'));
});
