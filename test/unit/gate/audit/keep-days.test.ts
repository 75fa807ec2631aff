import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { decision, makeDirectory, open, problemsOf, recordsOf, verify, write } from './support.ts';

const on = (day: string, keepDays?: number) => ({ clock: () => Date.parse(`${day}T12:00:00Z`), keepDays });
const requestsOf = (directory: string) => recordsOf(directory).map(({ code, request }) => code ?? request);

describe('a trail that is kept for some days', () => {
  it('loses its oldest records when a new day begins, says so, and is still a chain', async () => {
    const directory = makeDirectory();
    await write(directory, [decision('a')], on('2025-01-01', 10));
    await write(directory, [decision('b')], on('2025-01-05', 10));
    await write(directory, [decision('c'), decision('d')], on('2025-01-14', 10));
    expect(requestsOf(directory)).toEqual(['b', 'audit_days_removed', 'c', 'd']);
    expect(await problemsOf(directory)).toEqual([]);
    expect((await verify(directory)).first).toBe(2);
  });

  it('keeps the last record, however old that is', async () => {
    const directory = makeDirectory();
    await write(directory, [decision('a')], on('2020-01-01', 1));
    await write(directory, [decision('b')], on('2025-01-01', 1));
    expect(requestsOf(directory)).toEqual(['a', 'b']);
    expect(await problemsOf(directory)).toEqual([]);
  });

  it('keeps files of before that were taken over as long as its records', async () => {
    const directory = makeDirectory();
    await write(directory, [decision('a')], on('2025-01-05', 10));
    const [old, young] = ['2025-01-01.jsonl', '2025-01-05.jsonl'].map((name) => join(directory, name));
    for (const path of [old, young]) writeFileSync(path ?? '', '');
    await write(directory, [decision('b')], on('2025-01-14', 10));
    expect([existsSync(old ?? ''), existsSync(young ?? '')]).toEqual([false, true]);
  });

  it('keeps everything where nobody said for how long, or it goes to a stream as well', async () => {
    const directory = makeDirectory();
    for (const day of ['2024-01-01', '2024-06-01', '2025-01-01'])
      await write(directory, [decision(day)], on(day));
    expect(recordsOf(directory)).toHaveLength(3);
    const other = makeDirectory();
    const stream = { open: () => Promise.reject(new Error('there is no server')), required: false };
    for (const day of ['2024-01-01', '2024-06-01', '2025-01-01']) {
      const trail = open(other, { ...on(day, 1), stream });
      await trail.append(decision(day));
      await trail.close();
    }
    expect(recordsOf(other)).toHaveLength(3);
  });
});
