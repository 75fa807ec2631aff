import { chmodSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { NO_HASH, sealRecord } from '../../../../src/gate/audit/record-line.ts';
import { loadAuditKey } from '../../../../src/workspace/index.ts';
import {
  acknowledge,
  decision,
  decisions,
  filesOf,
  handClock,
  linesOf,
  makeDirectory,
  makeRoot,
  problemsOf,
  recordsOf,
  replaceLines,
  verify,
  write,
} from './support.ts';

const KEY = Buffer.alloc(32, 'k');

/** A trail of six records in one file. */
async function trail(hmacKey?: Uint8Array): Promise<string> {
  const directory = makeDirectory();
  await write(directory, decisions(6), { hmacKey });
  return directory;
}

function edit(directory: string, change: (lines: string[]) => readonly string[]): void {
  replaceLines(directory, change(linesOf(directory)));
}

/** Seals all records of the file again, and makes a head for them: what somebody does who knows how this works. */
function forgeAll(directory: string, change: (fields: string) => string): void {
  let prev = NO_HASH;
  let seq = 0;
  const lines = linesOf(directory).map((line) => {
    const [, follows, fields = ''] =
      /^\{"seq":\d+,"time":"[^"]+",("follows":null,)?(.*),"prev":/.exec(line) ?? [];
    seq += 1;
    const envelope = { seq, time: 0, follows: follows === undefined ? undefined : null, prev };
    const sealed = sealRecord(change(fields), envelope, undefined);
    prev = sealed.hash;
    return sealed.text;
  });
  replaceLines(directory, lines);
  const size = Buffer.byteLength(lines.join(''));
  const head = `{"seq":${seq},"hash":"${prev}","file":"${filesOf(directory)[0]}","size":${size}}`;
  writeFileSync(join(directory, 'head'), `${head.padEnd(319)}\n`);
}

describe('verify finds', () => {
  it('nothing in a trail as it was written', async () => {
    const directory = await trail();
    expect(verify(directory)).toMatchObject({
      problemCount: 0,
      records: 6,
      first: { seq: 1 },
      last: { seq: 6, hash: recordsOf(directory)[5]?.hash },
      signed: undefined,
    });
  });

  it('a changed record', async () => {
    const directory = await trail();
    edit(directory, (lines) => lines.map((line) => line.replace('echo r3', 'echo R3')));
    expect(problemsOf(directory)).toEqual(['changed 3']);
  });

  it('a changed last record', async () => {
    const directory = await trail();
    edit(directory, (lines) => lines.map((line) => line.replace('echo r6', 'echo R6')));
    expect(problemsOf(directory)).toEqual(['changed 6']);
  });

  it('a changed record with a new hash', async () => {
    const directory = await trail();
    const prev = String(recordsOf(directory)[1]?.hash);
    const fields = '"type":"event","code":"x"';
    const forged = sealRecord(fields, { seq: 3, time: 0, follows: undefined, prev }, undefined);
    edit(directory, (lines) => lines.with(2, forged.text));
    expect(problemsOf(directory)).toEqual(['changed 3']);
    edit(directory, (lines) => lines.slice(0, 3));
    expect(problemsOf(directory)).toEqual(['truncated']);
  });

  it('a changed last record with a new hash', async () => {
    const directory = await trail();
    const prev = String(recordsOf(directory)[4]?.hash);
    const forged = sealRecord('"type":"event"', { seq: 6, time: 0, follows: undefined, prev }, undefined);
    edit(directory, (lines) => lines.with(5, forged.text));
    expect(problemsOf(directory)).toEqual(['changed']);
  });

  it.each([
    ['one', 2, 1, ['removed 3']],
    ['several', 1, 3, ['removed 2']],
    ['the first', 0, 1, ['removed 2']],
  ])('removed records: %s', async (_, from, count, expected) => {
    const directory = await trail();
    edit(directory, (lines) => lines.toSpliced(from, count));
    expect(problemsOf(directory)).toEqual(expected);
  });

  it('swapped records', async () => {
    const directory = await trail();
    edit(directory, (lines) => lines.with(2, lines[3] ?? '').with(3, lines[2] ?? ''));
    expect(problemsOf(directory)).toEqual(['reordered 3']);
  });

  it('a record put in twice', async () => {
    const directory = await trail();
    edit(directory, (lines) => lines.toSpliced(3, 0, lines[2] ?? ''));
    expect(problemsOf(directory)).toEqual(['inserted 3']);
  });

  it('a forged record put in, with the hash of the one before', async () => {
    const directory = await trail();
    const prev = String(recordsOf(directory)[2]?.hash);
    const forged = sealRecord('"type":"event"', { seq: 4, time: 0, follows: undefined, prev }, undefined);
    edit(directory, (lines) => lines.toSpliced(3, 0, forged.text));
    expect(problemsOf(directory)).toEqual(['inserted 4']);
  });

  it('a line that is no record', async () => {
    const directory = await trail();
    edit(directory, (lines) => lines.toSpliced(3, 0, '{"seq":4}\n'));
    expect(problemsOf(directory)).toEqual(['unreadable']);
  });

  it('missing records at the end', async () => {
    const directory = await trail();
    edit(directory, (lines) => lines.slice(0, 4));
    expect(problemsOf(directory)).toEqual(['truncated']);
  });

  it('a file cut in the middle of a line', async () => {
    const directory = await trail();
    edit(directory, (lines) => lines.with(5, (lines[5] ?? '').slice(0, 40)));
    expect(problemsOf(directory)).toEqual(['torn']);
  });

  it('a line that was appended behind our back', async () => {
    const directory = await trail();
    edit(directory, (lines) => [...lines, '{"seq":7,"type":"decision"}\n']);
    expect(problemsOf(directory)).toEqual(['unreadable']);
    await write(directory, decisions(1));
    expect(problemsOf(directory)).toEqual(['unreadable']);
  });

  it.each(['removed', 'emptied', 'damaged'])('a head that was %s', async (how) => {
    const directory = await trail();
    const head = join(directory, 'head');
    if (how === 'removed') unlinkSync(head);
    else writeFileSync(head, how === 'emptied' ? '' : readFileSync(head, 'utf8').replace('"seq"', '"sek"'));
    expect(problemsOf(directory)).toEqual(['anchor']);
    await expect(write(directory, decisions(1))).rejects.toMatchObject({ code: 'audit.failed' });
    expect(problemsOf(directory)).toEqual(['anchor']);
  });

  it('a removed file in the middle or at the end, and tells where a trail begins', async () => {
    const directory = makeDirectory();
    const clock = handClock('2025-01-01T12:00:00Z');
    for (const day of ['01', '02', '03', '04']) {
      clock.set(`2025-01-${day}T12:00:00Z`);
      await write(directory, decisions(2), { clock: clock.now });
    }
    rmSync(join(directory, '2025-01-01.jsonl'));
    expect(verify(directory)).toMatchObject({
      problemCount: 0,
      first: { seq: 3, file: '2025-01-02.jsonl' },
      remarks: [expect.stringContaining('the chain begins with record 3')],
    });
    expect(problemsOf(directory, { complete: true })).toEqual(['removed']);
    rmSync(join(directory, '2025-01-03.jsonl'));
    expect(problemsOf(directory)).toEqual(['removed 5']);
    rmSync(join(directory, '2025-01-04.jsonl'));
    expect(problemsOf(directory)).toEqual(['truncated']);
    const later = { clock: () => Date.parse('2025-01-05T12:00:00Z') };
    await expect(write(directory, decisions(1), later)).rejects.toMatchObject({ code: 'audit.failed' });
    await acknowledge(directory, later);
    await write(directory, decisions(1), later);
    // The file at the end was acknowledged, which is the gap from its last record on; so is the one before it.
    expect(problemsOf(directory)).toEqual([]);
  });

  it('a record that was noted elsewhere and is not there', async () => {
    const directory = await trail();
    const { last } = verify(directory);
    if (last === undefined) throw new Error('no record');
    expect(problemsOf(directory, { anchor: last })).toEqual([]);
    forgeAll(directory, (fields) => fields.replace('echo r2', 'echo ok'));
    expect(problemsOf(directory)).toEqual([]);
    expect(problemsOf(directory, { anchor: last })).toEqual(['anchor']);
  });
});

describe('verify finds any change at all:', () => {
  it('of one byte, anywhere in the file', async () => {
    const directory = await trail();
    const file = join(directory, filesOf(directory)[0] ?? '');
    const bytes = readFileSync(file);
    const unnoticed: number[] = [];
    for (let at = 0; at < bytes.length; at += 3) {
      const changed = Buffer.from(bytes);
      changed[at] = (bytes[at] ?? 0) ^ (1 << (at % 7));
      writeFileSync(file, changed);
      if (verify(directory).problemCount === 0) unnoticed.push(at);
    }
    expect(unnoticed).toEqual([]);
  });

  it('an end that is cut off anywhere', async () => {
    const directory = await trail();
    const file = join(directory, filesOf(directory)[0] ?? '');
    const bytes = readFileSync(file);
    const unnoticed: number[] = [];
    for (let length = 0; length < bytes.length; length += 3) {
      writeFileSync(file, bytes.subarray(0, length));
      if (verify(directory).problemCount === 0) unnoticed.push(length);
    }
    expect(unnoticed).toEqual([]);
  });
});

describe('with a key, verify finds', () => {
  const key = KEY;

  it('nothing in a trail as it was written, with the key and without it', async () => {
    const directory = await trail(KEY);
    expect(verify(directory, { key })).toMatchObject({ problemCount: 0, signed: { records: 6, since: 1 } });
    expect(problemsOf(directory)).toEqual([]);
  });

  it('a chain that was made anew', async () => {
    const directory = await trail(KEY);
    forgeAll(directory, (fields) => fields.replace('echo r2', 'echo ok'));
    expect(problemsOf(directory)).toEqual([]);
    expect(problemsOf(directory, { key })).toEqual(['mac', 'mac']);
  });

  it('another key', async () => {
    const directory = await trail(KEY);
    const found = verify(directory, { key: Buffer.alloc(32, 'x') });
    expect(found.problemCount).toBe(7);
    expect(new Set(found.problems.map(({ kind }) => kind))).toEqual(new Set(['mac']));
  });

  it('an end that was cut off together with the head', async () => {
    const directory = await trail(KEY);
    edit(directory, (lines) => lines.slice(0, 4));
    const [last] = recordsOf(directory).slice(-1);
    const size = Buffer.byteLength(linesOf(directory).join(''));
    const head = `{"seq":4,"hash":"${last?.hash}","file":"${filesOf(directory)[0]}","size":${size},"mac":"${last?.mac}"}`;
    writeFileSync(join(directory, 'head'), `${head.padEnd(319)}\n`);
    expect(problemsOf(directory)).toEqual([]);
    expect(problemsOf(directory, { key })).toEqual(['mac']);
  });

  it('records that were written without it', async () => {
    const directory = await trail();
    await write(directory, decisions(2), { hmacKey: KEY });
    expect(verify(directory, { key })).toMatchObject({ problemCount: 0, signed: { records: 2, since: 7 } });
    await write(directory, decisions(1));
    expect(problemsOf(directory, { key })).toEqual(['mac 9', 'mac']);
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
    expect(problemsOf(directory)).toEqual([]);
    expect(recordsOf(directory)[0]?.command).toBe('a\u2028b\ud800c\x00d\u{1f600}\n","hash":"');
  });
});
