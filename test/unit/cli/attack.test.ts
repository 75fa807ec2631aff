import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Arena } from '../../../src/cli/attack/arena.ts';
import {
  ATTACKS,
  improvementFor,
  isClaimed,
  judgeAttack,
  worstOf,
} from '../../../src/cli/attack/attack-host.ts';
import { attackTable } from '../../../src/cli/doctor/attack.ts';
import { painted, unpainted } from '../../../src/cli/shared/print.ts';

const ATTACK = { id: 'read-outside', does: 'reads' };
const worked = { kind: 'worked' } as const;

describe('what is made of an attack', () => {
  it.each([
    ['enforced', undefined, 'landlock', 'escaped'],
    ['degraded', undefined, 'landlock', 'not-covered'],
    ['degraded', true, 'landlock', 'escaped'],
    ['degraded', true, 'namespaces', 'escaped'],
    // What another program holds in part is told by its reason alone.
    ['degraded', true, 'firejail', 'not-covered'],
    ['unsupported', true, 'landlock', 'not-covered'],
    ['off', true, 'landlock', 'not-covered'],
  ] as const)('worked, claimed %s (in part: %s), by %s: %s', (state, part, backend, result) => {
    const attack = { ...ATTACK, ...(part === undefined ? {} : { claimedInPart: part }) };
    expect(judgeAttack(attack, worked, { state }, backend).result).toBe(result);
    expect(isClaimed(attack, { state }, backend)).toBe(result === 'escaped');
  });

  it.each([
    ['go-untold', 'enforced', 'failed'],
    ['go-untold', 'degraded', 'failed'],
    ['go-untold', 'off', 'not-covered'],
    ['much-memory', 'degraded', 'failed'],
    ['many-processes', 'degraded', 'failed'],
    ['large-files', 'degraded', 'failed'],
    ['much-memory', 'off', 'not-covered'],
    // A cgroup does not depend on how busy the machine is.
    ['much-memory', 'enforced', 'escaped'],
    ['read-outside', 'enforced', 'escaped'],
  ] as const)('%s worked, claimed %s: %s, as nothing got out or something did', (id, state, result) => {
    const attack = ATTACKS.find((one) => one.id === id) ?? expect.fail(`there is no attack ${id}`);
    expect(judgeAttack(attack, worked, { state }, 'landlock').result).toBe(result);
  });

  it.each(['held', 'failed', 'not-tried'] as const)('%s stays what it is, with its reason', (kind) => {
    const outcome = judgeAttack(ATTACK, { kind, reason: 'because' }, { state: 'enforced' }, 'landlock');
    expect(outcome).toEqual({ id: 'read-outside', result: kind, detail: 'reads: because' });
  });

  it('the worst counts, and what failed counts for more than what held', () => {
    const of = (...results: Parameters<typeof worstOf>[0][number]['result'][]) =>
      worstOf(results.map((result) => ({ result })));
    expect(of('held', 'escaped', 'not-covered')).toBe('escaped');
    expect(of('held', 'failed', 'not-tried')).toBe('failed');
    expect(of('held', 'not-tried')).toBe('held');
    expect(of('not-tried')).toBe('not-tried');
    expect(of()).toBe('not-tried');
  });
});

describe('what is advised for a control', () => {
  const remedies = [
    { topic: 'namespaces', priority: 'useful', text: 'Refused.', command: 'sudo sysctl -w a=1' },
    {
      topic: 'kernel',
      priority: 'useful',
      text: 'Linux 6.12 or newer (Landlock ABI 6) completes: signals, process-tree.',
      command: null,
    },
  ] as const;
  const of = (id: 'metadata' | 'signals' | 'syscalls', state: 'enforced' | 'unsupported' | 'off') =>
    improvementFor({ id, state, reason: 'why' }, 'not-covered', remedies);

  it('is the line to run, the kernel, or what is known', () => {
    expect(of('metadata', 'unsupported')).toBe('Refused. $ sudo sysctl -w a=1');
    expect(of('signals', 'unsupported')).toContain('Linux 6.12');
    expect(of('syscalls', 'unsupported')).toBe('Known: why.');
    expect(of('metadata', 'off')).toContain('policy');
    expect(of('metadata', 'enforced')).toBeNull();
  });

  it('is to report what escaped', () => {
    const control = { id: 'signals', state: 'enforced', reason: '' } as const;
    expect(improvementFor(control, 'escaped', remedies)).toContain('SECURITY.md');
  });
});

describe('the table of attacks', () => {
  const report = {
    version: '1.0.0',
    ok: false,
    problem: null,
    profile: 'workspace-write',
    backend: 'landlock',
    passedOver: [],
    landlockAbi: 7,
    controls: [
      {
        id: 'signals',
        claimed: 'enforced',
        result: 'escaped',
        attacks: [
          { id: 'kill', result: 'escaped', detail: 'it worked' },
          { id: 'queue-signal', result: 'held', detail: 'refused' },
          { id: 'kill-thread', result: 'not-tried', detail: 'no' },
        ],
        improve: 'Do this. $ a command',
      },
    ],
  } as const;

  it('counts what was tried, shows what worked, and the line to run', () => {
    const text = attackTable(report, unpainted);
    expect(text).toMatch(/^ {2}signals +enforced +escaped +1 of 2, 1 not tried$/m);
    expect(text).toMatch(/^ {2}escaped +kill$/m);
    expect(text).not.toContain('queue-signal');
    expect(text).toMatch(/^ {6}\$ a command$/m);
    expect(text).not.toContain('\u001b');
    expect(attackTable(report, painted)).toContain('\u001b[31;1mescaped');
  });

  it('says why nothing was attacked', () => {
    const problem = { code: 'enforcement.unavailable', message: 'no Landlock' };
    expect(attackTable({ ...report, problem, controls: [] }, unpainted)).toMatch(
      /nothing was attacked[\s\S]*no Landlock\n$/,
    );
  });
});

describe('the arena', () => {
  it('is outside of what is granted, and is gone in the end', () => {
    const arena = new Arena();
    const outside = arena.makeOutside((path) => path === '/tmp' || path.startsWith('/tmp/'));
    const paths = [arena.workspace, arena.readable, outside?.path, arena.shared('/tmp')].flatMap(
      (path) => path ?? [],
    );
    expect(paths.length).toBeGreaterThan(2);
    expect(outside?.path).not.toMatch(/^\/tmp\//);
    expect(paths.filter((path) => !existsSync(path))).toEqual([]);
    expect(arena.makeOutside(() => true)).toBeUndefined();
    arena[Symbol.dispose]();
    expect(paths.filter(existsSync)).toEqual([]);
  });
});
