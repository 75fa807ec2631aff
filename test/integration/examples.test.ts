import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/**
 * What examples/ has to have, by the names of the files without extension. Each says in a comment what it prints last:
 * `// prints: TEXT` (`# prints: TEXT` in Python); `…` stands for what differs from run to run.
 */
const REQUIRED = ['ai-sdk', 'claude-code', 'library', 'mcp-client', 'openai'];
/** Modules that examples use: not run by themselves. */
const MODULES = ['python/sandbox_run.py'];
const MOST_LINES = 60;

const root = fileURLToPath(new URL('../..', import.meta.url));
const directory = join(root, 'examples');

/** THE list of kinds of examples: how each is run. Files of other kinds are read, not run. */
const RUN_BY: Readonly<Record<string, (file: string) => readonly [string, ...string[]]>> = {
  '.mjs': (file) => [process.execPath, file],
  '.js': (file) => [process.execPath, file],
  '.cjs': (file) => [process.execPath, file],
  '.py': (file) => ['python3', file],
  '.sh': (file) => ['bash', file],
};

const runnable = (existsSync(directory) ? readdirSync(directory, { recursive: true, encoding: 'utf8' }) : [])
  .filter((name) => extname(name) in RUN_BY && !MODULES.includes(name))
  .sort();

let project = '';
/** A project of a user's: the examples, and the package where npm would put it, with what may be installed beside it. */
beforeAll(() => {
  project = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-examples-')));
  if (existsSync(directory)) cpSync(directory, project, { recursive: true });
  const modules = join(project, 'node_modules');
  mkdirSync(join(modules, '.bin'), { recursive: true });
  for (const name of readdirSync(join(root, 'node_modules')))
    if (!name.startsWith('.')) symlinkSync(join(root, 'node_modules', name), join(modules, name));
  symlinkSync(root, join(modules, 'sandbox-run'));
  symlinkSync(join(root, 'dist/cli.cjs'), join(modules, '.bin/sandbox-run'));
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

/** A user's environment, with nothing of the one that these tests run in. */
function environment(home: string): Readonly<Record<string, string>> {
  return {
    PATH: `${join(project, 'node_modules/.bin')}:${process.env.PATH ?? ''}`,
    HOME: home,
    XDG_STATE_HOME: join(home, 'state'),
    LANG: 'C.UTF-8',
    PYTHONDONTWRITEBYTECODE: '1',
  };
}

/** As `…` stands for anything. */
const pattern = (text: string) =>
  new RegExp(
    `^${text
      .split('…')
      .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('.*')}$`,
  );

describe('examples/', () => {
  it('has what the README promises', () => {
    const names = runnable.map((name) => basename(name, extname(name)));
    expect(REQUIRED.filter((name) => !names.includes(name))).toEqual([]);
  });

  it.each(runnable)(
    '%s is short, runs, and prints what it says',
    async (name) => {
      const source = readFileSync(join(directory, name), 'utf8');
      expect(source.trimEnd().split('\n').length).toBeLessThan(MOST_LINES);
      const [, promised] = /^(?:\/\/|#) prints: (.+)$/m.exec(source) ?? [];
      expect(promised, `${name} has no comment "prints: …"`).toBeDefined();

      const home = mkdtempSync(join(tmpdir(), 'sandbox-run-examples-home-'));
      try {
        const [program, ...args] = RUN_BY[extname(name)]?.(join(project, name)) ?? expect.fail(name);
        const { exitCode, stdout, stderr } = await execa(program, args, {
          cwd: project,
          env: environment(home),
          extendEnv: false,
          stdin: 'ignore',
          reject: false,
          timeout: 60_000,
        });
        expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
        expect(stdout.trimEnd().split('\n').at(-1)).toMatch(pattern(promised ?? ''));
      } finally {
        rmSync(home, { recursive: true, force: true });
      }
    },
    90_000,
  );
});
