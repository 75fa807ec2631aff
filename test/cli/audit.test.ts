import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { loadAddon } from '../../src/confine/native/index.ts';
import { openAudit } from '../../src/gate/index.ts';
import type { AuditRecord } from '../../src/model/index.ts';
import { eventually } from '../support/eventually.ts';
import { decision, reason, result } from '../unit/gate/audit/records.ts';
import { linesOf, sql } from '../unit/gate/audit/support.ts';
import { CLI, cli, expectOneLine, makePlace } from './support.ts';

const place = makePlace();
const state = join(place.root, 'state');
const directory = join(state, 'sandbox-run/audit');
const env = { XDG_STATE_HOME: state };
const audit = (...args: readonly string[]) => cli(place, ['audit', ...args], { env });

async function write(records: readonly AuditRecord[], time = '2025-01-31T12:00:00Z', hmacKey?: Uint8Array) {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const trail = openAudit(directory, { lock: loadAddon(), clock: () => Date.parse(time), hmacKey });
  for (const record of records) await trail.append(record);
  await trail.close();
}

const denied = decision('d1', {
  session: 'one',
  command: 'rm -rf /',
  outcome: 'command.denied',
  decision: {
    verdict: 'deny',
    risk: 'high',
    reach: 'local',
    reasons: [
      reason({ check: 'paths', verdict: 'deny', code: 'escapes_workspace', message: 'path escapes' }),
    ],
  },
});
const event: AuditRecord = {
  type: 'event',
  code: 'many_refusals',
  principal: 'uid:0',
  session: 'one',
  message: 'too many',
  details: {},
};

beforeEach(() => rmSync(state, { recursive: true, force: true }));
afterAll(() => place.dispose());

/** Three days with two, two and three records. */
async function writeDays(): Promise<void> {
  await write([decision('a1'), result('a1')], '2025-01-30T12:00:00Z');
  await write([denied, event], '2025-01-31T12:00:00Z');
  await write(
    [
      decision('b1', { session: 'two', command: ['git', 'commit', '-m', 'a b'] }),
      result('b1'),
      decision('b2'),
    ],
    '2025-02-01T12:00:00Z',
  );
}

const numbers = (text: string) => [...text.matchAll(/ {2}#(\d+) /g)].map(([, number]) => Number(number));

describe('audit tail', () => {
  it('shows the last records, over days', async () => {
    await writeDays();
    const { stdout, stderr, exitCode } = await audit('tail', '-n', '4');
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
    expect(stdout.split('\n')).toEqual([
      '2025-01-31T12:00:00.000Z  #4  event  many_refusals  one  too many',
      "2025-02-01T12:00:00.000Z  #5  decision  allow  launch  b1  git commit -m 'a b'",
      '2025-02-01T12:00:00.000Z  #6  result  exited  0  b1  1.5 ms  1+2 bytes',
      '2025-02-01T12:00:00.000Z  #7  decision  allow  launch  b2  echo b2',
      '',
    ]);
    expect(numbers((await audit('tail')).stdout)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect((await audit('tail', '-n', '0')).stdout).toBe('');
  });

  it('says so of output that went to the caller’s own streams, which is not counted', async () => {
    expect((await cli(place, ['--audit', '--', 'true'], { env })).exitCode).toBe(0);
    expect((await audit('tail')).stdout).toMatch(/ {2}result {2}exited {2}0 .* ms {2}output not counted\n$/);
  });

  it('gives the records as they are', async () => {
    await writeDays();
    const { stdout } = await audit('tail', '-n', '3', '--json');
    expect(stdout).toBe(`${linesOf(directory).slice(4).join('\n')}\n`);
  });

  it('follows, into the next day, until nobody reads any more', async () => {
    await write([decision('a1')], '2025-01-30T12:00:00Z');
    const child = execa(process.execPath, [CLI, 'audit', 'tail', '-f'], {
      env: { ...place.env, ...env },
      extendEnv: false,
      reject: false,
      buffer: false,
    });
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    const shown = (mark: string) => eventually(() => expect(text).toContain(mark), 60_000);
    await shown('echo a1');
    await write([decision('a2')], '2025-01-30T13:00:00Z');
    await shown('echo a2');
    await write([decision('b1')], '2025-01-31T12:00:00Z');
    await shown('echo b1');
    child.stdout.destroy();
    await write([decision('b2')], '2025-01-31T13:00:00Z');
    expect((await child).exitCode).toBe(0);
  });

  it('lets nothing of a command reach the terminal', async () => {
    const command = 'echo \x1b]0;title\x07\x1b[2J\u202e\x9b31m\nrm x\r';
    await write([decision('a1', { command, session: '\x1b[1m', cwd: '/\x1b' })]);
    const outputs = [linesOf(directory).join('\n')];
    for (const args of [
      ['tail'],
      ['tail', '--json'],
      ['show', 'a1'],
      ['show', '1', '--json'],
      ['search'],
      ['stats'],
      ['verify'],
    ])
      outputs.push((await audit(...args)).stdout);
    for (const output of outputs) {
      expect(output).not.toBe('');
      expect(output.replaceAll('\n', '')).toMatch(/^[ -~]*$/);
    }
    expect(outputs[1]).toContain('echo \\u{1b}]0;title\\u{7}\\u{1b}[2J\\u{202e}\\u{9b}31m\\u{a}rm x\\u{d}\n');
  });
});

describe('audit show', () => {
  it('shows everything about a request', async () => {
    await writeDays();
    const { stdout, exitCode } = await audit('show', 'b1');
    expect(exitCode).toBe(0);
    expect(numbers(stdout)).toEqual([5, 6]);
    expect(stdout).toContain('\n  report.enforced: filesystem\n');
    const denial = await audit('show', 'd1');
    expect(denial.stdout).toMatch(/\n {2}deny +paths +escapes_workspace +path escapes\n/);
  });

  it('finds a result that was written after midnight', async () => {
    await write([decision('late')], '2025-01-30T23:59:59Z');
    await write([result('late')], '2025-01-31T00:00:01Z');
    expect(numbers((await audit('show', 'late')).stdout)).toEqual([1, 2]);
  });

  it('shows one record by its number', async () => {
    await writeDays();
    const { stdout } = await audit('show', '4', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ seq: 4, code: 'many_refusals' });
  });

  it('says that there is no such record', async () => {
    await writeDays();
    const { stdout, stderr, exitCode } = await audit('show', '99');
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 1 });
    expectOneLine(stderr);
  });
});

describe('audit search', () => {
  it.each([
    [['--text', 'RM -RF'], [3]],
    [['--text', 'too many'], [4]],
    [
      ['--session', 'one'],
      [3, 4],
    ],
    [['--verdict', 'deny'], [3]],
    [['--outcome', 'command.denied'], [3]],
    [
      ['--outcome', 'exited'],
      [2, 6],
    ],
    [['--type', 'event'], [4]],
    [
      ['--type', 'decision', '--since', '2025-01-31'],
      [3, 5, 7],
    ],
    [
      ['--since', '2025-01-31T12:00', '--until', '2025-01-31T12:00:00Z'],
      [3, 4],
    ],
    [
      ['--until', '2025-01-31'],
      [1, 2],
    ],
    [[], [1, 2, 3, 4, 5, 6, 7]],
  ])('%j', async (args, expected) => {
    await writeDays();
    const { stdout, exitCode } = await audit('search', ...args);
    expect(numbers(stdout)).toEqual(expected);
    expect(exitCode).toBe(0);
  });

  it('exits with 1 if nothing is found', async () => {
    await writeDays();
    expect(await audit('search', '--since', '10m')).toMatchObject({ exitCode: 1, stdout: '', stderr: '' });
  });

  it.each([
    [['search', '--since', 'yesterday'], /10m/],
    [['search', '--verdict', 'maybe'], /allow, ask, deny/],
    [['tail', '-n', 'x'], /whole number/],
    [['verify', '--anchor', 'x'], /NUMBER:HASH/],
    [['erase'], /unknown command/],
  ])('refuses %j', async (args, message) => {
    await writeDays();
    const { stderr, exitCode } = await audit(...args);
    expect(exitCode).toBe(125);
    expectOneLine(stderr);
    expect(stderr).toMatch(message);
  });
});

describe('audit verify', () => {
  it('says that everything is as it was written', async () => {
    await writeDays();
    const { stdout, exitCode } = await audit('verify');
    expect(stdout).toMatch(/^verified: 7 records\nfirst: 1\nlast: 7:[0-9a-f]{64}\n$/);
    expect(exitCode).toBe(0);
    const [, anchor = ''] = /last: (.*)/.exec(stdout) ?? [];
    expect((await audit('verify', '--anchor', anchor)).exitCode).toBe(0);
    expect((await audit('verify', '--anchor', `6:${anchor.slice(2)}`)).exitCode).toBe(1);
  });

  it('says which record was changed', async () => {
    await writeDays();
    sql(directory, `UPDATE trail SET line = replace(line, 'rm -rf /', 'rm -rf x') WHERE seq = 3`);
    const { stdout, exitCode } = await audit('verify');
    expect(stdout).toContain('changed: record 3 was changed\nBROKEN: 1 problem in 7 records\n');
    expect(exitCode).toBe(1);
    const json = await audit('verify', '--json');
    expect(json.exitCode).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({
      ok: false,
      problems: [{ kind: 'changed', seq: 3 }],
    });
  });

  it('checks signatures with the key', async () => {
    const key = join(place.root, 'key');
    writeFileSync(key, 'k'.repeat(32), { mode: 0o600 });
    await write([decision('a1')], '2025-01-30T12:00:00Z', Buffer.alloc(32, 'k'));
    const { stdout, exitCode } = await audit('verify', '--key', key);
    expect(stdout).toContain('signed with the key: 1 records, since record 1\n');
    expect(exitCode).toBe(0);
    await write([decision('a2')]);
    expect((await audit('verify', '--key', key)).exitCode).toBe(1);
    const missing = await audit('verify', '--key', `${key}2`);
    expect(missing.exitCode).toBe(125);
    expectOneLine(missing.stderr);
  });

  it.each(['tail', 'verify', 'stats', 'search'])(
    'and %s: exits with 125 if there is no trail',
    async (name) => {
      const { stdout, stderr, exitCode } = await audit(name);
      expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 125 });
      expectOneLine(stderr);
      expect(stderr).toContain(`there is no audit trail in ${directory}`);
    },
  );
});

describe.skipIf(process.getuid?.() === 0)('a trail that its user may not open (not run: by root)', () => {
  it('is told in one line by what reads it, if its directory is shut', async () => {
    await writeDays();
    chmodSync(state, 0);
    expect((await audit('verify')).stderr).toContain(`${directory} cannot be read (EACCES)`);
    chmodSync(state, 0o700);
    chmodSync(directory, 0);
    try {
      for (const name of ['tail', 'verify', 'stats', 'search']) {
        const { stdout, stderr, exitCode } = await audit(name);
        expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 125 });
        expectOneLine(stderr);
        expect(stderr).toContain(`${directory} cannot be read (EACCES)`);
      }
      const refused = await cli(place, ['--audit', '--', 'true'], { env });
      expect(refused).toMatchObject({ exitCode: 125, stdout: '' });
      expect(refused.stderr).toMatch(
        /trail\.db cannot be used: it cannot be opened; look at its owner and mode\n$/,
      );
    } finally {
      chmodSync(directory, 0o700);
    }
  });
});

describe('audit acknowledge', () => {
  const policy = join(place.root, 'audited.toml');
  const trace = join(place.workspace, 'trace');
  const run = async () => {
    rmSync(trace, { force: true });
    const result = await cli(place, ['--policy', policy, '--autonomy', 'autonomous', '-c', ': > trace'], {
      env,
    });
    return { ...result, ran: existsSync(trace) };
  };

  it('goes on after the end was taken away, and nothing else does', async () => {
    writeFileSync(policy, '[audit]\nenabled = true\n', { mode: 0o600 });
    expect(await run()).toMatchObject({ exitCode: 0, ran: true });
    sql(directory, 'DELETE FROM trail WHERE seq = 2');

    for (let i = 0; i < 2; i += 1) {
      const refused = await run();
      expect(refused).toMatchObject({ exitCode: 125, ran: false });
      expectOneLine(refused.stderr);
      expect(refused.stderr).toContain('"sandbox-run audit acknowledge"');
    }
    const broken = await audit('verify');
    expect(broken.exitCode).toBe(1);
    expect(broken.stdout).toMatch(/^truncated: .* ends with record 1, but record 2 .*audit acknowledge\n/);

    const acknowledged = await audit('acknowledge');
    expect(acknowledged).toMatchObject({ exitCode: 0, stderr: '' });
    expect(acknowledged.stdout).toMatch(/ended with record 1 instead of 2\n$/);
    expect(await run()).toMatchObject({ exitCode: 0, stderr: '', ran: true });
    const verified = await audit('verify');
    expect(verified.exitCode).toBe(0);
    expect(verified.stdout).toMatch(/^record 3 \(.*\) says acknowledged: .*\nverified: 4 records/);
    expect(await audit('acknowledge')).toMatchObject({ exitCode: 1, stderr: '' });
  });
});

describe('audit stats', () => {
  it('counts', async () => {
    await writeDays();
    const { stdout } = await audit('stats', '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      records: 7,
      types: { decision: 4, result: 2, event: 1 },
      verdicts: { allow: 3, deny: 1 },
      outcomes: { launch: 3, 'command.denied': 1 },
      objections: { 'deny paths.escapes_workspace': 1 },
      results: { exited: 2 },
      events: { many_refusals: 1 },
      sessions: 2,
      outputBytes: 6,
      durationMs: 3,
    });
    expect((await audit('stats', '--since', '2025-02-01')).stdout).toMatch(/^3 records from 2025-02-01/);
  });
});

describe('audit --help', () => {
  it.each([[[]], [['tail']], [['show']], [['search']], [['verify']], [['stats']]])(
    '%j has examples and exit statuses',
    async (args) => {
      const { stdout, exitCode } = await audit(...args, '--help');
      expect(exitCode).toBe(0);
      expect(stdout).toContain('Examples:\n  sandbox-run audit');
      expect(stdout).toContain('Exit status: 0');
    },
  );
});
