import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { textOfPath } from '../../../../src/base/path-text.ts';
import { createVersions } from '../../../../src/workspace/host/git/versions.ts';

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

  it.each<[string, (name: string) => void]>([
    ['was touched', (name) => utimesSync(at(name), 1_500_000_000, 1_500_000_000)],
    ['was written again', (name) => writeFileSync(at(name), name)],
    [
      'was replaced by a copy',
      (name) => {
        writeFileSync(at('copy'), name);
        renameSync(at('copy'), at(name));
      },
    ],
  ])('has what %s and has the same bytes', (_, change) => {
    change('src/one.js');
    expect(versions().lostWith(at('src/one.js'))).toBeUndefined();
    expect(versions().changedFrom(workspace)).toBeUndefined();
  });

  it('does not have what was changed in the tick of the index, with the same size and time', () => {
    const stamp = new Date();
    utimesSync(at('a.txt'), stamp, stamp);
    git('update-index', '--refresh');
    const mine = versions();
    writeFileSync(at('a.txt'), 'A.TXT');
    utimesSync(at('a.txt'), stamp, stamp);
    utimesSync(at('.git/index'), stamp, stamp);
    expect(mine.lostWith(at('a.txt'))).toBe(at('a.txt'));
    expect(mine.changedFrom(workspace)).toBe(at('a.txt'));
  });

  it('has what git has of who may execute a file, where the repository has git compare that', () => {
    const isClean = () => git('status', '--porcelain').length === 0;
    chmodSync(at('a.txt'), 0o600);
    expect([isClean(), versions().changedFrom(workspace)]).toEqual([true, undefined]);
    chmodSync(at('a.txt'), 0o755);
    expect([isClean(), versions().changedFrom(workspace)]).toEqual([false, at('a.txt')]);
    expect(versions().lostWith(at('a.txt'))).toBe(at('a.txt'));
    git('config', 'core.fileMode', 'false');
    expect([isClean(), versions().changedFrom(workspace)]).toEqual([true, undefined]);
  });

  it('has a link that was made again, and not one that leads elsewhere', () => {
    symlinkSync('a.txt', at('link'));
    git('add', '.');
    git('commit', '-qm', 'second');
    unlinkSync(at('link'));
    symlinkSync('a.txt', at('link'));
    expect(versions().lostWith(at('link'))).toBeUndefined();
    unlinkSync(at('link'));
    symlinkSync('b.txt', at('link'));
    expect(versions().lostWith(at('link'))).toBe(at('link'));
    unlinkSync(at('link'));
    writeFileSync(at('link'), 'a.txt');
    expect(versions().lostWith(at('link'))).toBe(at('link'));
  });

  it.each(['true', 'input', 'false'])('is no finer than git with core.autocrlf=%s', (autocrlf) => {
    git('config', 'core.autocrlf', autocrlf);
    write('crlf.txt', 'one\r\ntwo\r\n');
    write('lf.txt', 'one\ntwo\n');
    git('add', '.');
    git('commit', '-qm', 'second');
    const isClean = (name: string) => git('status', '--porcelain', name).length === 0;
    for (const name of ['crlf.txt', 'lf.txt']) {
      utimesSync(at(name), 1_500_000_000, 1_500_000_000);
      expect(versions().changedFrom(workspace, at(name))).toBeUndefined();
      expect(isClean(name)).toBe(true);
      write(name, 'one\ntwo?\r\n');
      expect(versions().changedFrom(workspace, at(name))).toBe(at(name));
    }
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

it('has the content of a repository with SHA-256, whatever its time', () => {
  rmSync(at('.git'), { recursive: true });
  git('init', '-q', '--object-format=sha256');
  git('add', '.');
  git('commit', '-qm', 'first');
  utimesSync(at('a.txt'), 1_500_000_000, 1_500_000_000);
  expect(createVersions().lostWith(at('a.txt'))).toBeUndefined();
  writeFileSync(at('a.txt'), 'A.TXT');
  expect(createVersions().lostWith(at('a.txt'))).toBe(at('a.txt'));
});
