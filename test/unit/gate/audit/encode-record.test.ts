import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { encodeRecord } from '../../../../src/gate/audit/encode-record.ts';
import type { AuditRecord } from '../../../../src/model/index.ts';
import { decision, makeDirectory, problemsOf, reason, recordsOf, result, write } from './support.ts';

const encoded = (record: AuditRecord) => JSON.parse(`{${encodeRecord(record)}}`);

describe('a decision', () => {
  it('has everything that matters', () => {
    const record = decision('r1', {
      session: 's',
      command: ['git', 'push'],
      decision: {
        verdict: 'ask',
        risk: 'medium',
        reach: 'network',
        reasons: [
          reason({ check: 'budget', code: 'no_limit', message: 'there is no limit' }),
          reason({ verdict: 'ask', code: 'medium', message: 'git push: medium risk', words: ['push'] }),
        ],
      },
      approval: { approved: true, scope: 'session', by: 'terminal' },
      files: { writes: ['/work/a'], executes: [] },
    });
    expect(encoded(record)).toEqual({
      type: 'decision',
      request: 'r1',
      principal: 'uid:0',
      session: 's',
      outcome: 'launch',
      command: ['git', 'push'],
      cwd: '/work',
      verdict: 'ask',
      risk: 'medium',
      reach: 'network',
      checks: [
        { check: 'budget', verdict: null, code: 'no_limit' },
        { check: 'risk', verdict: 'ask', code: 'medium', message: 'git push: medium risk', words: ['push'] },
      ],
      approval: { approved: true, scope: 'session', by: 'terminal' },
      profile: 'workspace-write',
      backend: 'landlock',
      report: { landlockAbi: 7, controls: { filesystem: 'enforced' }, reasons: {} },
      files: { writes: ['/work/a'], executes: [] },
    });
  });

  it('says so if the command was not judged', () => {
    expect(encoded(decision('r1', { decision: undefined }))).toMatchObject({ verdict: null });
  });

  it('says why a control is not enforced', () => {
    const { report } = decision('r1');
    const controls = [
      { id: 'rename', state: 'unsupported', demand: 'best-effort', reason: 'too old' },
    ] as const;
    expect(encoded(decision('r1', { report: { ...report, controls } })).report).toMatchObject({
      controls: { rename: 'unsupported' },
      reasons: { rename: 'too old' },
    });
  });

  it('has no secret of the command anywhere', () => {
    const objection = reason({ verdict: 'ask', message: 'unknown word hunter2', words: ['hunter2'] });
    const record = decision('r1', {
      command: ['deploy', '--password', 'hunter2'],
      cwd: '/work/hunter2',
      decision: { verdict: 'ask', risk: 'low', reach: 'local', reasons: [objection] },
      approval: { approved: false, reason: 'failed', by: 'x', detail: 'no hunter2' },
      files: { writes: ['/work/hunter2'], executes: [] },
    });
    expect(encodeRecord(record)).not.toContain('hunter2');
    expect(encoded(record)).toMatchObject({ command: ['deploy', '--password', '[redacted]'] });
  });
});

describe('other records', () => {
  it('have their members', () => {
    const { type, ...rest } = result('r1');
    expect(encoded(result('r1'))).toEqual({ type, ...JSON.parse(JSON.stringify(rest)) });
  });

  it('has no secret in what a command asked a host for', () => {
    const secret = `ghp_${'a1B2'.repeat(9)}`;
    const connections = [
      {
        ...{ verdict: 'refused', protocol: 'tcp', host: 'a.test', port: 443, count: 1 },
        ...{ askedFor: `${secret}.test`, entry: `${secret}.test:443`, at: '2026-01-01T00:00:00.000Z' },
      },
    ] as const;
    const text = JSON.stringify(encoded({ ...result('r1'), connections } as AuditRecord));
    expect(text).toContain('a.test');
    expect(text).not.toContain(secret);
  });

  it('have no secrets either', () => {
    const event = {
      type: 'event',
      code: 'x',
      principal: 'p',
      session: undefined,
      message: 'saw --password hunter2',
      details: { url: 'https://me:hunter2@h', count: 2 },
    } as const;
    expect(encoded(event)).toMatchObject({
      message: 'saw --password [redacted]',
      details: { url: 'https://me:[redacted]@h', count: 2 },
    });
  });
});

describe('a record that is too long', () => {
  it('is cut, with the hash of what was there', () => {
    const command = `echo ${'a b'.repeat(350_000)}`;
    const { command: cut } = encoded(decision('r1', { command }));
    expect(cut.startsWith('echo a ba b')).toBe(true);
    expect(cut).toContain(
      `[cut: ${command.length} bytes, SHA-256 ${createHash('sha256').update(command).digest('hex')}]`,
    );
    expect(cut.length).toBeLessThan(40_000);
  });

  it.each([
    ['text', 'x'.repeat(1 << 20)],
    ['control characters', '\x01'.repeat(1 << 20)],
    ['wide characters', '\u{1f600}'.repeat(1 << 19)],
    ['invisible characters', '\u202e'.repeat(1 << 20)],
    ['fewer invisible characters', '\u202e'.repeat(80_000)],
    ['words', ['echo', ...Array(200_000).fill('word')]],
    ['long words', ['echo', ...Array(500).fill('w'.repeat(5_000))]],
  ] as const)('stays below 256 KiB: %s', async (_, command) => {
    const record = decision('r1', { command: command as string });
    const text = encodeRecord(record);
    expect(Buffer.byteLength(text)).toBeLessThan(260 * 1024);
    expect(JSON.parse(`{${text}}`)).toMatchObject({ request: 'r1', outcome: 'launch' });
    const directory = makeDirectory();
    await write(directory, [record]);
    expect(recordsOf(directory)).toHaveLength(1);
    expect(await problemsOf(directory)).toEqual([]);
  });
});
