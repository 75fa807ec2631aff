import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nkeyAuthenticator, nkeys } from '@nats-io/transport-node';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createFleet, FleetWorker, OutputSender, openQueue, satisfies } from '../../src/fleet/index.ts';
import { connectNats, Publisher } from '../../src/gate/nats/index.ts';
import { packageVersion } from '../../src/version.ts';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { type NatsServers, startNats } from '../support/nats.ts';
import { makeFleetWorld } from './support.ts';

const CLI = fileURLToPath(new URL('../../dist/cli.cjs', import.meta.url));
const world = makeFleetWorld();

describe('a fleet that is closed', () => {
  it('rejects what is awaited, and the job goes on', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await createFleet({ url: world.servers.url, queue });
    const { words, letGo } = makeHold(world.place.workspace);
    const job = await fleet.submit(`${words}; echo end`);
    await fleet.close();
    await expect(job.result).rejects.toMatchObject({
      ...{ code: 'fleet.unreachable', message: expect.stringContaining(job.id) },
    });
    letGo();
    const other = await world.fleet(queue);
    expect(await other.result(job.id, { wait: true })).toMatchObject({ stdout: 'end\n' });
  });

  it('has handed over nothing of what comes after that', async () => {
    const fleet = await createFleet({ url: world.servers.url, queue: world.queue() });
    await fleet.close();
    await expect(fleet.run(['true'])).rejects.toMatchObject({
      ...{ code: 'fleet.unreachable', message: 'this fleet is closed; nothing was handed over' },
    });
  });

  it('says of a job that the server may have that it may run', async () => {
    const servers = await startNats();
    const fleet = await createFleet({ url: servers.url, queue: 'silent' });
    try {
      await servers.nodes[0]?.pause();
      const sent = vi.spyOn(Publisher.prototype, 'publish');
      const submitted = fleet.submit(['true']);
      submitted.catch(() => {});
      await eventually(() => expect(sent).toHaveBeenCalled());
      sent.mockRestore();
      void fleet.close();
      await expect(submitted).rejects.toMatchObject({
        ...{ code: 'fleet.unreachable', message: expect.stringMatching(/job \S+ may have been handed over/) },
      });
    } finally {
      await fleet.close();
      await servers.stop();
    }
  });
});

describe('a job of which its worker cannot say what became of it', () => {
  it('ends, and does not run again', async () => {
    const queue = world.queue();
    const said: string[] = [];
    await world.worker(queue, { onProblem: (line) => void said.push(line) });
    const fleet = await world.fleet(queue);
    const broken = vi.spyOn(OutputSender.prototype, 'end').mockRejectedValueOnce(new Error('unthought of'));
    try {
      const result = await fleet.run('echo ran >> unsaid');
      expect(result).toMatchObject({
        ...{ status: 'worker-lost', error: { code: 'fleet.worker_lost' }, fleet: { attempts: 1 } },
      });
      expect(result.error?.message).toContain('unthought of');
      expect(said.join()).toContain('unthought of');
      expect(await fleet.run('cat unsaid')).toMatchObject({ stdout: 'ran\n' });
    } finally {
      broken.mockRestore();
    }
  });

  it('and one that it claimed before and does not run is not run either', async () => {
    const queue = world.queue();
    const worker = await world.worker(queue);
    const fleet = await world.fleet(queue);
    const connection = await connectNats({ url: world.servers.url }, 'administrator');
    const { js, names, records } = await openQueue(connection, queue);
    const id = `${'b'.repeat(16)}.1`;
    const claim = { state: 'claimed', worker: worker.id, host: 'here', attempt: 1, at: 1, queueMs: 0 };
    await records.put(id, JSON.stringify(claim));
    const message = { version: 1, job: id, command: 'echo ran >> again', live: false, retry: 0, options: {} };
    await js.publish(names.jobSubject('normal', 'any'), JSON.stringify(message));
    expect(await fleet.result(id, { wait: true })).toMatchObject({ status: 'worker-lost' });
    expect(await fleet.run(['test', '-e', 'again'])).toMatchObject({ ok: false });
    await connection.close();
  });
});

it.each<[string, object]>([
  ['there is no option "credential"', { credential: '/etc/worker.creds' }],
  ['url', { url: undefined }],
  ['make', { make: 'no' }],
  ['replicas', { replicas: 7 }],
  ['queue', { queue: 'a.b' }],
])('a fleet is not opened with an option that is none, or not what it has to be: %s', async (what, given) => {
  const options = { url: world.servers.url, queue: 'options', ...given };
  await expect(createFleet(options)).rejects.toMatchObject({
    ...{ code: 'usage.invalid', message: expect.stringContaining(what) },
  });
});

describe('what is not there', () => {
  it('a queue: it is said, and it is not made', async () => {
    const queue = world.queue();
    const settings = { url: world.servers.url, queue };
    await expect(createFleet({ ...settings, make: false })).rejects.toMatchObject({ code: 'fleet.unknown' });
    const connection = await connectNats(settings, 'looks');
    const { manager } = await openQueue(connection, world.queue());
    await expect(manager.streams.info(`SR_JOBS_${queue}`)).rejects.toThrow('stream not found');
    await connection.close();
    // The positive control.
    await world.fleet(queue);
    await (await createFleet({ ...settings, make: false })).close();
  });

  it('a job: it is said where none waits, and what waits may be it', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const id = `${'c'.repeat(16)}.1`;
    const unknown = { code: 'fleet.unknown', message: expect.stringContaining(id) };
    await expect(fleet.cancel(id)).rejects.toMatchObject(unknown);
    await expect(fleet.result(id)).rejects.toMatchObject(unknown);
    await expect(fleet.result(id, { wait: true })).rejects.toMatchObject(unknown);
    const waiting = await fleet.submit(['true']);
    expect(await fleet.result(waiting.id)).toBeUndefined();
    const other = await world.fleet(queue);
    await other.cancel(waiting.id);
    expect(await waiting.result).toMatchObject({ status: 'canceled' });
    // One that has ended is no unknown one, and canceling it changes nothing.
    await other.cancel(waiting.id);
  });
});

it('a server that takes no message of the size of a result is refused, and not found out by a job', async () => {
  const servers = await startNats({ config: 'max_payload: 65536' });
  try {
    await expect(createFleet({ url: servers.url, queue: 'small' })).rejects.toMatchObject({
      ...{ code: 'fleet.invalid', message: expect.stringContaining('max_payload') },
    });
  } finally {
    await servers.stop();
  }
});

it('a job that is more than the server takes is refused at once', async () => {
  const fleet = await world.fleet(world.queue());
  const env = Object.fromEntries(Array.from({ length: 11 }, (_, at) => [`V${at}`, 'x'.repeat(100_000)]));
  await expect(fleet.run(['true'], { env })).rejects.toMatchObject({
    ...{
      code: 'usage.invalid',
      message: expect.stringMatching(/11\d{5} bytes, and the server takes 1047552/),
    },
  });
});

describe('a submitter of another version', () => {
  it('is told so in one line', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const id = `${'a'.repeat(16)}.1`;
    const connection = await connectNats({ url: world.servers.url }, 'newer');
    const { js, names } = await openQueue(connection, queue);
    const message = { version: 2, job: id, command: 'true', live: false, retry: 0, options: {} };
    await js.publish(names.jobSubject('normal', 'any'), JSON.stringify(message));
    await eventually(async () => {
      const { records } = await openQueue(connection, queue);
      expect(await records.get(id)).not.toBeNull();
    });
    const result = await fleet.result(id, { wait: true });
    expect(result?.error?.message).toMatch(/^[^\n]*is its submitter of another[^\n]*$/);
    expect(result?.error?.message).toContain(packageVersion);
    await connection.close();
  });
});

it('needs that say the same in many ways are none: each would have consumers of its own', () => {
  const labels = ['gpu', 'arm'];
  expect(satisfies(labels, 'arm_gpu')).toBe(true);
  for (const needs of ['gpu_arm', 'gpu_gpu', 'any_gpu', '', '_', 'gpu_', 'any_any', '*', 'gpu.arm'])
    expect(satisfies(labels, needs)).toBe(false);
});

describe('a worker that may not hear', () => {
  const startedWith = async (subject: string) => {
    const servers = await startNats({
      config: [
        `authorization { users: [ { user: a, password: b, permissions: { subscribe: { deny: [${JSON.stringify(subject)}] } } } ] }`,
        'no_auth_user: a',
      ].join('\n'),
    });
    onTestFinished(() => servers.stop());
    const { url } = servers;
    const connection = await connectNats({ url }, 'worker');
    onTestFinished(() => connection.close());
    const { workspace, root } = world.place;
    const worker = await FleetWorker.start({
      ...{ connection, queue: 'builds', sandbox: { workspace }, scratch: root },
    });
    onTestFinished(() => worker.stop(0));
    return createFleet({ url, queue: 'builds' });
  };

  it('which jobs are canceled does not start', async () => {
    await expect(startedWith('sr.builds.cancel.*')).rejects.toMatchObject({ code: 'fleet.refused' });
  });

  it('which labels are new works', async () => {
    const fleet = await startedWith('sr.builds.needs');
    expect(await fleet.run('echo works')).toMatchObject({ stdout: 'works\n' });
    await fleet.close();
  });
});

describe('a user whom the server does not let in any more', () => {
  let servers: NatsServers | undefined;
  afterAll(() => servers?.stop());

  it('does not wait for ever: the worker ends with a line, and so does what is awaited', async () => {
    const key = nkeys.createUser();
    const users = `authorization { users: [ { nkey: ${key.getPublicKey()} } ] }`;
    servers = await startNats({ config: users, probe: { authenticator: nkeyAuthenticator(key.getSeed()) } });
    const creds = join(world.place.root, 'user.seed');
    writeFileSync(creds, key.getSeed(), { mode: 0o600 });
    const { url, nodes } = servers;
    const args = ['worker', '--queue', 'builds', '--url', url, '--creds', creds, '--lease', '9'];
    const worker = spawn(process.execPath, [CLI, ...args, '--workspace', world.place.workspace]);
    const ended = new Promise((done) => worker.once('exit', done));
    onTestFinished(() => void worker.kill('SIGKILL'));
    let said = '';
    worker.stderr.on('data', (bytes) => {
      said += bytes;
    });
    await Promise.race([once(worker.stdout, 'data'), ended]);
    const fleet = await createFleet({ url, credentials: creds, queue: 'builds' });
    const job = await fleet.submit(['sleep', '1000']);
    const result = expect(job.result).rejects.toMatchObject({ code: expect.stringMatching('^fleet') });
    const pid = nodes[0]?.pid ?? 0;
    const file = `/proc/${pid}/cwd/nats.conf`;
    const other = nkeys.createUser().getPublicKey();
    writeFileSync(file, readFileSync(file, 'utf8').replace(key.getPublicKey(), other));
    process.kill(pid, 'SIGHUP');
    await result;
    expect(await ended).toBe(125);
    expect(said).toMatch(/refuses this user/);
    await fleet.close();
  });
});
