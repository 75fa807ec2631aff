import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createSandbox } from '../../src/index.ts';
import { lacks } from '../support/programs.ts';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-listed-')));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Those of `strict-nine`, those of the list in docs/policy.md, and what is often listed beside them. */
const ALLOW = 'ls cat cp head printenv pwd rg sed which git grep find less awk tar sort wc du file cd'.split(
  ' ',
);

const GIT_ENV = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };
let count = 0;

/** A workspace full of files that make programs run `evil`, which leaves `pwned`. */
function plant(): string {
  const workspace = join(root, `workspace-${count++}`);
  mkdirSync(join(workspace, 'vend'), { recursive: true });
  const put = (name: string, text: string) => writeFileSync(join(workspace, name), text);
  put('evil', `#!/bin/sh\ntouch ${workspace}/pwned\n`);
  chmodSync(join(workspace, 'evil'), 0o755);
  put('a.txt', 'a b\n');
  put('code', `touch ${workspace}/pwned\n`);
  put('driver', 'true\n');
  put('.gitattributes', '*.txt diff=mine\n');
  put('.ripgreprc', `--pre=${workspace}/evil\n`);
  put('.lesskey', `#env\nLESSOPEN=|${workspace}/evil %s\n`);
  put('s.sed', '1e ./evil\n');
  put('x.awk', 'BEGIN { system("./evil") }\n');
  put('--checkpoint=1', '');
  put('--checkpoint-action=exec=sh evil', '');
  put('Makefile', 'all:\n\t./evil\n');
  put('vend/f', 'x\n');
  const git = (directory: string, ...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@example.org', ...args], {
      cwd: join(workspace, directory),
      env: { ...process.env, ...GIT_ENV },
    });
  for (const directory of ['vend', '.']) {
    git(directory, 'init', '-q');
    git(
      directory,
      'add',
      directory === '.' ? 'a.txt' : 'f',
      ...(directory === '.' ? ['.gitattributes'] : []),
    );
    git(directory, 'commit', '-qm', 'x');
  }
  git('vend', 'config', 'core.fsmonitor', `${workspace}/evil`);
  // What the user has set, with a driver of the project.
  git('.', 'config', 'diff.mine.command', 'sh driver');
  git('.', 'config', 'alias.own', '!./evil');
  put('a.txt', 'b\n');
  return workspace;
}

const ATTACKS: readonly (readonly [name: string, line: string])[] = [
  ['.ripgreprc, by its variable', 'RIPGREP_CONFIG_PATH=.ripgreprc rg a'],
  ['.ripgreprc, by an exported variable', 'export RIPGREP_CONFIG_PATH=.ripgreprc; rg a'],
  ['an option of rg', 'rg --pre ./evil a'],
  ['LESSOPEN', "LESSOPEN='|./evil %s' less a.txt"],
  ['.lesskey of another home', 'HOME=. less a.txt'],
  ['a script of sed', 'sed -f s.sed a.txt'],
  ['a script of sed, behind another letter', 'sed -nf s.sed a.txt'],
  ['a script of sed, abbreviated', 'sed --fi=s.sed a.txt'],
  ['e in a script of sed', 'sed 1e./evil a.txt'],
  ['a program of awk', 'awk -f x.awk'],
  ['a program of awk, attached', 'awk -fx.awk'],
  ['system() in a program of awk', `awk 'BEGIN { system("./evil") }'`],
  ['names that are options of tar', 'tar -cf o.tar *'],
  ['a compressor of tar', 'tar -c -I ./evil -f o.tar a.txt'],
  ['an action of find', "find . -name a.txt -exec ./evil ';'"],
  ['an action of find in its directory', "find . -name a.txt -execdir ./evil ';'"],
  ['settings of a nested repository', 'git -C vend status'],
  ['settings of a nested repository, behind cd', 'cd vend && git status'],
  ['settings of a nested repository, by its directory', 'git --git-dir=vend/.git --work-tree=vend status'],
  ['settings of a nested repository, by a variable', 'GIT_DIR=vend/.git GIT_WORK_TREE=vend git status'],
  ['an alias', 'git own'],
  ['a setting on the line', 'git --no-pager -c diff.mine.command=./evil diff'],
  ['the driver that .gitattributes names, written anew', 'cp code driver; git --no-pager diff'],
  ['a pager of git grep', 'git grep -O./evil b'],
];

describe('under commands.allow, a file of the workspace does not decide what a listed command runs', () => {
  it.each(ATTACKS)('%s: %s', async (_, line) => {
    // On hosts without it there is nothing to attack.
    const [needed = ''] = /\b(?:rg|less)\b/.exec(line) ?? [];
    if (needed !== '' && lacks(needed)) return;
    const control = plant();
    spawnSync('bash', ['-c', line], { cwd: control, env: { ...process.env, ...GIT_ENV }, stdio: 'ignore' });
    expect(existsSync(join(control, 'pwned'))).toBe(true);

    const workspace = plant();
    await using sandbox = await createSandbox({
      workspace,
      policyFiles: false,
      policy: { commands: { allow: ALLOW } },
    });
    const { status, stderr } = await sandbox.run(line);
    expect(existsSync(join(workspace, 'pwned'))).toBe(false);
    expect([status, stderr]).toEqual([expect.stringMatching(/^(?:denied|exited)$/), expect.any(String)]);
  });

  it.each([
    'sort --files0-from=list',
    'wc --files0-from=list',
    'du --files0-from=list',
    'file -f list',
    'find -files0-from list',
    'tar -tf o.tar --files-from=list',
  ])('nor what it reads: %s', async (line) => {
    const workspace = plant();
    writeFileSync(join(workspace, 'list'), '/etc/passwd\0');
    await using sandbox = await createSandbox({
      workspace,
      policyFiles: false,
      policy: { commands: { allow: ALLOW } },
    });
    expect(await sandbox.run(line)).toMatchObject({ status: 'denied' });
  });

  it('lets through what the same programs do otherwise', async () => {
    const workspace = plant();
    await using sandbox = await createSandbox({
      workspace,
      policyFiles: false,
      policy: { commands: { allow: ALLOW } },
    });
    for (const line of [
      'git status',
      'git --no-pager diff',
      'git log --oneline',
      'sed -n 1p a.txt',
      "awk '{ print $1 }' a.txt",
      'find . -name a.txt',
      'find . -type f -exec cat {} +',
      'sort a.txt',
      'wc -l a.txt',
    ])
      expect([line, await sandbox.run(line)]).toMatchObject([line, { status: 'exited', exitCode: 0 }]);
  });

  it('but who lists a tool that runs the code of a project has listed that code', async () => {
    const workspace = plant();
    await using sandbox = await createSandbox({
      workspace,
      policyFiles: false,
      policy: { commands: { allow: ['make'] } },
    });
    expect(await sandbox.run('make')).toMatchObject({ status: 'exited', exitCode: 0 });
    expect(existsSync(join(workspace, 'pwned'))).toBe(true);
  });
});
