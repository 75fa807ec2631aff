import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { headMac, NO_HASH, sealRecord } from '../../../../src/gate/audit/record-line.ts';
import { loadAuditKey } from '../../../../src/workspace/index.ts';
import {
  acknowledge,
  decision,
  decisions,
  linesOf,
  makeDirectory,
  makeRoot,
  problemsOf,
  recordsOf,
  sql,
  verify,
  write,
} from './support.ts';

const KEY = Buffer.alloc(32, 'k');

/** A trail of six records. */
async function trail(hmacKey?: Uint8Array): Promise<string> {
  const directory = makeDirectory();
  await write(directory, decisions(6), { hmacKey });
  return directory;
}

/** Puts another line in the place of a record; `hash`: what the row says of it. */
function put(directory: string, seq: number, line: string, hash?: string): void {
  sql(
    directory,
    'UPDATE trail SET line = ?, hash = coalesce(?, hash) WHERE seq = ?',
    line,
    hash ?? null,
    seq,
  );
}

const replaced = (directory: string, seq: number) =>
  (linesOf(directory)[seq - 1] ?? '').replace(`echo r${seq}`, `echo R${seq}`);

/** A record that continues the chain where another one stands. */
function forged(directory: string, seq: number) {
  const prev = String(recordsOf(directory)[seq - 2]?.hash);
  return sealRecord('"type":"event","code":"x"', { seq, time: 0, prev }, undefined);
}

/** Seals all records again, and notes the last one: what somebody does who knows how this works. */
function forgeAll(directory: string, change: (fields: string) => string): void {
  let prev = NO_HASH;
  for (const [index, line] of linesOf(directory).entries()) {
    const [, fields = ''] = /^\{"seq":\d+,"time":"[^"]+",(.*),"prev":/.exec(line) ?? [];
    const sealed = sealRecord(change(fields), { seq: index + 1, time: 0, prev }, undefined);
    put(directory, index + 1, sealed.text, sealed.hash);
    prev = sealed.hash;
  }
  sql(directory, 'UPDATE head SET hash = ?, mac = NULL', prev);
}

describe('verify finds', () => {
  it('nothing in a trail as it was written', async () => {
    const directory = await trail();
    expect(await verify(directory)).toMatchObject({
      problemCount: 0,
      records: 6,
      first: 1,
      last: { seq: 6, hash: recordsOf(directory)[5]?.hash },
      signed: undefined,
    });
  });

  it.each([3, 6])('a changed record: %i', async (seq) => {
    const directory = await trail();
    put(directory, seq, replaced(directory, seq));
    expect(await problemsOf(directory)).toEqual([`changed ${seq}`]);
  });

  it('a changed record with a new hash', async () => {
    const directory = await trail();
    const { text, hash } = forged(directory, 3);
    put(directory, 3, text, hash);
    expect(await problemsOf(directory)).toEqual(['changed 3']);
    sql(directory, 'DELETE FROM trail WHERE seq > 3');
    expect(await problemsOf(directory)).toEqual(['truncated']);
  });

  it('a changed last record with a new hash', async () => {
    const directory = await trail();
    const { text, hash } = forged(directory, 6);
    put(directory, 6, text, hash);
    expect(await problemsOf(directory)).toEqual(['changed']);
    await expect(write(directory, decisions(1))).rejects.toMatchObject({ code: 'audit.failed' });
  });

  it.each([
    ['one', 'seq = 3', ['removed 3']],
    ['several', 'seq IN (2, 3, 4)', ['removed 2']],
    ['the first', 'seq = 1', ['removed']],
    ['at the end', 'seq > 4', ['truncated']],
  ])('removed records: %s', async (_, which, expected) => {
    const directory = await trail();
    sql(directory, `DELETE FROM trail WHERE ${which}`);
    expect(await problemsOf(directory)).toEqual(expected);
  });

  it('swapped records', async () => {
    const directory = await trail();
    const lines = linesOf(directory);
    put(directory, 3, lines[3] ?? '');
    put(directory, 4, lines[2] ?? '');
    expect(await problemsOf(directory)).toEqual(['unreadable 3', 'unreadable 4', 'removed 3']);
  });

  it('a line that is no record', async () => {
    const directory = await trail();
    put(directory, 4, '{"seq":4}');
    expect(await problemsOf(directory)).toEqual(['unreadable 4', 'removed 4']);
  });

  it('a record that was put in at the end, so that nothing is written behind it', async () => {
    const directory = await trail();
    const { text, hash } = forged(directory, 7);
    sql(directory, 'INSERT INTO trail VALUES (7, ?, ?)', hash, text);
    expect(await problemsOf(directory)).toEqual(['inserted']);
    await expect(write(directory, decisions(1))).rejects.toMatchObject({ code: 'audit.failed' });
  });

  it('records that were removed at the beginning, unless the trail says so itself', async () => {
    const directory = makeDirectory();
    const on = (day: string, keepDays?: number) => ({
      clock: () => Date.parse(`${day}T12:00:00Z`),
      keepDays,
    });
    await write(directory, decisions(3), on('2025-01-01'));
    await write(directory, decisions(3), on('2025-01-02'));
    await write(directory, decisions(1), on('2025-01-05', 3));
    expect(await verify(directory)).toMatchObject({
      problemCount: 0,
      first: 4,
      remarks: [expect.stringContaining('the chain begins with record 4')],
    });
    expect(await problemsOf(directory, { complete: true })).toEqual(['removed']);
    sql(directory, 'DELETE FROM trail WHERE seq = 4');
    expect(await problemsOf(directory)).toEqual(['removed']);
  });

  it('a record that was noted elsewhere and is not there', async () => {
    const directory = await trail();
    const { last } = await verify(directory);
    if (last === undefined) throw new Error('no record');
    expect(await problemsOf(directory, { anchor: last })).toEqual([]);
    forgeAll(directory, (fields) => fields.replace('echo r2', 'echo ok'));
    expect(await problemsOf(directory)).toEqual([]);
    expect(await problemsOf(directory, { anchor: last })).toEqual(['anchor']);
  });

  it('any change at all: of one character, anywhere in a line', async () => {
    const directory = await trail();
    const line = linesOf(directory)[2] ?? '';
    const unnoticed: number[] = [];
    for (let at = 0; at < line.length; at += 5) {
      const other = String.fromCharCode(line.charCodeAt(at) ^ (1 << (at % 5)));
      put(directory, 3, `${line.slice(0, at)}${other}${line.slice(at + 1)}`);
      if ((await verify(directory)).problemCount === 0) unnoticed.push(at);
    }
    expect(unnoticed).toEqual([]);
    put(directory, 3, line);
    expect(await problemsOf(directory)).toEqual([]);
  });
});

describe('with a key, verify finds', () => {
  const key = KEY;

  it('nothing in a trail as it was written, with the key and without it', async () => {
    const directory = await trail(KEY);
    expect(await verify(directory, { key })).toMatchObject({
      problemCount: 0,
      signed: { records: 6, since: 1 },
    });
    expect(await problemsOf(directory)).toEqual([]);
  });

  it('a chain that was made anew', async () => {
    const directory = await trail(KEY);
    forgeAll(directory, (fields) => fields.replace('echo r2', 'echo ok'));
    expect(await problemsOf(directory)).toEqual([]);
    expect(await problemsOf(directory, { key })).toEqual(['mac', 'mac']);
  });

  it('another key', async () => {
    const directory = await trail(KEY);
    const found = await verify(directory, { key: Buffer.alloc(32, 'x') });
    expect(found.problemCount).toBe(7);
    expect(new Set(found.problems.map(({ kind }) => kind))).toEqual(new Set(['mac']));
  });

  it('an end that was cut off together with what is noted of it', async () => {
    const directory = await trail(KEY);
    const mac = headMac(Buffer.alloc(32, 'x'), { seq: 4, hash: '' });
    sql(directory, 'DELETE FROM trail WHERE seq > 4');
    sql(directory, 'UPDATE head SET (seq, hash, mac) = (SELECT seq, hash, ? FROM trail WHERE seq = 4)', mac);
    expect(await problemsOf(directory)).toEqual([]);
    expect(await problemsOf(directory, { key })).toEqual(['mac']);
  });

  it('records that were written without it', async () => {
    const directory = await trail();
    await write(directory, decisions(2), { hmacKey: KEY });
    expect(await verify(directory, { key })).toMatchObject({
      problemCount: 0,
      signed: { records: 2, since: 7 },
    });
    await write(directory, decisions(1));
    expect(await problemsOf(directory, { key })).toEqual(['mac 9', 'mac']);
  });

  it('an acknowledgement that was made without it', async () => {
    const directory = await trail(KEY);
    sql(directory, 'DELETE FROM trail WHERE seq > 4');
    await acknowledge(directory);
    expect(await problemsOf(directory, { key })).toEqual(['mac 7', 'removed 5', 'mac']);
  });
});

describe('the key file', () => {
  const file = join(makeRoot(), 'key');
  const make = (content: string, mode: number) => {
    writeFileSync(file, content);
    chmodSync(file, mode);
  };

  it('is taken as it is', () => {
    make(`${'k'.repeat(32)}\n`, 0o600);
    expect(Buffer.from(loadAuditKey(file)).toString()).toBe(`${'k'.repeat(32)}\n`);
  });

  it.each([
    ['too short', () => make('k'.repeat(31), 0o600), /31 bytes; at least 32/],
    ['readable by others', () => make('k'.repeat(32), 0o640), /mode 640.*chmod 600/],
    ['too long', () => make('k'.repeat(70_000), 0o600), /more than/],
    ['not there', () => rmSync(file), /cannot be read \(ENOENT\)/],
  ])('is refused if it is %s', (_, prepare, message) => {
    prepare();
    expect(() => loadAuditKey(file)).toThrow(
      expect.objectContaining({ code: 'audit.failed', message: expect.stringMatching(message) }),
    );
  });

  it('is refused if it is a directory', () => {
    expect(() => loadAuditKey(makeRoot())).toThrow(/is not a file/);
  });
});

describe('a record', () => {
  it('can have everything a command can have', async () => {
    const directory = makeDirectory();
    await write(directory, [decision('odd', { command: 'a\u2028b\ud800c\x00d\u{1f600}\n","hash":"' })]);
    expect(await problemsOf(directory)).toEqual([]);
    expect(recordsOf(directory)[0]?.command).toBe('a\u2028b\ud800c\x00d\u{1f600}\n","hash":"');
  });
});
