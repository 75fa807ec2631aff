import { createHash } from 'node:crypto';
import { appendFileSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  decision,
  decisions,
  filesOf,
  handClock,
  linesOf,
  makeDirectory,
  open,
  problemsOf,
  recordsOf,
  result,
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
    expect(filesOf(directory)).toEqual(['2025-01-31.jsonl', '2025-02-01.jsonl']);
    const records = recordsOf(directory);
    expect(records.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
    expect(records.slice(1).map(({ prev }) => prev)).toEqual(records.slice(0, -1).map(({ hash }) => hash));
    expect(records[3]).toMatchObject({ follows: '2025-01-31.jsonl', time: '2025-02-01T00:00:01.000Z' });
    expect(verify(directory)).toMatchObject({ problemCount: 0, records: 5, files: 2, remarks: [] });
  });

  it('goes on in the file of the day while a process lives', async () => {
    const directory = makeDirectory();
    const clock = handClock('2025-01-31T23:59:59Z');
    const [one, other] = [open(directory, { clock: clock.now }), open(directory, { clock: clock.now })];
    await one.append(decision('a'));
    await other.append(decision('b'));
    clock.set('2025-02-01T00:00:00Z');
    await one.append(decision('c'));
    await other.append(decision('d'));
    await Promise.all([one.close(), other.close()]);
    expect(filesOf(directory).map((name) => linesOf(directory, name).length)).toEqual([2, 2]);
    expect(problemsOf(directory)).toEqual([]);
  });

  it('never goes back to an older file when the clock does', async () => {
    const directory = makeDirectory();
    const clock = handClock('2025-02-01T00:00:01Z');
    await write(directory, decisions(1), { clock: clock.now });
    clock.set('2025-01-30T12:00:00Z');
    await write(directory, decisions(1), { clock: clock.now });
    expect(filesOf(directory)).toEqual(['2025-02-01.jsonl']);
    expect(problemsOf(directory)).toEqual([]);
  });

  it('can be checked without us: a hash is that of the line before it', async () => {
    const directory = makeDirectory();
    await write(directory, decisions(3));
    for (const line of linesOf(directory)) {
      const [body = '', hash] = line.split(/,"hash":"|"\}\n$/);
      expect(createHash('sha256').update(body).digest('hex')).toBe(hash);
    }
  });

  it('is readable by its owner only', async () => {
    const directory = makeDirectory();
    await write(directory, decisions(1));
    for (const name of ['head', ...filesOf(directory)])
      expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
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

describe('what a killed process leaves behind', () => {
  it('is cut off if it is the beginning of a line', async () => {
    const directory = makeDirectory();
    await write(directory, decisions(2));
    const [file = ''] = filesOf(directory);
    appendFileSync(join(directory, file), '{"seq":3,"time":"2025-');
    expect(verify(directory).remarks).toHaveLength(1);
    await write(directory, decisions(1));
    expect(recordsOf(directory).map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(problemsOf(directory)).toEqual([]);
  });

  it('is adopted if it continues the chain', async () => {
    const directory = makeDirectory();
    await write(directory, decisions(2));
    const head = readFileSync(join(directory, 'head'));
    await write(directory, decisions(2));
    writeFileSync(join(directory, 'head'), head);
    expect(verify(directory)).toMatchObject({
      problemCount: 0,
      remarks: [expect.stringMatching(/^2 records/)],
    });
    await write(directory, decisions(1));
    expect(recordsOf(directory).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
    expect(verify(directory)).toMatchObject({ problemCount: 0, remarks: [] });
  });

  it('is adopted from a new file, too', async () => {
    const directory = makeDirectory();
    const clock = handClock('2025-01-31T23:59:59Z');
    await write(directory, decisions(2), { clock: clock.now });
    const head = readFileSync(join(directory, 'head'));
    clock.set('2025-02-01T00:00:01Z');
    await write(directory, decisions(2), { clock: clock.now });
    writeFileSync(join(directory, 'head'), head);
    await write(directory, decisions(1), { clock: clock.now });
    expect(recordsOf(directory).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
    expect(problemsOf(directory)).toEqual([]);
  });

  it('is no reason for an alarm if it was killed before its first record', async () => {
    const directory = makeDirectory();
    appendFileSync(join(directory, 'head'), '');
    await write(directory, decisions(1));
    expect(recordsOf(directory)).toMatchObject([{ type: 'decision', follows: null }]);
    expect(problemsOf(directory)).toEqual([]);
  });
});

describe('a process whose files are taken away', () => {
  it.each(['head', 'the file of the day'])('writes nothing until somebody says so: %s', async (what) => {
    const directory = makeDirectory();
    const trail = open(directory);
    await trail.append(decision('a'));
    unlinkSync(join(directory, what === 'head' ? what : (filesOf(directory)[0] ?? '')));
    for (let i = 0; i < 2; i += 1)
      await expect(trail.append(decision('b'))).rejects.toMatchObject({
        code: 'audit.failed',
        message: expect.stringContaining('sandbox-run audit acknowledge'),
      });
    await trail.acknowledge('p');
    await trail.append(decision('c'));
    await trail.close();
    expect(recordsOf(directory).map(({ seq, code, request }) => [seq, code ?? request])).toEqual([
      ...(what === 'head' ? [[1, 'a']] : []),
      [2, 'audit_break_acknowledged'],
      [3, 'c'],
    ]);
    expect(problemsOf(directory)).toEqual([]);
    expect(verify(directory).remarks.join()).toContain('record 2');
  });
});
