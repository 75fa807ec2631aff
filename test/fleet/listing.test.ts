import { expect, it } from 'vitest';
import { connectNats, fleetStoreOn } from '../../src/gate/nats/index.ts';
import { makeFleetWorld } from './support.ts';

const world = makeFleetWorld();
const openStore = async () => {
  const { url } = world.servers;
  return fleetStoreOn(await connectNats({ url }, 'state'), { url });
};

it('lists what is there while others write: each key once, and to an end', async () => {
  const [here, elsewhere] = [await openStore(), await openStore()];
  const keys = Array.from({ length: 20 }, (_, index) => `approval.${index}`);
  const revisions = await Promise.all(keys.map((key) => elsewhere.shortLived.put(key, 'first', 0)));
  const gone = (await elsewhere.shortLived.put('approval.gone', 'x', 0)) ?? 0;
  await elsewhere.shortLived.remove('approval.gone', gone);
  await elsewhere.shortLived.put('other.1', 'of another kind', 0);
  let over = false;
  const written = (async () => {
    for (let round = 0; round < 100; round += 1)
      await Promise.all(
        keys.map(async (key, index) => {
          revisions[index] = await elsewhere.shortLived.put(key, `${round}`, revisions[index] ?? 0);
        }),
      );
  })().finally(() => {
    over = true;
  });
  do {
    const found = await here.shortLived.list('approval.*');
    expect(found.map(({ key }) => key).sort()).toEqual([...keys].sort());
  } while (!over);
  await written;
  const found = await here.shortLived.list('approval.*');
  expect(new Set(found.map(({ value }) => value))).toEqual(new Set(['99']));
  expect(found.map(({ revision }) => revision).sort()).toEqual([...revisions].sort());
  await here.close();
  await elsewhere.close();
});
