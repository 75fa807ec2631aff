import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readPublication } from '../../src/model/index.ts';
import { makeArena } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';
import { HOST, WITHOUT_VIEW } from '../support/tiers.ts';
import { begin } from './services-support.ts';
import { cli, expectOneLine, makePlace, type Place } from './support.ts';

describe('--publish', () => {
  let place: Place;
  let port = 0;
  const server: Server = createServer();
  beforeEach(async () => {
    place = makePlace();
    mkdirSync(join(place.root, 'home'));
    if (port !== 0) return;
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    port = (server.address() as { port: number }).port;
  });
  afterEach(() => place.dispose());
  afterAll(() => server.close());
  /** On a host without namespaces there is no loopback interface but this. */
  const net = HOST.namespaces ? [] : ['--net', '@own'];

  it('says in one line which port is taken, by whom, and what works instead; nothing runs', async () => {
    const { exitCode, stdout, stderr } = await cli(place, [...net, '--publish', `${port}`, 'echo', 'ran']);
    expect({ exitCode, stdout }).toEqual({ exitCode: 125, stdout: '' });
    expectOneLine(stderr);
    const [, next = ''] =
      /is taken by .* \(process \d+\); \d+ is free: --publish (\S+)\n$/.exec(stderr) ?? [];
    expect(readPublication(next)).toMatchObject({ inner: port });
    expect(await cli(place, [...net, '--publish', next, 'echo', 'ran'])).toMatchObject({
      ...{ exitCode: 0, stdout: 'ran\n', stderr: '' },
    });
  });

  it('says where a port is that was chosen, before the command runs, or with --json in the result', async () => {
    const { stdout, stderr } = await cli(place, [...net, '--publish', `${port}?`, 'echo', 'ran']);
    expect(stdout).toBe('ran\n');
    const [, chosen = ''] =
      /^sandbox-run: port \d+ of the command is published at 127\.0\.0\.1:(\d+)\n$/.exec(stderr) ?? [];
    expect(Number(chosen)).toBeGreaterThan(port);
    const json = await cli(place, [...net, '--json', '--publish', '0:80', 'true']);
    expect(json.stderr).toBe('');
    const { ports } = JSON.parse(json.stdout);
    expect(ports).toMatchObject([{ inner: 80, relayed: true }]);
    expect(ports[0].addresses[0]).toBe('127.0.0.1');
  });

  it.each(['80', '0', 'x', '3000:', 'localhost:3000', '70000'])('refuses %s', async (text) => {
    const { exitCode, stderr } = await cli(place, ['--publish', text, 'true']);
    expect(exitCode).toBe(125);
    expectOneLine(stderr);
    expect(stderr).toContain('must be [ADDRESS:]PORT[:INNER]');
  });

  it('leaves addresses that other machines reach to the policy of the user', async () => {
    const { exitCode, stderr } = await cli(place, [...net, '--publish', '0.0.0.0:0:3000', 'true']);
    expect(exitCode).toBe(126);
    expect(stderr).toMatch(/^sandbox-run: [^\n]*publish = \["0\.0\.0\.0:0:3000"\][^\n]*\n$/);
    const policy = join(place.root, 'policy.toml');
    writeFileSync(policy, '[network]\npublish = ["0.0.0.0:0:3000"]\n');
    const ran = await cli(place, [...net, '--json', '--policy', policy, 'true']);
    expect(JSON.parse(ran.stdout).ports).toMatchObject([{ addresses: ['0.0.0.0'], inner: 3000 }]);
    const shown = await cli(place, [...net, '--dry-run', '--policy', policy, 'true']);
    expect(shown.stdout).toMatch(
      /^ {2}network .*\(also those of other users\) and other machines to port 3000/m,
    );
  });

  it('is said by the report, and by a command that serves at a port of its policy that is taken, and by no other', async () => {
    const policy = join(place.root, 'policy.toml');
    writeFileSync(policy, `[network]\npublish = ["${port}", "0:3000"]\n`);
    const shown = await cli(place, [...net, '--dry-run', '--policy', policy, 'true']);
    expect(shown.stdout).toMatch(
      new RegExp(
        `^  network .* \\(also those of other users\\) to port ${port}, port 3000 at any free one \\(network.publish\\)$`,
        'm',
      ),
    );
    expect(await cli(place, [...net, '--policy', policy, 'echo', 'ran'])).toMatchObject({
      ...{ exitCode: 0, stdout: 'ran\n', stderr: expect.not.stringContaining('taken') },
    });
    const serve = `require('node:net').createServer().listen(${port}, '127.0.0.1')`;
    const words = [...net, '--policy', policy, process.execPath, '-e', serve];
    const serving = begin(place, words);
    let said = '';
    serving.stderr?.on('data', (bytes) => {
      said += bytes;
    });
    await eventually(() =>
      expect(said).toMatch(
        /^sandbox-run: port \d+ is taken by [^;]* \(process \d+\); the command runs without it\n$/m,
      ),
    );
    serving.kill('SIGTERM');
    expect((await serving).stderr).toBe(said);
  });

  it('is nothing that a file of an untrusted workspace can say, and never at other addresses', async () => {
    const file = join(place.workspace, '.sandbox-run.toml');
    writeFileSync(file, '[network]\npublish = ["0:3000"]\n');
    const { stdout, stderr } = await cli(place, [...net, '--json', 'true']);
    expect(JSON.parse(stdout).ports).toBeUndefined();
    expect(`${stdout}${stderr}`).toContain('.sandbox-run.toml was not trusted');
    writeFileSync(file, '[network]\npublish = ["0.0.0.0:0:3000"]\n');
    const refused = await cli(place, [...net, 'true']);
    expect(refused.exitCode).toBe(125);
    expect(refused.stderr).toContain('must be a port, with no address or one of the loopback interface');
  });

  it('is in the report, with what another program can take for it where the network is listed', async () => {
    const rowOf = async (...words: string[]) => {
      const { stdout } = await cli(place, [...words, '--publish', '5173', '--dry-run', '--json', 'true']);
      const { report } = JSON.parse(stdout);
      return report.controls.find(({ id }: { readonly id: string }) => id === 'network').reason;
    };
    const ways = 'programs of this machine (also those of other users) to port 5173 (network.publish)';
    const onHost = 'while no command listens there, another program of this host that listens at that port';
    const listed = await rowOf('--net', '@own');
    expect(listed).toContain(ways);
    expect(listed).toContain(onHost);
    if (!HOST.namespaces) return;
    const off = await rowOf();
    expect(off).toContain(ways);
    expect(off).not.toContain(onHost);
  });

  it('is refused where nothing but the text of a command is looked at', async () => {
    const options = ['--backend', 'application', '--publish', '3000'];
    const { exitCode, stderr } = await cli(place, [...options, 'true']);
    expect(exitCode).toBe(126);
    expect(stderr).toContain('the backend application cannot publish ports');
  });
});

describe('a host without namespaces', () => {
  const arena = makeArena();

  it('needs a loopback interface for the command, which --net @own gives', async () => {
    await expect(arena.sandbox(WITHOUT_VIEW, { publish: ['0:3000'] })).rejects.toMatchObject({
      code: 'publish.unavailable',
      message: expect.stringContaining('--net @own'),
    });
    const policy = { network: { publish: ['0:3000'] } };
    const told = await (await arena.sandbox(WITHOUT_VIEW, { policy })).run(['true']);
    // No command can serve there: of one that wants to the denial says the same.
    expect(told).toMatchObject({ ok: true, warnings: [] });
    expect(told.ports).toBeUndefined();
    const own = await arena.sandbox(WITHOUT_VIEW, { publish: ['0:3000'], net: ['@own'] });
    expect((await own.run(['true'])).ports).toMatchObject([{ inner: 3000 }]);
  });
});
