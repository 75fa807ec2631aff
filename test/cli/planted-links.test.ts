import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HOST } from '../support/tiers.ts';
import { cli, makePlace, type Place } from './support.ts';

const OWN = '[security]\nautonomy = "autonomous"\n';
const PATIENCE = 60_000;

/** What a command can make where the user will have a file written, so that another file of the user's is written. */
const PLANTS: Readonly<Record<string, (own: string, planted: string) => void>> = {
  'a link to the policy of the user': (own, planted) => symlinkSync(own, planted),
  'a link to a link': (own, planted) => {
    symlinkSync(own, `${planted}.1`);
    symlinkSync(`${planted}.1`, planted);
  },
  'a link to what is not there yet': (own, planted) => symlinkSync(join(own, '../new.toml'), planted),
  'a second name of the policy': (own, planted) => linkSync(own, planted),
  'a pipe': (_, planted) => execFileSync('mkfifo', [planted]),
};

/** What writes a file that the user names. */
const WRITERS: Readonly<Record<string, (file: string) => readonly string[]>> = {
  'policy init': (file) => ['policy', 'init', file],
  'policy import': (file) => [
    'policy',
    'import',
    'srt.json',
    '--from',
    'srt',
    '--allow-wider',
    '--output',
    file,
  ],
  ...(HOST.namespaces && HOST.signalScope
    ? { learn: (file) => ['learn', '--yes', '--output', file, '--', 'true'] }
    : {}),
};

describe('a link that a command planted where the user has a file written', () => {
  let place: Place;
  beforeEach(() => {
    place = makePlace();
    for (const name of ['home', 'own', 'outside']) mkdirSync(join(place.root, name));
    writeFileSync(join(place.root, 'own/policy.toml'), OWN);
    writeFileSync(join(place.workspace, 'srt.json'), '{"filesystem":{"denyRead":[],"allowWrite":["."]}}');
  });
  afterEach(() => place.dispose());

  const own = () => join(place.root, 'own/policy.toml');
  const inWorkspace = (...names: readonly string[]) => join(place.workspace, ...names);
  /** Nothing of the user's was written, and nothing was made outside of the workspace. */
  const expectUntouched = () => {
    expect(readFileSync(own(), 'utf8')).toBe(OWN);
    expect([readdirSync(join(place.root, 'own')), readdirSync(join(place.root, 'outside'))]).toEqual([
      ['policy.toml'],
      [],
    ]);
  };

  for (const [writer, args] of Object.entries(WRITERS)) {
    it(`${writer} writes a new file where none is (control)`, { timeout: PATIENCE }, async () => {
      const { stderr, exitCode } = await cli(place, args('made.toml'));
      expect([exitCode === 125, stderr]).toEqual([false, expect.anything()]);
      expect(statSync(inWorkspace('made.toml')).isFile()).toBe(true);
    });

    it.each(Object.entries(PLANTS))(`${writer} does not write through %s`, async (_, plant) => {
      plant(own(), inWorkspace('planted.toml'));
      await cli(place, args('planted.toml'));
      expectUntouched();
    });

    it(`${writer} does not write through a link on the way`, { timeout: PATIENCE }, async () => {
      symlinkSync(join(place.root, 'outside'), inWorkspace('sub'));
      const { exitCode, stderr } = await cli(place, args('sub/new.toml'));
      expect([exitCode, stderr]).toEqual([125, expect.stringContaining('/sub is a link that a command')]);
      expectUntouched();
    });

    it(`${writer} does not write through a link beside the workspace`, { timeout: PATIENCE }, async () => {
      symlinkSync(own(), join(place.root, 'beside.toml'));
      symlinkSync(join(place.root, 'outside'), join(place.root, 'link'));
      for (const file of ['../beside.toml', '../link/new.toml', join(place.root, 'beside.toml')])
        expect((await cli(place, args(file))).exitCode).toBe(125);
      expectUntouched();
    });

    it(`${writer} follows links of the home, which are the user’s`, { timeout: PATIENCE }, async () => {
      symlinkSync(join(place.root, 'outside'), join(place.root, 'home/dotfiles'));
      mkdirSync(join(place.root, 'home/.config'));
      symlinkSync('../dotfiles', join(place.root, 'home/.config/sandbox-run'));
      const { stderr, exitCode } = await cli(
        place,
        args(join(place.root, 'home/.config/sandbox-run/made.toml')),
      );
      expect([exitCode === 125, stderr]).toEqual([false, expect.anything()]);
      expect(readdirSync(join(place.root, 'outside'))).toEqual(['made.toml']);
    });
  }

  it.runIf('learn' in WRITERS)(
    'learn keeps what a file of the user’s says, and its mode',
    {
      timeout: PATIENCE,
    },
    async () => {
      writeFileSync(inWorkspace('mine.toml'), '[filesystem]\nread = ["/opt"]\n', { mode: 0o600 });
      const before = statSync(inWorkspace('mine.toml')).ino;
      expect((await cli(place, ['learn', '--yes', '--output', 'mine.toml', '--', 'true'])).exitCode).toBe(0);
      expect(readFileSync(inWorkspace('mine.toml'), 'utf8')).toContain('"/opt"');
      expect([
        statSync(inWorkspace('mine.toml')).mode & 0o777,
        statSync(inWorkspace('mine.toml')).ino === before,
      ]).toEqual([0o600, false]);
    },
  );

  it.each([
    ['the file', '.claude/settings.local.json', 'package.json'],
    ['a file of the same project', '.claude/settings.local.json', '.vscode/settings.json'],
    ['the directory', '.claude', 'outside'],
    ['another directory of the project', '.claude', 'inside'],
  ])('install --project does not write through a link: %s', async (_, link, target) => {
    for (const name of ['.vscode', 'inside']) mkdirSync(inWorkspace(name));
    for (const name of ['.vscode/settings.json', 'package.json']) writeFileSync(inWorkspace(name), '{}\n');
    const leadsTo = target === 'outside' ? join(place.root, 'outside') : inWorkspace(target);
    mkdirSync(join(inWorkspace(link), '..'), { recursive: true });
    symlinkSync(leadsTo, inWorkspace(link));
    const { exitCode } = await cli(place, ['install', 'claude-code', '--project']);
    expect(exitCode).toBe(125);
    for (const name of ['.vscode/settings.json', 'package.json'])
      expect(readFileSync(inWorkspace(name), 'utf8')).toBe('{}\n');
    expect(readdirSync(inWorkspace('inside'))).toEqual([]);
    expectUntouched();
  });

  it('install --user follows what the user made in a home, and nothing that a command made further on', async () => {
    const dotfiles = join(place.root, 'dotfiles');
    mkdirSync(dotfiles);
    symlinkSync(dotfiles, join(place.root, 'home/.claude'));
    expect((await cli(place, ['install', 'claude-code'])).exitCode).toBe(0);
    expect(readFileSync(join(dotfiles, 'settings.json'), 'utf8')).toContain('PreToolUse');
    expect((await cli(place, ['install', 'claude-code', '--uninstall'])).exitCode).toBe(0);
    // In a workspace of dotfiles an agent works, too.
    execFileSync('rm', ['-f', join(dotfiles, 'settings.json')]);
    symlinkSync(join(place.root, 'outside/stolen.json'), join(dotfiles, 'settings.json'));
    expect((await cli(place, ['install', 'claude-code'])).exitCode).toBe(125);
    expect(existsSync(join(place.root, 'outside/stolen.json'))).toBe(false);
    expect(lstatSync(join(dotfiles, 'settings.json')).isSymbolicLink()).toBe(true);
  });
});
