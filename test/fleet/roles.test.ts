import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nkeyAuthenticator, nkeys } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { deferred } from '../../src/base/deferred.ts';
import { createFleet, type Fleet, FleetWorker, openQueue } from '../../src/fleet/index.ts';
import { connectNats, fleetStoreOn, Publisher } from '../../src/gate/nats/index.ts';
import { makePlace, type Place } from '../library/support.ts';
import { type NatsServers, startNats } from '../support/nats.ts';

const CONFIGURATION = fileURLToPath(new URL('../../examples/fleet/nats-server.conf', import.meta.url));
const ROLES = ['SUBMIT', 'WORK', 'APPROVE', 'READ'] as const;
type Role = (typeof ROLES)[number];
const keys = Object.fromEntries(ROLES.map((role) => [role, nkeys.createUser()])) as Record<
  Role,
  ReturnType<typeof nkeys.createUser>
>;

let servers: NatsServers;
let place: Place;
let worker: FleetWorker;
const ends: (() => Promise<void>)[] = [];
/** What the server says of what a role may not do. */
const REFUSED = /permissions? violation/i;

const credentialsOf = (role: Role) => join(place.root, `${role}.seed`);
const connectAs = async (role: Role) => {
  const connection = await connectNats({ url: servers.url, credentials: credentialsOf(role) }, role);
  ends.unshift(() => connection.close());
  return connection;
};
const fleetAs = async (role: Role): Promise<Fleet> => {
  const fleet = await createFleet({ url: servers.url, credentials: credentialsOf(role), queue: 'builds' });
  ends.unshift(() => fleet.close());
  return fleet;
};

/** The example with real keys; what the tests have themselves of it is taken out. */
function configuration(): string {
  const text = readFileSync(CONFIGURATION, 'utf8');
  const roles = text.slice(text.indexOf('authorization {'));
  return ROLES.reduce((all, role) => all.replace(`$${role}`, keys[role].getPublicKey()), roles);
}

beforeAll(async () => {
  place = makePlace();
  servers = await startNats({
    config: configuration(),
    probe: { authenticator: nkeyAuthenticator(keys.WORK.getSeed()) },
  });
  for (const role of ROLES) writeFileSync(credentialsOf(role), keys[role].getSeed(), { mode: 0o600 });
  worker = await FleetWorker.start({
    ...{ connection: await connectAs('WORK'), queue: 'builds', sandbox: { workspace: place.workspace } },
    ...{ scratch: place.root, credentials: credentialsOf('WORK') },
  });
  ends.unshift(() => worker.stop(0));
});
afterAll(async () => {
  for (const end of ends) await end();
  await servers?.stop();
  place?.dispose();
});

describe('the roles of examples/fleet/nats-server.conf', () => {
  it('submit: hands jobs over with a workspace, follows and cancels them', async () => {
    const fleet = await fleetAs('SUBMIT');
    writeFileSync(join(place.other, 'file'), 'content');
    const seen: string[] = [];
    const result = await fleet.run('cat file; echo made > artefact', {
      ...{ workspaceFrom: place.other, artefacts: ['artefact'] },
      onOutput: ({ bytes }) => void seen.push(Buffer.from(bytes).toString()),
    });
    expect(result).toMatchObject({ ok: true, stdout: 'content' });
    expect(seen.join('')).toBe('content');
    await fleet.download(result.fleet.artefacts ?? '', join(place.root, 'made'));
    expect(readFileSync(join(place.root, 'made/artefact'), 'utf8')).toBe('made\n');
    const endless = await fleet.submit('sleep 1000');
    const waiting = await fleet.submit('sleep 1000');
    waiting.cancel();
    endless.cancel();
    expect([(await waiting.result).status, (await endless.result).status]).toEqual(['canceled', 'canceled']);
  });

  it('submit: cannot take jobs, nor the lease of a worker, nor make a queue', async () => {
    const connection = await connectAs('SUBMIT');
    const { manager, workers } = await openQueue(connection, 'builds');
    const take = connection.request('$JS.API.CONSUMER.MSG.NEXT.SR_JOBS_builds.normal-any', '{"batch":1}', {
      ...{ timeout: 60_000, noMux: true },
    });
    await expect(take).rejects.toThrow(REFUSED);
    await expect(
      manager.consumers.add('SR_JOBS_builds', { durable_name: 'evil', ack_policy: 'explicit' as never }),
    ).rejects.toThrow();
    await expect(workers.put(worker.id ?? '', '{}')).rejects.toThrow();
    await expect(manager.streams.delete('SR_JOBS_builds')).rejects.toThrow();
    await expect(openQueue(connection, 'others')).rejects.toMatchObject({ code: 'fleet.refused' });
  });

  it('read: sees workers and results, and writes nothing', async () => {
    const submitter = await fleetAs('SUBMIT');
    const job = await submitter.submit('echo seen');
    await job.result;
    const fleet = await fleetAs('READ');
    expect((await fleet.status()).workers.map(({ worker: id }) => id)).toContain(worker.id);
    expect(await fleet.result(job.id)).toMatchObject({ stdout: 'seen\n' });
    const connection = await connectAs('READ');
    const { js, records, manager } = await openQueue(connection, 'builds');
    await expect(js.publish('sr.builds.jobs.normal.any', '{}', { timeout: 60_000 })).rejects.toThrow(REFUSED);
    await expect(records.put(job.id, '{}')).rejects.toThrow();
    await expect(manager.streams.purge('SR_JOBS_builds')).rejects.toThrow();
  });

  it('read: is told at once that it may not hand jobs over', async () => {
    const fleet = await fleetAs('READ');
    const sent = vi.spyOn(Publisher.prototype, 'publish');
    await expect(fleet.submit('true')).rejects.toMatchObject({ code: 'fleet.refused' });
    const onOutput = () => {};
    await expect(fleet.submit('true', { onOutput })).rejects.toMatchObject({ code: 'fleet.refused' });
    // It is not tried again.
    expect(sent.mock.calls.length).toBeLessThanOrEqual(2);
    sent.mockRestore();
  });

  it('read: is told at once that it may not cancel, whether a worker has the job or none', async () => {
    const submitter = await fleetAs('SUBMIT');
    const begun = deferred<void>();
    const onOutput = () => begun.resolve();
    const running = await submitter.submit('echo begun; sleep 1000', { onOutput });
    const waiting = await submitter.submit('true', { labels: ['nobody-has-it'] });
    const fleet = await fleetAs('READ');
    expect(await Promise.race([begun.promise, running.result])).toBeUndefined();
    for (const { id } of [running, waiting])
      await expect(fleet.cancel(id)).rejects.toMatchObject({ code: 'fleet.refused' });
    for (const job of [running, waiting]) {
      expect(await fleet.result(job.id)).toBeUndefined();
      job.cancel();
      expect((await job.result).status).toBe('canceled');
    }
  });

  it('work: takes jobs and hands none over', async () => {
    const connection = await connectAs('WORK');
    const { js } = await openQueue(connection, 'builds');
    await expect(js.publish('sr.builds.jobs.normal.any', '{}', { timeout: 60_000 })).rejects.toThrow(REFUSED);
  });

  it('work: counts the budget of a principal', async () => {
    const store = await fleetStoreOn(await connectAs('WORK'), { url: servers.url });
    const budget = await store.alone('principal');
    const revision = await budget.put('actions', '[]', 0);
    expect(await budget.get('actions')).toMatchObject({ value: '[]', revision });
  });

  it('approve: has what is asked, and neither hands jobs over nor reads results', async () => {
    const connection = await connectAs('APPROVE');
    const { Kvm } = await import('@nats-io/kv');
    const answers = await new Kvm(connection).create('sandbox-run-approvals');
    await answers.put('a', 'b');
    expect((await answers.get('a'))?.string()).toBe('b');
    const { js, records } = await openQueue(connection, 'builds');
    await expect(js.publish('sr.builds.jobs.normal.any', '{}', { timeout: 60_000 })).rejects.toThrow(REFUSED);
    await expect(records.get('x.1')).rejects.toThrow();
  });

  it('nobody: is refused', async () => {
    await expect(connectNats({ url: servers.url }, 'nobody')).rejects.toMatchObject({
      code: 'fleet.refused',
    });
  });
});
