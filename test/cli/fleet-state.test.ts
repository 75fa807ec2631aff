import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { nkeyAuthenticator, nkeys } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/approvals.ts';
import { type NatsServers, startNats } from '../support/nats.ts';
import { cli, expectOneLine, makePlace, type Place, startCli } from './support.ts';

/** Two machines of a fleet, as far as the launcher can tell: nothing but the server is the same. */
const machines = [makePlace(), makePlace()] as const;
const [one, other] = machines;
const key = nkeys.createUser();
let servers: NatsServers;

const credentialsOf = (place: Place) => join(place.root, 'credentials/nats.seed');
const stateOf = (place: Place) =>
  `[state]
url = "${servers.url}"
credentials = "${credentialsOf(place)}"
`;

/** The policy of the user of a machine. */
function says(place: Place, text: string): void {
  const directory = join(place.root, 'config/sandbox-run');
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'policy.toml'), text, { mode: 0o600 });
}

beforeAll(async () => {
  servers = await startNats({
    config: `authorization { users: [{ nkey: ${key.getPublicKey()} }] }`,
    probe: { authenticator: nkeyAuthenticator(key.getSeed()) },
  });
  for (const place of machines) {
    mkdirSync(dirname(credentialsOf(place)));
    writeFileSync(credentialsOf(place), key.getSeed(), { mode: 0o600 });
  }
});
afterAll(async () => {
  await servers?.stop();
  for (const place of machines) place.dispose();
});

describe('a fleet whose policy names a server', () => {
  it('has one budget', async () => {
    for (const place of machines) says(place, `${stateOf(place)}[security]\nmax_actions_per_hour = 3\n`);
    const runs = [];
    for (const place of [one, other, one]) runs.push(await cli(place, ['--', 'true']));
    expect(runs.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual([
      [0, ''],
      [0, ''],
      [0, ''],
    ]);
    const refused = await cli(other, ['--', 'true']);
    expect(refused.exitCode).toBe(126);
    expect(refused.stderr).toMatch(/3 actions were run in the last hour and 3 are allowed/);
    expect((await cli(one, ['budget', 'show'])).stdout).toMatch(/3 actions in the last hour, of 3, 0 left/);
    expect((await cli(other, ['budget', 'reset'])).stdout).toMatch(/3 actions forgotten/);
    expect((await cli(one, ['--', 'true'])).exitCode).toBe(0);
  });

  it('has one queue, one list of grants, and answers from any machine', async () => {
    for (const place of machines)
      says(place, `${stateOf(place)}[security]\nautonomy = "supervised"\n[approval]\nask = "queue"\n`);
    const asking = startCli(one, ['--', 'rm', '-rf', 'nothing']);
    const listed = await until(async () => {
      const { stdout } = await cli(other, ['approvals', 'list', '--json']);
      return stdout === '' ? undefined : (JSON.parse(stdout) as { id: string });
    });
    expect((await cli(other, ['approvals', 'approve', listed.id, '--scope', 'always'])).exitCode).toBe(0);
    expect(await asking).toMatchObject({ exitCode: 0 });
    const grants = (await cli(one, ['approvals', 'grants', '--json'])).stdout;
    expect(JSON.parse(grants)).toMatchObject({ scope: 'always', grantedBy: 'command line' });
    // Nothing is kept here.
    for (const place of machines) {
      const state = join(place.root, 'home/.local/state/sandbox-run');
      const kept = (() => {
        try {
          return readdirSync(state);
        } catch {
          return [];
        }
      })();
      expect(kept.filter((name) => name.startsWith('gate.db'))).toEqual([]);
    }
  });

  it('remembers the taints of sessions', async () => {
    await cli(one, ['session', 'taint', 'mine', 'secret']);
    const shown = await cli(other, ['session', 'show', 'mine', '--json']);
    expect(JSON.parse(shown.stdout)).toMatchObject({ id: 'mine', taintsInForce: ['secret'] });
    expect((await cli(other, ['session', 'end', 'mine'])).stdout).toBe('mine: ended\n');
  });

  it('lets no workspace name another server', async () => {
    const file = join(one.workspace, '.sandbox-run.toml');
    writeFileSync(file, '[state]\nurl = "nats://127.0.0.1:1"\n');
    const refused = await cli(one, ['--', 'true']);
    rmSync(file);
    expect(refused.exitCode).toBe(125);
    expectOneLine(refused.stderr);
    expect(refused.stderr).toMatch(/state/);
  });

  it('shows its commands neither the credentials nor the server', async () => {
    says(
      one,
      `[unsafe]\nunjudged_commands = true\n[state]\nurl = "${servers.url}"\n[security]\nmax_actions_per_hour = 50\n`,
    );
    const env = { SANDBOX_RUN_NATS_CREDS: credentialsOf(one) };
    const [, port] = /:(\d+)$/.exec(servers.url) ?? [];
    const script = `env; tr '\\0' '\\n' < /proc/$PPID/environ; cat ${credentialsOf(one)}; (exec 3<>/dev/tcp/127.0.0.1/${port}) && echo reached; echo done`;
    const { stdout, exitCode } = await cli(one, ['--', 'bash', '-c', script], { env });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/done\n$/);
    expect(stdout).not.toMatch(/NATS|SU[A-Z0-9]{20}|reached/);
    // It was counted, so that the credentials were found.
    expect((await cli(one, ['budget', 'show', '--json'], { env })).stdout).toMatch(/"used":[1-9]/);
    expect((await cli(one, ['--', 'true'])).stderr).toMatch(/refuses this user/);
  });

  it('runs nothing where commands could read the credentials', async () => {
    const granted = `[filesystem]\nread = [${JSON.stringify(dirname(credentialsOf(one)))}]\n`;
    // The positive control: without a server the same policy is none of our business.
    says(one, granted);
    expect((await cli(one, ['--', 'cat', credentialsOf(one)])).exitCode).toBe(0);
    says(one, `${stateOf(one)}${granted}`);
    const refused = await cli(one, ['--', 'cat', credentialsOf(one)]);
    expect([refused.exitCode, refused.stdout]).toEqual([125, '']);
    expectOneLine(refused.stderr);
    expect(refused.stderr).toMatch(/lies in .*, which commands can read; put it elsewhere/);
    says(one, stateOf(one));
  });

  it('takes no credentials that others can read', async () => {
    says(one, `${stateOf(one)}[security]\nmax_actions_per_hour = 50\n`);
    const loose = join(one.root, 'loose');
    writeFileSync(loose, key.getSeed(), { mode: 0o644 });
    says(
      one,
      `[state]\nurl = "${servers.url}"\ncredentials = "${loose}"\n[security]\nmax_actions_per_hour = 50\n`,
    );
    const refused = await cli(one, ['budget', 'reset']);
    expect(refused.exitCode).toBe(125);
    expectOneLine(refused.stderr);
    expect(refused.stderr).toMatch(/mode 644.*chmod 600/);
  });
});

describe('the audit trail of a fleet', () => {
  const audited = (place: Place, stream: string, more = '') =>
    `${stateOf(place)}[audit]\nenabled = true\nstream = "${stream}"\n${more}[unsafe]\nunjudged_commands = true\n`;

  it('is searched and verified from any machine', async () => {
    for (const place of machines) says(place, audited(place, 'require'));
    for (const place of machines)
      expect(await cli(place, ['--', 'echo', place.root])).toMatchObject({ exitCode: 0, stderr: '' });
    const found = await cli(one, ['audit', 'search', '--fleet', '--text', other.root, '--json']);
    const records = found.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(records[0]).toMatchObject({
      type: 'decision',
      seq: 1,
      trail: expect.stringMatching(/_[0-9a-f]{12}$/),
    });
    expect((await cli(one, ['audit', 'search', '--fleet', '--text', 'nowhere'])).exitCode).toBe(1);
    const verified = await cli(other, ['audit', 'verify', '--fleet', '--complete']);
    expect(verified).toMatchObject({ exitCode: 0, stderr: '' });
    expect(verified.stdout).toMatch(/\nverified: 4 records of 2 trails\n$/);
    const json = await cli(one, ['audit', 'verify', '--fleet', '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: true, problemCount: 0, trails: [{}, {}] });
    // The chain of this machine is what it was.
    expect((await cli(one, ['audit', 'verify'])).stdout).toMatch(/^verified: 2 records/m);
  });

  it('needs a server', async () => {
    says(one, '[audit]\nenabled = true\nstream = "publish"\n');
    for (const args of [
      ['--', 'true'],
      ['audit', 'verify', '--fleet'],
    ]) {
      const refused = await cli(one, args);
      expect(refused.exitCode).toBe(125);
      expectOneLine(refused.stderr);
      expect(refused.stderr).toMatch(/state\.url/);
    }
  });

  it('follows on_failure without its server', async () => {
    await servers.nodes[0]?.kill();
    says(one, audited(one, 'require'));
    const refused = await cli(one, ['--', 'echo', 'ran']);
    expect(refused.exitCode).not.toBe(0);
    expect(refused.stdout).toBe('');
    expect(refused.stderr).toMatch(/NATS server/);
    says(one, audited(one, 'require', 'on_failure = "warn"\n'));
    const warned = await cli(one, ['--', 'echo', 'ran']);
    expect(warned).toMatchObject({ exitCode: 0, stdout: 'ran\n' });
    expect(warned.stderr).toMatch(/not recorded: .*NATS server/);
    says(one, audited(one, 'publish'));
    expect(await cli(one, ['--', 'echo', 'ran'])).toMatchObject({ exitCode: 0, stdout: 'ran\n', stderr: '' });
    await servers.nodes[0]?.start();
    // What could not be published goes with the next record.
    says(one, audited(one, 'require'));
    expect((await cli(one, ['--', 'true'])).exitCode).toBe(0);
    const verified = await cli(one, ['audit', 'verify', '--fleet', '--complete', '--json']);
    expect(verified).toMatchObject({ exitCode: 0, stderr: '' });
    const trails: { problemCount: number; records: number }[] = JSON.parse(verified.stdout).trails;
    expect(trails.map(({ problemCount }) => problemCount)).toEqual([0, 0]);
    // A decision and a result of each run, also of the one that was refused.
    expect(trails.map(({ records }) => records).sort((few, many) => few - many)).toEqual([2, 10]);
  });
});

describe('a fleet whose server is gone', () => {
  beforeAll(async () => {
    await servers.nodes[0]?.kill();
  });

  it('runs nothing that it would have to count or ask about, and says so in one line', async () => {
    says(one, `${stateOf(one)}[security]\nmax_actions_per_hour = 50\n`);
    const counted = await cli(one, ['--', 'true']);
    expect(counted.exitCode).toBe(126);
    expect(counted.stderr).toMatch(/NATS server .* cannot be used \(ECONNREFUSED\)/);
    const shown = await cli(one, ['budget', 'show']);
    expect(shown.exitCode).toBe(125);
    expectOneLine(shown.stderr);
    const session = await cli(one, ['--session', 'mine', '--', 'true']);
    expect(session.exitCode).not.toBe(0);
    expect(session.stderr).toMatch(/NATS server/);
  });

  it('runs uncounted with a warning where the policy accepts that, and asks nobody', async () => {
    says(one, `${stateOf(one)}on_failure = "warn"\n[security]\nmax_actions_per_hour = 50\n`);
    const run = await cli(one, ['--', 'echo', 'ran']);
    expect(run).toMatchObject({ exitCode: 0, stdout: 'ran\n' });
    expect(run.stderr).toMatch(/not counted: the NATS server/);
    // It was run.
    expect(run.stderr).not.toContain('nothing is run');
    says(
      one,
      `${stateOf(one)}on_failure = "warn"\n[security]\nautonomy = "supervised"\n[approval]\nask = "queue"\n`,
    );
    const asked = await cli(one, ['--', 'rm', '-rf', 'nothing']);
    expect(asked.exitCode).toBe(126);
    expect(asked.stderr).toMatch(/NATS server/);
  });
});
