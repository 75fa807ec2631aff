import { describe, expect, it } from 'vitest';
import { effectivePolicy } from '../../../src/policy/effective.ts';
import { narrowPolicy } from '../../../src/policy/narrow.ts';
import { type PolicyFile, type WorkspaceFile, workspaceFileSchema } from '../../../src/policy/schema.ts';

const policyOf = (file: PolicyFile = {}) => effectivePolicy({ file }, '/w', '/home/user');
const narrowed = (file: PolicyFile, workspace: WorkspaceFile) => narrowPolicy(policyOf(file), workspace);

describe('a file in the workspace', () => {
  it('changes nothing if it is empty', () => {
    expect(narrowed({}, {})).toEqual(policyOf());
  });

  it.each([
    ['supervised', 'readonly', 'readonly'],
    ['supervised', 'contained', 'supervised'],
    ['contained', 'supervised', 'supervised'],
    ['autonomous', 'supervised', 'supervised'],
    ['autonomous', 'contained', 'contained'],
    ['readonly', 'contained', 'readonly'],
  ] as const)('can only make autonomy stricter: %s and %s', (one, other, expected) => {
    const { security } = narrowed({ security: { autonomy: one } }, { security: { autonomy: other } });
    expect(security.autonomy).toBe(expected);
  });

  it('cannot say the level that leaves everything to the agent', () => {
    const saying = (autonomy: string) => workspaceFileSchema.safeParse({ security: { autonomy } }).success;
    expect(saying('contained')).toBe(true);
    expect(saying('autonomous')).toBe(false);
  });

  it.each([
    [undefined, 5, 5],
    [3, 5, 3],
    [5, 3, 3],
    [0, 3, 0],
    [5, undefined, 5],
  ])('can only lower the budget: %s and %s', (one, other, expected) => {
    const security = (limit: number | undefined) => ({
      security: limit === undefined ? {} : { max_actions_per_hour: limit },
    });
    expect(narrowed(security(one), security(other)).security.maxActionsPerHour).toBe(expected);
  });

  it.each([
    [undefined, ['a'], ['a']],
    [['a', 'b'], ['b', 'c'], ['b']],
    [['a'], [], []],
    [['a'], undefined, ['a']],
  ])('can only shorten the allow-list: %j and %j', (one, other, expected) => {
    const commands = (allow: string[] | undefined) => ({ commands: allow === undefined ? {} : { allow } });
    expect(narrowed(commands(one), commands(other)).commands.allow).toEqual(expected);
  });

  it('adds rules, protected paths and demands', () => {
    const policy = narrowed(
      { filesystem: { protect: ['a'] }, demand: { network: 'best-effort' } },
      {
        commands: { rules: [{ program: 'git', words: ['push'], verdict: 'deny' }] },
        filesystem: { protect: ['b'] },
        demand: { network: 'required' },
      },
    );
    expect(policy.commands.rules).toEqual([
      { program: 'git', words: ['push'], verdict: 'deny', reason: undefined },
    ]);
    expect(policy.filesystem.protected.slice(-2)).toEqual(['a', 'b']);
    expect(policy.demand.network).toBe('required');
  });

  it('takes back what is shared or open', () => {
    const policy = narrowed(
      { filesystem: { tmp: 'host', home: 'host' }, network: { mode: 'open', unix_sockets: 'allowed' } },
      {
        filesystem: { tmp: 'private', home: 'private' },
        network: { mode: 'off', unix_sockets: 'contained' },
      },
    );
    expect(policy.filesystem).toMatchObject({ tmp: 'private', home: 'private' });
    expect(policy.network).toEqual({ mode: 'off', unixSockets: 'contained' });
  });

  it.each([
    [60, 5, 5_000],
    [5, 60, 5_000],
    [0, 5, 5_000],
    [5, 0, 5_000],
  ])('can only shorten the time-out: %d and %d seconds', (one, other, expected) => {
    const limits = (timeout_seconds: number) => ({ limits: { timeout_seconds } });
    expect(narrowed(limits(one), limits(other)).limits.timeoutMs).toBe(expected);
  });

  it('can only lower limits of the tree', () => {
    const { limits } = narrowed(
      { limits: { memory: 5, processes: 10, idle_timeout_seconds: 2 } },
      { limits: { memory: 9, processes: 9, tmp_bytes: 3, user_processes: 4, idle_timeout_seconds: 0 } },
    );
    expect(limits).toMatchObject({
      memory: 5,
      processes: 9,
      tmpBytes: 3,
      userProcesses: 4,
      idleTimeoutMs: 2_000,
    });
  });

  it('can only lower limits', () => {
    const { limits } = narrowed(
      { limits: { processes: 5, open_files: 5, output_bytes: 5 } },
      { limits: { processes: 9, open_files: 3, output_bytes: 9, cpu_seconds: 7, kill_grace_seconds: 1 } },
    );
    expect(limits).toMatchObject({
      processes: 5,
      openFiles: 3,
      outputBytes: 5,
      cpuSeconds: 7,
      killGraceMs: 1_000,
    });
  });

  it.each([
    { profile: 'networked' },
    { filesystem: { read: ['/etc'] } },
    { filesystem: { write: ['/etc'] } },
    { filesystem: { home: 'host' } },
    { network: { mode: 'open' } },
    { network: { unix_sockets: 'allowed' } },
    { environment: { pass: ['TOKEN'] } },
    { environment: { set: { PATH: '/w/bin' } } },
    { commands: { permit_dangerous: ['sudo'] } },
    { demand: { network: 'best-effort' } },
    { unsafe: { unjudged_commands: true } },
    { security: { workspace_dir: '/' } },
    { limits: { umask: '000' } },
    { approval: { reviewer_timeout_seconds: 1 } },
    { audit: {} },
  ])('cannot say %j', (file) => {
    expect(workspaceFileSchema.safeParse(file).success).toBe(false);
  });
});
