import type { DecisionRecord, Reason, ResultRecord } from '../../../../src/model/index.ts';

export function decision(request: string, more: Partial<DecisionRecord> = {}): DecisionRecord {
  return {
    type: 'decision',
    request,
    principal: 'uid:0',
    session: undefined,
    command: `echo ${request}`,
    cwd: '/work',
    decision: { verdict: 'allow', risk: 'low', reach: 'local', reasons: [reason({})] },
    approval: undefined,
    outcome: 'launch',
    profile: 'workspace-write',
    backend: 'landlock',
    report: {
      backend: 'landlock',
      passedOver: [],
      landlockAbi: 7,
      processTree: 'signal-scope',
      controls: [{ id: 'filesystem', state: 'enforced', demand: 'required', reason: 'by Landlock' }],
    },
    ...more,
  };
}

export function reason(more: Partial<Reason>): Reason {
  return { check: 'risk', verdict: undefined, code: 'nothing', message: 'nothing', words: [], ...more };
}

export function result(request: string): ResultRecord {
  return {
    type: 'result',
    request,
    principal: 'uid:0',
    session: undefined,
    status: 'exited',
    exitCode: 0,
    signal: undefined,
    error: undefined,
    durationMs: 1.5,
    outputBytes: { stdout: 1, stderr: 2 },
  };
}
