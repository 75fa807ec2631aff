import { describe, expect, it } from 'vitest';
import { createAnswerer, type GateAnswer, type GateRequest } from '../../../src/serve/gate/gate-decider.ts';
import { turn } from './support.ts';

const request = (signal = new AbortController().signal): GateRequest => ({
  requestId: 'a',
  command: 'ls',
  session: undefined,
  tool: undefined,
  principal: 'uid:1',
  signal,
});

describe('an answerer', () => {
  it('passes the answer on, and tells of it', async () => {
    const told: unknown[] = [];
    const answer = createAnswerer({
      decide: async () => ({ decision: 'allow' }),
      timeoutMs: 1_000,
      onAnswer: ({ requestId }, { decision }) => told.push([requestId, decision]),
    });
    expect(await answer(request())).toEqual({ decision: 'allow' });
    expect(told).toEqual([['a', 'allow']]);
  });

  it.each<[string, (request: GateRequest) => Promise<GateAnswer>]>([
    ['a failure', () => Promise.reject(new Error('x'))],
    [
      'one that is thrown',
      () => {
        throw new Error('x');
      },
    ],
    ['silence', () => new Promise(() => {})],
    [
      'a late yes',
      ({ signal }) =>
        new Promise((done) => {
          signal.addEventListener('abort', () => turn().then(() => done({ decision: 'allow' })));
        }),
    ],
    ['another word', async () => ({ decision: 'yes' }) as never],
    ['nothing', async () => undefined as never],
  ])('makes a no of %s', async (_, decide) => {
    const answer = createAnswerer({ decide, timeoutMs: 30 });
    expect((await answer(request())).decision).toBe('deny');
  });

  it('makes a no of what is withdrawn, and tells whoever decides', async () => {
    const controller = new AbortController();
    let aborted = false;
    const answer = createAnswerer({
      decide: ({ signal }) => {
        signal.addEventListener('abort', () => {
          aborted = true;
        });
        return new Promise(() => {});
      },
      timeoutMs: 10_000,
    })(request(controller.signal));
    await turn();
    controller.abort('it is over');
    expect(await answer).toEqual({ decision: 'deny', reason: 'it is over' });
    expect(aborted).toBe(true);
  });

  it('asks nobody about what was withdrawn before', async () => {
    const answer = createAnswerer({ decide: async () => ({ decision: 'allow' }), timeoutMs: 1_000 });
    expect(await answer(request(AbortSignal.abort()))).toMatchObject({ decision: 'deny' });
  });
});
