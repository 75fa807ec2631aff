import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nkeys } from '@nats-io/transport-node';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { CREDENTIALS_VARIABLE, connectNats, serversOf } from '../../../../src/gate/nats/connection.ts';
import { type NatsServers, startNats } from '../../../support/nats.ts';
import { lacks } from '../../../support/programs.ts';

describe('the URL of a NATS server', () => {
  it.each([
    ['nats://one', ['one:4222'], false],
    ['nats://one:5,two:6', ['one:5', 'two:6'], false],
    ['nats://one:5, nats://two', ['one:5', 'two:4222'], false],
    ['tls://one,two', ['one:4222', 'two:4222'], true],
    ['nats://[::1]:5', ['[::1]:5'], false],
  ])('%s is taken', (url, servers, encrypted) => {
    expect(serversOf(url)).toEqual({ servers, encrypted });
  });

  it.each([
    ['http://one', /nats:\/\/ or all/],
    ['one:4222', /nats:\/\/ or all/],
    ['', /no URL/],
    ['nats://', /only hosts/],
    ['nats://one,tls://two', /nats:\/\/ or all/],
    ['nats://one/path', /only hosts/],
    ['nats://me:secret-word@one', /has a user or password; use a credentials file/],
    ['nats://secret-word@one', /has a user or password/],
    ['nats://me:secret-word@one two', /address 1 in it is no URL/],
  ])('%s is refused, and what may be a secret is not shown', (url, message) => {
    expect(() => serversOf(url)).toThrow(
      expect.objectContaining({ code: 'fleet.invalid', message: expect.stringMatching(message) }),
    );
    expect(() => serversOf(url)).not.toThrow(/secret-word/);
  });
});

describe.skipIf(lacks('nats-server'))('a connection', () => {
  const directory = mkdtempSync(join(tmpdir(), 'sandbox-run-nats-test-'));
  const key = nkeys.createUser();
  const file = join(directory, 'seed');
  let open: NatsServers;
  let closed: NatsServers;

  beforeAll(async () => {
    const users = `authorization { users: [{ nkey: ${key.getPublicKey()} }] }`;
    const authenticator = (await import('@nats-io/transport-node')).nkeyAuthenticator(key.getSeed());
    [open, closed] = await Promise.all([startNats(), startNats({ config: users, probe: { authenticator } })]);
    writeFileSync(file, `${Buffer.from(key.getSeed())}\n`, { mode: 0o600 });
  });
  afterEach(() => {
    delete process.env[CREDENTIALS_VARIABLE];
    chmodSync(file, 0o600);
  });
  afterAll(async () => {
    await Promise.all([open?.stop(), closed?.stop()]);
    rmSync(directory, { recursive: true, force: true });
  });

  it('is made without credentials where the server wants none', async () => {
    const connection = await connectNats({ url: open.url }, 'test');
    expect(connection.info?.jetstream).toBe(true);
    await connection.close();
  });

  it('takes the seed of the file that the settings or the environment name', async () => {
    await (await connectNats({ url: closed.url, credentials: file }, 'test')).close();
    process.env[CREDENTIALS_VARIABLE] = file;
    await (await connectNats({ url: closed.url }, 'test')).close();
  });

  it('is refused without or with other credentials, in one line', async () => {
    const other = join(directory, 'other');
    writeFileSync(other, nkeys.createUser().getSeed(), { mode: 0o600 });
    for (const credentials of [undefined, other])
      await expect(connectNats({ url: closed.url, credentials }, 'test')).rejects.toMatchObject({
        code: 'fleet.refused',
        message: expect.stringMatching(/^the NATS server nats:.*refuses this user.*$/),
      });
  });

  it('takes no file that others can read', async () => {
    chmodSync(file, 0o640);
    await expect(connectNats({ url: closed.url, credentials: file }, 'test')).rejects.toMatchObject({
      code: 'fleet.invalid',
      message: expect.stringMatching(/mode 640.*chmod 600/),
    });
  });

  it('is given up where nobody listens, and where nobody answers', async () => {
    const gone = await startNats();
    await gone.nodes[0]?.kill();
    await expect(connectNats({ url: gone.url }, 'test')).rejects.toMatchObject({
      code: 'fleet.unreachable',
      message: expect.stringMatching(/ECONNREFUSED/),
    });
    await gone.nodes[0]?.start();
    await gone.nodes[0]?.pause();
    await expect(connectNats({ url: gone.url }, 'test')).rejects.toMatchObject({ code: 'fleet.unreachable' });
    await gone.stop();
  });

  it('wants TLS where the URL says so', async () => {
    await expect(connectNats({ url: open.url.replace('nats:', 'tls:') }, 'test')).rejects.toMatchObject({
      code: 'fleet.unreachable',
    });
  });
});
