import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { type ApprovalRequest, createSandbox } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { makePlaceWithSandbox } from './support.ts';

const { place, sandbox } = await makePlaceWithSandbox();
const inWorkspace = (name: string) => join(place.workspace, name);

/** A source that tells how often it was asked, and whether it was ended. */
function told(pieces: Iterable<string | Uint8Array>, wait?: Promise<unknown>) {
  const seen = { asked: 0, ended: false };
  async function* source() {
    try {
      for (const piece of pieces) {
        seen.asked += 1;
        yield piece;
      }
      await wait;
    } finally {
      seen.ended = true;
    }
  }
  return { seen, source: source() };
}
function* endless(piece: Uint8Array) {
  for (;;) yield piece;
}

describe('standard input from a source', () => {
  it.each(['start', 'run'] as const)('arrives whole and in order, by %s', async (how) => {
    const pieces = Array.from({ length: 500 }, (_, at) =>
      at % 2 === 0 ? `${at} é😀\n` : Buffer.alloc(at * 37, at),
    );
    const whole = Buffer.concat(pieces.map((piece) => Buffer.from(piece)));
    const { source, seen } = told(pieces);
    const options = { input: source };
    const result = await (how === 'run'
      ? sandbox.run(['sha256sum'], options)
      : sandbox.start(['sha256sum'], options).result);
    expect(result.stdout.split(' ')[0]).toBe(createHash('sha256').update(whole).digest('hex'));
    expect(seen.ended).toBe(true);
  });

  it('is a file stream, a web stream, a stream with an encoding', async () => {
    const file = join(place.other, 'file');
    const bytes = Buffer.alloc(3_000_000, 'abc\n');
    writeFileSync(file, bytes);
    const input = createReadStream(file);
    expect((await sandbox.run(['wc', '-c'], { input })).stdout).toBe('3000000\n');
    expect(input.closed || input.destroyed).toBe(true);
    const web = new Blob(['from the ', 'web']).stream();
    expect((await sandbox.run(['cat'], { input: web })).stdout).toBe('from the web');
    const encoded = Readable.from([Buffer.from('é')]).setEncoding('utf8');
    expect((await sandbox.run(['cat'], { input: encoded })).stdout).toBe('é');
    expect((await sandbox.run(['cat'], { input: Readable.from([]) })).stdout).toBe('');
  });

  it('is asked for no more than the command takes', async () => {
    const { source, seen } = told(endless(Buffer.alloc(65_536)));
    const running = sandbox.start('head -c 65536 >/dev/null; touch taken; exec sleep 300', { input: source });
    await eventually(() => expect(existsSync(inWorkspace('taken'))).toBe(true));
    // It comes to rest: others run to their ends, and nothing more is asked for.
    let atRest = -1;
    while (atRest !== seen.asked) {
      atRest = seen.asked;
      for (let others = 0; others < 10; others += 1) await sandbox.run(['true']);
    }
    expect(atRest).toBeLessThan(8);
    running.cancel();
    expect((await running.result).status).toBe('canceled');
    await eventually(() => expect(seen.ended).toBe(true));
  });

  it('ends quietly with a command that ends early, or reads no more', async () => {
    const { source, seen } = told(endless(Buffer.alloc(65_536)));
    expect(await sandbox.run(['true'], { input: source })).toMatchObject({ ok: true, warnings: [] });
    await eventually(() => expect(seen.ended).toBe(true));

    const other = told(endless(Buffer.alloc(65_536)));
    const running = sandbox.start('exec <&-; exec sleep 300', { input: other.source });
    await eventually(() => expect(other.seen.ended).toBe(true));
    running.cancel();
    await running.result;
  });

  it('that has nothing to say yet keeps no result waiting, and is ended', async () => {
    const stream = new PassThrough();
    expect((await sandbox.run(['true'], { input: stream })).ok).toBe(true);
    expect(stream.destroyed).toBe(true);
    const { source } = told(['a'], new Promise(() => {}));
    expect((await sandbox.run(['true'], { input: source })).ok).toBe(true);
  });

  it('that fails ends the command, which sees no end of its input, and its error is told', async () => {
    async function* failing() {
      yield 'half of it\n';
      throw new Error('of the source');
    }
    const script = 'cat > got; touch whole';
    await expect(sandbox.run(script, { input: failing() })).rejects.toThrow('of the source');
    expect(existsSync(inWorkspace('whole'))).toBe(false);
    const stream = new PassThrough();
    const run = sandbox.run(script, { input: stream });
    stream.destroy(new Error('of the stream'));
    await expect(run).rejects.toThrow('of the stream');
    const gone = createReadStream(join(place.other, 'not there'));
    await expect(sandbox.run(script, { input: gone })).rejects.toMatchObject({ code: 'ENOENT' });
    const wrong = Readable.from([{ an: 'object' }]);
    await expect(sandbox.run(script, { input: wrong })).rejects.toMatchObject({ code: 'usage.invalid' });
    expect(existsSync(inWorkspace('whole'))).toBe(false);
  });

  it('is not read for a command that is not run, and ended', async () => {
    const { source, seen } = told(['a']);
    const result = await sandbox.run(['no-such-program'], { input: source });
    expect(result.status).toBe('setup-failed');
    expect(seen.asked).toBe(0);
    const stream = new PassThrough();
    await sandbox.run(['no-such-program'], { input: stream });
    if (!stream.closed) await once(stream, 'close');
  });

  it('is typed on a terminal, and goes to jobs', async () => {
    const { source } = told(['ty', 'ped\n']);
    const shown = await sandbox.run(['cat'], { input: source, pty: { cols: 80, rows: 24 } });
    expect(shown.stdout).toMatch(/typed\r\ntyped\r\n/);
    const job = await sandbox.run(['cat'], { input: told(['to a job']).source, background: true });
    expect((await job.wait()).stdout).toBe('to a job');
  });

  it('is approved for one run only: what it will say is not known', async () => {
    const asked: ApprovalRequest[] = [];
    await using judged = await createSandbox({
      workspace: place.workspace,
      policy: {
        unsafe: { unjudged_commands: false },
        security: { autonomy: 'supervised' },
        commands: { rules: [{ program: 'cat', verdict: 'ask' }] },
      },
      gate: {
        approver: {
          ask: async (request) => {
            asked.push(request);
            return { approved: true, scope: 'session', by: 'test' };
          },
        },
      },
    });
    for (const word of ['one', 'two'])
      expect((await judged.run(['cat'], { input: told([word]).source })).stdout).toBe(word);
    expect(new Set(asked.map(({ fingerprint }) => fingerprint)).size).toBe(2);
  });
});
