import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import type { NativeOutcome } from '../../../src/native/contract.ts';
import { type AfterRun, classify, notStarted, type RunContext } from '../../../src/run/classify.ts';

const CONTEXT: RunContext = {
  argv: ['a', 'b'],
  cwd: '/w',
  warnings: ['before'],
  report: { backend: 'landlock', landlockAbi: 6, processTree: 'signal-scope', controls: [] },
  decision: undefined,
  approval: undefined,
};
const NOTHING_AFTER: AfterRun = { createdProtectedPaths: [], warnings: [] };
const QUIET: NativeOutcome = {
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
  failure: undefined,
  changedPaths: undefined,
  details: undefined,
};
const VIEW = { limits: { head: 3, tail: 2 }, headBytes: 3, asBytes: false, neutralizes: false };
const result = (changes: Partial<NativeOutcome>, after = NOTHING_AFTER) =>
  classify(CONTEXT, { ...QUIET, ...changes }, after, { view: VIEW, spilled: undefined });

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
    expect(keys(notStarted(CONTEXT, error))).toEqual(expected);
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
    expect(classify(CONTEXT, QUIET, NOTHING_AFTER, undefined)).toMatchObject({
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
    const after = { createdProtectedPaths: ['/w/.envrc'], warnings: ['after'] };
    expect(result({ treeEnded: false }, after)).toMatchObject({
      argv: CONTEXT.argv,
      cwd: '/w',
      report: CONTEXT.report,
      durationMs: 12.5,
      cpu: { userMs: 1, systemMs: 2 },
      treeEnded: false,
      processTree: { tier: 'signal-scope', ended: false },
      createdProtectedPaths: ['/w/.envrc'],
      warnings: ['before', 'after'],
    });
  });
});

describe('notStarted', () => {
  it('is a failure of the set-up with nothing left running', () => {
    const error = {
      code: 'program.not_found',
      message: 'm',
      stage: undefined,
      errno: undefined,
      path: 'p',
    } as const;
    expect(notStarted(CONTEXT, error)).toMatchObject({
      status: 'setup-failed',
      error,
      exitCode: undefined,
      signal: undefined,
      treeEnded: true,
      warnings: ['before'],
    });
  });
});
