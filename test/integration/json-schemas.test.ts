import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sr } from '../cli/services-support.ts';
import { cli, makePlace, startCli } from '../cli/support.ts';
import { makeWarmPlace } from '../cli/warm-support.ts';
import { startNats } from '../support/nats.ts';
import { HOST } from '../support/tiers.ts';
import { makeSupervisedConfiguration } from '../support/unjudged-policy.ts';

const place = makePlace();
afterAll(() => place.dispose());
const judged = {
  XDG_CONFIG_HOME: makeSupervisedConfiguration(place.root),
  XDG_STATE_HOME: join(place.root, 'state'),
};
const run = (args: readonly string[], input?: string) =>
  cli(place, args, input === undefined ? { env: judged } : { env: judged, input });

let schemas: Readonly<Record<string, object>> = {};
beforeAll(async () => {
  schemas = JSON.parse((await run(['schema', '--all'])).stdout);
});

const checked = new Set<string>();

/** The output of a command is what the published schema says. */
function expectValid(name: string, value: unknown): void {
  checked.add(name);
  const schema = schemas[name];
  if (schema === undefined) throw new Error(`no schema ${name}`);
  const ajv = new Ajv2020({ strict: true, allErrors: true, allowUnionTypes: true });
  ajv.addFormat('uri', (text: string) => URL.canParse(text));
  const validate = ajv.compile(schema);
  const isValid = validate(value);
  expect(isValid ? [] : validate.errors?.slice(0, 5), name).toEqual([]);
}

const linesOf = (text: string): readonly unknown[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

describe('what --json prints is what its schema says', () => {
  it.each([
    ['exited', ['--approved', '-c', 'echo hi; exit 3'], 'exited'],
    ['signaled', ['--approved', '-c', 'kill -9 $$'], 'signaled'],
    ['timed out', ['--approved', '--timeout', '0.3', 'sleep', '20'], 'timed-out'],
    ['over a limit', ['--approved', '--cpu-time', '1', '-c', 'while :; do :; done'], 'limit-exceeded'],
    ['refused', ['-c', 'touch /etc/shadow'], 'denied'],
    ['asked about, with nobody there', ['-c', 'git push'], 'denied'],
    ['not found', ['--approved', 'no-such-program-here'], 'setup-failed'],
    ['spilled', ['--approved', '--spill', '-c', 'echo hi'], 'exited'],
    ['of the application backend', ['--backend', 'application', 'git', 'push'], 'denied'],
  ])('run: %s', async (_, args, status) => {
    const { stdout } = await run(['--json', ...args]);
    const result = JSON.parse(stdout);
    expect(result.status, stdout.slice(0, 400)).toBe(status);
    expectValid('run', result);
    const full = JSON.parse((await run(['--json=full', ...args])).stdout);
    expectValid('run-full', full);
    const stopped = ['timed-out', 'limit-exceeded', 'denied', 'setup-failed'].includes(status);
    expect(typeof result.messageForModel).toBe(stopped ? 'string' : 'undefined');
  });

  it('plan, check and batch', async () => {
    expectValid('plan', JSON.parse((await run(['--dry-run', '--json', 'ls'])).stdout));
    for (const command of ['ls', 'git push', 'sudo ls', 'cat "'])
      expectValid('check', JSON.parse((await run(['check', '--json', '-c', command])).stdout));
    const requests = [
      { id: 'a', command: 'ls' },
      { command: ['git', 'push'], taint: ['secret'] },
    ];
    for (const request of requests) expectValid('check-batch-request', request);
    const input = `${requests.map((request) => JSON.stringify(request)).join('\n')}\nnot JSON\n`;
    const { stdout } = await run(['check', '--batch'], input);
    expect(linesOf(stdout)).toHaveLength(3);
    for (const line of linesOf(stdout)) expectValid('check-batch', line);
  });

  it('policy', async () => {
    expectValid('policy-show', JSON.parse((await run(['policy', 'show', '--json'])).stdout));
    expectValid('policy-show', JSON.parse((await run(['policy', 'show', '--json', '--explain'])).stdout));
    const file = join(place.root, 'srt.json');
    writeFileSync(
      file,
      JSON.stringify({
        network: { allowedDomains: ['a.example'], deniedDomains: [] },
        filesystem: { denyRead: ['./x'], allowWrite: ['.'], denyWrite: [] },
      }),
    );
    const { stdout } = await run(['policy', 'import', file, '--from', 'srt', '--json']);
    expectValid('policy-import', JSON.parse(stdout));
    expectValid('policy', JSON.parse(stdout).policy);
  });

  it('what is cached', async () => {
    writeFileSync(join(place.workspace, 'fill.sh'), 'echo x > ~/.cache/x\n');
    await run(['--approved', '--', 'sh', './fill.sh']);
    const { stdout } = await run(['cache', 'show', '--json']);
    const lines = stdout.trim().split('\n');
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expectValid('cache', JSON.parse(line));
  });

  it.runIf(HOST.namespaces)('what previews changed', async () => {
    const command = 'echo new > previewed; ln -s /etc/passwd out';
    const { stdout } = await run(['--json', '--approved', '--preview', '-c', command]);
    expectValid('run', JSON.parse(stdout));
    const [line, ...others] = linesOf((await run(['changes', 'list', '--json'])).stdout);
    expect([line, others]).toEqual([expect.objectContaining({ state: 'waiting', notApplied: 1 }), []]);
    expectValid('changes', line);
    const { id } = line as { readonly id: string };
    expectValid('changes-show', JSON.parse((await run(['changes', 'show', id, '--json'])).stdout));
    const queued = linesOf((await run(['approvals', 'list', '--json'])).stdout);
    expect(queued).toEqual([line]);
    expectValid('changes-show', JSON.parse((await run(['approvals', 'show', id, '--json'])).stdout));
    expectValid('approvals-watch', { type: 'changes', changes: line });
    expectValid('approvals-watch', { type: 'settled', id, state: 'discarded' });
    await run(['changes', 'discard', id]);
  });

  it('what is kept', async () => {
    await run([
      '--approved',
      '-c',
      'git init -q kept; git -C kept config core.fsmonitor ./x; echo y > kept/.git/hooks/update',
    ]);
    const { stdout } = await run(['kept', 'list', '--json']);
    const lines = stdout
      .trim()
      .split('\n')
      .map((line: string) => JSON.parse(line));
    expect(lines.length).toBe(2);
    for (const line of lines) expectValid('kept', line);
  });

  it('budget, doctor and gate', async () => {
    expectValid('budget', JSON.parse((await run(['budget', 'show', '--json'])).stdout));
    expectValid('doctor', JSON.parse((await run(['doctor', '--json'])).stdout));
    for (const command of ['echo hi', 'git push']) {
      const socket = ['--socket', join(place.root, 'none.sock')];
      const { stdout } = await run(['gate', 'check', ...socket, '--json', '-c', command]);
      expectValid('gate-check', JSON.parse(stdout));
    }
  });

  it('doctor --attack', async () => {
    expectValid('doctor-attack', JSON.parse((await run(['doctor', '--attack', '--json'])).stdout));
  }, 240_000);

  it('sessions: of shells and of agents', async () => {
    const id = (await run(['session', 'start'])).stdout.trim();
    try {
      for (const command of ['echo hi', 'touch /etc/shadow']) {
        for (const [option, name] of [
          ['--json', 'session-run'],
          ['--json=full', 'session-run-full'],
        ] as const) {
          const { stdout } = await run(['session', 'run', id, option, '--', command]);
          expectValid(name, JSON.parse(stdout));
        }
      }
      await run(['--session', 'agent-1', '-c', 'echo hi']);
      await run(['session', 'taint', 'agent-1', 'secret']);
      const listed = linesOf((await run(['session', 'list', '--json'])).stdout);
      expect(listed).toHaveLength(2);
      for (const line of listed) expectValid('session-list', line);
      expectValid('session-show', JSON.parse((await run(['session', 'show', 'agent-1', '--json'])).stdout));
    } finally {
      await run(['session', 'stop', id]);
    }
  });

  it('the audit of a fleet', async () => {
    const servers = await startNats();
    try {
      const configuration = join(place.root, 'fleet/sandbox-run');
      mkdirSync(configuration, { recursive: true });
      const policy = `[state]\nurl = "${servers.url}"\n[audit]\nenabled = true\nstream = "require"\n`;
      writeFileSync(join(configuration, 'policy.toml'), policy, { mode: 0o600 });
      const env = {
        XDG_CONFIG_HOME: join(place.root, 'fleet'),
        XDG_STATE_HOME: join(place.root, 'fleet-state'),
      };
      await cli(place, ['--', 'true'], { env });
      const { stdout } = await cli(place, ['audit', 'verify', '--fleet', '--json'], { env });
      expectValid('audit-verify-fleet', JSON.parse(stdout));
      const found = linesOf((await cli(place, ['audit', 'search', '--fleet', '--json'], { env })).stdout);
      expect(found).toHaveLength(2);
      for (const record of found) expectValid('audit-record', record);
    } finally {
      await servers.stop();
    }
  });

  it('approvals and audit', async () => {
    const policy = join(place.root, 'audited.toml');
    writeFileSync(policy, '[audit]\nenabled = true\n[approval]\ntimeout_seconds = 25\n');
    const args = ['--policy', policy, '--ask', 'queue', '--session', 's', '-c', 'touch approved'];
    const waiting = startCli({ ...place, env: { ...place.env, ...judged } }, ['--json', ...args]);
    const pending = async (): Promise<readonly unknown[]> => {
      for (;;) {
        const found = linesOf((await run(['approvals', 'list', '--json'])).stdout);
        if (found.length > 0) return found;
      }
    };
    const [request] = await pending();
    expectValid('approval-request', request);
    const { id } = request as { readonly id: string };
    expectValid('approval-request', JSON.parse((await run(['approvals', 'show', id, '--json'])).stdout));
    expectValid('approvals-watch', { type: 'pending', request });
    await run(['approvals', 'approve', id, '--scope', 'session']);
    expectValid('run', JSON.parse((await waiting).stdout));
    const grants = linesOf((await run(['approvals', 'grants', '--json'])).stdout);
    expect(grants).toHaveLength(1);
    for (const grant of grants) expectValid('approval-grant', grant);
    await run(['--policy', policy, '-c', 'touch /etc/shadow']);
    const records = linesOf((await run(['audit', 'tail', '--json'])).stdout);
    expect(records.length).toBeGreaterThanOrEqual(3);
    for (const record of records) expectValid('audit-record', record);
    expectValid('audit-verify', JSON.parse((await run(['audit', 'verify', '--json'])).stdout));
    expectValid('audit-stats', JSON.parse((await run(['audit', 'stats', '--json'])).stdout));
  });

  it('submit, fleet job and fleet status', async () => {
    const servers = await startNats();
    const on = ['--queue', 'checked', '--url', servers.url];
    const worker = startCli(place, ['worker', ...on, '--grace', '0', '--autonomy', 'autonomous']);
    try {
      for (const command of ['echo hi; exit 3', 'kill -9 $$', 'sleep 30']) {
        const submitted = await run(['submit', ...on, '--wait', '--json', '--timeout', '1', '-c', command]);
        expectValid('submit', JSON.parse(submitted.stdout));
      }
      const ids = [];
      for (const label of ['none-has-it', 'none-either'])
        ids.push((await run(['submit', ...on, '--label', label, '--', 'true'])).stdout.trim());
      await run(['fleet', 'cancel', ids[0] ?? '', ...on]);
      const canceled = JSON.parse((await run(['fleet', 'job', ids[0] ?? '', ...on, '--json'])).stdout);
      expect(canceled.status).toBe('canceled');
      expectValid('submit', canceled);
      expectValid('fleet-status', JSON.parse((await run(['fleet', 'status', ...on, '--json'])).stdout));
    } finally {
      worker.kill('SIGTERM');
      await worker;
      await servers.stop();
    }
  });

  it('ps', async () => {
    const warm = makeWarmPlace();
    try {
      expect((await sr(warm, ['up', 'web', '-c', 'exec sleep 1000'])).exitCode).toBe(0);
      await sr(warm, ['up', 'ended', '--', 'false']);
      const lines = linesOf((await sr(warm, ['ps', '--json'])).stdout);
      expect(lines).toHaveLength(2);
      for (const line of lines) expectValid('ps', line);
    } finally {
      await warm.dispose();
    }
  });

  it('every schema was tried, and the package has each of them', () => {
    // Without namespaces there are no previews, which have two of them.
    const ofPreviews = HOST.namespaces ? [] : ['changes', 'changes-show'];
    expect([...checked, ...ofPreviews].sort()).toEqual(Object.keys(schemas).sort());
    const shipped = fileURLToPath(new URL('../../dist/schemas', import.meta.url));
    expect(existsSync(shipped)).toBe(true);
    expect(
      readdirSync(shipped)
        .map((name) => name.replace(/\.json$/, ''))
        .sort(),
      // That of `serve` is tried by the tests of its own.
    ).toEqual([...Object.keys(schemas), 'serve'].sort());
    for (const [name, schema] of Object.entries(schemas))
      expect(JSON.parse(readFileSync(join(shipped, `${name}.json`), 'utf8'))).toEqual(schema);
  });
});

describe('sandbox-run schema', () => {
  it('lists them, prints one, and knows no others', async () => {
    const listed = (await run(['schema'])).stdout;
    for (const name of Object.keys(schemas)) expect(listed).toMatch(new RegExp(`^${name} `, 'm'));
    expect(JSON.parse((await run(['schema', 'check'])).stdout)).toEqual(schemas.check);
    expect(await run(['schema', 'nothing'])).toMatchObject({ exitCode: 125, stdout: '' });
    expect(await run(['schema', '--all', 'run'])).toMatchObject({ exitCode: 125, stdout: '' });
  });
});
