import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { gitIdentity } from '../../../src/host/git/identity.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'git-identity-'));
});
afterEach(() => rmSync(home, { recursive: true }));

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
    writeFileSync(seeded, gitIdentity(home, undefined) ?? '');
    expect(ask(seeded, 'user.name')).toBe(ask(join(home, '.gitconfig'), 'user.name'));
  });
});

describe('nothing else gets in', () => {
  it('tokens, helpers, includes, aliases and hooks stay outside', () => {
    write('secret', '[user]\n\tname = from an include\n');
    write(
      '.gitconfig',
      [
        '[user]\n\tname = A\n\tsigningkey = SECRET',
        '[credential]\n\thelper = "!echo SECRET"',
        '[url "https://x:SECRET@example.org/"]\n\tinsteadOf = https://example.org/',
        '[http "https://example.org"]\n\textraHeader = AUTHORIZATION: SECRET',
        '[github]\n\ttoken = SECRET',
        '[alias]\n\tst = "!SECRET"',
        '[core]\n\thooksPath = /SECRET\n\tsshCommand = SECRET\n\tfsmonitor = SECRET\n\tautocrlf = input',
        '[commit]\n\tgpgsign = true',
        '[include]\n\tpath = secret',
        '[user "SECRET"]\n\temail = SECRET',
        '[user.SECRET]\n\temail = SECRET',
      ].join('\n'),
    );
    expect(gitIdentity(home, undefined)).toBe('[user]\n\tname = "A"\n[core]\n\tautocrlf = "input"\n');
  });

  it('a value cannot smuggle in a section', () => {
    write('.gitconfig', '[user]\n\tname = "A\\n[core]\\n\\tpager = evil"\n');
    const seeded = join(home, 'seeded');
    writeFileSync(seeded, gitIdentity(home, undefined) ?? '');
    expect(ask(seeded, 'user.name')).toBe('A\n[core]\n\tpager = evil\0');
    expect(() => ask(seeded, 'core.pager')).toThrow();
  });

  it('a continued line is no setting of its own', () => {
    write('.gitconfig', '[user]\n\tsigningkey = x \\\n\temail = y\n');
    expect(gitIdentity(home, undefined)).toBeUndefined();
  });

  it.each([
    '[user]\n\tname = "open\n',
    '[user]\n\tname = \\x\n',
    '[user\n\tname = A\n',
    'name = A\n',
    '[user]\n\tname\n',
  ])('what git would not understand is left out: %j', (content) => {
    write('.gitconfig', content);
    expect(gitIdentity(home, undefined)).toBeUndefined();
  });
});

describe('where it looks', () => {
  it('no file, no home, a directory in its place: nothing', () => {
    expect(gitIdentity(home, undefined)).toBeUndefined();
    expect(gitIdentity('/nonexistent', undefined)).toBeUndefined();
    mkdirSync(join(home, '.gitconfig'));
    expect(gitIdentity(home, undefined)).toBeUndefined();
  });

  it('XDG_CONFIG_HOME, else ~/.config; ~/.gitconfig comes last and wins', () => {
    write('.config/git/config', '[user]\n\tname = xdg\n\temail = a@b\n');
    expect(gitIdentity(home, undefined)).toContain('xdg');
    write('other/git/config', '[user]\n\tname = other\n');
    expect(gitIdentity(home, join(home, 'other'))).toBe('[user]\n\tname = "other"\n');
    write('.gitconfig', '[user]\n\tname = last\n');
    expect(gitIdentity(home, '')?.indexOf('last')).toBeGreaterThan(
      gitIdentity(home, '')?.indexOf('xdg') ?? 0,
    );
  });

  it('an empty or relative XDG_CONFIG_HOME names no file of the current directory', () => {
    const before = process.cwd();
    write('git/config', '[user]\n\tname = planted\n');
    try {
      process.chdir(home);
      expect(gitIdentity('/nonexistent', '')).toBeUndefined();
      expect(gitIdentity('/nonexistent', '.')).toBeUndefined();
    } finally {
      process.chdir(before);
    }
  });
});
