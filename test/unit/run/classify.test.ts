import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import type { NativeOutcome } from '../../../src/confine/native/contract.ts';
import { type AfterRun, classify, notRun, type RunContext } from '../../../src/run/launch/classify.ts';
import type { LimitsOfPlan } from '../../../src/run/launch/exceeded-limit.ts';

const CONTEXT: RunContext = {
  argv: ['a', 'b'],
  cwd: '/w',
  warnings: ['before'],
  report: { backend: 'landlock', passedOver: [], landlockAbi: 6, processTree: 'signal-scope', controls: [] },
  decision: undefined,
  approval: undefined,
};
const LIMITS: LimitsOfPlan = {
  limits: [
    { name: 'fsize', value: 1_000_000 },
    { name: 'cpu', value: 11 },
  ],
  treeLimits: {
    memoryBytes: 2 ** 31,
    processes: 100,
    cpuSeconds: 10,
    tmpBytes: 2 ** 20,
    idleTimeoutMs: 1500,
    cgroup: undefined,
  },
};
const PLACES = { home: '/home/u', workspace: '/w', secret: [], env: {} };
const NOTHING_AFTER: AfterRun = { leftBehind: [], connections: undefined, warnings: [], places: PLACES };
const QUIET: NativeOutcome = {
  kind: 'ended',
  exitCode: 0,
  signal: 0,
  timedOut: false,
  canceled: false,
  treeEnded: true,
  durationMs: 12.5,
  stdout: undefined,
  stderr: undefined,
  stdoutBytes: 0,
  stderrBytes: 0,
  userCpuMs: 1,
  systemCpuMs: 2,
  maxRssKib: 100,
  launcherMaxRssKib: 50,
};
const VIEW = { limits: { head: 3, tail: 2 }, headBytes: 3, asBytes: false, neutralizes: false };
const PLAN: Parameters<typeof classify>[3] = {
  home: '/home/somebody',
  ...LIMITS,
  ...{ observed: 'changes', network: 'isolated' },
  workspace: '/work',
  paths: [],
  onlyReads: false,
  protectedPaths: [],
  emptied: [],
  tmp: '/tmp',
  layer: undefined,
};
const result = (changes: Partial<NativeOutcome>, after = NOTHING_AFTER) =>
  classify(CONTEXT, { ...QUIET, ...changes }, after, PLAN, undefined, { view: VIEW, spilled: undefined });

describe('classify', () => {
  const { SIGKILL, SIGTERM, SIGSEGV } = constants.signals;
  const failure = { stage: 'exec', errno: constants.errno.EACCES, path: '/p' };
  it.each([
    [{}, { status: 'exited', exitCode: 0, signal: undefined }],
    [{ exitCode: 7 }, { status: 'exited', exitCode: 7, signal: undefined }],
    [{ signal: SIGSEGV }, { status: 'signaled', exitCode: undefined, signal: 'SIGSEGV' }],
    [
      { timedOut: true, signal: SIGTERM },
      { status: 'timed-out', exitCode: undefined, signal: 'SIGTERM' },
    ],
    [
      { timedOut: true, exitCode: 3 },
      { status: 'timed-out', exitCode: 3, signal: undefined },
    ],
    [
      { canceled: true, signal: SIGKILL },
      { status: 'canceled', exitCode: undefined, signal: 'SIGKILL' },
    ],
    [
      { canceled: true, exitCode: 0 },
      { status: 'canceled', exitCode: 0, signal: undefined },
    ],
    [{ failure }, { status: 'setup-failed', exitCode: undefined, signal: undefined }],
    [
      { failure, canceled: true },
      { status: 'setup-failed', exitCode: undefined, signal: undefined },
    ],
    // It ran, and somebody took its status away.
    [
      { failure: { stage: 'wait', errno: constants.errno.ECHILD, path: '' }, timedOut: true },
      { status: 'timed-out', exitCode: undefined, signal: undefined },
    ],
  ] as const)('%j', (changes, expected) => {
    expect(result(changes)).toMatchObject(expected);
  });

  it('has an error exactly where the command was not run', () => {
    expect(result({ exitCode: 1 }).error).toBeUndefined();
    expect(result({ failure }).error).toMatchObject({ code: 'program.not_executable', errno: 'EACCES' });
  });

  it('has the same keys whatever became of the command', () => {
    const keys = (value: object) => Object.keys(value).sort();
    const error = {
      code: 'program.not_found',
      message: 'm',
      stage: undefined,
      errno: undefined,
      path: 'p',
    } as const;
    const expected = keys(result({}));
    for (const other of [result({ failure }), result({ timedOut: true }), result({ signal: 9 })])
      expect(keys(other)).toEqual(expected);
    expect(keys(notRun(CONTEXT, { status: 'setup-failed', error }))).toEqual(expected);
  });

  it('decodes output and says how much was dropped', () => {
    expect(
      result({
        stdout: Buffer.from('grün'),
        stdoutBytes: 105,
        stderr: Buffer.from([0x61, 0xff]),
        stderrBytes: 2,
      }),
    ).toMatchObject({
      stdout: 'gr\n[... 102 bytes left out ...]\nn',
      stderr: 'a\ufffd',
      truncated: { stdout: 102, stderr: 0 },
      outputBytes: { stdout: 105, stderr: 2 },
    });
  });

  it('says nothing of output that did not come through us', () => {
    expect(classify(CONTEXT, QUIET, NOTHING_AFTER, PLAN, undefined, undefined)).toMatchObject({
      stdout: '',
      stderr: '',
      truncated: { stdout: 0, stderr: 0 },
      outputBytes: { stdout: undefined, stderr: undefined },
    });
  });

  it('knows the peak of memory only if it was larger than the launcher', () => {
    expect(result({}).peakMemoryBytes).toBe(100 * 1024);
    expect(result({ launcherMaxRssKib: 100 }).peakMemoryBytes).toBeUndefined();
  });

  it('hands on what else is known', () => {
    const one = { path: '/w/.envrc', done: 'told', program: 'direnv', reason: 'a test' } as const;
    const after = { leftBehind: [one], connections: undefined, warnings: ['after'], places: PLACES };
    expect(result({ treeEnded: false }, after)).toMatchObject({
      argv: CONTEXT.argv,
      cwd: '/w',
      report: CONTEXT.report,
      durationMs: 12.5,
      cpu: { userMs: 1, systemMs: 2 },
      treeEnded: false,
      processTree: { tier: 'signal-scope', ended: false },
      leftBehind: [one],
      warnings: ['before', 'after'],
    });
  });
});

describe('a limit that was exceeded', () => {
  const { SIGKILL, SIGXFSZ } = constants.signals;
  const memory = { name: 'memory', by: 'cgroup', value: 2 ** 31 } as const;

  it.each([
    [
      { signal: SIGKILL, limit: memory },
      { name: 'memory', by: 'cgroup', value: 2 ** 31, used: undefined },
      'ended for using more than 2 GiB of memory (held by its control group); the option limits.memory or limits.memory in the policy allows more',
    ],
    [
      { limit: { name: 'processes', by: 'sampling', value: 100, used: 101 } as const },
      { name: 'processes', by: 'sampling', value: 100, used: 101 },
      'ended for using more than 100 processes and threads, 101 were used (seen by looking now and then); the option limits.processes or limits.processes in the policy allows more',
    ],
    [
      { limit: { name: 'idle', by: 'clock', value: 1500, used: 1501 } as const },
      { name: 'idle', by: 'clock', value: 1.5, used: 1.501 },
      'ended after 1.5 s without output; the option idleTimeout or limits.idle_timeout_seconds in the policy allows more',
    ],
    [
      { signal: SIGXFSZ },
      { name: 'file-size', by: 'rlimit', value: 1_000_000, used: undefined },
      'ended for using more than 976.6 KiB in one file (held by the kernel); limits.file_size in the policy allows more',
    ],
    [
      { signal: SIGKILL, userCpuMs: 10_020, systemCpuMs: 0 },
      { name: 'cpu', by: 'rlimit', value: 10, used: 10.02 },
      'ended for using more than 10 s of processor time (held by the kernel); the option limits.cpuSeconds or limits.cpu_seconds in the policy allows more',
    ],
    [
      { signal: SIGKILL, userCpuMs: 10_900, systemCpuMs: 100 },
      { name: 'cpu', by: 'rlimit', value: 10, used: 11 },
      'ended for using more than 10 s of processor time, 11 s were used (held by the kernel); the option limits.cpuSeconds or limits.cpu_seconds in the policy allows more',
    ],
  ])('%o is said in one line', (changes, limit, message) => {
    const ended = result(changes);
    expect([ended.status, ended.limit, ended.error?.code]).toEqual([
      'limit-exceeded',
      limit,
      'limit.exceeded',
    ]);
    expect(ended.error?.message).toBe(message);
  });

  it.each([
    ['killed by somebody', { signal: SIGKILL }, 'signaled'],
    ['only exited as a shell does after SIGXFSZ', { exitCode: 153 }, 'exited'],
    ['timed out before', { timedOut: true, signal: SIGKILL, limit: memory }, 'timed-out'],
    ['canceled before', { canceled: true, signal: SIGKILL, limit: memory }, 'canceled'],
  ])('is none of a command that was %s', (_, changes, status) => {
    expect(result(changes)).toMatchObject({ status, limit: undefined, error: undefined });
  });
});

describe('what was used', () => {
  it('is what the group counted', () => {
    const usage = {
      by: 'cgroup',
      peakMemoryBytes: 5,
      peakProcesses: 2,
      userCpuUs: 7000,
      systemCpuUs: 1500,
      readBytes: 512,
      writtenBytes: 1024,
    } as const;
    expect(result({ usage }).usage).toEqual({
      by: 'cgroup',
      peakMemoryBytes: 5,
      peakProcesses: 2,
      cpu: { userMs: 7, systemMs: 1.5 },
      readBytes: 512,
      writtenBytes: 1024,
    });
  });

  it.each([
    [{}, { by: 'rusage', peakMemoryBytes: undefined, readBytes: 0, writtenBytes: 0 }],
    [
      { usage: { by: 'sampling', readBytes: 1, writtenBytes: 2 } as const },
      { by: 'rusage', peakProcesses: undefined, readBytes: 1, writtenBytes: 2 },
    ],
    [
      { usage: { by: 'sampling', peakProcesses: 3 } as const },
      { by: 'sampling', peakProcesses: 3, peakMemoryBytes: undefined },
    ],
  ])('is not invented where it is unknown: %o', (changes, usage) => {
    expect(result(changes).usage).toMatchObject({ ...usage, cpu: { userMs: 1, systemMs: 2 } });
  });
});

describe('notRun', () => {
  it('is a failure of the set-up with nothing left running', () => {
    const error = {
      code: 'program.not_found',
      message: 'm',
      stage: undefined,
      errno: undefined,
      path: 'p',
    } as const;
    expect(notRun(CONTEXT, { status: 'setup-failed', error })).toMatchObject({
      status: 'setup-failed',
      error,
      exitCode: undefined,
      signal: undefined,
      treeEnded: true,
      warnings: ['before'],
    });
  });
});
