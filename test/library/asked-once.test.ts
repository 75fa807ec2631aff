import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createSandbox } from '../../src/index.ts';
import { makePlaceWithSandbox } from './support.ts';

const { place } = await makePlaceWithSandbox();

afterEach(() => {
  vi.unstubAllEnvs();
});

const YES = { approved: true, scope: 'once', by: 'test' } as const;

describe('for one request', () => {
  it('a session that was tainted meanwhile is another question for the reviewer', async () => {
    const asked: string[][] = [];
    vi.stubEnv('XDG_STATE_HOME', join(place.root, 'state'));
    writeFileSync(join(place.workspace, 's.sh'), '#!/bin/sh\ntrue\n', { mode: 0o755 });
    await using sandbox = await createSandbox({
      workspace: place.workspace,
      policyFiles: false,
      session: 'tainted-while-asked',
      policy: {
        commands: { rules: [{ program: 's.sh', verdict: 'ask' }] },
        network: { mode: 'open' },
        security: { autonomy: 'autonomous' },
      },
      gate: {
        approver: {
          ask: async () => {
            await sandbox.run('true', { taints: ['secret'] });
            return YES;
          },
        },
        reviewer: {
          review: async ({ taints }) => {
            asked.push([...taints].sort());
            return { outcome: taints.length > 1 ? 'flag' : 'clear' };
          },
        },
      },
    });
    const result = await sandbox.run('./s.sh', { taints: ['corruption'] });
    expect(result).toMatchObject({ status: 'denied', error: { code: 'approval.void' } });
    expect(asked).toEqual([['corruption'], ['corruption', 'secret']]);
  });

  it('one object can be reviewer and hook', async () => {
    const both = {
      name: 'both',
      review: async () => ({ outcome: 'clear' }) as const,
      beforeToolUse: async () => ({ allowed: true }),
    };
    await using sandbox = await createSandbox({
      workspace: place.workspace,
      policyFiles: false,
      policy: { network: { mode: 'open' }, security: { autonomy: 'autonomous' } },
      gate: { reviewer: both, hooks: [both] },
    });
    const result = await sandbox.run(['env', 'curl', '-sL', 'http://127.0.0.1:9/'], {
      taints: ['corruption'],
    });
    expect(result.status).toBe('exited');
  });

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
    const result = await sandbox.run(['env', 'curl', '-sL', 'http://127.0.0.1:9/'], {
      taints: ['corruption'],
    });
    expect(result.approval).toEqual(YES);
    expect(asked.sort()).toEqual(['approver', 'hook', 'reviewer']);
    // Another request is another question.
    await sandbox.run(['env', 'curl', '-sL', 'http://127.0.0.1:9/'], { taints: ['corruption'] });
    expect(asked).toHaveLength(6);
  });
});
