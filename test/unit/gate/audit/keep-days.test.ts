import { describe, expect, it } from 'vitest';
import { decision, filesOf, makeDirectory, open, problemsOf, recordsOf, verify, write } from './support.ts';

const on = (day: string, keepDays?: number) => ({ clock: () => Date.parse(`${day}T12:00:00Z`), keepDays });

describe('a trail that is kept for some days', () => {
  it('loses its oldest files when a new day begins, says so, and is still a chain', async () => {
    const directory = makeDirectory();
    await write(directory, [decision('a')], on('2025-01-01', 10));
    await write(directory, [decision('b')], on('2025-01-05', 10));
    await write(directory, [decision('c'), decision('d')], on('2025-01-14', 10));
    expect(filesOf(directory)).toEqual(['2025-01-05.jsonl', '2025-01-14.jsonl']);
    expect(problemsOf(directory)).toEqual([]);
    expect(verify(directory).first).toMatchObject({ seq: 2 });
    expect(recordsOf(directory).map(({ code, request }) => code ?? request)).toEqual([
      'b',
      'audit_days_removed',
      'c',
      'd',
    ]);
  });

  it('keeps the file before the new one, however old that is', async () => {
    const directory = makeDirectory();
    await write(directory, [decision('a')], on('2020-01-01', 1));
    await write(directory, [decision('b')], on('2025-01-01', 1));
    expect(filesOf(directory)).toEqual(['2020-01-01.jsonl', '2025-01-01.jsonl']);
    expect(problemsOf(directory)).toEqual([]);
  });

  it('keeps everything where nobody said for how long, or it goes to a stream as well', async () => {
    const directory = makeDirectory();
    for (const day of ['2024-01-01', '2024-06-01', '2025-01-01'])
      await write(directory, [decision(day)], on(day));
    expect(filesOf(directory)).toHaveLength(3);
    const other = makeDirectory();
    const stream = { open: () => Promise.reject(new Error('there is no server')), required: false };
    for (const day of ['2024-01-01', '2024-06-01', '2025-01-01']) {
      const trail = open(other, { ...on(day, 1), stream });
      await trail.append(decision(day));
      await trail.close();
    }
    expect(filesOf(other)).toHaveLength(3);
  });
});
