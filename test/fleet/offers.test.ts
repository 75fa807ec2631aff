import { expect, it, onTestFinished } from 'vitest';
import { ensureConsumer, JobSource, Offer, openQueue } from '../../src/fleet/index.ts';
import { connectNats } from '../../src/gate/nats/index.ts';
import { eventually } from '../support/eventually.ts';
import { makeFleetWorld } from './support.ts';

const world = makeFleetWorld();

async function open() {
  const connection = await connectNats({ url: world.servers.url }, 'test');
  onTestFinished(() => connection.close());
  const queue = await openQueue(connection, world.queue());
  const consumer = await ensureConsumer(queue, 'normal', 'any');
  const late: Offer[] = [];
  const source = new JobSource(queue, consumer, 'normal', (job) => late.push(job));
  const hand = (job: string) => queue.publisher.publish(queue.names.jobSubject('normal', 'any'), job, {});
  return { queue, consumer, source, late, hand };
}
const textOf = (job: Offer | 'none' | 'failed') =>
  job instanceof Offer ? Buffer.from(job.data).toString() : job;

it('gives one job for each request, and says that there is none', async () => {
  const { source, hand, late } = await open();
  expect([await source.next(0), source.wasEmpty, source.isAsked]).toEqual(['none', true, false]);
  await Promise.all([hand('1'), hand('2')]);
  expect([textOf(await source.next(0)), textOf(await source.next(0))]).toEqual(['1', '2']);
  expect(await source.next(0)).toBe('none');
  const waiting = source.next(5000);
  expect(source.isAsked).toBe(true);
  await hand('3');
  expect(textOf(await waiting)).toBe('3');
  expect(await source.next(100)).toBe('none');
  expect(late).toEqual([]);
});

it('hands on a job that nobody waits for any more, which can be given back', async () => {
  const { queue, consumer, source, late, hand } = await open();
  await source.next(0);
  // As a request whose answer was given up.
  queue.connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${queue.names.jobs}.${consumer}`, '{"batch":1}', {
    reply: `${queue.publisher.inbox}${consumer}.999`,
  });
  await hand('late');
  await eventually(() => void expect(late.map(textOf)).toEqual(['late']));
  late[0]?.giveBack();
  expect(textOf(await source.next(3000))).toBe('late');
});

it('fails where the consumer is gone', async () => {
  const { queue, consumer, source } = await open();
  await queue.manager.consumers.delete(queue.names.jobs, consumer);
  expect(await source.next(0)).toBe('failed');
});

it('acknowledges a job that is over with the next request, or soon', async () => {
  const { queue, source, hand } = await open();
  const left = async () => (await queue.manager.streams.info(queue.names.jobs)).state.messages;
  await Promise.all([hand('1'), hand('2')]);
  const take = async () => {
    const job = await source.next(2000);
    if (!(job instanceof Offer)) throw new Error(`no job: ${job}`);
    return job;
  };
  const first = await take();
  const before = queue.connection.stats().outMsgs;
  first.ack();
  const second = await take();
  expect([textOf(first), textOf(second), queue.connection.stats().outMsgs - before]).toEqual(['1', '2', 1]);
  expect(await left()).toBe(1);
  second.ack();
  await eventually(async () => void expect(await left()).toBe(0));
  expect(await source.next(0)).toBe('none');
});
