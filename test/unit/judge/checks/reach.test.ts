import { describe, expect, it } from 'vitest';
import { reach } from '../../../../src/judge/checks/reach.ts';
import type { Reach, Review, Reviewer, Taint } from '../../../../src/model/index.ts';
import { contextOf } from '../../../support/check-context.ts';

const answering = (answer: unknown): Reviewer => ({ review: async () => answer as Review });
const CLEAR = answering({ outcome: 'clear' });
const FLAG = answering({ outcome: 'flag', reason: 'looks like a leak' });
const BOTH: readonly Taint[] = ['corruption', 'secret'];

async function judge(reached: Reach, taints: readonly Taint[], reviewer?: Reviewer, networkOff = false) {
  const said = await reach.judge(
    contextOf('x', {
      reach: reached,
      taints: new Set(taints),
      rules: { held: { files: networkOff, network: networkOff, signals: false } },
      gate: { reviewer },
    }),
  );
  return said.map(({ verdict, code }) => `${verdict} ${code}`).join();
}

describe('reach and taint', () => {
  it.each([
    ['network', [], undefined, 'undefined untainted'],
    ['unknown', [], undefined, 'undefined untainted'],
    ['local', BOTH, undefined, 'undefined local'],
    ['network', BOTH, CLEAR, 'ask both_taints'],
    ['network', ['secret'], CLEAR, 'allow reviewer_cleared'],
    ['network', ['corruption'], FLAG, 'deny reviewer_flagged'],
    ['network', ['secret'], undefined, 'ask no_reviewer'],
    ['unknown', BOTH, CLEAR, 'allow reviewer_cleared'],
    ['unknown', BOTH, FLAG, 'ask reviewer_flagged'],
    ['unknown', ['secret'], CLEAR, 'allow reviewer_cleared'],
    ['unknown', ['secret'], FLAG, 'deny reviewer_flagged'],
    ['unknown', ['corruption'], undefined, 'ask no_reviewer'],
  ] as const)('%s, %j', async (reached, taints, reviewer, expected) => {
    expect(await judge(reached, taints, reviewer)).toBe(expected);
  });

  it.each(['network', 'unknown'] as const)('%s: the kernel’s word is enough', async (reached) => {
    expect(await judge(reached, BOTH, FLAG, true)).toBe('undefined network_off');
  });

  it.each([
    ['nothing', undefined, 'reviewer_slow'],
    ['null', null, 'reviewer_unclear'],
    ['text', 'clear', 'reviewer_unclear'],
    ['an object without outcome', {}, 'reviewer_unclear'],
    ['an outcome of its own', { outcome: 'CLEAR' }, 'reviewer_unclear'],
    ['true', { outcome: true }, 'reviewer_unclear'],
  ])('an answer that is no answer asks: %s', async (_, answer, code) => {
    expect(await judge('unknown', ['secret'], answering(answer))).toBe(`ask ${code}`);
  });

  it('a reviewer that is slow, rejects or throws asks', async () => {
    const slow: Reviewer = { review: () => new Promise(() => {}) };
    const rejecting: Reviewer = { review: () => Promise.reject(new Error('503')) };
    const throwing: Reviewer = {
      review: () => {
        throw new Error('bug');
      },
    };
    expect(await judge('network', ['secret'], slow)).toBe('ask reviewer_slow');
    expect(await judge('network', ['secret'], rejecting)).toBe('ask reviewer_unreachable');
    expect(await judge('network', ['secret'], throwing)).toBe('ask reviewer_unreachable');
  });

  it('decides at once where nobody has to be asked', () => {
    expect(reach.judge(contextOf('x', { reach: 'network' }))).toBeInstanceOf(Array);
    expect(reach.judge(contextOf('x', { reach: 'network', taints: new Set(BOTH) }))).toBeInstanceOf(Array);
  });
});
