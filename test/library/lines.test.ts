import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { LineOptions, LineReader } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { makePlaceWithSandbox } from './support.ts';

const { place, sandbox } = await makePlaceWithSandbox();

async function all(lines: AsyncIterable<string>): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const line of lines) found.push(line);
  return found;
}
const linesOf = (command: string, options?: LineOptions) => all(sandbox.start(command).lines(options));

describe('lines of a running command', () => {
  it('come as they are written, without their ends', async () => {
    const { words, letGo } = makeHold(place.workspace);
    const running = sandbox.start(`echo one; ${words}; printf 'two\\r\\n\\n  three '`);
    const seen: string[] = [];
    for await (const line of running) {
      seen.push(line);
      letGo();
    }
    expect(seen).toEqual(['one', 'two', '', '  three ']);
    expect(await running.result).toMatchObject({ ok: true, stdout: 'one\ntwo\r\n\n  three ' });
  });

  it('are those of standard output, of standard error, or of both', async () => {
    const command =
      'echo out; echo err >&2; printf "out "; sleep 0.05; printf "err " >&2; sleep 0.05; echo end; echo end >&2';
    expect(await linesOf(command)).toEqual(['out', 'out end']);
    expect(await linesOf(command, { stream: 'stderr' })).toEqual(['err', 'err end']);
    expect([...(await linesOf(command, { stream: 'all' }))].sort()).toEqual([
      'err',
      'err end',
      'out',
      'out end',
    ]);
  });

  it('cut no character, wherever a piece of output ends', async () => {
    const script = [
      'import os, time',
      'for b in "aé😀\\r\\n\\r\\r\\nz\\r".encode(): os.write(1, bytes([b])); time.sleep(0.005)',
    ].join('\n');
    expect(await all(sandbox.start(['python3', '-c', script]))).toEqual(['aé😀', '\r', 'z\r']);
  });

  it.each([
    ['nothing', 'true', []],
    ['an empty line', 'echo', ['']],
    ['no line end', 'printf x', ['x']],
    ['a command that fails', 'echo a; exit 3', ['a']],
    ['no UTF-8', "printf 'a\\xffb\\n'", ['a\ufffdb']],
  ])('of %s', async (_, command, lines) => {
    expect(await linesOf(command)).toEqual(lines);
  });

  it('are as long as is wanted at most, and the next begins where it begins', async () => {
    const command =
      "printf '12345\\n123456\\n😀😀😀\\n'; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end";
    expect(await linesOf(command, { maxLength: 5 })).toEqual([
      '12345',
      '12345 [... 1 characters left out ...]',
      '😀😀 [... 2 characters left out ...]',
      'xxxxx [... 2999995 characters left out ...]',
      'end',
    ]);
    const [, , , long] = await linesOf(command);
    expect(long).toMatch(/^x{1048576} \[\.\.\. 1951424 characters left out \.\.\.]$/);
  });

  it('say where something was not kept', async () => {
    const running = sandbox.start('seq 1000', { maxOutput: 20 });
    await running.result;
    expect(await all(running)).toEqual([
      '1',
      '2',
      '3',
      '4',
      '5',
      '',
      '[... 3,873 bytes left out ...]',
      '',
      '999',
      '1000',
    ]);
  });

  it('hold the command back while nobody takes one', async () => {
    const progress = () => Number(readFileSync(join(place.workspace, 'progress'), 'utf8'));
    const running = sandbox.start(
      'for i in $(seq 200); do yes x | head -c 65536; echo $i > new; mv new progress; done',
    );
    let lines = 0;
    for await (const _ of running) {
      lines += 1;
      if (lines > 1) continue;
      await eventually(() => expect(progress()).toBeGreaterThanOrEqual(16));
      let atRest = 0;
      while (atRest !== progress()) {
        atRest = progress();
        for (let others = 0; others < 20; others += 1) await sandbox.run(['true']);
      }
      expect(atRest).toBeLessThan(200 / 2);
    }
    expect(lines).toBe((200 * 65_536) / 2);
  });

  it('can be left: the command goes on, and its output is kept', async () => {
    const running = sandbox.start('seq 100000; touch went-on', { maxOutput: 12 });
    for await (const line of running) {
      expect(line).toBe('1');
      break;
    }
    expect(await running.result).toMatchObject({ status: 'exited', truncated: { stdout: 588_895 - 12 } });
    expect(existsSync(join(place.workspace, 'went-on'))).toBe(true);
    expect(() => running.lines()).toThrow('once');
  });

  it('of a job in the background tell when it is ready, and it runs on', async () => {
    const job = await sandbox.run('echo starting; echo ready; exec sleep 300', { background: true });
    const reader: LineReader = job;
    for await (const line of reader) if (line === 'ready') break;
    expect(job.exited).toBeUndefined();
    expect(job.output().stdout).toBe('starting\nready\n');
    expect((await job.end()).status).toBe('canceled');
  });

  it.each([{ stream: 'both' }, { maxLength: 0 }, { maxLength: 0.5 }])('are not given for %j', (options) => {
    const running = sandbox.start('true');
    expect(() => running.lines(options as LineOptions)).toThrow(/lines: (stream|maxLength) must be/);
  });
});
