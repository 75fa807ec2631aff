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
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/**
 * What examples/ has to have, by the names of the files without extension. Each says in a comment what it prints last:
 * `// prints: TEXT` (`# prints: TEXT` in Python); `…` stands for what differs from run to run.
 */
const REQUIRED = ['ai-sdk', 'claude-code', 'confine', 'library', 'mcp-client', 'openai'];
/** Modules that examples use: not run by themselves. */
const MODULES = ['python/sandbox_run.py', 'plug-ins/no_production.py'];
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

describe('examples/plug-ins', () => {
  const plugIns = join(directory, 'plug-ins');
  /** What the comment of each tells its user to do, with files of this test for those of the machine. */
  const INSTALLED: readonly (readonly [string, (into: string) => Promise<string>])[] = [
    [
      'no-production.ts',
      async (into) => {
        const source = readFileSync(join(plugIns, 'no-production.ts'), 'utf8');
        const [, line = ''] = /^\/\/ {3}npx (esbuild .*)$/m.exec(source) ?? [];
        const compiled = join(into, 'no-production.mjs');
        const args = line.replace(/--outfile=\S+/, `--outfile=${compiled}`).split(' ');
        await execa(join(root, 'node_modules/.bin/esbuild'), args.slice(1), { cwd: plugIns });
        return source.replaceAll(/^\/\/ ? ?/gm, '').replace(/"\/etc\S+"/, JSON.stringify(compiled));
      },
    ],
    [
      'no_production.py',
      async (into) => {
        const copy = join(into, 'no_production.py');
        cpSync(join(plugIns, 'no_production.py'), copy);
        return readFileSync(copy, 'utf8').replace(/"\/etc\S+"/, JSON.stringify(copy));
      },
    ],
  ];

  it('are all tried here', () => {
    expect(readdirSync(plugIns).sort()).toEqual(INSTALLED.map(([name]) => name).sort());
  });

  it.each(INSTALLED)('%s refuses what it says, as its comment has it installed', async (_, install) => {
    const home = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-plug-in-')));
    try {
      const policy = join(home, '.config/sandbox-run/policy.toml');
      mkdirSync(dirname(policy), { recursive: true });
      const [, hooks] =
        /(\[\[hooks\.plugins\]\]\n.*=.*)\n/.exec((await install(home)).replaceAll(/^ +/gm, '')) ?? [];
      writeFileSync(policy, `${hooks}\n`);
      const workspace = join(home, 'work');
      mkdirSync(workspace);
      const run = (command: string) =>
        execa(join(project, 'node_modules/.bin/sandbox-run'), ['--tool', 'Bash', '-c', command], {
          ...{ cwd: workspace, env: environment(home), extendEnv: false, reject: false, stdin: 'ignore' },
        });
      expect(await run('echo staging')).toMatchObject({ exitCode: 0, stdout: 'staging' });
      expect(await run('echo production')).toMatchObject({
        exitCode: 126,
        stdout: '',
        stderr: expect.stringContaining('Bash must not touch production: ask the team on call'),
      });
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  });

  it('in TypeScript fit the types of the package', async () => {
    const settings = { module: 'nodenext', target: 'es2023', strict: true, noEmit: true, types: ['node'] };
    const path = join(project, 'tsconfig.json');
    const own = {
      allowImportingTsExtensions: true,
      skipLibCheck: true,
      lib: ['es2023', 'esnext.disposable'],
    };
    writeFileSync(
      path,
      JSON.stringify({
        compilerOptions: { ...settings, ...own },
        files: ['plug-ins/no-production.ts'],
      }),
    );
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    const { stdout, exitCode } = await execa(process.execPath, [compiler, '-p', path], { reject: false });
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 0 });
  });
});
