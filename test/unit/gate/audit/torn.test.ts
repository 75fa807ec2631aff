import { createHash } from 'node:crypto';
import { appendFileSync, copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  acknowledge,
  decisions,
  filesOf,
  handClock,
  makeDirectory,
  problemsOf,
  recordsOf,
  verify,
  write,
} from './support.ts';

const KEY = Buffer.alloc(32, 'k');
const REFUSED = { code: 'audit.failed', message: expect.stringContaining('sandbox-run audit acknowledge') };

/** A trail of four records, its file, and where the last record begins. */
async function trail(hmacKey?: Uint8Array) {
  const directory = makeDirectory();
  await write(directory, decisions(4), { hmacKey });
  const path = join(directory, filesOf(directory)[0] ?? '');
  const whole = readFileSync(path);
  return { directory, path, whole, begin: whole.lastIndexOf('\n', whole.length - 2) + 1 };
}

const keptIn = (directory: string) => readdirSync(directory).filter((name) => name.includes('.torn-'));

describe('a torn last line', () => {
  it('anywhere in it: nothing is written until it is acknowledged, and nothing is lost then', async () => {
    const { directory, path, whole, begin } = await trail();
    const head = readFileSync(join(directory, 'head'));
    for (let length = begin + 1; length < whole.length; length += 7) {
      for (const name of keptIn(directory)) rmSync(join(directory, name));
      writeFileSync(path, whole.subarray(0, length));
      writeFileSync(join(directory, 'head'), head);
      expect(problemsOf(directory)).toEqual(['torn']);
      for (let i = 0; i < 2; i += 1)
        await expect(write(directory, decisions(1))).rejects.toMatchObject(REFUSED);
      expect(readFileSync(path)).toEqual(whole.subarray(0, length));

      expect((await acknowledge(directory))?.details).toMatchObject({
        last: 3,
        missing: 1,
        bytes: length - begin,
      });
      const [kept = ''] = keptIn(directory);
      expect(readFileSync(join(directory, kept))).toEqual(whole.subarray(begin, length));
      await write(directory, decisions(1, 'later'));
      expect(recordsOf(directory).map(({ seq, code }) => [seq, code])).toEqual([
        [1, undefined],
        [2, undefined],
        [3, undefined],
        [5, 'audit_break_acknowledged'],
        [6, undefined],
      ]);
      const found = verify(directory);
      expect(found.problems).toEqual([]);
      expect(found.remarks).toEqual([
        expect.stringMatching(/^record 5 .* ended with record 3 instead of 4; .*torn-5$/),
      ]);
      expect(await acknowledge(directory)).toBeUndefined();
    }
  });

  it.each([
    [
      'zeros, as some file systems leave them',
      (whole: Buffer, begin: number) => Buffer.from(whole).fill(0, begin),
      'torn',
    ],
    [
      'zeros from its middle on',
      (whole: Buffer, begin: number) => Buffer.from(whole).fill(0, begin + 100),
      'torn',
    ],
    ['gone, and others with it', (whole: Buffer) => whole.subarray(0, whole.indexOf('\n') + 30), 'torn'],
    ['gone as a whole', (whole: Buffer, begin: number) => whole.subarray(0, begin), 'truncated'],
    ['gone with the whole file’s content', () => Buffer.alloc(0), 'truncated'],
  ])('%s', async (_, damage, kind) => {
    const { directory, path, whole, begin } = await trail();
    writeFileSync(path, damage(whole, begin));
    expect(problemsOf(directory)).toEqual([kind]);
    await expect(write(directory, decisions(1))).rejects.toMatchObject(REFUSED);
    await acknowledge(directory);
    await write(directory, decisions(2, 'later'));
    const { problems, remarks } = verify(directory);
    expect(problems).toEqual([]);
    expect(remarks).toContainEqual(expect.stringMatching(/^record 5 .* instead of 4/));
  });

  it('of the day before', async () => {
    const directory = makeDirectory();
    const clock = handClock('2025-01-31T23:59:59Z');
    await write(directory, decisions(3), { clock: clock.now });
    const path = join(directory, '2025-01-31.jsonl');
    writeFileSync(path, readFileSync(path).subarray(0, -50));
    clock.set('2025-02-01T00:00:01Z');
    await expect(write(directory, decisions(1), { clock: clock.now })).rejects.toMatchObject(REFUSED);
    await acknowledge(directory, { clock: clock.now });
    await write(directory, decisions(1), { clock: clock.now });
    expect(recordsOf(directory).map(({ seq }) => seq)).toEqual([1, 2, 4, 5]);
    expect(filesOf(directory)).toEqual(['2025-01-31.jsonl', '2025-02-01.jsonl']);
    expect(problemsOf(directory)).toEqual([]);
  });

  it('with the file head, as a power cut leaves them both empty: a trail that began is not a new one', async () => {
    const { directory, path } = await trail();
    for (const file of [path, join(directory, 'head')]) writeFileSync(file, '');
    await expect(write(directory, decisions(1))).rejects.toMatchObject(REFUSED);
    expect((await acknowledge(directory))?.details).toMatchObject({ headLost: true, last: 0 });
    await write(directory, decisions(1, 'later'));
    expect(recordsOf(directory).map(({ seq }) => seq)).toEqual([1, 2]);
    expect(verify(directory).problems).toEqual([]);
  });

  it('that tears again', async () => {
    const { directory, path } = await trail();
    for (const seq of [5, 7]) {
      writeFileSync(path, readFileSync(path).subarray(0, -20));
      await acknowledge(directory);
      await write(directory, decisions(1));
      expect(recordsOf(directory).map((record) => record.seq)).toContain(seq);
    }
    expect(problemsOf(directory)).toEqual([]);
    expect(verify(directory).remarks).toHaveLength(2);
    expect(keptIn(directory)).toHaveLength(2);
  });
});

describe('an acknowledgement', () => {
  async function acknowledged(hmacKey?: Uint8Array) {
    const made = await trail(hmacKey);
    writeFileSync(made.path, made.whole.subarray(0, -50));
    await acknowledge(made.directory, { hmacKey });
    await write(made.directory, decisions(2, 'later'), { hmacKey });
    return made;
  }

  it('that is interrupted anywhere is none, and is made again', async () => {
    const { directory, path, whole, begin } = await trail();
    const torn = whole.subarray(0, -50);
    const head = readFileSync(join(directory, 'head'));
    writeFileSync(path, torn);
    await acknowledge(directory);
    const after = readFileSync(path);
    // The head is what is written last.
    writeFileSync(join(directory, 'head'), head);
    for (let length = begin; length <= after.length; length += 11) {
      writeFileSync(path, after.subarray(0, length));
      await expect(write(directory, decisions(1))).rejects.toMatchObject(REFUSED);
    }
    writeFileSync(path, after);
    await acknowledge(directory);
    await write(directory, decisions(1));
    expect(recordsOf(directory).map(({ seq }) => seq)).toEqual([1, 2, 3, 5, 6]);
    expect(problemsOf(directory)).toEqual([]);
  });

  it('is nothing that a whole trail takes', async () => {
    const { directory, whole, path } = await trail();
    expect(await acknowledge(directory)).toBeUndefined();
    // Nor one whose process was killed while it wrote, which is put in order without it.
    appendFileSync(path, '{"seq":5,"time":"2025-');
    expect(await acknowledge(directory)).toBeUndefined();
    await write(directory, decisions(1));
    expect(readFileSync(path).subarray(0, whole.length)).toEqual(whole);
    expect(problemsOf(directory)).toEqual([]);
  });

  it('does not hide what else is wrong', async () => {
    const { directory, path } = await acknowledged();
    const bytes = readFileSync(path);
    const [kept = ''] = keptIn(directory);
    writeFileSync(path, bytes.toString().replace('echo r2', 'echo R2'));
    expect(problemsOf(directory)).toEqual(['changed 2']);
    writeFileSync(path, bytes.toString().replace(/^.*echo r3.*\n/m, ''));
    expect(problemsOf(directory)).toEqual(['removed 3']);
    writeFileSync(path, bytes.toString().replace('"missing":1', '"missing":2'));
    expect(problemsOf(directory)).toEqual(['changed 5', 'removed 4']);
    writeFileSync(path, bytes);
    copyFileSync(join(directory, kept), join(directory, 'copy'));
    appendFileSync(join(directory, kept), 'x');
    expect(problemsOf(directory)).toEqual(['removed 5']);
    rmSync(join(directory, kept));
    expect(problemsOf(directory)).toEqual(['removed 5']);
    copyFileSync(join(directory, 'copy'), join(directory, kept));
    expect(problemsOf(directory)).toEqual([]);
  });

  it('of a last record that somebody sealed anew does not make it right', async () => {
    const { directory, path, whole, begin } = await trail();
    const body = whole
      .toString('utf8', begin)
      .replace('echo r4', 'echo r5')
      .replace(/,"hash":.*\n$/, '');
    const hash = createHash('sha256').update(body).digest('hex');
    writeFileSync(path, `${whole.toString('utf8', 0, begin)}${body},"hash":"${hash}"}\n`);
    await expect(write(directory, decisions(1))).rejects.toMatchObject(REFUSED);
    await acknowledge(directory);
    await write(directory, decisions(1));
    expect(problemsOf(directory)).toEqual(['changed 4']);
  });

  it('needs the key where there is one', async () => {
    const { directory } = await acknowledged(KEY);
    expect(problemsOf(directory, { key: KEY })).toEqual([]);
    const other = await trail(KEY);
    writeFileSync(other.path, other.whole.subarray(0, -50));
    await acknowledge(other.directory);
    expect(problemsOf(other.directory, { key: KEY })).toEqual(['mac 5', 'removed 4', 'mac']);
  });
});
