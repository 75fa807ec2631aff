import { mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { CONTROL_IDS } from '../../src/base/words.ts';

import { eventually } from '../support/eventually.ts';
import { expectNothingLeft, processesWith } from '../support/leftovers.ts';
import { HOST } from '../support/tiers.ts';
import { WITHOUT } from '../support/without.ts';
import { CLI, cli, expectOneLine, makePlace, startCli } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());
afterEach(async () => {
  await expectNothingLeft(place);
  await eventually(() => expect(processesWith(place.tmp)).toEqual([]));
});

interface Attack {
  readonly id: string;
  readonly result: string;
  readonly detail: string;
}

interface Control {
  readonly id: string;
  readonly claimed: string;
  readonly result: string;
  readonly attacks: readonly Attack[];
  readonly improve: string | null;
}

interface Report {
  readonly ok: boolean;
  readonly problem: { readonly code: string } | null;
  readonly backend: string | null;
  readonly landlockAbi: number | null;
  readonly controls: readonly Control[];
}

const attack = async (...args: string[]) => {
  const { exitCode, stdout, stderr } = await cli(place, ['doctor', '--attack', '--json', ...args]);
  return { exitCode, stderr, report: JSON.parse(stdout) as Report };
};
const control = ({ controls }: Report, id: string): Control => {
  const found = controls.find((candidate) => candidate.id === id);
  if (found === undefined) throw new Error(`no control ${id}`);
  return found;
};
const resultsOf = (report: Report) => report.controls.map(({ result }) => result);

/** On a kernel that refuses calls, or says that it did what it did not do. */
async function attackUnder(faults: readonly (readonly [string, string])[]) {
  const drivers = faults.flatMap(([what, how]) => [WITHOUT, what, how, 'python3']).slice(0, -1);
  const { stdout, exitCode } = await execa(
    'python3',
    [...drivers, process.execPath, CLI, 'doctor', '--attack', '--json'],
    { cwd: place.workspace, env: place.env, extendEnv: false, reject: false },
  );
  return { exitCode, report: JSON.parse(stdout) as Report };
}

describe('sandbox-run doctor --attack', () => {
  it('attacks each control of the sandbox that a command gets, and nothing escapes', async () => {
    const { exitCode, stderr, report } = await attack();
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(report).toMatchObject({ ok: true, problem: null });
    expect(report.controls.map(({ id }) => id)).toEqual(CONTROL_IDS);
    // The doctor has something hidden, where that can be.
    mkdirSync(join(place.workspace, 'hidden'), { recursive: true });
    const hide = HOST.namespaces ? ['--hide', 'hidden/'] : [];
    const run = JSON.parse((await cli(place, [...hide, '--json=full', 'true'])).stdout);
    expect(report.backend).toBe(run.report.backend);
    expect(report.landlockAbi).toBe(run.report.landlockAbi);
    expect(report.controls.map(({ id, claimed }) => [id, claimed])).toEqual(
      run.report.controls.map(({ id, state }: { id: string; state: string }) => [id, state]),
    );
    for (const { id, attacks, improve, result } of report.controls) {
      expect([id, attacks.length > 0]).toEqual([id, true]);
      expect([id, Object.keys(attacks[0] ?? {})]).toEqual([id, ['id', 'result', 'detail']]);
      expect([id, improve === null || typeof improve === 'string']).toEqual([id, true]);
      expect(['held', 'not-covered', 'not-tried']).toContain(result);
    }
    // What works for anybody without a sandbox, and so is never "not tried".
    for (const id of [
      'read-outside',
      'write-outside',
      'kill',
      'read-variable',
      'connect-tcp',
      'leave-daemon',
    ]) {
      const outcome = report.controls.flatMap(({ attacks }) => attacks).find((one) => one.id === id);
      expect([id, outcome?.result]).toEqual([id, 'held']);
    }
  });

  it('shows a table that fits 100 columns, without colours where it is not read on a terminal', async () => {
    const { exitCode, stdout, stderr } = await cli(place, ['doctor', '--attack']);
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout).not.toContain('\u001b');
    expect(stdout).not.toContain('attacking');
    expect(stdout).toContain('nothing escaped');
    for (const id of CONTROL_IDS) expect(stdout).toContain(`  ${id} `);
    for (const line of stdout.split('\n')) {
      if (!line.trimStart().startsWith('$ ')) expect(line.length).toBeLessThanOrEqual(100);
    }
  });

  it('is no proof where attacks cannot be carried out', async () => {
    const few = ['-c', 'ulimit -n 64; exec "$@"', '-', process.execPath, CLI, 'doctor', '--attack'];
    // What cannot be removed for want of descriptors goes with a launcher that comes a minute later.
    const env = { ...place.env, TMPDIR: mkdtempSync(join(place.root, 'few-')) };
    const options = { cwd: place.workspace, env, extendEnv: false, reject: false } as const;
    const { exitCode, stdout } = await execa('bash', [...few, '--json'], options);
    const report = JSON.parse(stdout) as Report;
    const failed = report.controls.filter(({ attacks }) => attacks.some(({ result }) => result === 'failed'));
    // There may be too few descriptors for any sandbox.
    const isNoProof = failed.length > 0 || report.problem !== null;
    expect([exitCode, report.ok]).toEqual(isNoProof ? [1, false] : [0, true]);
    if (failed.length > 0) {
      const table = await execa('bash', few, options);
      expect(table.exitCode).toBe(1);
      expect(table.stdout.split('\n\n')[0]).toContain('COULD BE CARRIED OUT');
    }
  });

  it('follows the profile: what it allows works, and is not claimed', async () => {
    const { exitCode, report } = await attack('--profile', 'networked');
    expect(exitCode).toBe(0);
    expect(control(report, 'network')).toMatchObject({
      claimed: 'off',
      result: 'not-covered',
      improve: expect.stringContaining('policy'),
    });
  });

  it('follows the backend that is named', async () => {
    const { report } = await attack('--backend', 'namespaces');
    if (report.problem === null) expect(report.backend).toBe('namespaces');
    else expect(report.problem.code).toBe('backend.unavailable');
    expect(resultsOf(report)).not.toContain('escaped');
  });

  it('tries under the backend application what a program may do that was let through', async () => {
    const { exitCode, report } = await attack('--backend', 'application');
    expect([exitCode, report.backend]).toEqual([0, 'application']);
    for (const id of ['filesystem', 'rename', 'signals'])
      expect([id, control(report, id).claimed, control(report, id).result]).toEqual([
        id,
        'unsupported',
        'not-covered',
      ]);
    for (const id of ['syscalls', 'descriptors', 'environment', 'process-tree'])
      expect([id, control(report, id).result]).toEqual([id, 'held']);
    // In a container that nobody gains privileges in there is nothing to try.
    expect(control(report, 'privileges').result).toBe(HOST.noNewPrivileges ? 'not-tried' : 'held');
  });

  it('does not escape on hosts with less, where the report claims less and says what to do', async () => {
    const { exitCode, report } = await attackUnder([['namespaces', 'EPERM']]);
    expect(exitCode).toBe(0);
    expect(resultsOf(report)).not.toContain('escaped');
    // What is written there while a command runs is undone when it ends.
    expect(control(report, 'protected-paths')).toMatchObject({ claimed: 'degraded', result: 'held' });
    for (const id of ['filesystem-view', 'metadata', 'private-tmp']) {
      expect([id, control(report, id).result]).toEqual([id, 'not-covered']);
      expect(control(report, id).improve).toMatch(/namespaces/i);
    }
    expect(control(report, 'filesystem').result).toBe('held');
  });

  it.each([
    ['Landlock', [['restrict-self', 'nothing']], ['devices', 'signals']],
    [
      'Landlock, without namespaces',
      [
        ['namespaces', 'EPERM'],
        ['restrict-self', 'nothing'],
      ],
      ['filesystem', 'rename', 'truncate', 'devices', 'signals'],
    ],
    ['seccomp', [['seccomp', 'nothing']], ['syscalls', 'network', 'terminal-injection']],
  ] as const)('finds the escapes on a kernel that only pretends to have %s', async (_, faults, open) => {
    const { exitCode, report } = await attackUnder(faults);
    expect([exitCode, report.ok]).toEqual([1, false]);
    // What an older kernel does not claim, or does not let anybody do, cannot escape.
    const claimed = open.filter((id) => {
      const { claimed: state, result } = control(report, id);
      return state === 'enforced' && result !== 'not-tried';
    });
    expect(claimed.length).toBeGreaterThan(0);
    for (const id of claimed) {
      expect([id, control(report, id).result]).toEqual([id, 'escaped']);
      expect(control(report, id).improve).toContain('SECURITY.md');
    }
  });

  it('attacks nothing where commands are refused, and says why', async () => {
    const { exitCode, report } = await attackUnder([
      ['landlock', 'ENOSYS'],
      ['namespaces', 'EPERM'],
      ['seccomp', 'ENOSYS'],
    ]);
    if (report.problem === null) return expect(resultsOf(report)).not.toContain('escaped');
    expect(exitCode).toBe(1);
    expect(report).toMatchObject({ ok: false, backend: null, controls: [] });
  });

  it('leaves nothing behind when it is interrupted', async () => {
    const running = startCli(place, ['doctor', '--attack']);
    await eventually(() => expect(processesWith(place.tmp).length).toBeGreaterThan(0));
    running.kill('SIGINT');
    const { exitCode, stdout } = await running;
    expect([exitCode, stdout]).toEqual([130, '']);
  });

  it.each([
    [['--profile', 'networked'], /--profile is for --attack/],
    [['--attack', '--profile', 'nope'], /no profile "nope"/],
    [['--attack', '--policy', '/nonexistent.toml'], /nonexistent\.toml/],
    [['--attack', 'extra'], /argument/],
  ])('says in one line what is wrong with %j', async (args, message) => {
    const result = await cli(place, ['doctor', ...args]);
    expect([result.exitCode, result.stdout]).toEqual([125, '']);
    expectOneLine(result.stderr);
    expect(result.stderr).toMatch(message);
  });
});
