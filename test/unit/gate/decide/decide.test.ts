import { describe, expect, it } from 'vitest';
import { deferred } from '../../../../src/base/deferred.ts';
import { CONTROLS } from '../../../../src/gate/decide/controls.ts';
import { createDecider, type Decided } from '../../../../src/gate/decide/decide.ts';
import type { Judgement } from '../../../../src/gate/decide/judge.ts';
import { type Control, type DecisionPorts, WITHOUT } from '../../../../src/gate/decide/ports.ts';
import type { ActionBudget, ApprovalRequest, AuditRecord, Verdict } from '../../../../src/model/index.ts';
import { timelyBudget } from '../../../../src/run/index.ts';
import { policyOf } from '../../../support/policy-of.ts';

const EFFECTS = {
  parts: [],
  reads: [],
  writes: [],
  executes: [],
  patterns: [],
  searches: [],
  flags: [],
  text: '',
};

function judgement(verdict: Verdict): Judgement {
  const reason = { check: 'test', verdict, code: 'test', message: 'a test says so', words: [] };
  return {
    decision: { verdict, risk: 'low', reach: 'local', reasons: [reason] },
    cwd: '/work',
    effects: () => EFFECTS,
    exposures: () => [],
    isPlain: () => true,
    onlyReads: () => true,
    lostAmong: () => ({ deleted: [], changed: [], history: false }),
    begins: () => () => {},
    leavesDoubts: () => false,
    hiddenPrograms: () => [],
  };
}

const policy = (limit?: number) => {
  const usual = policyOf({});
  return { ...usual, security: { ...usual.security, maxActionsPerHour: limit } };
};

/** Ports without a memory. */
function ports(verdict: Verdict, more: Partial<DecisionPorts> = {}): DecisionPorts {
  return {
    ...WITHOUT,
    policy: policy(),
    plan: undefined,
    principal: 'uid:1',
    judge: () => judgement(verdict),
    makeRequest: ({ command, cwd, decision }) =>
      ({ fingerprint: 'f', command, cwd, decision }) as unknown as ApprovalRequest,
    outcome: () => 'launch',
    ...more,
  };
}

/** Ports that all have a memory, and say what was done. */
function remembering(verdict: Verdict, more: Partial<DecisionPorts> = {}) {
  const done: string[] = [];
  const all = ports(verdict, {
    policy: policy(5),
    session: {
      id: 's',
      begin: () => {},
      taints: async (given) => given,
      taint: async (taint) => void done.push(`taint ${taint}`),
    },
    approvals: async () => ({
      decide: async () => {
        done.push('asked');
        return { approved: true, scope: 'once', by: 'test' };
      },
    }),
    budget: {
      used: () => 0,
      reserve: async () => {
        done.push('reserved');
        return { commit: () => void done.push('committed'), release: () => void done.push('released') };
      },
    },
    record: async (record: AuditRecord) => {
      done.push(record.type === 'decision' ? `recorded ${record.outcome}` : `recorded ${record.type}`);
      return undefined;
    },
    ...more,
  });
  return { done, ports: all };
}

/** A budget whose reservations are on the disk later. */
function reservingBudget(done: string[], durable: Promise<void>): ActionBudget {
  return {
    used: () => 0,
    reserve: () => {
      done.push('reserved');
      return { durable, commit: () => {}, release: () => void done.push('released') };
    },
  };
}

const decide = async (given: DecisionPorts, controls = CONTROLS): Promise<Decided> =>
  createDecider(given, controls)({ command: 'true' });
const objectionOf = (decided: Decided) =>
  decided.allowed || decided.objection.status === 'canceled' ? undefined : decided.objection.error;

describe('the pipeline', () => {
  it('answers at once where nothing has to be asked, counted or written', () => {
    const decided = createDecider(ports('allow'))({ command: 'true' });
    expect(decided).toMatchObject({ allowed: true, ended: undefined });
  });

  it('asks, counts and records before the launch, in this order, and counts for good after it', async () => {
    const { done, ports: all } = remembering('ask');
    const decided = await decide(all);
    expect(done).toEqual(['asked', 'reserved', 'recorded launch']);
    if (decided.allowed) await decided.ended?.({ result: undefined, started: true });
    expect(done.slice(3)).toEqual(['committed']);
  });

  it.each([[undefined], [Promise.resolve()]])(
    'says why it was not counted (on the disk: %s)',
    async (durable) => {
      const reservation = { durable, warning: 'not counted: x', commit: () => {}, release: () => {} };
      const budget = timelyBudget({ used: () => 0, reserve: () => reservation }, 1000);
      const decided = await decide(ports('allow', { policy: policy(1), budget }));
      expect(decided).toMatchObject({ allowed: true, warnings: ['not counted: x'] });
    },
  );

  it('gives back what was counted if the command was not started', async () => {
    const { done, ports: all } = remembering('allow');
    const decided = await decide(all);
    if (decided.allowed) await decided.ended?.({ result: undefined, started: false });
    expect(done).toEqual(['reserved', 'recorded launch', 'released']);
  });

  it('refuses what the policy refuses, asks nobody, counts nothing, and has it on record', async () => {
    const { done, ports: all } = remembering('deny');
    expect(objectionOf(await decide(all))?.code).toBe('command.denied');
    expect(done).toEqual(['recorded command.denied']);
  });

  it('counts and records side by side, and allows nothing before both are on the disk', async () => {
    const counted = deferred<void>();
    const written = deferred<undefined>();
    const { done, ports: all } = remembering('allow');
    const deciding = decide({
      ...all,
      budget: reservingBudget(done, counted.promise),
      record: async (record) => {
        await all.record?.(record);
        return written.promise;
      },
    }).then(({ allowed }) => done.push(allowed ? 'allowed' : 'refused'));
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    await turn();
    expect(done).toEqual(['reserved', 'recorded launch']);
    written.resolve(undefined);
    await turn();
    expect(done).toEqual(['reserved', 'recorded launch']);
    counted.resolve();
    await deciding;
    expect(done).toEqual(['reserved', 'recorded launch', 'allowed']);
  });

  it('refuses what is not counted on the disk, gives it back, and has that on record', async () => {
    const { done, ports: all } = remembering('allow');
    const failed = Promise.reject(new Error('the disk is gone'));
    const decided = await decide({ ...all, budget: reservingBudget(done, failed) });
    expect(objectionOf(decided)?.message).toContain('the disk is gone');
    expect(done).toEqual(['reserved', 'recorded launch', 'released', 'recorded command.denied']);
  });

  it('refuses what is not recorded while it is still being counted, and gives it back', async () => {
    const failsAfter = async (turns: number) => {
      for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      throw new Error('it is gone');
    };
    for (const [recorded, counted] of [
      [1, 10],
      [10, 1],
    ] as const) {
      const { done, ports: all } = remembering('allow', { record: () => failsAfter(recorded) });
      const decided = await decide({ ...all, budget: reservingBudget(done, failsAfter(counted)) });
      expect(objectionOf(decided)?.code).toBe('audit.failed');
      expect(done).toEqual(['reserved', 'released']);
    }
    // What nobody waits for is no unhandled rejection either: by then both have failed.
    await failsAfter(20).catch(() => {});
  });

  const broken = () => Promise.reject(new Error('it is broken'));
  it.each([
    ['session', { session: { id: 's', begin: () => {}, taints: broken, taint: async () => {} } }],
    ['approvals', { approvals: broken }],
    ['budget', { budget: { used: () => 0, reserve: broken } }],
    ['record', { record: broken }],
    ['judge', { judge: () => ({ ...judgement('allow'), decision: broken() }) }],
  ] as const)('refuses where a port is broken: %s', async (_, more) => {
    const { ports: working } = remembering('ask');
    expect((await decide(working)).allowed).toBe(true);
    const { done, ports: all } = remembering('ask', more as Partial<DecisionPorts>);
    const decided = await decide(all);
    expect(decided.allowed).toBe(false);
    expect(objectionOf(decided)?.message).toContain('it is broken');
    expect(done.filter((step) => step === 'reserved').length).toBe(
      done.filter((step) => step === 'released').length,
    );
  });

  it('refuses where a port throws what no text can be made of', async () => {
    const { ports: all } = remembering('allow', { record: () => Promise.reject(Object.create(null)) });
    expect(objectionOf(await decide(all))?.code).toBe('audit.failed');
  });

  it('refuses where the budget is used up, and has it on record', async () => {
    const { done, ports: all } = remembering('allow', {
      budget: { used: () => 5, reserve: async () => undefined },
    });
    expect(objectionOf(await decide(all))?.message).toContain('all 5 actions of this hour are used');
    expect(done).toEqual(['recorded command.denied']);
  });

  it('takes an answer for void if by then something else would run', async () => {
    let looks = 0;
    const { ports: all } = remembering('ask', {
      makeRequest: () => ({ fingerprint: `look ${++looks}` }) as ApprovalRequest,
    });
    expect(objectionOf(await decide(all))?.code).toBe('approval.void');
  });

  it('takes a control that is added in one line', async () => {
    const seen: string[] = [];
    const noNights: Control = {
      name: 'no-nights',
      decide: ({ request }) =>
        request.command === 'sleep'
          ? {
              status: 'denied',
              error: {
                code: 'command.denied',
                message: 'not at night',
                ...{ stage: undefined, errno: undefined, path: undefined },
              },
            }
          : undefined,
      refused: (_, objection) => void seen.push(objection.status),
      ended: (_, { started }) => void seen.push(`started ${started}`),
    };
    const { done, ports: all } = remembering('allow');
    const added = createDecider(all, [...CONTROLS, noNights]);
    const refused = await added({ command: 'sleep' });
    expect(objectionOf(refused)?.message).toBe('not at night');
    // What controls before it did is taken back.
    expect(done).toEqual(['reserved', 'recorded launch', 'released', 'recorded command.denied']);
    const allowed = await added({ command: 'true' });
    if (allowed.allowed) await allowed.ended?.({ result: undefined, started: true });
    expect(seen).toEqual(['denied', 'started true']);
  });
});
