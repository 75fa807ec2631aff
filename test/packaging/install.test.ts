import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageVersion } from '../../src/version.ts';
import { HOST } from '../support/tiers.ts';
import { makeUnjudgedConfiguration } from '../support/unjudged-policy.ts';
import { type Registry, serveRegistry } from './registry.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const OWN = `linux-${process.arch}-gnu`;

interface Locked {
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly optional?: boolean;
  readonly peer?: boolean;
}

/** An empty project into which the packed tarballs are installed, with nothing in PATH that could build. */
describe('the packed packages, in an empty project without a compiler', () => {
  const place = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-install-')));
  const project = join(place, 'project');
  // Without namespaces nothing shuts what is installed in a workspace, so that it has to be somewhere else.
  const workspace = HOST.namespaces ? project : join(place, 'work');
  const chosen = HOST.namespaces ? [] : ['--workspace', workspace];
  const packages = join(place, 'packages');
  const programs = join(place, 'programs');
  const installed = (...names: string[]) => join(project, 'node_modules', ...names);
  let registry: Registry;
  /** A registry that has the packages which ours depend on, and not ours: as for everybody who builds them. */
  let foreign: Registry;

  const run = (command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    execa(command, args, {
      cwd: project,
      env: { PATH: programs, HOME: place, ...env },
      extendEnv: false,
      reject: false,
    });

  /** What the main package depends on, made of what the checkout has installed: no network is needed for it. */
  const packDependencies = async () => {
    const { packages: locked } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
    const paths = Object.entries<Locked>(locked)
      .filter(([path, at]) => path !== '' && !(at.dev || at.devOptional || at.optional || at.peer))
      .map(([path]) => `./${path}`);
    const tarballs = join(place, 'dependencies');
    mkdirSync(tarballs);
    const { stdout } = await execa(
      'npm',
      ['pack', '--json', '--ignore-scripts', '--pack-destination', tarballs, ...paths],
      { cwd: ROOT },
    );
    const packed: readonly { readonly id: string; readonly filename: string }[] = JSON.parse(stdout);
    return paths.map((path) => {
      const manifest = JSON.parse(readFileSync(join(ROOT, path, 'package.json'), 'utf8'));
      const found = packed.find(({ id }) => id === `${manifest.name}@${manifest.version}`);
      return { manifest, tarball: join(tarballs, found?.filename ?? '') };
    });
  };

  beforeAll(async () => {
    for (const name of [project, workspace, packages, programs]) mkdirSync(name, { recursive: true });
    const node = dirname(process.execPath);
    for (const name of ['node', 'npm', 'npx']) symlinkSync(join(node, name), join(programs, name));
    for (const name of ['sh', 'env', 'bash']) symlinkSync(`/bin/${name}`, join(programs, name));
    // As built for this host, unless a directory that scripts/pack.mjs filled is named: what a portable build needs is
    // minutes of work and packages of Debian.
    const ready = process.env.SANDBOX_RUN_PACKAGES;
    if (ready === undefined) {
      await execa(process.execPath, [join(ROOT, 'scripts/pack.mjs'), packages, '--local', '--target', OWN]);
    } else {
      cpSync(ready, packages, { recursive: true });
    }
    const tarballs = readdirSync(packages);
    const main = tarballs.find((name) => /^sandbox-run-\d/.test(name)) ?? '';
    const manifestOf = async (name: string) =>
      JSON.parse((await execa('tar', ['xzOf', join(packages, name), 'package/package.json'])).stdout);
    const own = tarballs.find((name) => name.includes(OWN)) ?? '';
    const manifest = await manifestOf(own);
    const dependencies = await packDependencies();
    registry = await serveRegistry([{ manifest, tarball: join(packages, own) }, ...dependencies]);
    foreign = await serveRegistry(dependencies);
    writeFileSync(join(project, 'package.json'), '{"name":"empty","version":"1.0.0","private":true}');
    const settings = `registry=${registry.url}\naudit=false\nfund=false\nupdate-notifier=false\n`;
    writeFileSync(join(project, '.npmrc'), settings);
    const done = await run('npm', ['install', '--loglevel=error', join(packages, main)]);
    expect(done, done.stderr).toMatchObject({ exitCode: 0 });
  });
  afterAll(async () => {
    await registry?.close();
    await foreign?.close();
    rmSync(place, { recursive: true, force: true });
  });

  it('there is no compiler, and none was needed: the package of this host came, and nothing ran', async () => {
    for (const name of ['cc', 'gcc', 'g++', 'c++', 'make', 'cmake', 'ninja']) {
      expect((await run('sh', ['-c', `command -v ${name}`])).exitCode).not.toBe(0);
    }
    expect(readdirSync(installed('@sandbox-run'))).toEqual([OWN]);
    expect(existsSync(installed('sandbox-run', 'build'))).toBe(false);
    expect(existsSync(installed('cmake-js'))).toBe(false);
  });

  it('npx sandbox-run runs a command under Landlock, with its tree held', async () => {
    const { stdout, stderr, exitCode } = await run(
      ...(['npx', ['sandbox-run', ...chosen, '--json=full', '--', '/bin/echo', 'hi']] as const),
    );
    expect(exitCode, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ stdout: 'hi\n', report: { backend: 'landlock' } });
  });

  it.runIf(!HOST.namespaces)('is refused in the workspace, which nothing shuts (no namespaces)', async () => {
    const { stdout, stderr, exitCode } = await run('npx', ['sandbox-run', '--', '/bin/echo', 'hi']);
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 125 });
    expect(stderr).toContain(`commands could change ${installed('sandbox-run')}, `);
  });

  // The lines of the README, each in a prefix of its own.
  it.each([
    ['npm install -g ./packages/*.tgz', ''],
    // `prepare` built the checkout already.
    [
      `cd ${ROOT} && npm link --ignore-scripts`,
      ' && npm link sandbox-run --ignore-scripts && npx sandbox-run -- /bin/echo hi',
    ],
  ])('%s makes a program that runs commands', async (install, inProject) => {
    const prefix = mkdtempSync(join(place, 'prefix-'));
    const other = mkdtempSync(join(place, 'other-'));
    writeFileSync(join(other, 'package.json'), '{"name":"other","version":"1.0.0","private":true}');
    const env = {
      ...{ npm_config_prefix: prefix, npm_config_registry: foreign.url, npm_config_fund: 'false' },
      ...{ npm_config_audit: 'false', npm_config_update_notifier: 'false' },
    };
    const line = (text: string) => run('bash', ['-c', text], env);
    const done = await line(`cd ${place} && ${install}`);
    expect(done, done.stderr).toMatchObject({ exitCode: 0 });
    const ran = await line(`cd ${other} && ${prefix}/bin/sandbox-run -- /bin/echo hi${inProject}`);
    expect(ran, ran.stderr).toMatchObject({ exitCode: 0 });
    expect(ran.stdout.split('\n').filter((said) => said === 'hi')).toHaveLength(inProject === '' ? 1 : 2);
  });

  it('npm install ./packages/*.tgz puts both into a project, where npx finds the program', async () => {
    const other = mkdtempSync(join(place, 'other-'));
    cpSync(packages, join(other, 'packages'), { recursive: true });
    writeFileSync(join(other, 'package.json'), '{"name":"other","version":"1.0.0","private":true}');
    const line = `cd ${other} && npm install --registry=${foreign.url} --no-audit --no-fund ./packages/*.tgz && npx sandbox-run ${chosen.join(' ')} -- /bin/echo hi`;
    const { stdout, stderr, exitCode } = await run('bash', ['-c', line]);
    expect([exitCode, stdout, stderr]).toEqual([0, expect.stringMatching(/^hi$/m), expect.anything()]);
  });

  it('what has a state works, with the SQLite of the platform package; no compiled code of another Node came', async () => {
    const state = join(place, 'state');
    const asked = await run('npx', ['sandbox-run', 'approvals', 'list'], { XDG_STATE_HOME: state });
    expect(asked, asked.stderr).toMatchObject({ exitCode: 0, stdout: 'Nothing waits for an answer.' });
    expect(existsSync(join(state, 'sandbox-run/gate.db'))).toBe(true);
    expect(existsSync(installed('@photostructure'))).toBe(false);
    expect(readdirSync(installed('sandbox-run/dist')).filter((name) => name.endsWith('.code'))).toEqual([]);
  });

  it('the library is imported', async () => {
    const script = `
      import { createSandbox } from 'sandbox-run';
      const sandbox = await createSandbox({ workspace: ${JSON.stringify(workspace)} });
      const result = await sandbox.run(['/bin/sh', '-c', 'echo from the library; /bin/ls ../packages'], { approved: true });
      await sandbox.close();
      console.log(JSON.stringify({ error: result.error, stdout: result.stdout, stderr: result.stderr, controls: result.report.controls }));`;
    const { stdout, stderr } = await run('node', ['--input-type=module', '-e', script], {
      XDG_CONFIG_HOME: makeUnjudgedConfiguration(place),
    });
    expect(stderr).toBe('');
    const said = JSON.parse(stdout);
    expect(said).toMatchObject({ stdout: 'from the library\n' });
    expect(said.stderr).toMatch(/packages.*(No such file|Permission denied)/);
    expect(said.controls).toContainEqual(expect.objectContaining({ id: 'process-tree', state: 'enforced' }));
  });

  it.each([
    ['module', "import { confine } from 'sandbox-run/confine';"],
    ['commonjs', "const { confine } = require('sandbox-run/confine');"],
  ])('the core by itself is loaded, as %s', async (type, load) => {
    const read = ['/usr', '/bin', '/lib', '/lib64'].filter((path) => existsSync(path));
    const script = `${load}
      confine().prepare(${JSON.stringify({ workspace, read })}).then(async (made) => {
        const { failure, stdout } = await made.start({ program: '/bin/echo', argv: ['echo', 'confined'] }).exited;
        console.log(failure ?? stdout.toString().trim());
      });`;
    const { stdout, stderr } = await run('node', [`--input-type=${type}`, '-e', script]);
    expect(stdout, stderr).toBe('confined');
  });

  it('the warden is the program of the platform package', async () => {
    const script = `
      const { readlinkSync, readdirSync } = require('node:fs');
      const { createRequire } = require('node:module');
      (async () => {
        const { createSandbox } = await import('sandbox-run');
        const sandbox = await createSandbox({ workspace: ${JSON.stringify(workspace)} });
        const running = sandbox.start(['/bin/sleep', '5'], { approved: true });
        let program;
        for (let i = 0; i < 200 && program === undefined; ++i) {
          await new Promise((next) => setTimeout(next, 20));
          for (const pid of readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name))) {
            try {
              const exe = readlinkSync('/proc/' + pid + '/exe');
              if (exe.endsWith('/sandbox-run-warden') && exe.startsWith(process.cwd())) program = exe;
            } catch {}
          }
        }
        running.cancel();
        await running.result;
        await sandbox.close();
        console.log(program);
      })();`;
    const { stdout, stderr } = await run('node', ['-e', script]);
    expect(stdout, stderr).toBe(installed('@sandbox-run', OWN, 'sandbox-run-warden'));
  });

  it('NODE_PATH and the directories above bring no addon; the command that it names does', async () => {
    const foreign = join(place, 'node_modules/@sandbox-run', OWN);
    const elsewhere = join(place, 'elsewhere');
    mkdirSync(dirname(foreign), { recursive: true });
    renameSync(installed('@sandbox-run', OWN), elsewhere);
    symlinkSync(elsewhere, foreign);
    const env = { NODE_PATH: join(place, 'node_modules') };
    const refused = await run('npx', ['sandbox-run', ...chosen, '--', '/usr/bin/touch', 'marker'], env);
    expect(refused.exitCode).toBe(125);
    const [what, how, ...rest] = refused.stderr.split('\n');
    expect(what).toMatch(
      /^sandbox-run: the native addon cannot be used: neither @sandbox-run\/\S+ is installed nor is it built$/,
    );
    expect(how).toBe(`sandbox-run: to mend it: npm install @sandbox-run/${OWN}@${packageVersion}`);
    expect(rest).toEqual([]);
    expect(existsSync(join(workspace, 'marker'))).toBe(false);

    const mended = await run('sh', ['-c', how?.replace(/^.*to mend it: /, '') ?? '']);
    expect(mended, mended.stderr).toMatchObject({ exitCode: 0 });
    const ran = await run('npx', ['sandbox-run', ...chosen, '--', '/bin/echo', 'hi']);
    expect(ran, ran.stderr).toMatchObject({ exitCode: 0, stdout: 'hi' });
  });
});
