import { describe, expect, it } from 'vitest';
import { createApprovalDesk } from '../../../../src/gate/approvals/desk.ts';
import type {
  ApprovalAnswer,
  ApprovalGrant,
  ApprovalRequest,
  ApprovalStore,
  Approver,
} from '../../../../src/model/index.ts';
import { makeStatePlace, sampleRequest } from '../../../support/approvals.ts';

const place = makeStatePlace();
let count = 0;
const ownRequest: typeof sampleRequest = (changes) => {
  count += 1;
  return sampleRequest({ fingerprint: `${count}`.padStart(64, 'd'), ...changes });
};

async function deskWith(approver: Approver | undefined, timeoutMs = 60_000) {
  const { approvals: store } = await place.open();
  return { store, desk: createApprovalDesk({ store: () => store, approver, timeoutMs }) };
}

/** An approver of somebody else's, which may give anything. */
const saying = (answer: unknown): Approver => ({ ask: async () => answer as ApprovalAnswer });
const YES = { approved: true, scope: 'once', by: 'test' };

describe('an approval desk', () => {
  it('passes a clear yes on', async () => {
    const { desk, store } = await deskWith(saying(YES));
    const request = ownRequest();
    expect(await desk.decide(request)).toEqual(YES);
    expect(await store.granted(request)).toBeUndefined();
  });

  it('asks each time for what was approved once', async () => {
    let asked = 0;
    const { desk } = await deskWith({
      ask: async () => {
        asked += 1;
        return { approved: true, scope: 'once', by: 'test' };
      },
    });
    const request = ownRequest();
    await desk.decide(request);
    await desk.decide(request);
    expect(asked).toBe(2);
  });

  it.each(['session', 'always'] as const)(
    'remembers a yes for %s, for exactly that request',
    async (scope) => {
      const { desk, store } = await deskWith(saying({ ...YES, scope }));
      const request = ownRequest({ session: 'one' });
      expect(await desk.decide(request)).toEqual({ approved: true, scope, by: 'test' });
      const later = createApprovalDesk({ store: () => store, approver: undefined, timeoutMs: 1_000 });
      expect(await later.decide(request)).toMatchObject({
        approved: true,
        scope,
        by: expect.stringMatching(/^remembered .*test/),
      });
      const others: readonly ApprovalRequest[] = [
        { ...request, fingerprint: 'e'.repeat(64) },
        { ...request, principal: 'uid:0' },
        ...(scope === 'session'
          ? [
              { ...request, session: 'two' },
              { ...request, session: undefined },
            ]
          : []),
      ];
      for (const other of others)
        expect(await later.decide(other)).toEqual({ approved: false, reason: 'nobody', by: 'desk' });
    },
  );

  it('no longer knows what was revoked', async () => {
    const { desk, store } = await deskWith(undefined);
    const request = ownRequest();
    await store.grant(request, 'always', 'test');
    expect(await desk.decide(request)).toMatchObject({ approved: true });
    for (const { id } of await store.grants()) await store.revoke(id);
    expect(await desk.decide(request)).toMatchObject({ approved: false, reason: 'nobody' });
  });

  it('takes a yes for the session as one for once where there is no session, and says so', async () => {
    const { desk, store } = await deskWith(saying({ ...YES, scope: 'session' }));
    const request = ownRequest();
    expect(await desk.decide(request)).toEqual({
      approved: true,
      scope: 'once',
      by: expect.stringContaining('there is none: once'),
    });
    expect((await store.grants()).map((grant) => grant.request.fingerprint)).not.toContain(
      request.fingerprint,
    );
  });

  it('passes a no on', async () => {
    const { desk } = await deskWith(saying({ approved: false, reason: 'denied', by: 'test' }));
    expect(await desk.decide(ownRequest())).toEqual({ approved: false, reason: 'denied', by: 'test' });
  });

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['true', true],
    ['a word', 'yes'],
    ['an empty object', {}],
    ['a yes without a scope', { approved: true, by: 'test' }],
    ['a yes with an unknown scope', { approved: true, scope: 'forever', by: 'test' }],
    ['a yes with a list of scopes', { approved: true, scope: ['once'], by: 'test' }],
    ['a yes by nobody', { approved: true, scope: 'once' }],
    ['something like a yes', { approved: 'true', scope: 'once', by: 'test' }],
    ['one', { approved: 1, scope: 'once', by: 'test' }],
    ['a list', [YES]],
  ])('an answer that is none is a no: %s', async (_, answer) => {
    const { desk } = await deskWith(saying(answer));
    expect(await desk.decide(ownRequest())).toMatchObject({ approved: false, reason: 'failed' });
  });

  it.each([
    ['rejects', () => Promise.reject(new Error('broken'))],
    [
      'throws',
      () => {
        throw new Error('broken');
      },
    ],
  ])('an approver that %s is a no', async (_, ask) => {
    const { desk } = await deskWith({ ask });
    expect(await desk.decide(ownRequest())).toMatchObject({
      approved: false,
      reason: 'failed',
      detail: 'broken',
    });
  });

  it('an approver that does not keep its time is a no, and hears of it', async () => {
    let given: AbortSignal | undefined;
    const { desk } = await deskWith(
      {
        ask: (_, { signal }) => {
          given = signal;
          return new Promise(() => {});
        },
      },
      0,
    );
    expect(await desk.decide(ownRequest())).toEqual({ approved: false, reason: 'expired', by: 'desk' });
    expect(given?.aborted).toBe(true);
  });

  it('a command that is given up on is a no at once, also if a yes comes in the meantime', async () => {
    const over = new AbortController();
    const { desk, store } = await deskWith({
      ask: async () => {
        over.abort();
        return { approved: true, scope: 'always', by: 'test' };
      },
    });
    const request = ownRequest();
    expect(await desk.decide(request, over.signal)).toMatchObject({ approved: false, reason: 'failed' });
    expect(await desk.decide(request, over.signal)).toMatchObject({ approved: false, reason: 'failed' });
    expect(await store.granted(request)).toBeUndefined();
  });

  it('remembers what was asked, whatever the approver does to it', async () => {
    const { desk, store } = await deskWith({
      ask: async (request) => {
        Object.assign(request, { fingerprint: 'a'.repeat(64), principal: 'uid:0', command: 'rm -rf /' });
        return { approved: true, scope: 'always', by: 'test' };
      },
    });
    const request = ownRequest();
    await desk.decide(request);
    expect((await store.granted(request))?.request).toEqual(request);
    expect(
      await store.granted({ ...request, fingerprint: 'a'.repeat(64), principal: 'uid:0' }),
    ).toBeUndefined();
  });

  describe('with a store that does not work', () => {
    const broken = () => {
      throw new Error('disk on fire');
    };
    const store: ApprovalStore = {
      post: broken,
      find: broken,
      list: broken,
      answer: broken,
      take: broken,
      withdraw: broken,
      granted: broken,
      grant: broken,
      grants: broken,
      revoke: broken,
    };
    const decide = (store: () => ApprovalStore, answer: unknown) =>
      createApprovalDesk({ store, approver: saying(answer), timeoutMs: 1_000 }).decide(ownRequest());
    const refused = { approved: false, reason: 'failed', detail: 'disk on fire' };

    it('refuses when it cannot look', async () => {
      expect(await decide(() => store, YES)).toMatchObject(refused);
      expect(await decide(broken, YES)).toMatchObject(refused);
    });

    it('refuses when it cannot remember', async () => {
      const granted = () => undefined;
      expect(await decide(() => ({ ...store, granted }), { ...YES, scope: 'always' })).toMatchObject(refused);
    });

    it('does not take a grant for something else', async () => {
      const request = ownRequest();
      const grant: ApprovalGrant = {
        id: 'x',
        request,
        scope: 'always',
        session: undefined,
        grantedAt: 0,
        grantedBy: 'test',
      };
      const no = { approved: false, reason: 'denied', by: 'test' };
      expect(await decide(() => ({ ...store, granted: () => grant }), no)).toEqual(no);
    });
  });
});
