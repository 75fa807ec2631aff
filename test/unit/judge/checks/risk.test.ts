import { describe, expect, it } from 'vitest';
import { judgeText, type World } from '../../../support/policy-world.ts';

const riskReason = (command: string, world: World) =>
  judgeText(command, world).reasons.find(({ check }) => check === 'risk');

describe('risk', () => {
  it.each([
    ['touch x', 'medium'],
    ['ls > x', 'medium'],
    ['./evil.sh', 'medium'],
    ['some-tool', 'medium'],
    ['rm x', 'high'],
    ['ls; rm x', 'high'],
    ['curl x', 'high'],
    ['git "push"', 'medium'],
    ['echo "', 'high'],
  ])('%s is asked about under supervision: %s', (command, code) => {
    expect(riskReason(command, { autonomy: 'supervised' })).toMatchObject({ verdict: 'ask', code });
    expect(riskReason(command, { autonomy: 'autonomous' })).toBeUndefined();
  });

  it('is accepted by an approval', () => {
    expect(riskReason('touch x', { approved: true })).toMatchObject({ verdict: undefined, code: 'approved' });
  });

  it('names the words it is about', () => {
    expect(riskReason('ls && rm x && curl y', {})?.words).toEqual(['rm', 'curl']);
  });

  it('is that of an unknown program for a file of the workspace on PATH', () => {
    expect(judgeText('git status').risk).toBe('low');
    expect(judgeText('git status', { planted: ['git'] })).toMatchObject({ risk: 'medium', verdict: 'ask' });
  });

  it.each(['ls', 'git status', 'cargo test', 'node --version', 'git --help'])('%s has none', (command) => {
    expect(riskReason(command, {})).toBeUndefined();
  });
});
