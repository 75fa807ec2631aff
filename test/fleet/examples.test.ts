import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Label } from '../../src/model/fleet.ts';

const example = (name: string) => fileURLToPath(new URL(`../../examples/fleet/${name}`, import.meta.url));

describe('an example', () => {
  it.skipIf(!existsSync('/usr/bin/systemd-analyze'))('is a unit that systemd takes', () => {
    const { status, stdout, stderr } = spawnSync(
      'systemd-analyze',
      ['verify', '--man=no', example('sandbox-run-worker.service')],
      { encoding: 'utf8' },
    );
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
  });

  it('makes on Kubernetes what a worker is told to use', () => {
    const root = mkdtempSync(join(tmpdir(), 'sandbox-run-pod-'));
    onTestFinished(() => rmSync(root, { recursive: true }));
    for (const volume of ['secret', 'own', 'work']) mkdirSync(join(root, volume));
    writeFileSync(join(root, 'secret/worker.creds'), 'seed', { mode: 0o440 });
    const manifest = readFileSync(example('workers.yaml'), 'utf8');
    const [, command = ''] = /command:\s+\[sh, -c, "(.*)"\]/.exec(manifest) ?? [];
    const here = (text: string) => text.replaceAll(/\/(?=(?:secret|own|work)\/)/g, `${root}/`);
    expect(spawnSync('sh', ['-c', here(command)], { encoding: 'utf8' }).stderr).toBe('');
    const told = (option: string) => here(new RegExp(`--${option}=(\\S+)`).exec(manifest)?.[1] ?? '');
    expect(statSync(told('workspace')).isDirectory()).toBe(true);
    expect(statSync(told('creds')).mode & 0o777).toBe(0o400);
  });

  it.each([
    [
      'the port is taken',
      'exec sleep 60',
      true,
      /^up: nats-server did not start: .*\b(?:address|port)\b.*\n$/,
    ],
    // The second worker may be ended with the first one before it says anything.
    ['a worker does not start', 'echo why >&2; exit 125', false, /^why\n(why\n)?$/],
  ])('ends where %s, says why, and leaves nothing behind', async (_, program, isTaken, why) => {
    const root = mkdtempSync(join(tmpdir(), 'sandbox-run-up-'));
    onTestFinished(() => rmSync(root, { recursive: true }));
    mkdirSync(join(root, 'tmp'));
    writeFileSync(join(root, 'program'), `#!/bin/sh\n${program}\n`, { mode: 0o755 });
    const other = createServer();
    await new Promise<void>((done) => other.listen(0, '127.0.0.1', done));
    // -1: one that is free.
    const port = isTaken ? (other.address() as AddressInfo).port : -1;
    const up = spawn('sh', [example('up')], {
      env: {
        ...{ PATH: process.env.PATH, HOME: root, TMPDIR: join(root, 'tmp') },
        ...{ PORT: String(port), SANDBOX_RUN: join(root, 'program') },
      },
      stdio: ['ignore', 'inherit', 'pipe'],
      detached: true,
    });
    onTestFinished(() => {
      if (up.pid !== undefined) spawnSync('kill', ['-KILL', '--', `-${up.pid}`], { stdio: 'ignore' });
    });
    let said = '';
    up.stderr.on('data', (bytes) => {
      said += String(bytes);
    });
    expect(await new Promise((done) => up.once('close', done))).toBe(125);
    await new Promise((done) => other.close(done));
    expect(said).toMatch(why);
    expect(readdirSync(join(root, 'tmp'))).toEqual([]);
  });

  it('is a fleet that takes its files with it, however often it is told to end', async () => {
    const root = mkdtempSync(join(tmpdir(), 'sandbox-run-up-'));
    onTestFinished(() => rmSync(root, { recursive: true }));
    mkdirSync(join(root, 'tmp'));
    const worker = 'trap "sleep 0.5; exit 0" TERM; echo begun; sleep 60 & wait';
    writeFileSync(join(root, 'program'), `#!/bin/sh\n${worker}\n`, { mode: 0o755 });
    const up = spawn('sh', [example('up')], {
      env: {
        ...{ PATH: process.env.PATH, HOME: root, TMPDIR: join(root, 'tmp') },
        ...{ PORT: '-1', SANDBOX_RUN: join(root, 'program') },
      },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    });
    onTestFinished(() => {
      if (up.pid !== undefined) spawnSync('kill', ['-KILL', '--', `-${up.pid}`], { stdio: 'ignore' });
    });
    let said = '';
    let again: NodeJS.Timeout | undefined;
    up.stdout.on('data', (bytes) => {
      said += String(bytes);
      if (said === 'begun\nbegun\n') again = setInterval(() => up.kill('SIGTERM'), 100);
    });
    expect(await new Promise((done) => up.once('exit', done))).toBe(143);
    clearInterval(again);
    expect(readdirSync(join(root, 'tmp'))).toEqual([]);
  });

  it('starts workers by Slurm, hands its signal on, and leaves nothing behind', async () => {
    const root = mkdtempSync(join(tmpdir(), 'sandbox-run-sbatch-'));
    onTestFinished(() => rmSync(root, { recursive: true }));
    const [programs, temporary] = [join(root, 'bin'), join(root, 'tmp')];
    for (const directory of [programs, temporary]) mkdirSync(directory);
    const program = (name: string, text: string) =>
      writeFileSync(join(programs, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    program('hostname', 'echo Node--of-a-Cluster-with-a-long--name');
    program('srun', 'shift; exec "$@"');
    program('sandbox-run', 'trap "sleep 0.3; echo ended; exit 0" TERM; echo "begun: $*"; sleep 60 & wait');
    const child = spawn('sh', [example('worker.sbatch')], {
      env: {
        ...{ PATH: `${programs}${delimiter}${process.env.PATH}`, HOME: root },
        ...{ TMPDIR: temporary, SLURM_CPUS_PER_TASK: '3' },
      },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    });
    onTestFinished(() => {
      if (child.pid !== undefined) spawnSync('kill', ['-KILL', '--', `-${child.pid}`], { stdio: 'ignore' });
    });
    let said = '';
    child.stdout.on('data', (bytes) => {
      said += String(bytes);
      if (/^begun: .*\n$/.test(said)) child.kill('SIGTERM');
    });
    const status = await new Promise((done) => child.once('exit', done));
    expect(status).toBe(0);
    // A label that a worker takes.
    const [, label] = /--label (\S+) /.exec(said) ?? [];
    expect(Label.safeParse(label)).toMatchObject({ success: true, data: 'node=node-of-a-cluster-with-a-lo' });
    expect(said).toMatch(/^begun: worker --queue builds --slots 3 .*\nended\n$/);
    expect(readdirSync(temporary)).toEqual([]);
  });
});
