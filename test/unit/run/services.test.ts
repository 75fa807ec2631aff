import { describe, expect, it, vi } from 'vitest';
import type { BackgroundJob, ExecutionResult, JobOptions } from '../../../src/index.ts';
import { portsInWords } from '../../../src/run/index.ts';
import { LinePattern } from '../../../src/run/services/line-pattern.ts';
import { Service, type ServiceWish } from '../../../src/run/services/service.ts';

const WISH: ServiceWish = {
  ...{ command: 'serve', run: {}, ready: undefined, restart: 'never', lifetimeMs: undefined },
};

/** A sandbox whose commands end when they are told to. */
function starter(launches = true) {
  const started: { options: JobOptions; end(result: object): void; isEnded: boolean }[] = [];
  const start = (_: unknown, options: JobOptions): BackgroundJob => {
    let finish: (result: ExecutionResult) => void = () => {};
    const whole = new Promise<ExecutionResult>((done) => {
      finish = done;
    });
    const one = {
      ...{ options, isEnded: false },
      end: (result: object) => {
        one.isEnded = true;
        finish(result as ExecutionResult);
      },
    };
    started.push(one);
    return {
      ...{
        launched: Promise.resolve(launches),
        wait: () => whole,
        members: async () => [7],
        ports: async () => [],
      },
      waitForExit: async () => {
        const { exitCode, signal } = await whole;
        return { exitCode, signal, durationMs: 1 };
      },
      end: () => {
        one.end({ status: 'canceled', signal: 'SIGTERM' });
        return whole;
      },
    } as unknown as BackgroundJob;
  };
  return { started, start };
}

const exited = (exitCode: number) => ({ status: 'exited', exitCode, ok: exitCode === 0 });

describe('a service', () => {
  it('waits longer and longer before it starts again, and gives up after ten failures in a row', async () => {
    vi.useFakeTimers();
    try {
      const { started, start } = starter();
      const service = new Service({ start }, { ...WISH, restart: 'on-failure' });
      for (const [at, seconds] of [1, 2, 4, 8, 16, 30, 30, 30, 30, 30].entries()) {
        started[at]?.end(exited(1));
        await vi.advanceTimersByTimeAsync(seconds * 1_000 - 1);
        expect(started, `${seconds} s`).toHaveLength(at + 1);
        expect(service.state).toBe('waiting');
        await vi.advanceTimersByTimeAsync(1);
        expect(started).toHaveLength(at + 2);
      }
      started[10]?.end(exited(1));
      expect(await service.ended).toMatchObject({ why: 'too-many-failures', result: { exitCode: 1 } });
      expect(service.restarts).toBe(10);
    } finally {
      vi.useRealTimers();
    }
  });

  it.each([
    ['that was refused', { status: 'denied', error: { code: 'command.denied', message: 'no' } }],
    ['that cannot begin', { status: 'setup-failed', error: { code: 'program.not_found', message: 'no' } }],
    ['that exited with 0', exited(0)],
  ])('%s is not started again', async (_, result) => {
    const { started, start } = starter();
    const service = new Service({ start }, { ...WISH, restart: 'on-failure' });
    started[0]?.end(result);
    expect(await service.ended).toMatchObject({ why: 'by-itself', result });
    expect(started).toHaveLength(1);
  });

  it('that is stopped between two starts ends at once', async () => {
    const { started, start } = starter();
    const service = new Service({ start }, { ...WISH, restart: 'on-failure' });
    started[0]?.end(exited(1));
    await vi.waitFor(() => expect(service.state).toBe('waiting'));
    expect(await service.stop()).toMatchObject({ why: 'stopped' });
    expect(started).toHaveLength(1);
    expect(await service.startAgain()).toBe(false);
  });

  it('that is started again begins anew at once, whatever is said of failures', async () => {
    const { started, start } = starter();
    const service = new Service({ start }, WISH);
    expect(await service.startAgain()).toBe(true);
    await vi.waitFor(() => expect(started).toHaveLength(2));
    expect(service.restarts).toBe(1);
    await service.stop();
    expect(started[1]?.isEnded).toBe(true);
  });

  it('is ready by a line in pieces, on either stream', async () => {
    const { started, start } = starter();
    const service = new Service({ start }, { ...WISH, ready: { line: '^ready on \\d+$' } });
    let isReady = false;
    void service.ready.then(() => {
      isReady = true;
    });
    const write = (stream: 'stdout' | 'stderr', text: string) =>
      started[0]?.options.onOutput?.({ stream, bytes: Buffer.from(text) });
    write('stdout', 'not ready on 1\nready ');
    // The other stream does not go on with the line of this one.
    write('stderr', 'on 2\n');
    await Promise.resolve();
    expect(isReady).toBe(false);
    write('stdout', 'on 3\n');
    await service.ready;
    expect(service.state).toBe('ready');
    await service.stop();
  });
});

describe('the ports of a service in words', () => {
  it('name each way from outside once, of a port that has two addresses the first', () => {
    const published = ['127.0.0.1:3000', '[::1]:3000', '[::1]:4000', '/run/user/1000/web.sock'];
    expect(
      portsInWords([
        { address: '::1', port: 5173, published },
        { address: '127.0.0.1', port: 5174 },
        { address: '0.0.0.0', port: 5174 },
      ]),
    ).toBe('localhost:5173 (outside 127.0.0.1:3000, [::1]:4000, /run/user/1000/web.sock) localhost:5174');
  });
});

describe('the pattern of a line', () => {
  it('is interrupted where it backtracks, and given up in the end', () => {
    const pattern = new LinePattern('^(a+)+$');
    const before = process.cpuUsage();
    for (let at = 0; at < 50; at += 1) expect(pattern.take(`${'a'.repeat(60)}b\n`)).toBe(false);
    // By the clock it takes as long as the machine has no time for it.
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(3_000);
    expect(pattern.isGivenUp).toBe(true);
    expect(pattern.take('a\n')).toBe(false);
  });

  it('sees the beginning of a line that is too long, and nothing else of it', () => {
    expect(new LinePattern('^x+$').take('x'.repeat(100_000))).toBe(true);
    expect(new LinePattern('y').take(`${'x'.repeat(4_096)}y\n`)).toBe(false);
  });

  it('is compared with what somebody reads: no colours, no carriage return, also where a piece ends within them', () => {
    const pattern = new LinePattern('^ready: 5173$');
    expect(pattern.take('\x1b[1mready\x1b[2')).toBe(false);
    expect(pattern.take('2m: \x1b[36m5173\x1b[39m\r\n')).toBe(true);
    expect(pattern.take('ready: \x1b[36m51\x1b[39m\n')).toBe(false);
  });

  it.each(['', '(', 'x'.repeat(513), '\\1{'])('cannot be %j', (source) => {
    expect(() => new LinePattern(source)).toThrow(/pattern|regular expression/);
  });
});
