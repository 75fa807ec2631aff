import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { BACKEND_IDS } from '../../src/base/words.ts';
import type { DoctorReport } from '../../src/model/index.ts';

import { expectNothingLeft } from '../support/leftovers.ts';
import { WITHOUT } from '../support/without.ts';
import { cli, makePlace } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());
afterEach(() => expectNothingLeft(place));

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Every key at every level, arrays by their first element. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? [] : [shapeOf(value[0])];
  if (value === null || typeof value !== 'object') return '·';
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shapeOf(inner)]));
}

const SHAPE = {
  version: '·',
  ok: '·',
  backend: '·',
  profile: '·',
  host: {
    kernel: '·',
    architecture: '·',
    node: '·',
    uid: '·',
    sysAdmin: '·',
    container: '·',
    seccompMode: '·',
    noNewPrivs: '·',
  },
  addon: { available: '·', reason: '·' },
  backends: [{ id: '·', available: '·', reason: '·' }],
  landlock: expect.objectContaining({
    available: '·',
    abi: '·',
    newestKnownAbi: '·',
    errno: '·',
    reason: '·',
  }),
  seccomp: { available: '·', actions: [{ name: '·', available: '·' }], reason: '·' },
  namespaces: { available: '·', user: '·', reason: '·', sysctls: [{ name: '·', value: '·' }] },
  cgroup: expect.objectContaining({ version: '·', path: '·', writable: '·' }),
  programs: [{ name: '·', path: '·', version: '·', problem: '·', setuidRoot: '·' }],
};

describe('sandbox-run doctor', () => {
  it('shows a table that fits 100 columns, without colours where it is not read on a terminal', async () => {
    const result = await cli(place, ['doctor']);
    expect(result.stderr).toBe('');
    expect(result.stdout).not.toContain('\u001b');
    for (const part of [
      'Host',
      'kernel',
      'Landlock',
      'seccomp',
      'namespaces',
      'cgroup',
      'firejail',
      'bwrap',
      'Controls',
    ]) {
      expect(result.stdout).toContain(part);
    }
    for (const line of result.stdout.split('\n')) {
      if (!line.trimStart().startsWith('$ ')) expect(line.length).toBeLessThanOrEqual(100);
    }
  });

  it('ends with 0 exactly if the default profile can be enforced', async () => {
    const doctor = await cli(place, ['doctor', '--json']);
    const run = await cli(place, ['true']);
    expect(JSON.parse(doctor.stdout).ok).toBe(run.exitCode === 0);
    expect(doctor.exitCode).toBe(run.exitCode === 0 ? 0 : 1);
  });

  it('prints one object with every key, and the controls as a run reports them', async () => {
    const { stdout } = await cli(place, ['doctor', '--json']);
    const report = JSON.parse(stdout);
    expect(shapeOf(report)).toMatchObject(SHAPE);
    expect(report).toHaveProperty('problem');
    expect(report).toHaveProperty('remedies');
    const run = JSON.parse((await cli(place, ['--json=full', 'true'])).stdout);
    // A reason may name the workspace, and the doctor has one of its own.
    const withoutReasons = (controls: readonly object[]) => controls.map((one) => ({ ...one, reason: '' }));
    expect(withoutReasons(report.controls)).toEqual(withoutReasons(run.report.controls));
    expect(report.landlock.abi === 0 ? null : report.backend).toBe(run.report.backend);
  });

  it('lists every backend, and can use those that a run can use', async () => {
    const { backend, backends } = JSON.parse((await cli(place, ['doctor', '--json'])).stdout) as DoctorReport;
    expect(backends.map(({ id }) => id)).toEqual(BACKEND_IDS);
    expect(backends.find(({ available }) => available)?.id).toBe(backend);
    for (const { id, available, reason } of backends) {
      const { exitCode } = await cli(place, ['--backend', id, '--', 'true']);
      expect([id, exitCode]).toEqual([id, available ? 0 : 126]);
      expect(reason === null).toBe(available);
    }
  });

  it('has examples in its help', async () => {
    const result = await cli(place, ['doctor', '--help']);
    expect(result.exitCode).toBe(0);
    expect(result.stdout).toContain('Examples:');
    expect(result.stdout).toContain('doctor --json');
  });
});

describe('where the kernel does not have something', () => {
  const cliPath = join(root, 'dist/cli.cjs');
  const doctorUnder = async (...fault: string[]) => {
    const { stdout, exitCode } = await execa(
      'python3',
      [WITHOUT, ...fault, process.execPath, cliPath, 'doctor', '--json'],
      {
        cwd: place.workspace,
        env: place.env,
        extendEnv: false,
        reject: false,
      },
    );
    return { exitCode, report: JSON.parse(stdout) };
  };

  it.each([
    ['ENOSYS', /built without Landlock/, /5\.13/],
    ['EOPNOTSUPP', /disabled at boot/, /lsm=landlock,/],
    ['EPERM', /outer sandbox/, /landlock_create_ruleset/],
  ])(
    'Landlock (%s): says why and what to do, and which backend takes its place',
    async (errno, reason, advice) => {
      const { exitCode, report } = await doctorUnder('landlock', errno);
      const run = await execa(
        'python3',
        [WITHOUT, 'landlock', errno, process.execPath, cliPath, '--json=full', 'true'],
        { cwd: place.workspace, env: place.env, extendEnv: false, reject: false },
      );
      const isHeld = run.exitCode === 0;
      expect(exitCode).toBe(isHeld ? 0 : 1);
      expect(report.backend).toBe(isHeld ? JSON.parse(run.stdout).report.backend : null);
      expect(report.backend).not.toBe('landlock');
      expect(report.landlock).toMatchObject({ available: false, abi: 0, errno });
      expect(report.landlock.reason).toMatch(reason);
      expect(report.remedies[0]).toMatchObject({
        topic: 'landlock',
        priority: isHeld ? 'useful' : 'needed',
        text: expect.stringMatching(advice),
      });
    },
  );

  it('Landlock and namespaces: refuses, and says what each of them lacks', async () => {
    const { exitCode, report } = await doctorUnder(
      ...['landlock', 'ENOSYS', 'python3', WITHOUT, 'namespaces', 'EPERM'],
    );
    expect(exitCode).toBe(1);
    expect(report).toMatchObject({ ok: false, backend: null, problem: { code: 'enforcement.unavailable' } });
    expect(report.landlock.reason).toMatch(/built without Landlock/);
    expect(report.problem.message).toMatch(/Landlock/);
    expect(report.problem.message).toMatch(/namespaces/);
    expect(report.remedies[0]).toMatchObject({ topic: 'landlock', priority: 'needed' });
  });

  it('seccomp: says so', async () => {
    const { report } = await doctorUnder('seccomp', 'ENOSYS');
    expect(report.seccomp).toMatchObject({ available: false, reason: expect.stringContaining('ENOSYS') });
    expect(report.remedies[0]).toMatchObject({ topic: 'seccomp', priority: 'needed' });
  });

  it('namespaces: names the step, the errno and what is lost', async () => {
    const { exitCode, report } = await doctorUnder('namespaces', 'EPERM');
    expect(exitCode).toBe(0);
    expect(report.namespaces).toMatchObject({
      available: false,
      reason: expect.stringMatching(/namespace\.\w+: EPERM/),
    });
    const state = (id: string) => report.controls.find((control: { id: string }) => control.id === id).state;
    expect(state('filesystem')).toBe('enforced');
    expect(state('filesystem-view')).toBe('unsupported');
    expect(report.remedies.map((remedy: { topic: string }) => remedy.topic)).toContain('namespaces');
  });
});

describe('without the addon', () => {
  const copy = join(place.root, 'copy');
  beforeAll(() => {
    mkdirSync(copy);
    cpSync(join(root, 'dist'), join(copy, 'dist'), { recursive: true });
    cpSync(join(root, 'package.json'), join(copy, 'package.json'));
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  });
  const cliWithout = (...args: string[]) =>
    execa(process.execPath, [join(copy, 'dist/cli.cjs'), ...args], {
      cwd: place.workspace,
      env: place.env,
      extendEnv: false,
      reject: false,
    });

  it('doctor says so and how to build it', async () => {
    const table = await cliWithout('doctor');
    expect(table).toMatchObject({ exitCode: 1, stderr: '' });
    expect(table.stdout).toContain('npm explore sandbox-run -- npm run build:native');
    const report = JSON.parse((await cliWithout('doctor', '--json')).stdout);
    expect(shapeOf(report)).toMatchObject({ ...SHAPE, backends: [] });
    expect(report).toMatchObject({ ok: false, problem: { code: 'addon.unavailable' }, controls: [] });
  });

  it('a run is refused with two lines: what is missing, and the command that mends it', async () => {
    const result = await cliWithout('touch', 'marker');
    expect(result.exitCode).toBe(125);
    expect(result.stderr).toMatch(
      /^sandbox-run: the native addon cannot be used: [^\n]+ built\nsandbox-run: to mend it: npm install [^\n]*npm explore sandbox-run[^\n]*$/,
    );
    expect(readdirSync(place.workspace)).not.toContain('marker');
  });

  it('in a checkout, that is one that can be run from anywhere', async () => {
    mkdirSync(join(copy, 'src'));
    try {
      const command = `npm --prefix ${copy} run build:native`;
      const result = await cliWithout('touch', 'marker');
      expect(result.exitCode).toBe(125);
      expect(result.stderr.split('\n').at(-1)).toBe(`sandbox-run: to mend it: ${command}`);
      const report = JSON.parse((await cliWithout('doctor', '--json')).stdout);
      expect(report.remedies).toContainEqual(expect.objectContaining({ topic: 'addon', command }));
    } finally {
      rmSync(join(copy, 'src'), { recursive: true });
    }
  });
});
