import { jetstreamManager } from '@nats-io/jetstream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectNats } from '../../../../src/gate/nats/connection.ts';
import { Publisher } from '../../../../src/gate/nats/publisher.ts';
import { writeBehind } from '../../../../src/gate/nats/write-behind.ts';
import { type NatsServers, startNats } from '../../../support/nats.ts';
import { lacks } from '../../../support/programs.ts';

const it = test.skipIf(lacks('nats-server'));

let servers: NatsServers;
beforeAll(async () => {
  servers = await startNats({ nodes: 1 });
  const connection = await connectNats({ url: servers.url }, 'test');
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: 'S', subjects: ['s.>'] });
  await connection.close();
});
afterAll(() => servers?.stop());

async function open() {
  const connection = await connectNats({ url: servers.url }, 'test');
  return { connection, publisher: await Publisher.on(connection) };
}

it('settles with the place in the stream, and keeps the order of one turn', async () => {
  const { connection, publisher } = await open();
  const stored = await Promise.all(
    Array.from({ length: 50 }, (_, at) => publisher.publish('s.order', String(at), {})),
  );
  expect(stored.map(({ seq }) => seq - (stored[0]?.seq ?? 0))).toEqual(
    Array.from({ length: 50 }, (_, at) => at),
  );
  const again = { 'Nats-Msg-Id': 'once' };
  const [first, second] = [
    await publisher.publish('s.id', '', again),
    await publisher.publish('s.id', '', again),
  ];
  expect([first.duplicate, second.duplicate, second.seq]).toEqual([false, true, first.seq]);
  await connection.close();
});

it('tells what does not follow from what is unknown', async () => {
  const { connection, publisher } = await open();
  const follow = (behind: number) =>
    writeBehind(publisher, { subject: 's.follow', data: 'x', behind }, servers.url);
  const first = await follow(0);
  expect(first).toBeGreaterThan(0);
  expect(await follow((first ?? 0) + 7)).toBeUndefined();
  await expect(
    writeBehind(publisher, { subject: 'nowhere', data: 'x', behind: 0 }, servers.url),
  ).rejects.toMatchObject({ code: 'fleet.unreachable' });
  await connection.close();
});

it('fails what waits for an answer when the connection is closed, and what comes after', async () => {
  const { connection, publisher } = await open();
  // Somebody listens and never answers.
  const heard = new Promise<void>((done) => {
    connection.subscribe('silence', { callback: () => done() });
  });
  const waiting = publisher.publish('silence', '', {}, 60_000);
  const failed = expect(waiting).rejects.toThrow(/closed/);
  await heard;
  await connection.close();
  await failed;
  await expect(publisher.publish('s.after', '', {})).rejects.toThrow(/closed/);
});

it('fails without an answer after its time', async () => {
  const { connection, publisher } = await open();
  connection.subscribe('silence', { callback: () => {} });
  await expect(publisher.publish('silence', '', {}, 100)).rejects.toThrow(/in time/);
  await connection.close();
});
