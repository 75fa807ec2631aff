import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { OutputChunk } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { makePlaceWithSandbox } from './support.ts';

const { place, sandbox } = await makePlaceWithSandbox();

async function all(chunks: AsyncIterable<OutputChunk>): Promise<string> {
  const parts: string[] = [];
  for await (const { stream, bytes } of chunks) parts.push(`${stream}: ${Buffer.from(bytes)}`);
  return parts.join('');
}

describe('for await over output', () => {
  it('gives everything in the order in which it was read, and then ends', async () => {
    // Two pipes have no order between them, so that nothing is said before the last word was read.
    const holds = Array.from({ length: 6 }, () => makeHold(place.workspace));
    const script = holds.map(({ words }, at) => {
      const turn = Math.floor(at / 2) + 1;
      return `echo ${at % 2 === 0 ? `out ${turn}` : `err ${turn} >&2`}; ${words}`;
    });
    const running = sandbox.start(script.join('; '));
    const seen: string[] = [];
    for await (const { stream, bytes } of running.output()) {
      holds[seen.length]?.letGo();
      seen.push(`${stream}: ${Buffer.from(bytes)}`);
    }
    expect(seen.join('')).toBe([1, 2, 3].map((i) => `stdout: out ${i}\nstderr: err ${i}\n`).join(''));
    expect(await running.result).toMatchObject({ stdout: 'out 1\nout 2\nout 3\n', exitCode: 0 });
  });

  it('gives more than is kept', async () => {
    // What is written before somebody listens is not kept either.
    const { words, letGo } = makeHold(place.workspace);
    const running = sandbox.start(`${words}; exec head -c 30000000 /dev/zero`, { maxOutput: 10 });
    let total = 0;
    const pieces = running.output()[Symbol.asyncIterator]();
    const first = pieces.next();
    letGo();
    for (let piece = await first; !piece.done; piece = await pieces.next()) total += piece.value.bytes.length;
    expect(total).toBe(30_000_000);
    expect((await running.result).truncated.stdout).toBe(29_999_990);
  });

  it('holds the command back while nobody takes the next piece', async () => {
    const progress = () => Number(readFileSync(join(place.workspace, 'progress'), 'utf8'));
    const running = sandbox.start(
      'for i in $(seq 200); do head -c 65536 /dev/zero; echo $i > new; mv new progress; done',
    );
    let total = 0;
    for await (const { bytes } of running.output()) {
      if (total === 0) {
        await eventually(() => expect(progress()).toBeGreaterThanOrEqual(16));
        // It comes to rest: others run to their ends, and it writes nothing more.
        let atRest = 0;
        while (atRest !== progress()) {
          atRest = progress();
          for (let others = 0; others < 20; others += 1) await sandbox.run(['true']);
        }
        // What waits here, and what fits into a pipe.
        expect(atRest).toBeLessThan((1024 + 256 + 64) / 64 + 2);
      }
      total += bytes.length;
    }
    expect(total).toBe(200 * 65_536);
    expect(progress()).toBe(200);
  });

  it('can be left: the command goes on, and its output is kept', async () => {
    const running = sandbox.start('seq 1000000; echo end', { maxOutput: 10 });
    for await (const { stream } of running.output()) {
      expect(stream).toBe('stdout');
      break;
    }
    const result = await running.result;
    expect(result).toMatchObject({ status: 'exited', exitCode: 0 });
    expect(result.stdout).toBe('1\n2\n3\n[... 6,888,890 bytes left out ...]\n\nend\n');
  });

  it('that throws does not end the command either', async () => {
    const running = sandbox.start('seq 1000000');
    const reading = (async () => {
      for await (const _ of running.output()) throw new Error('of the reader');
    })();
    await expect(reading).rejects.toThrow('of the reader');
    expect(await running.result).toMatchObject({ exitCode: 0, outputBytes: { stdout: 6_888_896 } });
  });

  it('that begins late gets what was kept, and is told what was not', async () => {
    const { words, letGo } = makeHold(place.workspace);
    const running = sandbox.start(`seq 1000; touch written; ${words}; echo end`, { maxOutput: 20 });
    await eventually(() => expect(existsSync(join(place.workspace, 'written'))).toBe(true));
    // It is read by the time that others have run to their ends.
    for (let others = 0; others < 20; others += 1) await sandbox.run('seq 1000');
    const chunks: [string, number | undefined][] = [];
    for await (const { bytes, missing } of running.output()) {
      chunks.push([`${Buffer.from(bytes)}`, missing]);
      if (chunks.length === 2) letGo();
    }
    expect(chunks).toEqual([
      ['1\n2\n3\n4\n5\n', undefined],
      ['\n999\n1000\n', 3_893 - 20],
      ['end\n', undefined],
    ]);
  });

  it('that begins after the end gets what was kept', async () => {
    const running = sandbox.start('seq 1000; echo e >&2', { maxOutput: 4 });
    await running.result;
    let text = '';
    for await (const piece of running.outputText()) text += `${piece.stream}:${piece.text};`;
    expect(text).toBe('stdout:1\n;stdout:\n[... 3,889 bytes left out ...]\n0\n;stderr:e\n;');
  });

  it('is for one reader', async () => {
    const running = sandbox.start('echo a');
    expect(await all(running.output())).toBe('stdout: a\n');
    expect(() => running.output()).toThrow('once');
    expect(() => sandbox.start('echo a', { onOutput: () => {} }).output()).toThrow('onOutput');
  });

  it('ends with a command that is not run', async () => {
    const running = sandbox.start(['no-such-program']);
    expect(await all(running.output())).toBe('');
    expect((await running.result).status).toBe('setup-failed');
  });

  it('as text cuts no character and no escape sequence', async () => {
    const script = [
      'import os, time',
      'for b in "aé😀\\x1b[31mred\\x1b[0m\\r\\nz".encode(): os.write(1, bytes([b])); time.sleep(0.005)',
    ].join('\n');
    const read = async (escapes: 'keep' | 'neutralize') => {
      let text = '';
      let pieces = 0;
      const running = sandbox.start(['python3', '-c', script], { escapes });
      for await (const piece of running.outputText()) {
        text += piece.text;
        pieces += 1;
      }
      expect(pieces).toBeGreaterThan(3);
      return text;
    };
    expect(await read('keep')).toBe('aé😀\x1b[31mred\x1b[0m\r\nz');
    expect(await read('neutralize')).toBe('aé😀red\nz');
  });
});
