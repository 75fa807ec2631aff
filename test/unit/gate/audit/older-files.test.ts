import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { encodeRecord } from '../../../../src/gate/audit/encode-record.ts';
import { macOf, NO_HASH, sealRecord } from '../../../../src/gate/audit/record-line.ts';
import {
  acknowledge,
  decision,
  linesOf,
  makeDirectory,
  problemsOf,
  recordsOf,
  verify,
  write,
} from './support.ts';

const KEY = Buffer.alloc(32, 'k');
const DAYS = ['2025-01-30', '2025-01-31', '2025-02-01'];

/** A trail of three files with two records each, as versions before the database wrote it, and what its lines are. */
function writeFiles(key?: Uint8Array) {
  const directory = makeDirectory();
  let [seq, prev, size] = [0, NO_HASH, 0];
  const lines: string[] = [];
  for (const [index, day] of DAYS.entries()) {
    const file: string[] = [];
    const follows = index === 0 ? 'null' : `"${DAYS[index - 1]}.jsonl"`;
    for (const first of [`"follows":${follows},`, '']) {
      seq += 1;
      const fields = `${first}${encodeRecord(decision(`r${seq}`))}`;
      const sealed = sealRecord(fields, { seq, time: Date.parse(`${day}T12:00:00Z`), prev }, key);
      prev = sealed.hash;
      file.push(`${sealed.text}\n`);
    }
    writeFileSync(join(directory, `${day}.jsonl`), file.join(''), { mode: 0o600 });
    lines.push(...file);
    size = Buffer.byteLength(file.join(''));
  }
  const body = `{"seq":${seq},"hash":"${prev}","file":"${DAYS[2]}.jsonl","size":${size}`;
  const mac = key === undefined ? '' : `,"mac":"${macOf(key, 'head', body)}"`;
  writeFileSync(join(directory, 'head'), `${`${body}${mac}}`.padEnd(319)}\n`, { mode: 0o600 });
  return {
    directory,
    last: join(directory, `${DAYS[2]}.jsonl`),
    lines: lines.map((line) => line.slice(0, -1)),
  };
}

const codes = (directory: string) => recordsOf(directory).map(({ code, request }) => code ?? request);

describe('a trail in files', () => {
  it.each([undefined, KEY])(
    'is taken over once, line for line, and goes on as one chain',
    async (hmacKey) => {
      const { directory, lines } = writeFiles(hmacKey);
      for (const request of ['a', 'b']) await write(directory, [decision(request)], { hmacKey });
      expect(linesOf(directory).slice(0, 6)).toEqual(lines);
      expect(codes(directory).slice(6)).toEqual(['audit_imported', 'a', 'b']);
      expect(await problemsOf(directory, { key: hmacKey, complete: true })).toEqual([]);
      // The files stay, except the one that a process of an older version would go on with.
      const names = readdirSync(directory).filter((name) => !name.startsWith('trail.db-'));
      expect(names.sort()).toEqual([...DAYS.map((day) => `${day}.jsonl`), 'head.before', 'trail.db']);
    },
  );

  it('is taken over by whoever reads it first', async () => {
    const { directory } = writeFiles();
    expect(await verify(directory)).toMatchObject({ problemCount: 0, records: 7 });
  });

  it('has what a killed process wrote behind the end that it noted, and not its torn line', async () => {
    const { directory, last, lines } = writeFiles();
    const prev = JSON.parse(lines[5] ?? '').hash;
    const { text } = sealRecord(encodeRecord(decision('r7')), { seq: 7, time: 0, prev }, undefined);
    writeFileSync(last, `${readFileSync(last, 'utf8')}${text}\n{"seq":8,"time":"2025-`);
    await write(directory, [decision('a')]);
    expect(codes(directory).slice(5)).toEqual(['r6', 'r7', 'audit_imported', 'a']);
    expect(await problemsOf(directory)).toEqual([]);
  });

  it('whose end is missing gets no record until somebody says so', async () => {
    const { directory, last } = writeFiles();
    writeFileSync(last, readFileSync(last).subarray(0, -50));
    for (let i = 0; i < 2; i += 1)
      await expect(write(directory, [decision('a')])).rejects.toMatchObject({
        code: 'audit.failed',
        message: expect.stringContaining('sandbox-run audit acknowledge'),
      });
    expect(await problemsOf(directory)).toEqual(['truncated']);
    await acknowledge(directory);
    await write(directory, [decision('a')]);
    expect(await problemsOf(directory)).toEqual([]);
  });

  it('that lost its file head gets none either', async () => {
    const { directory } = writeFiles();
    rmSync(join(directory, 'head'));
    await expect(write(directory, [decision('a')])).rejects.toMatchObject({ code: 'audit.failed' });
    expect(await problemsOf(directory)).toEqual(['anchor']);
  });

  it('that somebody changed is taken over as it is, and says so', async () => {
    const { directory, last } = writeFiles();
    writeFileSync(last, readFileSync(last, 'utf8').replace('echo r5', 'echo R5'));
    await write(directory, [decision('a')]);
    expect(await problemsOf(directory)).toEqual(['changed 5', 'changed 7']);
  });

  it('of which older files were removed begins where it began', async () => {
    const { directory } = writeFiles();
    rmSync(join(directory, `${DAYS[0]}.jsonl`));
    await write(directory, [decision('a')]);
    expect(await verify(directory)).toMatchObject({ problemCount: 0, first: 3 });
  });

  it('is not lost when the process that takes it over is killed before the database is in its place', async () => {
    const { directory } = writeFiles();
    await write(directory, [decision('a')]);
    for (const end of ['', '-wal', '-shm']) rmSync(join(directory, `trail.db${end}`), { force: true });
    expect(existsSync(join(directory, 'head'))).toBe(false);
    await write(directory, [decision('b')]);
    expect(codes(directory).slice(5)).toEqual(['r6', 'audit_imported', 'b']);
    expect(await problemsOf(directory)).toEqual([]);
  });
});
