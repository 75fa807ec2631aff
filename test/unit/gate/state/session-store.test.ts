import { describe, expect, it } from 'vitest';
import { HOUR, implementations, testClock } from './fixtures.ts';

describe.each(implementations())('sessions in $name', ({ place }) => {
  it('keep their taints over a restart, each once with where it came from first', async () => {
    const [clock, there] = [testClock(), place()];
    const first = await there.open(clock);
    await first.sessions.taint('s', 'p', 'secret', 'read .env');
    clock.pass(5);
    await first.sessions.taint('s', 'p', 'secret', 'again');
    await first.sessions.taint('s', 'p', 'corruption', 'fetched');
    await first.close();
    const { sessions } = await there.open(clock);
    expect(await sessions.find('s')).toMatchObject({
      id: 's',
      principal: 'p',
      endedAt: undefined,
      taints: [
        { taint: 'secret', reason: 'read .env' },
        { taint: 'corruption', reason: 'fetched' },
      ],
    });
    expect([...(await sessions.taints('s', 'p', 'user'))].sort()).toEqual(['corruption', 'secret']);
  });

  it('have their own taints alone, unless they are shared with the user', async () => {
    const { sessions } = await place().open(testClock());
    await sessions.use('one', 'p');
    await sessions.taint('other', 'p', 'secret', 'x');
    expect(await sessions.taints('one', 'p', 'session')).toEqual([]);
    expect(await sessions.taints('other', 'p', 'session')).toEqual(['secret']);
    // It names a session of somebody else's.
    expect(await sessions.taints('other', 'q', 'session')).toEqual([]);
    expect((await sessions.find('one'))?.taints).toEqual([]);
  });

  it('of one principal at the same time share their taints with the user', async () => {
    const { sessions } = await place().open(testClock());
    await sessions.use('one', 'p');
    await sessions.taint('other', 'p', 'secret', 'x');
    await sessions.taint('foreign', 'q', 'corruption', 'x');
    expect(await sessions.taints('one', 'p', 'user')).toEqual(['secret']);
    expect(await sessions.taints('new', 'p', 'user')).toEqual(['secret']);
    // For good: what was seen by then is not forgotten when the other one ends.
    await sessions.end('other', 'p');
    expect(await sessions.taints('one', 'p', 'user')).toEqual(['secret']);
    expect(await sessions.taints('new', 'p', 'user')).toEqual(['secret']);
    await sessions.end('one', 'p');
    expect(await sessions.taints('new', 'p', 'user')).toEqual([]);
    expect(await sessions.taints('theirs', 'q', 'user')).toEqual(['corruption']);
  });

  it('that have ended, or were not used for half a day, keep their taints to themselves', async () => {
    const clock = testClock();
    const { sessions } = await place().open(clock);
    await sessions.taint('ended', 'p', 'secret', 'x');
    await sessions.taint('idle', 'p', 'corruption', 'x');
    expect(await sessions.end('ended', 'p')).toBe(true);
    clock.pass(12 * HOUR);
    expect(await sessions.taints('one', 'p', 'user')).toEqual([]);
    expect(await sessions.taints('ended', 'p', 'user')).toEqual(['secret']);
    expect(await sessions.taints('idle', 'p', 'user')).toEqual(['corruption']);
    // Whoever goes on with one has them again.
    expect(await sessions.use('ended', 'p')).toBe('new');
    expect(await sessions.taints('one', 'p', 'user')).toEqual(['secret']);
  });

  it('belong to the principal that made them', async () => {
    const { sessions } = await place().open(testClock());
    expect(await sessions.use('s', 'p')).toBe('new');
    expect(await sessions.use('s', 'p')).toBe('new');
    await sessions.announce('s', 'q');
    expect(await sessions.use('s', 'p')).toBe('new');
    await sessions.announce('s', 'p');
    expect(await sessions.use('s', 'p')).toBe('known');
    await sessions.end('s', 'p');
    expect(await sessions.use('s', 'p')).toBe('new');
    await expect(async () => sessions.use('s', 'q')).rejects.toMatchObject({ code: 'session.invalid' });
    await expect(async () => sessions.taint('s', 'q', 'secret', 'x')).rejects.toMatchObject({
      code: 'session.invalid',
    });
    expect(await sessions.end('s', 'q')).toBe(false);
    expect(await sessions.taints('s', 'p', 'user')).toEqual([]);
    expect(await sessions.list('q')).toEqual([]);
    expect(await sessions.list('p')).toHaveLength(1);
  });
});
