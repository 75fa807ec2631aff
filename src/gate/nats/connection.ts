import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { type ConnectionOptions, checkServerIdentity } from 'node:tls';
import type { Authenticator, NatsConnection, TlsOptions } from '@nats-io/transport-node';
import { errnoOf } from '../../base/errno-of.ts';
import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { NatsSettings } from '../../model/fleet.ts';
import { readPrivateFile } from '../../workspace/index.ts';

/** The environment variable with the path of the credentials file, for a service that is handed it (systemd's LoadCredential). */
export const CREDENTIALS_VARIABLE = 'SANDBOX_RUN_NATS_CREDS';

/** How long one server may take to be connected with. */
const CONNECT_MS = 5_000;
/**
 * How long an answer may take, connecting again included. What is asked while there is no leader is never answered: it is
 * asked again, several times in what an election takes.
 */
export const ANSWER_MS = 3_000;
const DEFAULT_PORT = 4222;

/**
 * Connects with a NATS server, or one of a cluster; a connection that is lost is made again for as long as it is not closed.
 * `name` is what the server shows of us. Holds the process open until it is closed.
 * @throws {SandboxError} `fleet.uninstalled`, `fleet.invalid`, `fleet.unreachable` or `fleet.refused`.
 */
export async function connectNats(settings: NatsSettings, name: string): Promise<NatsConnection> {
  const { servers, encrypted } = serversOf(settings.url);
  const { connect, credsAuthenticator, nkeyAuthenticator } = await whereInstalled(
    () => import('@nats-io/transport-node'),
  );
  const { secret, certificate } = credentialsOf(settings);
  if (certificate !== undefined && !encrypted)
    throw new SandboxError(
      'fleet.invalid',
      'the NATS credentials file has a certificate, which needs tls://',
    );
  // A credentials file has the user's JWT beside the seed, and to be read a new line behind that.
  const authenticator: Authenticator | undefined =
    secret &&
    (secret.includes('BEGIN NATS USER JWT')
      ? credsAuthenticator(Buffer.concat([secret, Buffer.from('\n')]))
      : nkeyAuthenticator(secret));
  try {
    return await connect({
      servers: [...servers],
      name,
      timeout: CONNECT_MS,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 200,
      reconnectJitter: 100,
      pingInterval: 5_000,
      maxPingOut: 2,
      // With each request; its trace would be made beforehand.
      noAsyncTraces: true,
      ...(authenticator && { authenticator }),
      ...(encrypted && { tls: { ...tlsOf(settings, servers), ...certificate } }),
    });
  } catch (error) {
    const failure = natsFailure(error, settings.url);
    // A server that rejects our certificate looks like a timeout: with TLS 1.3 the handshake has succeeded by then.
    if (!encrypted || !failure.message.endsWith('(timeout)')) throw failure;
    throw new SandboxError(
      failure.code,
      certificate === undefined
        ? `${failure.message}; if it wants a certificate of its clients, add that and its key to the credentials file`
        : `${failure.message}; it may not accept the certificate in the credentials file`,
      { cause: error },
    );
  }
}

/** A package of the client, or how to install it. */
export async function whereInstalled<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const code = errnoOf(error);
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error;
    throw new SandboxError(
      'fleet.uninstalled',
      'the policy names a NATS server, and its client is not installed beside sandbox-run',
      {
        cause: error,
        remedy:
          'npm install @nats-io/transport-node @nats-io/jetstream @nats-io/kv @nats-io/obj (with --global if sandbox-run is)',
      },
    );
  }
}

/** Errors of the client by the names of their classes, which are part of its interface. */
const REFUSED: ReadonlySet<string> = new Set([
  'AuthorizationError',
  'UserAuthenticationExpiredError',
  'PermissionViolationError',
]);

/** Codes of Node for a certificate that is not accepted. */
const CERTIFICATE = /^(?:[A-Z_]*CERT[A-Z_]*|UNABLE_TO_VERIFY_LEAF_SIGNATURE)$/;

/** What any failure of the client becomes: one line. A `SandboxError` stays what it is. */
export function natsFailure(error: unknown, url: string): SandboxError {
  if (error instanceof SandboxError) return error;
  if (isRefusal(error))
    return new SandboxError(
      'fleet.refused',
      `the NATS server ${url} refuses this user (${errorMessage(error)}); look at its accounts and at the credentials file (${CREDENTIALS_VARIABLE} or the policy)`,
      { cause: error },
    );
  const causes = causesOf(error);
  const reason = causes.map((cause) => errnoOf(cause) ?? cause.message).at(-1) ?? errorMessage(error);
  const advice = adviceOn(reason);
  return new SandboxError('fleet.unreachable', `the NATS server ${url} cannot be used (${reason})${advice}`, {
    cause: error,
  });
}

/** What may help, as the end of a message. */
function adviceOn(reason: string): string {
  if (CERTIFICATE.test(reason))
    return '; its certificate is not accepted; name the certificates of its authority (--ca, or state.ca in the policy), and it by a name that is in its own';
  // A server that has it, or knows one that does, answers, be it that there is no leader.
  if (/^no responders: '?\$JS\./.test(reason))
    return '; it has no JetStream; start it with nats-server --jetstream, or with jetstream {} in its configuration';
  return '';
}

/** Whether the server lets this user not, which no patience changes. */
export const isRefusal = (error: unknown) => causesOf(error).some(({ name }) => REFUSED.has(name));

function causesOf(error: unknown): readonly Error[] {
  const found: Error[] = [];
  for (let at = error; at instanceof Error && found.length < 8; at = at.cause) found.push(at);
  return found;
}

/**
 * The addresses in a URL.
 * @throws {SandboxError} `fleet.invalid`.
 */
export function serversOf(url: string): { readonly servers: readonly string[]; readonly encrypted: boolean } {
  const parts = url.split(',').map((part) => part.trim());
  const parsed = parts.map((part, index) => {
    // One scheme for all: "nats://a,b:4223".
    const whole = index > 0 && !part.includes('://') ? `${schemeOf(parts[0] ?? '')}${part}` : part;
    // Not shown: what cannot be read may have a password in it, too.
    return URL.canParse(whole) ? new URL(whole) : invalid(`address ${index + 1} in it is no URL`);
  });
  const schemes = new Set(parsed.map(({ protocol }) => protocol));
  const [scheme] = schemes;
  if (schemes.size !== 1 || (scheme !== 'nats:' && scheme !== 'tls:'))
    return invalid('all servers need nats:// or all need tls://');
  const servers = parsed.map(({ hostname, port, username, password, pathname, search, hash }) => {
    if (username !== '' || password !== '')
      return invalid(
        `it has a user or password; use a credentials file or an nkey (--creds, ${CREDENTIALS_VARIABLE})`,
      );
    if (hostname === '' || !['', '/'].includes(pathname) || search !== '' || hash !== '')
      return invalid('only hosts and ports belong in it');
    return `${hostname}:${port === '' ? DEFAULT_PORT : port}`;
  });
  return { servers, encrypted: scheme === 'tls:' };
}

const schemeOf = (part: string) => part.slice(0, part.indexOf('://') + 3);

/** Without the URL: it may have a password. */
function invalid(why: string): never {
  throw new SandboxError('fleet.invalid', `the URL of the NATS server is not usable: ${why}`);
}

/**
 * What a credentials file has beside the seed of a user: by which certificate the server may know us. openssl writes the
 * parameters of a key before it, which are in it, too.
 */
const PEM = /-----BEGIN (CERTIFICATE|EC PARAMETERS|(?:[A-Z]+ )?PRIVATE KEY)-----[\s\S]*?-----END \1-----\n?/g;

function credentialsOf({ credentials }: NatsSettings): {
  readonly secret?: Buffer;
  readonly certificate?: { readonly cert: string; readonly key: string } | undefined;
} {
  const path = credentials ?? process.env[CREDENTIALS_VARIABLE];
  if (path === undefined || path === '') return {};
  const whole = readPrivateFile(path, {
    what: 'the NATS credentials file',
    code: 'fleet.invalid',
    // A seed has 58 characters.
    shortest: 58,
  }).toString('latin1');
  const pem = [...whole.matchAll(PEM)];
  const ofKind = (name: string) =>
    pem.flatMap(([text, kind]) => (kind?.endsWith(name) ? [text] : [])).join('');
  const [cert, key] = [ofKind('CERTIFICATE'), ofKind('KEY')];
  if (pem.length > 0 && (cert === '' || key === ''))
    throw new SandboxError(
      'fleet.invalid',
      `the NATS credentials file has ${key === '' ? 'a certificate and not its private key' : 'a private key and no certificate'}`,
    );
  // An nkey seed must stand alone, so the PEM blocks are removed.
  const secret = whole.replaceAll(PEM, '').trim();
  return {
    ...(secret !== '' && { secret: Buffer.from(secret, 'latin1') }),
    ...(pem.length > 0 && { certificate: { cert, key } }),
  };
}

function tlsOf({ ca }: NatsSettings, servers: readonly string[]): TlsOptions {
  // The client hands on to Node what it does not know.
  const checked: Pick<ConnectionOptions, 'checkServerIdentity'> = {
    checkServerIdentity: identityOf(servers),
  };
  return { ...checked, ...(ca === undefined ? {} : { ca: certificates(ca) }) };
}

/**
 * Whether a certificate is that of a server. For one that is named by its address the client asks with no name, which Node
 * takes for localhost: then it has to be for one of our addresses.
 */
function identityOf(servers: readonly string[]): typeof checkServerIdentity {
  const hosts = servers.map((server) => server.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1'));
  const addresses = hosts.filter((host) => isIP(host) !== 0);
  return (name, certificate) => {
    const isNameless = addresses.length > 0 && name === 'localhost' && !hosts.includes(name);
    const problems = (isNameless ? addresses : [name]).map((host) => checkServerIdentity(host, certificate));
    return problems.includes(undefined) ? undefined : problems[0];
  };
}

function certificates(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new SandboxError(
      'fleet.invalid',
      `the certificates ${path} for the NATS server cannot be read (${errnoOf(error) ?? errorMessage(error)})`,
      { cause: error },
    );
  }
}
