import { describe, expect, it } from 'vitest';
import { HOUR, open, stateDirectories, testClock } from './fixtures.ts';

const directory = stateDirectories();

async function budgetWith(clock = testClock(), path = directory()) {
  const state = await open(path, clock);
  const { budget } = state;
  return {
    clock,
    path,
    budget,
    close: state.close,
    /** How many of so many attempts are let through. */
    take: async (attempts: number, limit: number, principal = 'p') => {
      let taken = 0;
      for (let i = 0; i < attempts; i++) if ((await budget.reserve(principal, limit)) !== undefined) taken++;
      return taken;
    },
  };
}

describe('the budget of an hour', () => {
  it('is a sliding window: what is an hour old is free again, one by one', async () => {
    const { clock, budget, take } = await budgetWith();
    expect(await take(1, 2)).toBe(1);
    clock.pass(HOUR / 2);
    expect(await take(5, 2)).toBe(1);
    clock.pass(HOUR / 2 - 1);
    expect(await take(5, 2)).toBe(0);
    clock.pass(1);
    expect(await take(5, 2)).toBe(1);
    expect(await budget.used('p')).toBe(2);
  });

  it('is not made longer by what it refuses', async () => {
    const { clock, take } = await budgetWith();
    await take(3, 3);
    for (let minute = 0; minute < 59; minute++) {
      clock.pass(60_000);
      expect(await take(10, 3)).toBe(0);
    }
    clock.pass(60_000);
    expect(await take(10, 3)).toBe(3);
  });

  it('gets back what was released, and not what was committed', async () => {
    const { budget } = await budgetWith();
    const [one, two] = [await budget.reserve('p', 2), await budget.reserve('p', 2)];
    expect(await budget.reserve('p', 2)).toBeUndefined();
    await one?.commit();
    await one?.release();
    expect(await budget.used('p')).toBe(2);
    await two?.release();
    expect(await budget.used('p')).toBe(1);
  });

  it('is each principal’s own, and can be forgotten', async () => {
    const { budget, take } = await budgetWith();
    expect(await take(5, 3, 'one')).toBe(3);
    expect(await take(5, 3, 'other')).toBe(3);
    expect(await budget.reset('one')).toBe(3);
    expect(await budget.used('one')).toBe(0);
    expect(await budget.used('other')).toBe(3);
  });

  it('survives a restart, and what was reserved by a process that died counts', async () => {
    const first = await budgetWith();
    await first.take(4, 10);
    first.close();
    const second = await budgetWith(first.clock, first.path);
    expect(await second.budget.used('p')).toBe(4);
  });

  it.each([
    ['back by a day', -24 * HOUR],
    ['forward by a day', 24 * HOUR],
  ])('does not care when the clock is set %s', async (_, by) => {
    const { clock, take } = await budgetWith();
    await take(3, 3);
    clock.set(clock.now() + by);
    expect(await take(3, 3)).toBe(0);
    clock.pass(HOUR - 1);
    expect(await take(3, 3)).toBe(0);
    clock.pass(1);
    expect(await take(3, 3)).toBe(3);
  });

  it('goes by the wall clock over a reboot', async () => {
    const { clock, take } = await budgetWith();
    await take(3, 3);
    clock.reboot();
    clock.pass(HOUR - 1);
    expect(await take(3, 3)).toBe(0);
    clock.pass(1);
    expect(await take(3, 3)).toBe(3);
  });

  it('keeps nobody out for more than an hour when the clock was set back before a reboot', async () => {
    const { clock, take } = await budgetWith();
    await take(3, 3);
    clock.set(clock.now() - 100 * HOUR);
    clock.reboot();
    expect(await take(3, 3)).toBe(0);
    clock.pass(HOUR);
    expect(await take(3, 3)).toBe(3);
  });
});
