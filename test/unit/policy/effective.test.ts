import { describe, expect, it } from 'vitest';
import { effectivePolicy, type PolicyOptions } from '../../../src/policy/effective.ts';
import { DEFAULT_PROFILE, PROFILES } from '../../../src/policy/profiles/built-in.ts';

const effective = (options: PolicyOptions = {}) => effectivePolicy(options, '/w', '/home/user');
const base = effective();
const added = (options: PolicyOptions) =>
  effective(options)
    .filesystem.rules.slice(base.filesystem.rules.length)
    .map((rule) => `${rule.access} ${rule.path}${rule.required ? ' required' : ''}`);

describe('effectivePolicy', () => {
  it('is the default profile if nothing is said', () => {
    expect(base).toEqual(PROFILES.find((profile) => profile.name === DEFAULT_PROFILE)?.policy);
  });

  it.each(PROFILES.map((profile) => profile.name))('takes the profile %s by name', (name) => {
    expect(effective({ profile: name }).profile).toBe(name);
    expect(effective({ file: { profile: name } }).profile).toBe(name);
  });

  it('prefers the caller’s profile to the file’s', () => {
    expect(effective({ profile: 'read-only', file: { profile: 'networked' } }).profile).toBe('read-only');
  });

  it('refuses an unknown profile and names those that there are', () => {
    expect(() => effective({ profile: 'nope' })).toThrow(
      expect.objectContaining({
        code: 'policy.unknown_profile',
        message: expect.stringMatching(/"nope"; known: workspace-write, read-only/),
      }),
    );
  });

  it('adds paths of file and caller, required, relative to the workspace, ~ as the home', () => {
    expect(
      added({
        file: { filesystem: { read: ['~/.cache', 'sub', '~'], write: ['/abs/../other'] } },
        readable: ['../up', '~user'],
        writable: ['./x'],
      }),
    ).toEqual([
      'read /home/user/.cache required',
      'read /w/sub required',
      'read /home/user required',
      'write /other required',
      'read /up required',
      'read /w/~user required',
      'write /w/x required',
    ]);
  });

  it('never takes away what the profile protects', () => {
    const { filesystem } = effective({ file: { filesystem: { protect: ['Makefile'] } } });
    expect(filesystem.protected).toEqual([...base.filesystem.protected, 'Makefile']);
    expect(filesystem.masked).toEqual(base.filesystem.masked);
  });

  it('merges environment: names add up, the caller’s values win', () => {
    const { environment } = effective({
      file: { environment: { pass: ['A'], set: { X: 'file', Y: 'file' } } },
      passEnvironment: ['B'],
      setEnvironment: { X: 'caller' },
    });
    expect(environment.pass).toEqual([...base.environment.pass, 'A', 'B']);
    expect(environment.set).toEqual({ X: 'caller', Y: 'file' });
  });

  it('takes network, sharing and demands of the file, one by one', () => {
    const policy = effective({
      file: {
        network: { mode: 'open' },
        filesystem: { home: 'host' },
        demand: { signals: 'required', network: 'best-effort' },
      },
    });
    expect(policy.network).toEqual({ mode: 'open', unixSockets: base.network.unixSockets });
    expect(policy.filesystem).toMatchObject({ home: 'host', tmp: 'auto' });
    expect(policy.demand).toEqual({ ...base.demand, signals: 'required', network: 'best-effort' });
  });

  it('converts limits and leaves those not named alone', () => {
    const { limits } = effective({
      file: {
        limits: {
          timeout_seconds: 1.5,
          kill_grace_seconds: 0,
          output_bytes: 5,
          output_head_bytes: 2,
          idle_timeout_seconds: 2.5,
          memory: 7,
          processes: 1,
          tmp_bytes: 8,
          user_processes: 9,
          open_files: 2,
          file_size: 3,
          address_space: 4,
          cpu_seconds: 6,
          umask: '027',
        },
      },
    });
    expect(limits).toEqual({
      coreSize: 0,
      timeoutMs: 1500,
      killGraceMs: 0,
      outputBytes: 5,
      outputHeadBytes: 2,
      idleTimeoutMs: 2500,
      memory: 7,
      processes: 1,
      tmpBytes: 8,
      userProcesses: 9,
      openFiles: 2,
      fileSize: 3,
      addressSpace: 4,
      cpuSeconds: 6,
      umask: 0o27,
    });
    expect(effective({ file: { limits: {} } }).limits).toEqual(base.limits);
  });

  it('prefers the caller’s limits of the tree', () => {
    const { limits } = effective({
      file: { limits: { memory: 9, processes: 9, idle_timeout_seconds: 9 } },
      limits: { memory: 1, cpuSeconds: 2, tmpBytes: 3 },
      idleTimeoutMs: 0,
    });
    expect(limits).toMatchObject({ memory: 1, processes: 9, cpuSeconds: 2, tmpBytes: 3, idleTimeoutMs: 0 });
  });

  it('prefers the caller’s time-out and output limit, zero included', () => {
    const { limits } = effective({
      file: { limits: { timeout_seconds: 9, output_bytes: 9 } },
      timeoutMs: 0,
      outputBytes: 0,
    });
    expect(limits).toMatchObject({ timeoutMs: 0, outputBytes: 0 });
  });

  it('changes no profile', () => {
    const before = structuredClone(PROFILES);
    effective({ file: { filesystem: { read: ['x'], protect: ['y'] }, demand: { signals: 'required' } } });
    expect(PROFILES).toEqual(before);
  });
});
