import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createQueueApprover } from '../../../../src/gate/approvals/queue.ts';
import type { ApprovalRequest } from '../../../../src/model/index.ts';
import { makeStatePlace, sampleRequest, until } from '../../../support/approvals.ts';

const place = makeStatePlace();
const CLI = fileURLToPath(new URL('../../../../dist/cli.cjs', import.meta.url));

/** `sandbox-run approvals`, another process. */
const approvals = (...args: string[]) =>
  promisify(execFile)(process.execPath, [CLI, 'approvals', ...args], {
    env: { ...process.env, XDG_STATE_HOME: place.stateHome },
  });

async function askInQueue(timeoutMs = 60_000, request: ApprovalRequest = sampleRequest()) {
  const { approvals: store } = await place.open();
  const over = new AbortController();
  let posted: string | undefined;
  const approver = createQueueApprover(() => store, {
    pollMs: 5,
    onPosted: (id) => {
      posted = id;
    },
  });
  const answered = approver.ask(request, { timeoutMs, signal: over.signal });
  return { store, over, answered, id: await until(() => posted) };
}

describe('the approval queue', () => {
  it.each([
    [['approve'], { approved: true, scope: 'once', by: 'command line' }],
    [['approve', '--scope', 'always'], { approved: true, scope: 'always', by: 'command line' }],
    [['deny'], { approved: false, reason: 'denied', by: 'command line' }],
  ])('another process answers: %j', async (args, answer) => {
    const { answered, id, store } = await askInQueue();
    await approvals(...args, id);
    expect(await answered).toEqual(answer);
    // It was used by that.
    expect(await store.take(id)).toMatchObject({ approved: false });
  });

  it('expires', async () => {
    const { answered, id, store } = await askInQueue(30);
    expect(await answered).toMatchObject({ approved: false, reason: 'expired' });
    await expect(approvals('approve', id)).rejects.toMatchObject({ code: 125 });
    expect(await store.take(id)).toMatchObject({ approved: false });
  });

  it('what nobody waits for any more cannot be answered', async () => {
    const { answered, id, over } = await askInQueue();
    over.abort();
    expect(await answered).toMatchObject({ approved: false, reason: 'failed' });
    await expect(approvals('approve', id)).rejects.toMatchObject({
      code: 125,
      stderr: expect.stringContaining('withdrawn'),
    });
  });

  it('a no of one request is none of another that is the same', async () => {
    const [one, other] = [await askInQueue(), await askInQueue()];
    await approvals('deny', one.id);
    expect(await one.answered).toMatchObject({ approved: false });
    await approvals('approve', other.id);
    expect(await other.answered).toMatchObject({ approved: true });
  });

  it('rejects, and leaves nothing to approve, if telling of the request fails', async () => {
    const { approvals: store } = await place.open();
    let posted = '';
    const approver = createQueueApprover(() => store, {
      onPosted: (id) => {
        posted = id;
        throw new Error('nobody there');
      },
    });
    await expect(approver.ask(sampleRequest(), { timeoutMs: 60_000 })).rejects.toThrow('nobody there');
    expect(await store.find(posted)).toMatchObject({ state: 'withdrawn' });
  });
});
