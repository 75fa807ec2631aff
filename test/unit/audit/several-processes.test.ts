import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { makeDirectory, recordsOf, verify } from './support.ts';
import { createWriters } from './writers.ts';

const startWriter = await createWriters();

describe('eight processes', () => {
  it('append 10,000 records to one chain without mixing lines, while somebody verifies it', async () => {
    const directory = makeDirectory();
    const writers = Array.from({ length: 8 }, (_, index) =>
      startWriter({ directory, name: `w${index}`, count: 625, together: 25 }),
    );
    let looks = 0;
    let isWriting = true;
    const ended = Promise.all(writers.map((writer) => writer.ended)).finally(() => {
      isWriting = false;
    });
    for (; isWriting; looks += 1) {
      // A reader does not disturb them, and finds nothing wrong in a trail that grows.
      expect(existsSync(join(directory, 'head')) ? verify(directory).problems : []).toEqual([]);
      await sleep(100);
    }
    expect(await ended).toEqual(Array(8).fill(0));
    expect(looks).toBeGreaterThan(0);
    const records = recordsOf(directory);
    expect(records.map(({ seq }) => seq)).toEqual(Array.from({ length: 10_000 }, (_, index) => index + 1));
    expect(new Set(records.map(({ type, request }) => `${type} ${request}`)).size).toBe(10_000);
    expect(verify(directory)).toMatchObject({ problemCount: 0, records: 10_000, remarks: [] });
  });
});

describe('processes that are killed at any moment', () => {
  it('leave a clean chain that has every decision that was acknowledged', async () => {
    const directory = makeDirectory();
    const acknowledged: string[] = [];
    const begin = performance.now();
    let killed = 0;
    const isEnough = () => killed > 5 && acknowledged.length > 100;
    // On a busy machine most are killed before their first record, so that it takes more rounds until there are enough.
    const end = () => begin + (isEnough() ? 4_000 : 30_000);
    for (let round = 0; performance.now() < end(); round += 1) {
      const writers = Array.from({ length: 3 }, (_, index) =>
        startWriter({ directory, name: `k${round}-${index}`, count: 1e6, together: 1 + 20 * index }),
      );
      // Every other time they have begun, however long a loaded machine takes for that.
      for (let wait = 0; round % 2 === 1 && wait < 200; wait += 1) {
        if (writers.some((writer) => writer.acknowledged().length > 0)) break;
        await sleep(20);
      }
      await sleep(150 + Math.random() * 150);
      for (const { child } of writers) {
        child.kill('SIGKILL');
        await sleep(Math.random() * 5);
      }
      for (const ended of await Promise.all(writers.map((writer) => writer.ended)))
        if (ended === 'SIGKILL') killed += 1;
      acknowledged.push(...writers.flatMap((writer) => writer.acknowledged()));
    }
    const last = startWriter({ directory, name: 'last', count: 1, together: 1 });
    expect(await last.ended).toBe(0);
    expect(isEnough(), `${killed} killed, ${acknowledged.length} acknowledged`).toBe(true);
    const records = recordsOf(directory);
    expect(verify(directory)).toMatchObject({ problemCount: 0, records: records.length, remarks: [] });
    const decided = new Set(records.filter(({ type }) => type === 'decision').map(({ request }) => request));
    expect(acknowledged.filter((request) => !decided.has(request))).toEqual([]);
  }, 60_000);
});
