import { connect } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { SandboxError } from '../../../../src/base/errors/sandbox-error.ts';
import { fleetStoreOn, openFleetStore } from '../../../../src/gate/nats/key-value.ts';
import { keyWord } from '../../../../src/gate/state/remote/cells.ts';
import { openFleetState } from '../../../../src/gate/state/remote/open-fleet-state.ts';
import type { FleetStore, KeyValue, State } from '../../../../src/model/index.ts';
import { sampleRequest } from '../../../support/approvals.ts';
import { eventually } from '../../../support/eventually.ts';
import { type NatsServers, startNats } from '../../../support/nats.ts';
import { lacks } from '../../../support/programs.ts';

const YES = { approved: true, scope: 'once', by: 'test' } as const;
const it = test.skipIf(lacks('nats-server'));
let servers: NatsServers;
const opened: FleetStore[] = [];
beforeAll(async () => {
  servers = await startNats({ nodes: 3 });
  await open();
});
afterAll(async () => {
  await Promise.all(opened.map((store) => store.close()));
  await servers?.stop();
});

async function open(): Promise<FleetStore> {
  const store = await openFleetStore({ url: servers.url }, 'test');
  opened.push(store);
  return store;
}

/** A store whose answers to writes are lost: every write is done, and so often nobody is told. */
function losing(store: FleetStore, times: number): FleetStore & { readonly lost: () => number } {
  let lost = 0;
  const over = (values: KeyValue): KeyValue => ({
    ...values,
    put: async (...write) => {
      const revision = await values.put(...write);
      if (revision !== undefined && lost < times) {
        lost += 1;
        throw new SandboxError('fleet.unreachable', 'the answer was lost');
      }
      return revision;
    },
    remove: async (...what) => {
      const done = await values.remove(...what);
      if (done && lost < times) {
        lost += 1;
        throw new SandboxError('fleet.unreachable', 'the answer was lost');
      }
      return done;
    },
  });
  const alone = async (word: string) => over(await store.alone(word));
  return {
    ...store,
    alone,
    values: over(store.values),
    shortLived: over(store.shortLived),
    lost: () => lost,
  };
}

/** A store that so many times does not say what it has, as while there is no leader. */
function silent(store: FleetStore, times: number): FleetStore {
  let left = times;
  const over = (values: KeyValue): KeyValue => {
    const answered = <T>(read: () => Promise<T>) => {
      if (left === 0) return read();
      left -= 1;
      return Promise.reject(new SandboxError('fleet.unreachable', 'nobody answered'));
    };
    return {
      ...values,
      get: (key) => answered(() => values.get(key)),
      list: (pattern) => answered(() => values.list(pattern)),
    };
  };
  return {
    ...store,
    alone: async (word) => over(await store.alone(word)),
    shortLived: over(store.shortLived),
  };
}

describe('a read that nobody answers', () => {
  it('is tried again, and is not taken for nothing', async () => {
    const whole = openFleetState(await open());
    await whole.budget.reserve('read-again', 5);
    const id = await whole.approvals.post(sampleRequest({ principal: 'read-again' }), Date.now() + 60_000);
    const { budget } = openFleetState(silent(await open(), 2));
    expect(await budget.used('read-again')).toBe(1);
    const { approvals } = openFleetState(silent(await open(), 2));
    expect((await approvals.list('pending')).map((one) => one.id)).toContain(id);
    expect((await openFleetState(silent(await open(), 2)).approvals.find(id))?.id).toBe(id);
    await whole.approvals.withdraw(id);
  });
});

describe('a write whose answer is lost', () => {
  it.each([1, 3])('is done once, with %i of them', async (times) => {
    const store = losing(await open(), times);
    const { budget } = openFleetState(store);
    const principal = `lost-${times}`;
    for (let done = 0; done < 5; done += 1) expect(await budget.reserve(principal, 5)).toBeDefined();
    expect(await budget.reserve(principal, 5)).toBeUndefined();
    expect(await budget.used(principal)).toBe(5);
    expect(store.lost()).toBe(times);
  });

  it('gives one action back, and no other', async () => {
    const whole = await open();
    const { budget } = openFleetState(losing(whole, 0));
    const [one] = [await budget.reserve('back', 9), await budget.reserve('back', 9)];
    const again = openFleetState(losing(whole, 2)).budget;
    const third = await again.reserve('back', 9);
    await one?.release();
    await third?.release();
    expect(await budget.used('back')).toBe(1);
  });

  it('answers, takes, ends and revokes: whoever did it hears so', async () => {
    const whole = await open();
    const lost: (() => number)[] = [];
    const each = (): State => {
      const store = losing(whole, 1);
      lost.push(store.lost);
      return openFleetState(store);
    };
    const request = sampleRequest({ fingerprint: '7'.repeat(64), session: 'lost' });
    await each().sessions.use('lost', request.principal);
    const id = await each().approvals.post(request, Date.now() + 60_000);
    expect(await each().approvals.answer(id, YES)).toBe(true);
    expect(await each().approvals.answer(id, YES)).toBe(false);
    expect(await each().approvals.take(id)).toEqual(YES);
    expect(await each().approvals.take(id)).toMatchObject({ approved: false });
    await each().approvals.grant(request, 'always', 'test');
    const [grant] = await whole.values.list('grant.>').then(() => openFleetState(whole).approvals.grants());
    expect(await each().approvals.revoke(grant?.id ?? '')).toBe(true);
    expect(await each().sessions.end('lost', request.principal)).toBe(true);
    expect(await openFleetState(whole).sessions.end('lost', request.principal)).toBe(false);
    // The second take and the second answer wrote nothing.
    expect(lost.map((count) => count())).toEqual([1, 1, 1, 0, 1, 0, 1, 1, 1]);
  });
});

describe('many at the same time on a cluster', () => {
  it('never exceed the budget, also while its servers are killed', { timeout: 240_000 }, async () => {
    const workers = await Promise.all(Array.from({ length: 10 }, open));
    // Made before a server is killed.
    await workers[0]?.alone(keyWord('many'));
    // By what each write was followed: of two that follow one, one would be lost.
    const followed: number[] = [];
    const budgets = workers.map((store) => {
      const alone = async (word: string): Promise<KeyValue> => {
        const values = await store.alone(word);
        const put: KeyValue['put'] = async (key, value, revision) => {
          const written = await values.put(key, value, revision);
          if (written !== undefined) followed.push(revision);
          return written;
        };
        return { ...values, put };
      };
      return openFleetState({ ...store, alone }).budget;
    });
    let [settled, ends, kills] = [0, false, 0];
    const killer = (async () => {
      for (const node of [...servers.nodes, ...servers.nodes, ...servers.nodes]) {
        if (ends) return;
        const before = settled;
        await node.kill();
        kills += 1;
        // The others go on without it.
        await eventually(() => expect(settled > before || ends).toBe(true), 60_000);
        await node.start();
        // One server at a time is what three of them bear. An API request to a cluster that elects a leader may stay without
        // an answer, so the server itself is asked.
        await node.caughtUp();
      }
    })();
    let failed = 0;
    const taken = await Promise.all(
      budgets.map(async (budget) => {
        let mine = 0;
        for (let tries = 0; tries < 30; tries += 1) {
          try {
            if ((await budget.reserve('many', 150)) !== undefined) mine += 1;
          } catch (error) {
            expect(error).toMatchObject({ code: 'fleet.unreachable' });
            failed += 1;
          }
          settled += 1;
        }
        return mine;
      }),
    );
    ends = true;
    await killer;
    expect(kills).toBeGreaterThan(0);
    expect(new Set(followed).size).toBe(followed.length);
    const sum = taken.reduce((all, mine) => all + mine, 0);
    // One that failed may count all the same, and is then missing for the others.
    expect(sum).toBeLessThanOrEqual(150);
    expect(sum).toBeGreaterThanOrEqual(150 - failed);
    const used = await openFleetState(workers[0] ?? (await open())).budget.used('many');
    expect(used).toBeLessThanOrEqual(150);
    expect(used).toBeGreaterThanOrEqual(sum);
  });

  it('of all that answer one request, one is heard; of all that take it, one has it', async () => {
    const states = (await Promise.all(Array.from({ length: 10 }, open))).map(openFleetState);
    const [first] = states;
    for (let round = 0; round < 10; round += 1) {
      const id = await first?.approvals.post(sampleRequest(), Date.now() + 60_000);
      const heard = await Promise.all(
        states.map(({ approvals }, index) => approvals.answer(id ?? '', { ...YES, by: `${index}` })),
      );
      expect(heard.filter(Boolean)).toHaveLength(1);
      const had = await Promise.all(states.map(({ approvals }) => approvals.take(id ?? '')));
      expect(had.filter((answer) => answer?.approved)).toEqual([{ ...YES, by: `${heard.indexOf(true)}` }]);
    }
  });

  it('of two principals that begin one session, one has it', async () => {
    const states = (await Promise.all(Array.from({ length: 6 }, open))).map(openFleetState);
    const begun = await Promise.allSettled(
      states.map(async ({ sessions }, index) => sessions.use('wanted', `p${index}`)),
    );
    expect(begun.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });
});

describe('without a server', () => {
  it('everything is refused in one line, and goes on when the server is there again', async () => {
    const alone = await startNats();
    const store = await fleetStoreOn(
      await connect({ servers: alone.url, maxReconnectAttempts: -1, reconnectTimeWait: 100 }),
      { url: alone.url },
    );
    const { budget, sessions, approvals } = openFleetState(store);
    await budget.reserve('p', 2);
    await alone.nodes[0]?.kill();
    const calls = [
      () => budget.reserve('p', 2),
      () => sessions.taints('s', 'p', 'user'),
      () => approvals.granted(sampleRequest()),
    ];
    // All of them are tried again for fifteen seconds; by this clock that is soon over.
    const { now } = performance;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => 10 * now.call(performance));
    const results = await Promise.allSettled(calls.map((call) => Promise.resolve(call())));
    clock.mockRestore();
    for (const result of results)
      expect(result).toMatchObject({
        status: 'rejected',
        reason: { code: 'fleet.unreachable', message: expect.stringMatching(/^the NATS server [^\n]+$/) },
      });
    await alone.nodes[0]?.start();
    expect(await budget.reserve('p', 2)).toBeDefined();
    expect(await budget.reserve('p', 2)).toBeUndefined();
    await store.close();
    await alone.stop();
  });
});
