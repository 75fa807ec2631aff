import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createGitGuard, splitAlias } from '../../../../../src/judge/programs/git/guard.ts';
import { BUILT_IN, REFUSED, SHIPPED } from '../../../../../src/judge/programs/git/guard-verbs.ts';
import { parseShell } from '../../../../../src/judge/shell/parse.ts';
import { readAliases } from '../../../../../src/workspace/index.ts';
import { createGitWorld, type GitWorld } from '../../../../support/git-world.ts';

const template = createGitWorld();
afterAll(() => template.remove());
let world: GitWorld;
beforeEach(() => {
  world = createGitWorld(template);
});
afterEach(() => {
  world.remove();
});

const judge = async (line: string) => {
  const guard = createGitGuard({
    parse: parseShell,
    aliasesAt: (directory) => readAliases(directory, { HOME: world.home }),
  });
  return (await guard.judge(parseShell(line), world.repository, line)).allowed;
};

const commit = () => {
  writeFileSync(join(world.repository, 'file'), `${Math.random()}\n`);
  world.git('commit', '-qam', 'more');
};

describe('what git itself makes of an alias', () => {
  const ALIASES: Readonly<Record<string, string>> = {
    plain: 'push',
    options: '-c color.ui=never push -q',
    quotes: '"pu"\'sh\'',
    backslash: 'pu\\sh',
    shelled: '!git push',
    function: '!f() { git push; }; f',
    words: '!git',
    chain: 'plain',
    UPPER: 'push',
    'with-dash': 'push',
  };

  it.each(Object.entries(ALIASES))('%s pushes, and is refused', async (name, text) => {
    for (const [other, value] of Object.entries(ALIASES)) world.git('config', `alias.${other}`, value);
    expect(world.git('config', `alias.${name}`)).toBe(text);
    commit();
    const before = world.state();
    const line = name === 'words' ? 'git words push' : `git ${name}`;
    expect(await judge(line)).toBe(false);
    world.run(line);
    expect(world.state().remote).not.toBe(before.remote);
  });

  it('it knows from an included file, from the home, and from the directory of a submodule or -C', async () => {
    writeFileSync(join(world.home, 'more'), '[alias]\n\tincluded = push\n');
    writeFileSync(join(world.home, '.gitconfig'), '[alias]\n\thome = push\n[include]\n\tpath = more\n');
    const other = join(world.repository, 'other');
    mkdirSync(other);
    execFileSync('git', ['init', '-q'], { cwd: other });
    execFileSync('git', ['config', 'alias.elsewhere', 'push'], { cwd: other });
    for (const line of ['git included', 'git home']) {
      commit();
      const before = world.state();
      expect(await judge(line)).toBe(false);
      world.run(line);
      expect(world.state().remote).not.toBe(before.remote);
    }
    expect(await judge('git -C other elsewhere')).toBe(false);
    execFileSync('git', ['config', 'alias.elsewhere', 'status'], { cwd: other });
    expect(await judge('git -C other elsewhere')).toBe(true);
    expect(await judge('cd other && git elsewhere')).toBe(true);
    expect(await judge('git elsewhere')).toBe(false);
  });

  it('that has the name of a command of its own is nothing', async () => {
    world.git('config', 'alias.status', 'push');
    commit();
    const before = world.state();
    expect(await judge('git status')).toBe(true);
    world.run('git status');
    expect(world.state()).toEqual(before);
  });

  it('that is harmless is allowed', async () => {
    world.git('config', 'alias.st', 'status -sb');
    world.git('config', 'alias.lg', "log --pretty='%h push'");
    expect(await judge('git st && git lg')).toBe(true);
  });
});

const PUSHES = [
  'git push',
  'git -c alias.x=push x',
  "git -c alias.x='!git push' x",
  'git -C . push',
  'git --git-dir=.git push',
  'git p"us"h',
  '"$(git --exec-path)"/git-push',
  'git send-pack "$(git config remote.origin.url)" main',
  'git submodule foreach true; git push',
  'GIT_EDITOR="git push; true" git commit --amend --allow-empty',
  'GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0=push git x',
  'GIT_CONFIG_PARAMETERS="\'alias.x=push\'" git x',
  'X=push git --config-env=alias.x=X x',
  'git config alias.x push; git x',
  'git bisect start; git bisect run git push; git bisect reset',
];

describe('what pushes', () => {
  it.each(PUSHES)('%s', async (line) => {
    commit();
    const before = world.state();
    expect(await judge(line)).toBe(false);
    world.run(line);
    if (!line.includes('bisect')) expect(world.state().remote).not.toBe(before.remote);
  });
});

const PULLS = [
  'git pull',
  'git pull --rebase',
  'git fetch && git merge',
  'git fetch && git merge origin/main',
  'git fetch && git reset --hard origin/main',
  'git fetch && git checkout -B main origin/main',
  'git fetch -u origin main:main',
  'git fetch && git rebase',
  'git remote update && git merge @{u}',
];

describe('what pulls', () => {
  it.each(PULLS)('%s', async (line) => {
    commit();
    world.git('push', '-q');
    world.git('reset', '-q', '--hard', 'HEAD~1');
    world.git('update-ref', 'refs/remotes/origin/main', 'HEAD');
    const before = world.state();
    expect(await judge(line)).toBe(false);
    world.run(line);
    expect(world.state().head).not.toBe(before.head);
  });
});

const HARMLESS = [
  'git fetch',
  'git stash push -m x',
  'git branch push',
  'git commit --allow-empty -m "git push"',
  'git log --grep=push',
  'git help push',
  'git --help push',
  'git --version push',
  'git push -h',
  'git config alias.p push',
  'git rebase --abort',
  'git tag push',
];

describe('what is allowed', () => {
  it.each(HARMLESS)('%s leaves the remote as it was', async (line) => {
    commit();
    const before = world.state();
    expect(await judge(line)).toBe(true);
    world.run(line);
    expect(world.state().remote).toBe(before.remote);
  });
});

describe('the list of commands', () => {
  it('has every command of the git that is installed', () => {
    const names = world.git('--list-cmds=main').split('\n');
    const known = (name: string) =>
      BUILT_IN.has(name) || SHIPPED.has(name) || name in REFUSED || name.startsWith('remote-');
    expect(names.filter((name) => !known(name) && name !== 'rebase')).toEqual([]);
  });

  it('has none that an alias could take the place of', () => {
    // git runs the alias if it has no such command: then it would write the file.
    for (const name of ['stage', 'fsck-objects', 'init-db', 'get-tar-commit-id', 'bisect', 'submodule']) {
      world.git('config', `alias.${name}`, '!echo aliased');
      expect(world.run(`git ${name} -h 2>&1`)).not.toContain('aliased');
    }
  });
});

describe('reading aliases', () => {
  it('runs nothing that the repository names', async () => {
    const proof = join(world.home, 'proof');
    for (const key of ['core.pager', 'pager.config', 'core.fsmonitor', 'core.editor', 'core.sshCommand'])
      world.git('config', key, `touch ${proof}`);
    world.git('config', 'alias.x', 'status');
    expect(await readAliases(world.repository, { HOME: world.home })).toEqual([['x', 'status']]);
    expect(world.run(`ls ${proof}`)).toContain('No such file');
  });

  it('fails where there is no such directory, a broken file, or a pipe in the place of one', async () => {
    const read = () => readAliases(world.repository, { HOME: world.home });
    await expect(readAliases('/does-not-exist', {})).rejects.toThrow();
    writeFileSync(join(world.home, '.gitconfig'), '[alias\n');
    await expect(read()).rejects.toThrow();
    writeFileSync(join(world.home, '.gitconfig'), `[include]\n\tpath = ${join(world.home, 'pipe')}\n`);
    execFileSync('mkfifo', [join(world.home, 'pipe')]);
    await expect(read()).rejects.toThrow();
  });

  it('takes the last of several, and those with line breaks or without a value', async () => {
    const text = '[alias]\n\ta = push\n\ta = status\n\tb = "!x\\ny"\n\tc\n';
    writeFileSync(join(world.home, '.gitconfig'), text);
    expect(await readAliases(world.repository, { HOME: world.home })).toEqual([
      ['a', 'status'],
      ['b', '!x\ny'],
      ['c', ''],
    ]);
  });

  it('takes none of two that differ in capitals only, and may be two', async () => {
    const text = '[alias "a"]\n\tcommand = push\n[alias "A"]\n\tcommand = status\n';
    writeFileSync(join(world.home, '.gitconfig'), text);
    expect(await readAliases(world.repository, { HOME: world.home })).toHaveLength(2);
    expect(await judge('git a')).toBe(false);
  });
});

describe('an alias is split as git splits it', () => {
  it.each(['a b', 'a\t  b', "'a b' c", '"a \\" b" c', "'a \\' b", 'a\\ b c', '"" a', 'a"b"c\'d\''])(
    '%s',
    (text) => {
      const words = splitAlias(text);
      world.git('config', 'alias.x', `-c alias.y='!printf "<%s>"' y ${text}`);
      expect(world.run('git x')).toBe((words ?? []).map((word) => `<${word}>`).join(''));
    },
  );

  it.each(['"a', "'a", 'a\\'])('%s is none', (text) => {
    expect(splitAlias(text)).toBeUndefined();
  });
});
