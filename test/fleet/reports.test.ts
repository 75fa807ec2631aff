import { expect, it, onTestFinished } from 'vitest';
import { openQueue } from '../../src/fleet/index.ts';
import { connectNats } from '../../src/gate/nats/index.ts';
import type { FleetResult } from '../../src/model/fleet.ts';
import { makeFleetWorld } from './support.ts';

const world = makeFleetWorld();

/** Three jobs of one worker, and what the server keeps of them. */
async function threeJobs() {
  const queue = world.queue();
  await world.worker(queue);
  const fleet = await world.fleet(queue);
  const results: FleetResult[] = [];
  for (let at = 0; at < 3; at += 1) results.push(await fleet.run(['true']));
  const connection = await connectNats({ url: world.servers.url }, 'test');
  onTestFinished(() => connection.close());
  const opened = await openQueue(connection, queue);
  const recordOf = async (at: number) =>
    (await opened.records.get(results[at]?.fleet.job ?? ''))?.string() ?? '';
  return { queue, opened, results, recordOf };
}

const reportOf = (result: object | undefined) => Reflect.get(result ?? {}, 'report');

it('tells what is enforced in each result, and sends it to the server twice at the most', async () => {
  const { queue, results, recordOf } = await threeJobs();
  const [first, second, third] = results.map(reportOf);
  expect(first).toHaveProperty('backend');
  expect([second, third]).toEqual([first, first]);
  const length = JSON.stringify(first).length;
  expect((await recordOf(0)).length).toBeGreaterThan(length);
  expect((await recordOf(2)).length).toBeLessThan(length);
  // Who was not there asks for it.
  const other = await world.fleet(queue);
  expect(reportOf(await other.result(results[2]?.fleet.job ?? ''))).toEqual(first);
});

it('gives no result whose report is not there any more, or is another one', async () => {
  const { queue, opened, results } = await threeJobs();
  const job = results[2]?.fleet.job ?? '';
  const names: string[] = [];
  for await (const name of await opened.records.keys('report.*')) names.push(name);
  expect(names).toHaveLength(1);
  const [name = ''] = names;
  await opened.records.put(name, JSON.stringify({ ...reportOf(results[0]), backend: 'none' }));
  await expect((await world.fleet(queue)).result(job)).rejects.toMatchObject({ code: 'output.lost' });
  await opened.records.delete(name);
  await expect((await world.fleet(queue)).result(job)).rejects.toMatchObject({ code: 'output.lost' });
});
