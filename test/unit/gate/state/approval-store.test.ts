import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { ApprovalAnswer } from '../../../../src/model/index.ts';
import { handClock, makeStatePlace, sampleRequest } from '../../../support/approvals.ts';
import { implementations, type TestPlace } from './fixtures.ts';

const places = implementations().map(({ name, place }) => ({ name, there: place() }));
const LATER = 300_000;
const YES: ApprovalAnswer = { approved: true, scope: 'once', by: 'test' };
const NO: ApprovalAnswer = { approved: false, reason: 'denied', by: 'somebody else' };

async function freshStore(there: TestPlace) {
  const hand = handClock(Date.now());
  const { approvals, sessions } = await there.open(hand.clock);
  return { store: approvals, sessions, hand, expiresAt: hand.clock.now() + LATER };
}

let count = 0;
/** A request whose fingerprint no other test knows. */
const ownRequest: typeof sampleRequest = (changes) => {
  count += 1;
  return sampleRequest({ fingerprint: `${count}`.padStart(64, '0'), ...changes });
};

describe.each(places)('requests in $name', ({ there }) => {
  it('wait until they are answered', async () => {
    const { store, expiresAt } = await freshStore(there);
    const id = await store.post(ownRequest(), expiresAt);
    expect(await store.take(id)).toBeUndefined();
    expect((await store.list('pending')).map((stored) => stored.id)).toContain(id);
    expect(await store.answer(id, YES)).toBe(true);
    expect((await store.list('pending')).map((stored) => stored.id)).not.toContain(id);
    expect(await store.take(id)).toEqual(YES);
  });

  it('come back as they were posted, whatever the text', async () => {
    const { store, expiresAt } = await freshStore(there);
    const request = ownRequest({
      command: ['printf', '\0\ud800 \u202e"\'\\\n', ''],
      session: "s'; DROP TABLE grants; --",
    });
    const id = await store.post(request, expiresAt);
    expect(await store.find(id)).toMatchObject({ id, request, state: 'pending', expiresAt });
  });

  it('an approval that was taken once is gone', async () => {
    const { store, expiresAt } = await freshStore(there);
    const id = await store.post(ownRequest(), expiresAt);
    await store.answer(id, YES);
    expect(await store.take(id)).toMatchObject({ approved: true });
    expect(await store.take(id)).toMatchObject({ approved: false, reason: 'failed' });
    expect(await store.answer(id, YES)).toBe(false);
    expect(await store.take(id)).toMatchObject({ approved: false });
  });

  it.each([
    ['yes, no', YES, NO],
    ['no, yes', NO, YES],
  ])('the first of two answers stands: %s', async (_, first, second) => {
    const { store, expiresAt } = await freshStore(there);
    const id = await store.post(ownRequest(), expiresAt);
    expect(await store.answer(id, first)).toBe(true);
    expect(await store.answer(id, second)).toBe(false);
    expect(await store.take(id)).toEqual(first);
  });

  it('cannot be answered once they are expired', async () => {
    const { store, hand, expiresAt } = await freshStore(there);
    const id = await store.post(ownRequest(), expiresAt);
    hand.advance(LATER - 1);
    expect(await store.take(id)).toBeUndefined();
    hand.advance(1);
    expect(await store.answer(id, YES)).toBe(false);
    expect(await store.take(id)).toMatchObject({ approved: false, reason: 'expired' });
    expect(await store.find(id)).toMatchObject({ state: 'expired' });
  });

  it('an approval that nobody came for expires, too', async () => {
    const { store, hand, expiresAt } = await freshStore(there);
    const id = await store.post(ownRequest(), expiresAt);
    await store.answer(id, YES);
    hand.advance(LATER);
    expect(await store.take(id)).toMatchObject({ approved: false, reason: 'expired' });
  });

  it('that were withdrawn cannot be answered, and an answer to them is void', async () => {
    const { store, expiresAt } = await freshStore(there);
    const [waiting, approved] = [
      await store.post(ownRequest(), expiresAt),
      await store.post(ownRequest(), expiresAt),
    ];
    await store.answer(approved, YES);
    for (const id of [waiting, approved]) await store.withdraw(id);
    expect(await store.answer(waiting, YES)).toBe(false);
    expect(await store.take(waiting)).toMatchObject({ approved: false });
    expect(await store.take(approved)).toMatchObject({ approved: false });
  });

  it('have ids that nobody guesses, and that are no options', async () => {
    const { store, expiresAt } = await freshStore(there);
    const ids = await Promise.all(Array.from({ length: 200 }, () => store.post(ownRequest(), expiresAt)));
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{24}$/);
  });

  it('nobody knows an id that was not given out', async () => {
    const { store } = await freshStore(there);
    expect(await store.find('0'.repeat(24))).toBeUndefined();
    expect(await store.answer('0'.repeat(24), YES)).toBe(false);
    expect(await store.take('0'.repeat(24))).toMatchObject({ approved: false });
  });

  it('are forgotten after a day', async () => {
    const { store, hand, expiresAt } = await freshStore(there);
    const id = await store.post(ownRequest(), expiresAt);
    hand.advance(25 * 3_600_000);
    await store.post(ownRequest(), hand.clock.now() + LATER);
    expect(await store.find(id)).toBeUndefined();
  });
});

describe.each(places)('grants in $name', ({ there }) => {
  it('for always hold for exactly one request of one principal', async () => {
    const { store } = await freshStore(there);
    const request = ownRequest();
    expect(await store.granted(request)).toBeUndefined();
    await store.grant(request, 'always', 'test');
    expect(await store.granted(request)).toMatchObject({ scope: 'always', grantedBy: 'test' });
    expect((await store.granted(request))?.request).toEqual(request);
    expect(await store.granted({ ...request, session: 'any' })).toBeDefined();
    expect(await store.granted({ ...request, principal: 'uid:1' })).toBeUndefined();
    expect(await store.granted(ownRequest())).toBeUndefined();
    expect(await store.granted({ ...request, fingerprint: `${request.fingerprint}%` })).toBeUndefined();
  });

  it('for a session hold in that session', async () => {
    const { store } = await freshStore(there);
    const request = ownRequest({ session: 'mine' });
    await store.grant(request, 'session', 'test');
    expect(await store.granted(request)).toMatchObject({ scope: 'session', session: 'mine' });
    expect(await store.granted({ ...request, session: 'other' })).toBeUndefined();
    expect(await store.granted({ ...request, session: undefined })).toBeUndefined();
    expect(await store.granted({ ...request, principal: 'uid:1' })).toBeUndefined();
  });

  it('for a session never hold without one', async () => {
    const { store } = await freshStore(there);
    const request = ownRequest();
    await store.grant(request, 'session', 'test');
    expect(await store.granted(request)).toBeUndefined();
  });

  it('for a session end with it', async () => {
    const { store, sessions } = await freshStore(there);
    const request = ownRequest({ session: 'ends' });
    await sessions.use('ends', request.principal);
    await store.grant(request, 'session', 'test');
    await sessions.end('ends', request.principal);
    await sessions.use('ends', request.principal);
    expect(await store.granted(request)).toBeUndefined();
  });

  it('are revoked by their id', async () => {
    const { store } = await freshStore(there);
    const request = ownRequest();
    // Given twice is given once: nothing is left behind.
    await store.grant(request, 'always', 'test');
    await store.grant(request, 'always', 'test');
    const grants = (await store.grants()).filter(
      (grant) => grant.request.fingerprint === request.fingerprint,
    );
    expect(grants).toHaveLength(1);
    const id = grants[0]?.id ?? '';
    expect(id).toMatch(/^[0-9a-f]{24}$/);
    expect(await store.revoke(id)).toBe(true);
    expect(await store.revoke(id)).toBe(false);
    expect(await store.granted(request)).toBeUndefined();
  });

  it('an approval for once is none', async () => {
    const { store, expiresAt } = await freshStore(there);
    const request = ownRequest();
    const id = await store.post(request, expiresAt);
    await store.answer(id, YES);
    await store.take(id);
    expect(await store.granted(request)).toBeUndefined();
  });
});

describe('several processes', () => {
  const place = makeStatePlace();
  const CLI = fileURLToPath(new URL('../../../../dist/cli.cjs', import.meta.url));
  const env = { ...process.env, XDG_STATE_HOME: place.stateHome };
  const approvals = (...args: string[]) =>
    promisify(execFile)(process.execPath, [CLI, 'approvals', ...args], { env }).then(
      () => true,
      () => false,
    );

  it('one posts, another answers', async () => {
    const { approvals: store } = await place.open();
    const id = await store.post(ownRequest(), Date.now() + LATER);
    expect(await approvals('approve', id)).toBe(true);
    expect(await store.take(id)).toEqual({ approved: true, scope: 'once', by: 'command line' });
  });

  it('of several that answer at the same time, one is heard', async () => {
    const { approvals: store } = await place.open();
    const id = await store.post(ownRequest(), Date.now() + LATER);
    const heard = await Promise.all(
      ['approve', 'deny', 'approve', 'deny'].map((verb) => approvals(verb, id)),
    );
    expect(heard.filter(Boolean)).toHaveLength(1);
    expect(await store.take(id)).toMatchObject({ approved: heard[0] === true || heard[2] === true });
  });
});
