import { describe, expect, it } from 'vitest';
import { HOUR, implementations, type TestPlace, testClock } from './fixtures.ts';

async function budgetWith(place: TestPlace, clock = testClock()) {
  const state = await place.open(clock);
  const { budget } = state;
  return {
    clock,
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

describe.each(implementations())('the budget of an hour in $name', ({ place }) => {
  it('is a sliding window: what is an hour old is free again, one by one', async () => {
    const { clock, budget, take } = await budgetWith(place());
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
    const { clock, take } = await budgetWith(place());
    await take(3, 3);
    for (let minute = 0; minute < 59; minute++) {
      clock.pass(60_000);
      expect(await take(10, 3)).toBe(0);
    }
    clock.pass(60_000);
    expect(await take(10, 3)).toBe(3);
  });

  it('gets back what was released, and not what was committed', async () => {
    const { budget } = await budgetWith(place());
    const [one, two] = [await budget.reserve('p', 2), await budget.reserve('p', 2)];
    expect(await budget.reserve('p', 2)).toBeUndefined();
    await one?.commit();
    await one?.release();
    expect(await budget.used('p')).toBe(2);
    await two?.release();
    expect(await budget.used('p')).toBe(1);
  });

  it('is each principal’s own, and can be forgotten', async () => {
    const { budget, take } = await budgetWith(place());
    expect(await take(5, 3, 'one')).toBe(3);
    expect(await take(5, 3, 'other')).toBe(3);
    expect(await budget.reset('one')).toBe(3);
    expect(await budget.used('one')).toBe(0);
    expect(await budget.used('other')).toBe(3);
  });

  it('survives a restart, and what was reserved by a process that died counts', async () => {
    const there = place();
    const first = await budgetWith(there);
    await first.take(4, 10);
    await first.close();
    const second = await budgetWith(there, first.clock);
    expect(await second.budget.used('p')).toBe(4);
  });

  it.each([
    ['back by a day', -24 * HOUR],
    ['forward by a day', 24 * HOUR],
  ])('does not care when the clock is set %s', async (_, by) => {
    const { clock, take } = await budgetWith(place());
    await take(3, 3);
    clock.set(clock.now() + by);
    expect(await take(3, 3)).toBe(0);
    clock.pass(HOUR - 1);
    expect(await take(3, 3)).toBe(0);
    clock.pass(1);
    expect(await take(3, 3)).toBe(3);
  });

  it('goes by the wall clock over a reboot', async () => {
    const { clock, take } = await budgetWith(place());
    await take(3, 3);
    clock.reboot();
    clock.pass(HOUR - 1);
    expect(await take(3, 3)).toBe(0);
    clock.pass(1);
    expect(await take(3, 3)).toBe(3);
  });

  it('keeps nobody out for more than an hour when the clock was set back before a reboot', async () => {
    const { clock, take } = await budgetWith(place());
    await take(3, 3);
    clock.set(clock.now() - 100 * HOUR);
    clock.reboot();
    expect(await take(3, 3)).toBe(0);
    clock.pass(HOUR);
    expect(await take(3, 3)).toBe(3);
  });
});
