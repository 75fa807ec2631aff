import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { gitSettings } from '../../../../src/workspace/host/git/user-settings.ts';
import { type CarriedSettings, SettingsCollector } from '../../../../src/workspace/host/settings/carried.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'git-identity-'));
});
afterEach(() => rmSync(home, { recursive: true }));

/** What commands get of the configuration of the user whose home this is. */
function carriedFor(
  directory: string,
  xdgConfigHome: string | undefined,
  hasNetwork = true,
): CarriedSettings {
  const into = new SettingsCollector({
    home: directory,
    machine: join(directory, 'machine'),
    environment: { XDG_CONFIG_HOME: xdgConfigHome },
    variables: [],
    hasNetwork,
    reaches: () => true,
    writable: [],
    isGranted: () => false,
  });
  gitSettings(into);
  return into.carried();
}

function configFor(directory: string, xdgConfigHome: string | undefined): string | undefined {
  return carriedFor(directory, xdgConfigHome).files.find(({ path }) => path === '.gitconfig')?.content;
}

function write(name: string, content: string): void {
  mkdirSync(dirname(join(home, name)), { recursive: true });
  writeFileSync(join(home, name), content);
}

/** What git itself reads from a file. */
function ask(file: string, key: string): string {
  const env = { PATH: process.env.PATH, HOME: home, GIT_CONFIG_NOSYSTEM: '1' };
  return execFileSync('git', ['config', '--file', file, '--includes', '--get', '-z', key], {
    env,
    encoding: 'utf8',
  });
}

describe('without a network git-lfs does not wait for one', () => {
  /** The machine's own configuration says it for every user, too. */
  const ofMachine =
    spawnSync('git', ['config', '--system', '--get', 'filter.lfs.process']).status === 0 ? '1' : undefined;
  const FILTER = '[filter "lfs"]\n\tprocess = git-lfs filter-process\n';
  it.each([
    ['where it is installed', FILTER, false, '1'],
    ['but as ever where there is a network', FILTER, true, undefined],
    ['and nothing is said of it where it is not installed', '[user]\n\tname = A\n', false, ofMachine],
  ])('%s', (_where, content, hasNetwork, retries) => {
    write('.gitconfig', content);
    const [file] = carriedFor(home, undefined, hasNetwork).files;
    write('seeded', file?.content ?? '');
    const asked = () => ask(join(home, 'seeded'), 'lfs.transfer.maxretries');
    if (retries === undefined) expect(asked).toThrow();
    else expect(asked()).toBe(`${retries}\0`);
  });
});

describe('what git reads from the seeded file is what it reads from the user’s', () => {
  it.each([
    ['plain', '[user]\n\tname = A B\n'],
    ['no spaces', '[user]\nname=A B\n'],
    ['upper case', '[USER]\n\tNAME = A\n'],
    ['quotes', '[user]\n\tname = "A  B "  # comment\n'],
    ['quotes in the middle', '[user]\n\tname = A " # B" C\n'],
    ['escapes', '[user]\n\tname = A \\"B\\" \\\\ C\\tD\n'],
    ['comments', '[user] ; one\n\tname = A B ; two # three\n'],
    ['one line', '[user] name = A\n'],
    ['continued line', '[user]\n\tname = A \\\n  B\n'],
    ['backslash at the end', '[user]\n\tname = A\\\\\n\temail = b\n'],
    ['carriage returns', '[user]\r\n\tname = A B\r\n'],
    ['byte order mark', '\ufeff[user]\n\tname = A\n'],
    ['letters of all kinds', '[user]\n\tname = Zoë O’Néil 日本 🙂\n'],
    ['twice', '[user]\n\tname = A\n[core]\n\tx = y\n[user]\n\tname = B\n'],
    ['shell and printf syntax', "[user]\n\tname = $(id) `id` %s $HOME 'x'\n"],
    ['empty', '[user]\n\tname =\n'],
  ])('%s', (_, content) => {
    write('.gitconfig', content);
    const seeded = join(home, 'seeded');
    writeFileSync(seeded, configFor(home, undefined) ?? '');
    expect(ask(seeded, 'user.name')).toBe(ask(join(home, '.gitconfig'), 'user.name'));
  });
});

describe('nothing else gets in', () => {
  it('tokens, helpers, programs and keys stay outside; what includes say comes with them', () => {
    write('more', '[user]\n\tname = from an include\n[core]\n\tpager = SECRET\n');
    write(
      '.gitconfig',
      [
        '[user]\n\tname = A\n\tsigningkey = SECRET',
        '[credential]\n\thelper = "!echo SECRET"',
        '[url "https://x:SECRET@example.org/"]\n\tinsteadOf = https://example.org/',
        '[http "https://example.org"]\n\textraHeader = AUTHORIZATION: SECRET',
        '[http]\n\tproxy = http://SECRET:SECRET@proxy.example:3128\n\tsslKey = /SECRET',
        '[github]\n\ttoken = SECRET',
        '[alias]\n\tsh = "!SECRET"\n\tst = status -sb',
        '[core]\n\thooksPath = /SECRET\n\tsshCommand = SECRET\n\tfsmonitor = SECRET\n\tautocrlf = input',
        '[diff]\n\texternal = SECRET\n\talgorithm = histogram\n[diff "x"]\n\ttextconv = SECRET',
        '[merge "x"]\n\tdriver = SECRET\n\tname = x\n[filter "x"]\n\tclean = SECRET',
        '[include]\n\tpath = more',
        '[user "SECRET"]\n\temail = SECRET',
        '[user.SECRET]\n\temail = SECRET',
      ].join('\n'),
    );
    const { files, remarks } = carriedFor(home, undefined);
    expect(files).toEqual([
      { path: '.gitconfig-1-included', content: '[user]\n\tname = "from an include"\n' },
      {
        path: '.gitconfig',
        content: [
          '[user]\n\tname = "A"\n',
          '[url "https://example.org/"]\n\tinsteadof = "https://example.org/"\n',
          '[http]\n\tproxy = "http://proxy.example:3128"\n',
          '[alias]\n\tst = "status -sb"\n',
          '[core]\n\tautocrlf = "input"\n',
          '[diff]\n\talgorithm = "histogram"\n',
          '[merge "x"]\n\tname = "x"\n',
          '[include]\n\tpath = "~/.gitconfig-1-included"\n',
        ].join(''),
      },
    ]);
    expect(remarks).toEqual([
      'core.hookspath in ~/.gitconfig stays outside: hooks in it do not run for commits of commands',
      'filter.x.clean in ~/.gitconfig stays outside: commands add and check out files without it',
      expect.stringMatching(
        /^credentials stay outside of the sandbox: url\.https:\/\/example\.org\/\.insteadof in ~\/\.gitconfig, .*extraheader.*http\.proxy/,
      ),
    ]);
    expect(remarks.join()).not.toContain('SECRET');
  });

  it('an include of itself, of what is not there, of another user: no end, no file, a word', () => {
    write(
      '.gitconfig',
      '[include]\n\tpath = .gitconfig\n\tpath = missing\n\tpath = ~other/x\n[user]\n\tname = A\n',
    );
    const { files, remarks } = carriedFor(home, undefined);
    expect(files.at(-1)?.path).toBe('.gitconfig');
    expect(files.at(-1)?.content).toContain('name = "A"');
    expect(remarks).toEqual([expect.stringMatching(/^include\.path in ~\/\.gitconfig was not followed/)]);
  });

  it('a configuration that git would not read, or that is not readable, is told', () => {
    write('.gitconfig', '[user\n');
    expect(carriedFor(home, undefined).remarks).toEqual([
      '~/.gitconfig is no configuration that git reads: commands run without it',
    ]);
  });

  it('a value cannot smuggle in a section', () => {
    write('.gitconfig', '[user]\n\tname = "A\\n[core]\\n\\tpager = evil"\n');
    const seeded = join(home, 'seeded');
    writeFileSync(seeded, configFor(home, undefined) ?? '');
    expect(ask(seeded, 'user.name')).toBe('A\n[core]\n\tpager = evil\0');
    expect(() => ask(seeded, 'core.pager')).toThrow();
  });

  it('a continued line is no setting of its own', () => {
    write('.gitconfig', '[user]\n\tsigningkey = x \\\n\temail = y\n');
    expect(configFor(home, undefined)).toBeUndefined();
  });

  it.each([
    '[user]\n\tname = "open\n',
    '[user]\n\tname = \\x\n',
    '[user\n\tname = A\n',
    'name = A\n',
    '[user]\n\tname\n',
  ])('what git would not understand is left out: %j', (content) => {
    write('.gitconfig', content);
    expect(configFor(home, undefined)).toBeUndefined();
  });
});

describe('where it looks', () => {
  it('no file, no home, a directory in its place: nothing', () => {
    expect(configFor(home, undefined)).toBeUndefined();
    expect(configFor('/nonexistent', undefined)).toBeUndefined();
    mkdirSync(join(home, '.gitconfig'));
    expect(configFor(home, undefined)).toBeUndefined();
  });

  it('XDG_CONFIG_HOME, else ~/.config; ~/.gitconfig comes last and wins', () => {
    write('.config/git/config', '[user]\n\tname = xdg\n\temail = a@b\n');
    expect(configFor(home, undefined)).toContain('xdg');
    write('other/git/config', '[user]\n\tname = other\n');
    expect(configFor(home, join(home, 'other'))).toBe('[user]\n\tname = "other"\n');
    write('.gitconfig', '[user]\n\tname = last\n');
    expect(configFor(home, '')?.indexOf('last')).toBeGreaterThan(configFor(home, '')?.indexOf('xdg') ?? 0);
  });

  it('an empty or relative XDG_CONFIG_HOME names no file of the current directory', () => {
    const before = process.cwd();
    write('git/config', '[user]\n\tname = planted\n');
    try {
      process.chdir(home);
      expect(configFor('/nonexistent', '')).toBeUndefined();
      expect(configFor('/nonexistent', '.')).toBeUndefined();
    } finally {
      process.chdir(before);
    }
  });
});
