import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { execa } from 'execa';
import { build as buildByVite } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectNothingLeft, leftIn } from '../support/leftovers.ts';
import { makePlace, ROOT } from './support.ts';

const place = makePlace();
const project = join(place.root, 'project');

beforeAll(() => {
  mkdirSync(join(project, 'node_modules'), { recursive: true });
  symlinkSync(ROOT, join(project, 'node_modules/sandbox-run'));
});
afterAll(async () => {
  await expectNothingLeft(place);
  place.dispose();
});

async function runScript(name: string, code: string) {
  writeFileSync(join(project, name), code);
  return execa(process.execPath, [name], { cwd: project, reject: false });
}

describe('a program that uses the package', () => {
  it('as an ES module ends by itself after close', async () => {
    const { stdout, stderr, exitCode } = await runScript(
      'esm.mjs',
      `import { createSandbox } from 'sandbox-run';
      const sandbox = await createSandbox({ workspace: process.cwd() });
      console.log((await sandbox.run('echo from esm')).stdout);
      await sandbox.close();`,
    );
    expect({ stdout, stderr, exitCode }).toEqual({ stdout: 'from esm\n', stderr: '', exitCode: 0 });
  });

  it.each([
    ['ES module', 'held.mjs', "import { confine, isUnenforceable } from 'sandbox-run/confine';"],
    ['CommonJS', 'held.cjs', "const { confine, isUnenforceable } = require('sandbox-run/confine');"],
  ])('has the core by itself, as %s, and ends without close', async (_, name, load) => {
    const { stdout, stderr, exitCode } = await runScript(
      name,
      `${load}
      const { existsSync } = process.getBuiltinModule('node:fs');
      (async () => {
        const read = ['/usr', '/bin', '/lib', '/lib64', '/etc/ld.so.cache'].filter((path) => existsSync(path));
        const made = await confine().prepare({ workspace: process.cwd(), read }, { controls: { filesystem: 'required' } });
        if (isUnenforceable(made)) throw made.error;
        const { failure, stdout } = await made.start({ program: '/bin/echo', argv: ['echo', 'confined'] }).exited;
        console.log(failure ?? stdout.toString().trim());
      })();`,
    );
    expect({ stdout, stderr, exitCode }).toEqual({ stdout: 'confined', stderr: '', exitCode: 0 });
  });

  it('ends by itself without close too, and leaves nothing', async () => {
    const { stdout, exitCode } = await runScript(
      'unclosed.mjs',
      `import { createSandbox } from 'sandbox-run';
      const sandbox = await createSandbox({ workspace: process.cwd() });
      console.log((await sandbox.run('echo unclosed')).stdout);`,
    );
    expect({ stdout, exitCode }).toEqual({ stdout: 'unclosed\n', exitCode: 0 });
    await expectNothingLeft(place);
  });

  // BUG: process.exit() runs neither clean-up hooks nor finalizers, so private directories stay.
  it('may call process.exit() while a command runs, and leaves nothing', async () => {
    const { exitCode } = await runScript(
      'exits.mjs',
      `import { createSandbox } from 'sandbox-run';
      const sandbox = await createSandbox({ workspace: process.cwd() });
      sandbox.run('echo on; exec sleep 9', { onOutput: () => process.exit(7) });`,
    );
    const left = leftIn(place.tmp);
    for (const path of left) rmSync(path, { recursive: true });
    expect({ exitCode, left }).toEqual({ exitCode: 7, left: [] });
  });

  it('from CommonJS by import()', async () => {
    const { stdout, stderr } = await runScript(
      'dynamic.cjs',
      `import('sandbox-run').then(async ({ createSandbox }) => {
        const sandbox = await createSandbox({ workspace: process.cwd() });
        console.log((await sandbox.run(['echo', 'from cjs'])).stdout);
        await sandbox.close();
      });`,
    );
    expect({ stdout, stderr }).toEqual({ stdout: 'from cjs\n', stderr: '' });
  });

  it('from CommonJS by require(), which gives the same things as import', async () => {
    const { stdout, stderr } = await runScript(
      'require.cjs',
      `const { createSandbox, SandboxError } = require('sandbox-run');
      createSandbox({ workspace: process.cwd() }).then(async (sandbox) => {
        console.log((await sandbox.run(['echo', 'required'])).stdout);
        await sandbox.close();
        for (const name of ['sandbox-run', 'sandbox-run/openai', 'sandbox-run/ai', 'sandbox-run/fleet']) {
          const [required, imported] = [require(name), await import(name)];
          const names = Object.keys(imported).sort();
          console.log(names.length > 0, names.every((each) => required[each] === imported[each]));
          console.log(names.join() === Object.keys(required).sort().join());
        }
        console.log(await createSandbox({ workspace: 1 }).catch((error) => error instanceof SandboxError));
      });`,
    );
    const same = 'true true\ntrue\n';
    expect({ stdout, stderr }).toEqual({ stdout: `required\n\n${same.repeat(4)}true`, stderr: '' });
  });

  it.each([
    ['of the library', `await createSandbox({ workspace: '/nonexistent' })`, 'workspace.missing'],
    ['of an option', `await createSandbox({ tiemout: 1 })`, 'usage.invalid'],
    ['of a template', 'await (await createSandbox()).run`eval $' + '{1}`', 'usage.invalid'],
    ['of a command', `await (await createSandbox()).run('exit 3', { reject: true })`, 'command.failed'],
  ])('an error %s that nobody catches is shown without lines of the build', async (_, code, says) => {
    const script = `import { createSandbox } from 'sandbox-run';\n${code};`;
    const { stderr, exitCode } = await runScript('uncaught.mjs', script);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(says);
    const [where, line = ''] = stderr.split('\n');
    expect(where).toMatch(/^(file:\/\/)?\/.*:\d+$/);
    expect(line.length).toBeLessThan(140);
  });

  it('cannot reach what is not exported', async () => {
    const { stderr } = await runScript('deep.mjs', `import 'sandbox-run/dist/cli.cjs';`);
    expect(stderr).toContain('ERR_PACKAGE_PATH_NOT_EXPORTED');
  });

  it('may rely on no top-level await, which require() refuses', async () => {
    const index = readFileSync(join(ROOT, 'dist/index.js'), 'utf8');
    expect(index).not.toMatch(/^(const .* = )?await /m);
  });
});

/** Bundled as its documentation says, or as nobody should: the program finds nothing of the package beside the bundle. */
describe('a program that is bundled', () => {
  const USES = `createSandbox({ workspace: process.cwd() }).then(async (sandbox) => {
    console.log((await sandbox.run(['echo', 'bundled'])).stdout);
    await sandbox.close();
  });`;
  const ENTRIES = {
    'esm.mjs': `import { createSandbox } from 'sandbox-run';\n${USES}`,
    'cjs.cjs': `const { createSandbox } = require('sandbox-run');\n${USES}`,
  };
  type Bundling = ['esbuild' | 'rollup', keyof typeof ENTRIES, 'esm' | 'cjs'];
  const BUNDLES: readonly Bundling[] = [
    ['esbuild', 'esm.mjs', 'esm'],
    ['esbuild', 'esm.mjs', 'cjs'],
    ['esbuild', 'cjs.cjs', 'cjs'],
    ['rollup', 'esm.mjs', 'esm'],
    ['rollup', 'esm.mjs', 'cjs'],
  ];

  beforeAll(() => {
    for (const [name, code] of Object.entries(ENTRIES)) writeFileSync(join(project, name), code);
  });

  const runBundled = async ([by, entry, format]: Bundling, external: string[]) => {
    const input = join(project, entry);
    const outDir = join(place.root, 'bundles');
    const name = format === 'cjs' ? 'bundle.cjs' : 'bundle.mjs';
    if (by === 'esbuild') {
      const options = { bundle: true, platform: 'node', logLevel: 'error', external } as const;
      await build({ entryPoints: [input], outfile: join(outDir, name), format, ...options });
    } else {
      await buildByVite({
        ...{ root: project, configFile: false, logLevel: 'error', ssr: { noExternal: true, external } },
        build: { ssr: input, outDir, rollupOptions: { output: { format, entryFileNames: name } } },
      });
    }
    // Beside what is installed, as a program is.
    const program = join(project, name);
    renameSync(join(outDir, name), program);
    return execa(process.execPath, [program], { cwd: project, reject: false });
  };

  it.each(BUNDLES)('by %s, %s as %s, works with the package left out', async (...how) => {
    const { stdout, stderr } = await runBundled(how, ['sandbox-run']);
    expect({ stdout, stderr }).toEqual({ stdout: 'bundled\n', stderr: '' });
  });

  it.each(BUNDLES)('by %s, %s as %s, says in one line to leave it out', async (...how) => {
    const { stdout, stderr } = await runBundled(how, []);
    expect(stdout).toBe('');
    const said = stderr.split('\n').filter((line) => line.startsWith('SandboxError: '));
    expect(said).toEqual([
      expect.stringContaining('(esbuild: --external:sandbox-run; webpack, rollup, vite: '),
    ]);
  });
});

describe('the types', () => {
  it.each(['node16', 'node18', 'nodenext'])('serve CommonJS and ES modules (%s)', async (module) => {
    const code = `import { createSandbox, SandboxError, type ExecutionResult } from 'sandbox-run';
      import { shellTool } from 'sandbox-run/ai';
      import { createShell } from 'sandbox-run/openai';
      export async function use(): Promise<ExecutionResult> {
        const sandbox = await createSandbox();
        createShell(sandbox).run({ commands: [] });
        shellTool(sandbox).description satisfies string | undefined;
        return sandbox.run({ timeout: 1 })\`ls \${['a', 1]} \${'b'}\`.catch((error) => {
          throw new SandboxError('usage.invalid', String(error));
        });
      }
      // @ts-expect-error what is nothing is no argument
      export const wrong = async () => (await createSandbox()).run\`ls \${undefined}\`;`;
    const files = ['both.cts', 'both.mts'];
    for (const name of files) writeFileSync(join(project, name), code);
    const compilerOptions = {
      ...{
        strict: true,
        module,
        target: 'es2023',
        lib: ['es2023', 'esnext.disposable', 'dom'],
        noEmit: true,
      },
      ...{ types: ['node'], typeRoots: [join(ROOT, 'node_modules/@types')], skipLibCheck: true },
    };
    const settings = join(project, 'tsconfig.both.json');
    writeFileSync(settings, JSON.stringify({ compilerOptions, files }));
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const { stdout } = await execa(process.execPath, [tsc, '-p', settings], { reject: false });
    expect(stdout).toBe('');
  });

  it('serve a program that is compiled strictly', async () => {
    writeFileSync(
      join(project, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: {
          strict: true,
          exactOptionalPropertyTypes: true,
          noUncheckedIndexedAccess: true,
          module: 'nodenext',
          target: 'es2022',
          lib: ['es2022', 'esnext.disposable'],
          types: ['node'],
          typeRoots: [join(ROOT, 'node_modules/@types')],
          noEmit: true,
          skipLibCheck: true,
        },
        files: ['consumer.mts'],
      }),
    );
    writeFileSync(
      join(project, 'consumer.mts'),
      `import { createSandbox, ERROR_CODES, type ErrorCode, type ExecutionResult, type PolicyFile, type SandboxCommandLine, SandboxError } from 'sandbox-run';
      import { createReadStream } from 'node:fs';

      export async function embed(spawn: (file: string, args: string[], options: { env: Record<string, string> }) => void): Promise<void> {
        await using sandbox = await createSandbox({ workspace: new URL('file:///srv') });
        const line: SandboxCommandLine = await sandbox.commandLine('make', { terminal: true, cwd: new URL('file:///srv') });
        spawn(line.program, line.args, line);
        const running = sandbox.start('make', { input: new Blob(['x']).stream(), spill: { stdout: new URL('file:///srv/log'), append: true } });
        for await (const text of running) text satisfies string;
        const job = await sandbox.run('make', { background: true, input: createReadStream('x') });
        for await (const text of job.lines({ stream: 'all' })) text satisfies string;
        // @ts-expect-error a number is no input
        await sandbox.run('make', { input: 1 });
        // @ts-expect-error there is no such stream
        running.lines({ stream: 'both' });
      }
      const policy: PolicyFile = { filesystem: { write: ['/srv'] }, demand: { signals: 'required' } };
      export async function build(): Promise<string> {
        try {
          await using sandbox = await createSandbox({ workspace: '.', profile: 'offline-build', policy, timeout: 1000 });
          const result: ExecutionResult = await sandbox.run(['make'], {
            signal: AbortSignal.timeout(10),
            env: { CC: 'gcc', LANG: undefined },
            onOutput: async ({ stream, bytes }) => void (stream === 'stdout' && bytes.length),
          });
          const child = sandbox.spawn('cat');
          child.stdin.end('x');
          child.stdout.pipe(process.stdout);
          child.kill('SIGINT');
          switch (result.status) {
            case 'exited':
              return result.exitCode.toFixed();
            case 'signaled':
              return result.signal.toLowerCase();
            case 'limit-exceeded':
              return result.limit?.name ?? 'ended';
            case 'timed-out':
            case 'canceled':
              return result.signal ?? 'ended';
            case 'denied':
            case 'setup-failed':
              return result.error.code;
          }
        } catch (error) {
          if (!(error instanceof SandboxError)) throw error;
          const code: ErrorCode = error.code;
          return ERROR_CODES[code].meaning;
        }
      }

      // @ts-expect-error an empty argument vector names no program
      export const wrong = async () => (await createSandbox()).run([]);
      // @ts-expect-error unknown keys are mistakes
      export const unknown = () => createSandbox({ workspce: '.' });
      `,
    );
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const { stdout, exitCode } = await execa(process.execPath, [tsc, '-p', project], { reject: false });
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 0 });
  });
});
