import { describe, expect, it } from 'vitest';
import { createSandbox } from '../../src/index.ts';
import { makePlaceWithSandbox } from './support.ts';

const { place } = await makePlaceWithSandbox();

const YES = { approved: true, scope: 'once', by: 'test' } as const;

describe('for one request', () => {
  it('approver, hook and reviewer are asked once, though it is looked at again after the answer', async () => {
    const asked: string[] = [];
    await using sandbox = await createSandbox({
      workspace: place.workspace,
      policyFiles: false,
      policy: {
        commands: { rules: [{ program: 'env', verdict: 'ask' }] },
        network: { mode: 'open' },
        security: { autonomy: 'autonomous' },
      },
      gate: {
        approver: {
          ask: async () => {
            asked.push('approver');
            return YES;
          },
        },
        hooks: [
          {
            name: 'counting',
            beforeToolUse: async () => {
              asked.push('hook');
              return { allowed: true };
            },
          },
        ],
        reviewer: {
          review: async () => {
            asked.push('reviewer');
            return { outcome: 'clear' };
          },
        },
      },
    });
    const result = await sandbox.run(['env', 'curl', '-s', 'http://127.0.0.1:9/'], {
      taints: ['corruption'],
    });
    expect(result.approval).toEqual(YES);
    expect(asked.sort()).toEqual(['approver', 'hook', 'reviewer']);
    // Another request is another question.
    await sandbox.run(['env', 'curl', '-s', 'http://127.0.0.1:9/'], { taints: ['corruption'] });
    expect(asked).toHaveLength(6);
  });
});
