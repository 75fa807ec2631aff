import { describe, expect, it } from 'vitest';
import { eventually } from '../../../support/eventually.ts';
import { makeDirectory, recordsOf, verify } from './support.ts';
import { createWriters } from './writers.ts';

const startWriter = await createWriters();

describe('eight processes', () => {
  it('append 10,000 records to one chain without mixing lines, while somebody verifies it', {
    timeout: 120_000,
  }, async () => {
    const directory = makeDirectory();
    const writers = Array.from({ length: 8 }, (_, index) =>
      startWriter({ directory, name: `w${index}`, count: 625, together: 25 }),
    );
    const ended = Promise.all(writers.map((writer) => writer.ended));
    const written = () => writers.reduce((sum, writer) => sum + writer.acknowledged().length, 0);
    // A reader does not disturb them, and finds nothing wrong in a trail that grows: ten looks on its way.
    for (let look = 1; look <= 10; look += 1) {
      await eventually(() => expect(written()).toBeGreaterThan(look * 450), 60_000);
      expect((await verify(directory)).problems).toEqual([]);
    }
    expect(await ended).toEqual(Array(8).fill(0));
    const records = recordsOf(directory);
    expect(records.map(({ seq }) => seq)).toEqual(Array.from({ length: 10_000 }, (_, index) => index + 1));
    expect(new Set(records.map(({ type, request }) => `${type} ${request}`)).size).toBe(10_000);
    expect(await verify(directory)).toMatchObject({ problemCount: 0, records: 10_000, remarks: [] });
  });
});

describe('processes that are killed at any moment', () => {
  it('leave a clean chain that has every decision that was acknowledged', async () => {
    const directory = makeDirectory();
    const acknowledged: string[] = [];
    let killed = 0;
    for (let round = 0; round < 12; round += 1) {
      const writers = Array.from({ length: 3 }, (_, index) =>
        startWriter({ directory, name: `k${round}-${index}`, count: 1e6, together: 1 + 20 * index }),
      );
      // Each round at another moment: before any has begun, then once one of them has come so far.
      const far = round * Math.ceil(Math.random() * 20);
      await eventually(() => {
        expect(Math.max(...writers.map((writer) => writer.acknowledged().length))).toBeGreaterThanOrEqual(
          far,
        );
      });
      for (const { child } of writers) child.kill('SIGKILL');
      for (const ended of await Promise.all(writers.map((writer) => writer.ended)))
        if (ended === 'SIGKILL') killed += 1;
      acknowledged.push(...writers.flatMap((writer) => writer.acknowledged()));
    }
    const last = startWriter({ directory, name: 'last', count: 1, together: 1 });
    expect(await last.ended).toBe(0);
    expect(killed).toBe(36);
    expect(acknowledged.length).toBeGreaterThan(66);
    const records = recordsOf(directory);
    expect(await verify(directory)).toMatchObject({ problemCount: 0, records: records.length, remarks: [] });
    const decided = new Set(records.filter(({ type }) => type === 'decision').map(({ request }) => request));
    expect(acknowledged.filter((request) => !decided.has(request))).toEqual([]);
  });
});
