import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { credsAuthenticator, nkeyAuthenticator, nkeys } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFleet, FleetWorker } from '../../src/fleet/index.ts';
import { connectNats } from '../../src/gate/nats/index.ts';
import { cli, expectOneLine, makePlace, type Place } from '../cli/support.ts';
import { type NatsServers, startNats } from '../support/nats.ts';

/*
 * A server as it is between machines: it has TLS with a certificate of an authority of its own, and its users are what
 * credentials files say (a JWT that an account signed, beside the seed), not lines of its configuration.
 */
type Key = ReturnType<typeof nkeys.createUser>;
const operator = nkeys.createOperator();
const [account, system, stranger] = [nkeys.createAccount(), nkeys.createAccount(), nkeys.createAccount()];
let place: Place;
let servers: NatsServers;
let url: string;
const ends: (() => Promise<void>)[] = [];
const at = (name: string) => join(place.root, name);

/** A JWT as NATS has them, version 2; `nsc` makes the same. */
function jwt(issuer: Key, subject: Key, name: string, nats: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = {
    ...{ jti: name, iat: Math.floor(Date.now() / 1000), name },
    ...{ iss: issuer.getPublicKey(), sub: subject.getPublicKey(), nats: { version: 2, ...nats } },
  };
  const signed = `${part({ typ: 'JWT', alg: 'ed25519-nkey' })}.${part(claims)}`;
  return `${signed}.${Buffer.from(issuer.sign(Buffer.from(signed))).toString('base64url')}`;
}

const NO_LIMITS = {
  ...{ subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 },
  ...{ mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 },
};
const accountJwt = (key: Key, name: string, limits: object) =>
  jwt(operator, key, name, { type: 'account', limits });

/** The content of a credentials file for a new user of an account. */
function credentials(of: Key): string {
  const user = nkeys.createUser();
  const token = jwt(of, user, 'user', { type: 'user', subs: -1, data: -1, payload: -1 });
  return [
    ...['-----BEGIN NATS USER JWT-----', token, '------END NATS USER JWT------', ''],
    ...['-----BEGIN USER NKEY SEED-----', Buffer.from(user.getSeed()).toString()],
    ...['------END USER NKEY SEED------', ''],
  ].join('\n');
}

const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: place.root, stdio: 'pipe' });
const newKey = ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
function makeAuthority(name: string): void {
  openssl(...newKey, '-x509', '-subj', `/CN=${name}`, '-keyout', `${name}.key`, '-out', `${name}.pem`);
}

/** A certificate for a name or address, signed by an authority. */
function makeCertificate(server: string, of: string, ca = 'ca'): void {
  openssl(...newKey, '-subj', `/CN=${server}`, '-keyout', `${server}.key`, '-out', `${server}.csr`);
  writeFileSync(at('names'), `subjectAltName=${of}\n`);
  const signs = ['-CA', `${ca}.pem`, '-CAkey', `${ca}.key`, '-CAcreateserial', '-extfile', 'names'];
  openssl('x509', '-req', '-in', `${server}.csr`, ...signs, '-out', `${server}.pem`);
}

const tlsWith = (server: string) =>
  `tls { cert_file: "${at(`${server}.pem`)}", key_file: "${at(`${server}.key`)}" }`;

beforeAll(async () => {
  place = makePlace();
  makeAuthority('ca');
  makeAuthority('other-ca');
  makeCertificate('server', 'IP:127.0.0.1');
  makeCertificate('elsewhere', 'DNS:localhost,IP:127.0.0.2');
  const files = { good: account, 'of-a-stranger': stranger };
  for (const [name, of] of Object.entries(files))
    writeFileSync(at(`${name}.creds`), credentials(of), { mode: 0o600 });
  const mine = nkeys.createUser();
  writeFileSync(at('bare.seed'), mine.getSeed(), { mode: 0o600 });
  servers = await startNats({
    config: [
      tlsWith('server'),
      `operator: ${jwt(operator, operator, 'operator', { type: 'operator' })}`,
      `system_account: ${system.getPublicKey()}`,
      'resolver: MEMORY',
      'resolver_preload: {',
      `  ${account.getPublicKey()}: ${accountJwt(account, 'fleet', NO_LIMITS)}`,
      `  ${system.getPublicKey()}: ${accountJwt(system, 'system', { ...NO_LIMITS, mem_storage: 0, disk_storage: 0 })}`,
      '}',
    ].join('\n'),
    probe: {
      // By its address the client would have it checked for localhost.
      tls: { ca: readFileSync(at('ca.pem'), 'utf8'), host: '127.0.0.1' } as object,
      authenticator: credsAuthenticator(Buffer.from(credentials(account))),
    },
  });
  url = servers.url.replaceAll('nats://', 'tls://');
});
afterAll(async () => {
  for (const end of ends) await end();
  await servers?.stop();
  place?.dispose();
});

describe('a fleet over TLS with credentials files', () => {
  it('runs jobs, by the library and the command line, and has its state there', async () => {
    const settings = { url, credentials: at('good.creds'), ca: at('ca.pem') };
    const connection = await connectNats(settings, 'worker');
    ends.unshift(() => connection.close());
    expect(connection.info?.tls_required).toBe(true);
    const worker = await FleetWorker.start({
      ...{ connection, queue: 'builds', sandbox: { workspace: place.workspace } },
      ...{ scratch: place.tmp, credentials: at('good.creds') },
    });
    ends.unshift(() => worker.stop(0));
    const fleet = await createFleet({ ...settings, queue: 'builds' });
    ends.unshift(() => fleet.close());
    expect(await fleet.run('echo ran')).toMatchObject({ ok: true, stdout: 'ran\n' });
    expect(await submit('good.creds', 'ca.pem')).toMatchObject({ exitCode: 0, stdout: 'ran\n', stderr: '' });
    writeFileSync(
      join(place.root, 'config/sandbox-run/policy.toml'),
      `[state]\nurl = "${url}"\ncredentials = "${at('good.creds')}"\nca = "${at('ca.pem')}"\n[security]\nmax_actions_per_hour = 1\n`,
      { mode: 0o600 },
    );
    const runs = [await cli(place, ['--', 'true']), await cli(place, ['--', 'true'])];
    expect(runs.map(({ exitCode }) => exitCode)).toEqual([0, 126]);
    expect(runs[1]?.stderr).toMatch(/1 actions were run/);
  });

  it.each([
    [
      'a user of an account that the server does not know',
      'of-a-stranger.creds',
      'ca.pem',
      /refuses this user/,
    ],
    ['a key without a JWT', 'bare.seed', 'ca.pem', /refuses this user/],
    ['nobody', undefined, 'ca.pem', /refuses this user/],
    [
      'a certificate of another authority',
      'good.creds',
      'other-ca.pem',
      /its certificate is not accepted; .*--ca/,
    ],
    [
      'a certificate of an authority that nobody named',
      'good.creds',
      undefined,
      /its certificate is not accepted; .*--ca/,
    ],
    ['certificates that are not there', 'good.creds', 'missing.pem', /missing\.pem .*cannot be read/],
  ])('refuses %s in one line', async (_, creds, ca, why) => {
    const refused = await submit(creds, ca);
    expect(refused).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(refused.stderr);
    expect(refused.stderr).toMatch(why);
  });

  it('refuses a server whose certificate is for another name, in one line', async () => {
    const other = await startNats({
      config: tlsWith('elsewhere'),
      probe: { tls: { ca: readFileSync(at('ca.pem'), 'utf8') } },
    });
    try {
      const byAddress = other.url.replace('nats://', 'tls://');
      const refused = await cli(place, args(byAddress, undefined, 'ca.pem'));
      expect(refused).toMatchObject({ exitCode: 125, stdout: '' });
      expectOneLine(refused.stderr);
      expect(refused.stderr).toMatch(/ERR_TLS_CERT_ALTNAME_INVALID.*its certificate is not accepted/);
      const byName = byAddress.replace('127.0.0.1', 'localhost');
      await (await connectNats({ url: byName, ca: at('ca.pem') }, 'test')).close();
    } finally {
      await other.stop();
    }
  });

  it('shows a server that asks for one the certificate of its credentials file', async () => {
    makeCertificate('client', 'email:client');
    const pem = ['client.pem', 'client.key'].map((name) => readFileSync(at(name), 'utf8')).join('');
    const user = nkeys.createUser();
    writeFileSync(at('certified.creds'), `${pem}${Buffer.from(user.getSeed()).toString()}\n`, {
      mode: 0o600,
    });
    writeFileSync(at('only.creds'), pem, { mode: 0o600 });
    writeFileSync(at('bare.creds'), user.getSeed(), { mode: 0o600 });
    // As `openssl ecparam -genkey` writes a key.
    const withParameters = pem.replace(
      /(?=-----BEGIN PRIVATE)/,
      openssl('ecparam', '-name', 'prime256v1').toString(),
    );
    writeFileSync(at('parameters.creds'), `${withParameters}${Buffer.from(user.getSeed()).toString()}\n`, {
      mode: 0o600,
    });
    makeCertificate('unknown-client', 'email:client', 'other-ca');
    const unknown = ['unknown-client.pem', 'unknown-client.key'].map((name) =>
      readFileSync(at(name), 'utf8'),
    );
    writeFileSync(at('unknown.creds'), `${unknown.join('')}${Buffer.from(user.getSeed()).toString()}\n`, {
      mode: 0o600,
    });
    for (const half of ['client.pem', 'client.key'])
      writeFileSync(at(`${half}.creds`), readFileSync(at(half), 'utf8'), { mode: 0o600 });
    const asks = tlsWith('server').replace('}', `, ca_file: "${at('ca.pem')}", verify: true }`);
    const shown = {
      cert: readFileSync(at('client.pem'), 'utf8'),
      key: readFileSync(at('client.key'), 'utf8'),
    };
    const other = await startNats({
      config: `${asks}\nauthorization { users: [{ nkey: ${user.getPublicKey()} }] }`,
      probe: {
        tls: { ca: readFileSync(at('ca.pem'), 'utf8'), host: '127.0.0.1', ...shown } as object,
        authenticator: nkeyAuthenticator(user.getSeed()),
      },
    });
    try {
      const tls = other.url.replace('nats://', 'tls://');
      const settings = { url: tls, ca: at('ca.pem'), credentials: at('certified.creds') };
      await (await connectNats(settings, 'test')).close();
      await (await connectNats({ ...settings, credentials: at('parameters.creds') }, 'test')).close();
      const refusals = [
        [
          args(tls, 'bare.creds', 'ca.pem'),
          /\(timeout\); if it wants a certificate of its clients, .*credentials file/,
        ],
        [args(tls, 'only.creds', 'ca.pem'), /refuses this user/],
        [args(tls, 'unknown.creds', 'ca.pem'), /it may not accept the certificate in the credentials file/],
        [args(tls, 'client.pem.creds', 'ca.pem'), /has a certificate and not its private key/],
        [args(tls, 'client.key.creds', 'ca.pem'), /has a private key and no certificate/],
        [args(other.url, 'certified.creds', 'ca.pem'), /has a certificate, .*tls:\/\//],
      ] as const;
      const answers = await Promise.all(
        refusals.map(async ([told, why]) => ({ why, refused: await cli(place, told) })),
      );
      for (const { why, refused } of answers) {
        expect(refused).toMatchObject({ exitCode: 125, stdout: '' });
        expectOneLine(refused.stderr);
        expect(refused.stderr).toMatch(why);
      }
    } finally {
      await other.stop();
    }
  });

  it('says nothing to a server of which nobody checks the certificate', async () => {
    const plain = await cli(place, args(servers.url, 'good.creds', undefined));
    expect(plain).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(plain.stderr);
    expect(plain.stderr).toMatch(/its certificate is not accepted; .*--ca/);
  });
});

const args = (to: string, creds: string | undefined, ca: string | undefined) => [
  ...['submit', '--queue', 'builds', '--url', to, '--wait'],
  ...(creds === undefined ? [] : ['--creds', at(creds)]),
  ...(ca === undefined ? [] : ['--ca', at(ca)]),
  ...['-c', 'echo ran'],
];
const submit = (creds: string | undefined, ca: string | undefined) => cli(place, args(url, creds, ca));
