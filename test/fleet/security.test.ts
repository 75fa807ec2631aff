import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openQueue } from '../../src/fleet/index.ts';
import { connectNats } from '../../src/gate/nats/index.ts';
import { type FleetRunOptions, JobMessage } from '../../src/model/fleet.ts';
import { makeFleetWorld } from './support.ts';

const world = makeFleetWorld();
let forged = 0;

async function openPlainQueue() {
  const queue = world.queue();
  await world.worker(queue);
  return { queue, fleet: await world.fleet(queue) };
}
let opened: ReturnType<typeof openPlainQueue> | undefined;
/** One queue with one worker, for all that need no more. */
const plainQueue = () => {
  opened ??= openPlainQueue();
  return opened;
};

describe('a submitter can narrow the policy of a worker', () => {
  it('to a workspace that cannot be written, and less time, output and network', async () => {
    const queue = world.queue();
    await world.worker(queue, {
      sandbox: { workspace: world.place.workspace, policy: { network: { mode: 'open' } } },
    });
    const fleet = await world.fleet(queue);
    // Without namespaces `touch` sets the time of a file that is there: its content is what cannot be written.
    const write = 'echo x > writable';
    expect(await fleet.run(write)).toMatchObject({ ok: true });
    expect(await fleet.run(write, { narrow: { readOnly: true } })).toMatchObject({ ok: false });
    const port = new URL(world.servers.url).port;
    const connect = ['bash', '-c', `exec 3<>/dev/tcp/127.0.0.1/${port}; head -c 4 <&3`] as const;
    // The positive control: with the network of the host the server answers.
    expect(await fleet.run([...connect])).toMatchObject({ ok: true, stdout: 'INFO' });
    expect(await fleet.run([...connect], { narrow: { policy: { network: { mode: 'off' } } } })).toMatchObject(
      {
        ...{ ok: false, stdout: '' },
      },
    );
    expect(
      await fleet.run('cat secret.pem', { narrow: { policy: { filesystem: { hide: ['*.pem'] } } } }),
    ).toMatchObject({
      ok: false,
    });
  });

  it.each<[string, FleetRunOptions]>([
    ['the network', { narrow: { policy: { network: { mode: 'open' } } } }],
    ['further hosts', { narrow: { policy: { network: { allow: ['example.org'] } } } }],
    ['a path to write', { narrow: { policy: { filesystem: { write: ['/etc'] } } } }],
    ['commands that are not judged', { narrow: { policy: { unsafe: { unjudged_commands: true } } } }],
    ['autonomy', { narrow: { policy: { security: { autonomy: 'autonomous' } } } }],
    ['a profile', { narrow: { policy: { profile: 'networked' } } }],
    ['a plug-in', { narrow: { policy: { hooks: { plugins: ['/tmp/evil.mjs'] } } as never } }],
  ])('and never give it %s', async (_name, options) => {
    const { fleet } = await plainQueue();
    expect(await fleet.run('echo ran > gained', options)).toMatchObject({
      ...{ status: 'setup-failed', ok: false, error: { code: 'usage.invalid' } },
    });
    expect(await fleet.run('test -e gained')).toMatchObject({ ok: false });
  });

  it.each(['approved', 'gate', 'policy', 'stdio', 'pty', 'spill', 'principal', 'writable', 'net', 'passEnv'])(
    'and is refused the option %s, on both sides',
    async (name) => {
      const queue = world.queue();
      await world.worker(queue);
      const fleet = await world.fleet(queue);
      await expect(fleet.run('true', { [name]: true } as never)).rejects.toMatchObject({
        code: 'usage.invalid',
      });
      // As a submitter would say it that checks nothing itself.
      const job = await fleet.submit(['true']);
      await job.result;
      const connection = await connectNats({ url: world.servers.url }, 'evil');
      const { js, names } = await openQueue(connection, queue);
      forged += 1;
      const id = `${'e'.repeat(16)}.${forged}`;
      const message = { version: 1, job: id, command: ['touch', 'forged'], live: false, retry: 0 };
      await js.publish(
        names.jobSubject('normal', 'any'),
        JSON.stringify({ ...message, options: { [name]: true } }),
      );
      await connection.close();
      expect(await fleet.result(id, { wait: true })).toMatchObject({
        ...{ status: 'setup-failed', error: { code: 'usage.invalid' } },
      });
    },
  );

  it('and cannot say that what it does need not be undone', async () => {
    const { fleet } = await plainQueue();
    await expect(fleet.run('true', { effect: 'direct' } as never)).rejects.toMatchObject({
      code: 'usage.invalid',
    });
    const message = { version: 1, job: `${'e'.repeat(16)}.1`, command: 'true', live: false, retry: 0 };
    const accepted = (effect: string) => JobMessage.safeParse({ ...message, options: { effect } }).success;
    expect([accepted('preview'), accepted('direct')]).toEqual([true, false]);
  });

  it('and a longer time, more output or idleness than the policy allows is the policy’s', async () => {
    const queue = world.queue();
    const sandbox = { workspace: world.place.workspace, timeout: 1000, maxOutput: 100, idleTimeout: 600 };
    await world.worker(queue, { sandbox });
    const fleet = await world.fleet(queue);
    const result = await fleet.run('yes | head -c 10000', { maxOutput: 100_000 });
    expect(result.stdout.length).toBeLessThan(300);
    expect(await fleet.run('sleep 60', { timeout: 60_000, idleTimeout: 60_000 })).toMatchObject({
      status: 'limit-exceeded',
    });
  });
});

describe('a job', () => {
  it('cannot reach the server, and sees no credentials in its environment, arguments, workspace or parents', async () => {
    const queue = world.queue();
    const secret = 'SUAKEYTHATNOBODYMAYSEE';
    const credentials = join(world.place.root, 'worker.creds');
    writeFileSync(credentials, `${secret}\n`);
    chmodSync(credentials, 0o600);
    process.env.SANDBOX_RUN_NATS_URL_FOR_TEST = secret;
    try {
      await world.worker(queue, { credentials });
    } finally {
      delete process.env.SANDBOX_RUN_NATS_URL_FOR_TEST;
    }
    const fleet = await world.fleet(queue);
    const { port } = new URL(world.servers.url);
    const look = [
      `(exec 3<>/dev/tcp/127.0.0.1/${port}) 2>/dev/null && echo CONNECTED`,
      'env | grep -i [n]ats',
      'tr "\\0" "\\n" < /proc/self/cmdline | grep -i [n]ats',
      `cat ${credentials}`,
      'cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr "\\0" "\\n" | grep -ia "[K]EYTHAT"',
      'grep -rs SUA[K]EY .',
      'ls -l /proc/self/fd | grep socket',
      'echo LOOKED',
    ].join('; ');
    const result = await fleet.run(look);
    expect(result.stdout).toBe('LOOKED\n');
    // The positive control: what it looks for can be found.
    const found = await fleet.run('SUA=1 env | grep SUA; echo here > plain; cat plain; ls /proc/self/fd');
    expect(found.stdout).toContain('SUA=1\nhere\n');
  });

  it('has no worker whose credentials it could read', async () => {
    const queue = world.queue();
    const credentials = join(world.place.workspace, 'worker.creds');
    writeFileSync(credentials, 'secret');
    await expect(world.worker(queue, { credentials })).rejects.toMatchObject({ code: 'fleet.invalid' });
  });
});
