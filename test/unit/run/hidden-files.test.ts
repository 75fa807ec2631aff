import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { HiddenFinder } from '../../../src/run/hidden-files.ts';

const root = mkdtempSync(join(realpathSync(tmpdir()), 'hidden-files-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const FILES = [
  '.env',
  '.env.local',
  'a/.env',
  'a/b/c/.env',
  'a/b/key.pem',
  'config/one.json',
  'config/deep/one.json',
  'secrets/token',
  'a/secrets/token',
  'a/secret',
  'x/config/one.json',
  'build/out.pem',
  'odd (1)/+x.txt',
  'node_modules/p/.env',
  'node_modules/p/secrets/token',
];

function makeTree(name: string, files: readonly string[] = FILES): string {
  const tree = join(root, name);
  for (const file of files) {
    mkdirSync(join(tree, file, '..'), { recursive: true });
    writeFileSync(join(tree, file), '');
  }
  return tree;
}

const workspace = makeTree('tree');

function found(hide: readonly string[], more: Partial<ConstructorParameters<typeof HiddenFinder>[1]> = {}) {
  const roots = { workspace, own: [workspace], all: [workspace, '/usr'], home: root, ...more };
  return new HiddenFinder(hide, roots).look().files.paths;
}
const within = (paths: readonly string[]) => paths.map((path) => path.slice(workspace.length + 1)).sort();

describe('patterns of what is hidden', () => {
  it.each([
    '.env',
    '/.env',
    '.env*',
    '*.pem',
    '**/*.pem',
    'secrets/',
    'secret',
    'secret*',
    'config/*.json',
    'config/**/one.json',
    '**/config/one.json',
    'config/',
    'a/**/.env',
    'a/**',
    '**/secrets/**',
    'odd (1)/',
    '+x.txt',
    '[ab]/',
    'b?ild/',
    '*',
    '**',
    '**/',
    '**/**',
    'a/*',
    'a/b/',
  ])('mean what they mean in .gitignore: %s', (pattern) => {
    writeFileSync(join(workspace, '.gitignore'), `${pattern}\n`);
    // Where nothing reads it, to write it can fail.
    const git = (args: readonly string[], input?: string) =>
      execFileSync('git', ['-C', workspace, '-c', 'core.excludesFile=/dev/null', ...args], {
        encoding: 'utf8',
        ...(input === undefined ? {} : { input }),
      });
    git(['init', '-q']);
    const ignored = git(['check-ignore', '--no-index', '--stdin', '-v', '-n'], FILES.join('\n'))
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('::'))
      .map((line) => line.split('\t')[1] ?? '');
    rmSync(join(workspace, '.gitignore'));
    rmSync(join(workspace, '.git'), { recursive: true });
    // There a slash at the beginning stands for the workspace, here for the root.
    const hidden = found([pattern.startsWith('/') ? `.${pattern}` : pattern]);
    const isHidden = (file: string) =>
      hidden.some((path) => path === join(workspace, file) || join(workspace, file).startsWith(`${path}/`));
    const looked = FILES.filter((file) => !file.startsWith('node_modules/'));
    expect(looked.filter(isHidden)).toEqual(looked.filter((file) => ignored.includes(file)));
    expect(looked.some((file) => ignored.includes(file))).toBe(true);
  });

  it('are looked for in what tools fetch only where they name it', () => {
    expect(within(found(['.env', 'secrets/']))).not.toContain('node_modules/p/.env');
    expect(within(found(['**/node_modules/**/.env']))).toEqual(['node_modules/p/.env']);
    expect(within(found(['node_modules/*/secrets']))).toEqual(['node_modules/p/secrets']);
    expect(within(found(['node_modules']))).toEqual(['node_modules']);
  });

  it('begin at the root or the home, and hold in all that can be read', () => {
    const data = makeTree('data', ['.env', 'one.pem']);
    const roots = { own: [workspace, data], all: [workspace, data, '/usr'] };
    expect(found(['~/data/.env'], roots)).toEqual([join(data, '.env')]);
    expect(found([`${root}/*/*.pem`], roots)).toEqual([join(data, 'one.pem')]);
    expect(found(['one.pem'], roots)).toEqual([join(data, 'one.pem')]);
    expect(found(['./.env'], roots)).toEqual([join(workspace, '.env')]);
    symlinkSync(data, join(root, 'by-link'));
    expect(found(['~/by-link/*.pem'], roots)).toEqual([join(data, 'one.pem')]);
    expect(found(['~/elsewhere/.env', '/etc/shadow'], roots)).toEqual([]);
    // Of the system only what is named from the root on.
    expect(found(['bash', '/usr/bin/bas[h]'], roots)).toEqual(['/usr/bin/bash']);
  });

  it('follow links within what can be read, once each', () => {
    const tree = makeTree('links', ['real/x.pem', 'conf/y.key']);
    symlinkSync('..', join(tree, 'real/loop'));
    symlinkSync('conf', join(tree, 'config'));
    symlinkSync('/usr', join(tree, 'system'));
    symlinkSync('real/nothing', join(tree, 'dangling.pem'));
    symlinkSync('/usr/bin/env', join(tree, 'tool.pem'));
    const roots = { workspace: tree, own: [tree], all: [tree, '/usr'] };
    expect(found(['**/*.pem', 'config/*.key'], roots)).toEqual([
      join(tree, 'conf/y.key'),
      join(tree, 'real/x.pem'),
    ]);
  });

  it('see at once what has changed', () => {
    const tree = makeTree('changing', ['a/b/x']);
    const finder = new HiddenFinder(['.env', 'sub/'], {
      workspace: tree,
      own: [tree],
      all: [tree],
      home: root,
    });
    expect(finder.look().files.paths).toEqual([]);
    writeFileSync(join(tree, 'a/b/.env'), '');
    const before = finder.look();
    expect(before.files.paths).toEqual([join(tree, 'a/b/.env')]);
    mkdirSync(join(tree, 'a/sub'));
    rmSync(join(tree, 'a/b/.env'));
    expect(finder.look().files.paths).toEqual([join(tree, 'a/sub')]);
    writeFileSync(join(tree, 'a/b/.env'), '');
    expect(finder.look().states).not.toEqual(before.states);
  });

  it.each([
    [{ directories: 3, names: 100, hidden: 100 }, 'more than 3 directories'],
    [{ directories: 100, names: 3, hidden: 100 }, 'or 3 names'],
    [{ directories: 100, names: 100, hidden: 1 }, 'at most 1 can be hidden'],
  ])('are given up, and nothing is shown, beyond %o', (limits, said) => {
    const finder = new HiddenFinder(
      ['.env'],
      { workspace, own: [workspace], all: [workspace], home: root },
      limits,
    );
    expect(() => finder.look()).toThrow(said);
  });

  it.each([
    ['', 'must not be empty'],
    ['a\0b', 'NUL'],
    ['!.env', 'nothing shows again'],
    ['~bob/x', 'must begin with ~/'],
    ['~', 'must begin with ~/'],
    ['../x', 'must not contain ..'],
    ['a/../../x', 'must not contain ..'],
    ['/', 'must name something'],
    ['./', 'must name something'],
    ['~/', 'must name something'],
    ['{a/b,c}', 'brace that is not closed'],
    ['a[b/c]', 'bracket that is not closed'],
  ])('are refused where they would hide nothing: %j', (pattern, said) => {
    expect(() => found([pattern])).toThrow(said);
  });
});
