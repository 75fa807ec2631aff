import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOST } from '../support/tiers.ts';
import { makeUnjudgedConfiguration } from '../support/unjudged-policy.ts';

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));
const ADDON = join(CHECKOUT, 'build/Release');
const DEPENDENCIES = [
  'zod',
  'smol-toml',
  'toml-eslint-parser',
  'eslint-visitor-keys',
  '@photostructure/sqlite',
];

/** As `npm install sandbox-run` leaves it: what a command of this workspace changes runs unconfined with the next one. */
function installInto(directory: string, packageAt: string): void {
  const root = join(directory, packageAt);
  mkdirSync(root, { recursive: true });
  cpSync(join(CHECKOUT, 'dist'), join(root, 'dist'), { recursive: true });
  cpSync(join(CHECKOUT, 'package.json'), join(root, 'package.json'));
  mkdirSync(join(root, 'build'), { recursive: true });
  cpSync(ADDON, join(root, 'build/Release'), { recursive: true });
  for (const name of DEPENDENCIES) {
    const from = join(CHECKOUT, 'node_modules', name);
    if (existsSync(from))
      cpSync(from, join(directory, 'node_modules', name), { recursive: true, dereference: true });
  }
  const bin = join(directory, 'node_modules/.bin');
  mkdirSync(bin, { recursive: true });
  symlinkSync(join('../..', packageAt, 'dist/cli.cjs'), join(bin, 'sandbox-run'));
}

describe.skipIf(!HOST.namespaces)('this program, installed where commands can write', () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'own-program-')));
  const installed = join(root, 'installed');
  const checkout = join(root, 'checkout');
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: join(root, 'home'),
    XDG_CONFIG_HOME: makeUnjudgedConfiguration(root),
  };
  beforeAll(() => {
    mkdirSync(env.HOME);
    installInto(installed, 'node_modules/sandbox-run');
    installInto(checkout, '.');
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  const run = (workspace: string, program: string, command: string) =>
    execa(process.execPath, [program, '--', 'bash', '-c', command], {
      cwd: workspace,
      env,
      extendEnv: false,
      reject: false,
    });

  /** By what they go for, in turn: the command line, what it loads, what it knows of programs, another file beside them, the addon, the directory of the build, the manifest, a package that it loads, what that one loads, the directory around all, and the command line by a hard link. */
  const ATTACKS: readonly ((own: string) => string)[] = [
    (own) => `echo 'evil' > ${own}/dist/cli.cjs; rm -f ${own}/dist/cli.cjs`,
    (own) => `echo 'evil' > e; mv -f e ${own}/dist/part-core.cjs`,
    (own) => `echo '{}' > e; mv -f e ${own}/dist/grammars/git.options.json; mv ${own}/dist/grammars g`,
    (own) => `echo evil > ${own}/dist/chunks/evil.cjs; mkdir ${own}/dist/node_modules`,
    (own) => `echo evil > ${own}/build/Release/sandbox_run.node`,
    (own) => `mv ${own}/build ${own}/b; mkdir -p ${own}/build/Release`,
    (own) => `echo '{}' > ${own}/package.json`,
    () => 'echo evil > node_modules/zod/index.cjs; mv node_modules/zod z; mkdir node_modules/zod',
    () => 'echo evil > node_modules/eslint-visitor-keys/dist/eslint-visitor-keys.cjs',
    () => 'mv node_modules n; mkdir -p node_modules/sandbox-run/dist',
    (own) => `ln ${own}/dist/cli.cjs alias && echo evil >> alias; rm -f alias`,
  ];

  const victims = (workspace: string, own: string) =>
    Object.fromEntries(
      [
        join(own, 'dist/cli.cjs'),
        join(own, 'dist/part-core.cjs'),
        join(own, 'dist/grammars/git.options.json'),
        join(own, 'package.json'),
        join(own, 'build/Release/sandbox_run.node'),
        join(workspace, 'node_modules/zod/index.cjs'),
        join(workspace, 'node_modules/eslint-visitor-keys/dist/eslint-visitor-keys.cjs'),
      ].map((path) => [
        path,
        existsSync(path) ? createHash('sha256').update(readFileSync(path)).digest('hex') : 'is gone',
      ]),
    );

  describe.each([
    ['npm install', installed, join(installed, 'node_modules/sandbox-run')],
    ['a checkout', checkout, checkout],
  ])('%s', (_, workspace, own) => {
    it('is what it was, and is the next that runs, whatever a command does to it', async () => {
      const before = victims(workspace, own);
      // In one command, as they are to change nothing; each by itself, as most of them end with an error.
      const attacks = ATTACKS.map(
        (attack, index) => `(${attack(own)}) 2>&1 | sed 's/^/attack ${index}: /' >&2\n`,
      ).join('');
      const { exitCode, stderr } = await run(
        workspace,
        join(own, 'dist/cli.cjs'),
        `${attacks}echo done > result`,
      );
      expect(victims(workspace, own)).toEqual(before);
      expect(existsSync(join(own, 'dist/chunks/evil.cjs'))).toBe(false);
      expect(existsSync(join(own, 'dist/node_modules'))).toBe(false);
      // Every single one was refused something, in whatever words this kernel has for it.
      expect(ATTACKS.filter((_, index) => !stderr.includes(`attack ${index}: `))).toEqual([]);
      expect([exitCode, readFileSync(join(workspace, 'result'), 'utf8')]).toEqual([0, 'done\n']);
    });

    it('puts the link back by which it is started, and says so', async () => {
      const link = join(workspace, 'node_modules/.bin/sandbox-run');
      const leads = readlinkSync(link);
      const { exitCode, stderr } = await run(
        workspace,
        link,
        'cd node_modules; mv .bin b; rm .bin/sandbox-run; echo evil > .bin/sandbox-run',
      );
      expect(exitCode).toBe(0);
      expect(lstatSync(link).isSymbolicLink() && readlinkSync(link)).toBe(leads);
      expect(stderr).toMatch(/put back, [^\n]*node_modules\/\.bin\/sandbox-run/);
    });

    it('leaves the rest to work', async () => {
      const { exitCode, stderr } = await run(
        workspace,
        join(own, 'dist/cli.cjs'),
        'mkdir -p node_modules/other src && echo x > node_modules/other/index.js && echo y > src/a && ln -sf ../other/index.js node_modules/.bin/other',
      );
      // A weaker backend than Landlock is spoken of in a line.
      expect([exitCode, stderr.replace(/^sandbox-run: backend .*\n?/, '')]).toEqual([0, '']);
    });
  });
});
