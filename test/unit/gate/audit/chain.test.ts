import { createHash } from 'node:crypto';
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  decision,
  decisions,
  handClock,
  linesOf,
  makeDirectory,
  open,
  problemsOf,
  recordsOf,
  result,
  sql,
  verify,
  write,
} from './support.ts';

describe('a trail', () => {
  it('is one chain over records, processes and days', async () => {
    const directory = makeDirectory();
    const clock = handClock('2025-01-31T23:59:59Z');
    await write(directory, decisions(2), { clock: clock.now });
    await write(directory, decisions(1), { clock: clock.now });
    clock.set('2025-02-01T00:00:01Z');
    await write(directory, [decision('next'), result('next')], { clock: clock.now });
    const records = recordsOf(directory);
    expect(records.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
    expect(records.slice(1).map(({ prev }) => prev)).toEqual(records.slice(0, -1).map(({ hash }) => hash));
    expect(records[3]).toMatchObject({ time: '2025-02-01T00:00:01.000Z' });
    expect(await verify(directory)).toMatchObject({ problemCount: 0, records: 5, remarks: [] });
  });

  it('is written by several that have it open in one process', async () => {
    const directory = makeDirectory();
    const [one, other] = [open(directory), open(directory)];
    for (const request of ['a', 'b', 'c']) {
      await one.append(decision(`${request}1`));
      await other.append(decision(`${request}2`));
    }
    await Promise.all([one.close(), other.close()]);
    expect(recordsOf(directory).map(({ request }) => request)).toEqual(['a1', 'a2', 'b1', 'b2', 'c1', 'c2']);
    expect(await problemsOf(directory)).toEqual([]);
  });

  it('can be checked without us: a hash is that of the line before it', async () => {
    const directory = makeDirectory();
    await write(directory, decisions(3));
    for (const line of linesOf(directory)) {
      const [body = '', hash] = line.split(/,"hash":"|"\}$/);
      expect(createHash('sha256').update(body).digest('hex')).toBe(hash);
    }
  });

  it('is readable by its owner only, with what lies beside it while it is open', async () => {
    const directory = makeDirectory();
    const trail = open(directory);
    await trail.append(decision('a'));
    const names = readdirSync(directory);
    expect(names).toContain('trail.db-wal');
    for (const name of names) expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
    await trail.close();
  });

  it('writes records of one turn together and in their order', async () => {
    const directory = makeDirectory();
    const trail = open(directory);
    await Promise.all(decisions(100).map((record) => trail.append(record)));
    await trail.close();
    const records = recordsOf(directory);
    expect(records.map(({ request }) => request)).toEqual(decisions(100).map(({ request }) => request));
    expect(new Set(records.map(({ time }) => time)).size).toBe(1);
  });

  it('writes what was appended before it is closed, and nothing after', async () => {
    const directory = makeDirectory();
    const trail = open(directory);
    const last = trail.append(decision('last'));
    await trail.close();
    await last;
    await expect(trail.append(decision('late'))).rejects.toMatchObject({ code: 'audit.failed' });
    expect(recordsOf(directory)).toHaveLength(1);
  });
});

describe('a trail whose end was taken away', () => {
  it.each([
    ['the last record', 'DELETE FROM trail WHERE seq = 2', [1]],
    ['all records', 'DELETE FROM trail', []],
    ['what is noted of the last one', 'DELETE FROM head', [1, 2]],
  ])('gets no record until somebody says so: %s', async (_, statement, left) => {
    const directory = makeDirectory();
    const trail = open(directory);
    for (const request of ['a', 'b']) await trail.append(decision(request));
    sql(directory, statement);
    for (let i = 0; i < 2; i += 1)
      await expect(trail.append(decision('c'))).rejects.toMatchObject({
        code: 'audit.failed',
        message: expect.stringContaining('sandbox-run audit acknowledge'),
      });
    expect(await problemsOf(directory)).toEqual([left.length === 2 ? 'anchor' : 'truncated']);
    await trail.acknowledge('p');
    expect(await trail.acknowledge('p')).toBeUndefined();
    await trail.append(decision('c'));
    await trail.close();
    expect(recordsOf(directory).map(({ seq, code, request }) => [seq, code ?? request])).toEqual([
      ...left.map((seq) => [seq, seq === 1 ? 'a' : 'b']),
      [3, 'audit_break_acknowledged'],
      [4, 'c'],
    ]);
    expect(await problemsOf(directory)).toEqual([]);
    expect((await verify(directory)).remarks.join()).toContain('record 3');
  });

  it('gets none behind one that was put in', async () => {
    const directory = makeDirectory();
    await write(directory, decisions(2));
    sql(directory, `INSERT INTO trail SELECT 3, hash, line FROM trail WHERE seq = 2`);
    await expect(write(directory, decisions(1))).rejects.toMatchObject({ code: 'audit.failed' });
    expect(await problemsOf(directory)).toEqual(['unreadable 3']);
  });
});

describe('a database that is taken away while it is open', () => {
  it('is told, and not made anew by the process that has it open', async () => {
    const directory = makeDirectory();
    const trail = open(directory);
    await trail.append(decision('a'));
    rmSync(join(directory, 'trail.db'));
    await expect(trail.append(decision('b'))).rejects.toMatchObject({
      code: 'audit.failed',
      message: expect.stringMatching(/moved away or replaced/),
    });
    await trail.close();
  });
});
