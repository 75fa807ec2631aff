import { execFileSync, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createSandbox, type Sandbox } from '../../src/index.ts';
import { refusedForModel, warningsOf } from '../../src/run/index.ts';
import { makeArena } from '../support/arena.ts';
import { until } from '../support/bystander.ts';
import { type Argv, PROGRAMS } from '../support/sandboxee.ts';
import { HOST, TIERS, type Tier } from '../support/tiers.ts';

/** One address for many hosts, as that of a CDN. */
const ADDRESS = '127.0.0.9';
const LISTED = 'good.test';
const UNLISTED = 'evil.test';
const ANSWER = 'answer-5c1d';

/** An address of this machine that no other process of the tests has: the usual ports are few. */
const ownAddress = (last: number) =>
  `127.${77 + (process.pid >>> 16)}.${(process.pid >>> 8) & 255}.${(process.pid & 255 & ~15) | last}`;

/**
 * Connects and sends, each in its own way, and says what came back: `NAME=answered`, `NAME=reset`. What begins with
 * `good` names the listed host alone; everything else has the other one in it.
 */
const ATTACK = `
import os, socket, ssl, struct, sys, time
host, tls, http, retry = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
GOOD, EVIL = b'${LISTED}', b'${UNLISTED}'
def counted(data, size): return len(data).to_bytes(size, 'big') + data
def extension(kind, data): return struct.pack('>H', kind) + counted(data, 2)
def name(*names): return extension(0, counted(b''.join(b'\\0' + counted(n, 2) for n in names), 2))
def message(extensions):
    body = b'\\x03\\x03' + b'r' * 32 + counted(b's' * 32, 1) + counted(b'\\x13\\x01', 2) + b'\\x01\\x00' + counted(extensions, 2)
    return b'\\x01' + counted(body, 3)
def record(data, kind=22): return bytes([kind, 3, 1]) + counted(data, 2)
def hello(extensions): return record(message(extensions))
def of_python(server_name):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl._create_unverified_context()
    try: context.wrap_bio(incoming, outgoing, server_hostname=server_name).do_handshake()
    except ssl.SSLWantReadError: pass
    return outgoing.read()
def in_records(hello, size):
    data = hello[5:]
    return b''.join(record(data[at:at + size]) for at in range(0, len(data), size))
def slowly(data, size): return [data[at:at + size] for at in range(0, len(data), size)]
def request(*lines, body=b''): return b'\\r\\n'.join(lines) + b'\\r\\n\\r\\n' + body
GET, POST, H, E = b'GET / HTTP/1.1', b'POST / HTTP/1.1', b'Host: ' + GOOD, b'Host: ' + EVIL
evil = request(GET, E)
def tried(what, port, pieces, then=()):
    with socket.socket() as one:
        one.settimeout(8)
        said = ''
        try:
            one.connect((host, port))
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in pieces:
                one.sendall(piece)
                if len(pieces) > 1: time.sleep(0.002)
            said = 'answered' if one.recv(100) else 'closed'
            for piece in then:
                one.sendall(piece)
                time.sleep(0.1)
            if then: said = 'answered' if one.recv(100) else 'closed'
        except ConnectionResetError: said = 'reset'
        except BrokenPipeError: said = 'reset'
        except OSError as error: said = type(error).__name__
        print(what + '=' + said, flush=True)
good = of_python(GOOD.decode())
change = bytes([20, 3, 3, 0, 1, 1])
tried('good', tls, [good])
tried('good-in-pieces', tls, slowly(good, 11))
tried('good-in-records', tls, [in_records(good, 7)])
tried('good-large', tls, [in_records(hello(name(GOOD) + extension(51, b'k' * 17000)), 16384)])
tried('good-http', http, [request(GET, H)])
tried('good-http-in-pieces', http, slowly(request(POST, H, b'Content-Length: 5', body=b'hello'), 3))
tried('good-http-again', http, [request(GET, H)], [request(POST, H, b'Transfer-Encoding: chunked', body=b'5\\r\\nhello\\r\\n0\\r\\n\\r\\n')])
tried('good-second-hello', retry, [hello(name(GOOD))], [change + hello(name(GOOD) + extension(51, b'k'))])
for what, pieces in {
    'tls-name': [of_python(EVIL.decode())],
    'tls-in-pieces': slowly(of_python(EVIL.decode()), 11),
    'tls-in-records': [in_records(of_python(EVIL.decode()), 7)],
    'tls-two-names': [hello(name(GOOD, EVIL))],
    'tls-two-extensions': [hello(name(GOOD) + name(EVIL))],
    'tls-beneath': [hello(name(EVIL + b'.' + GOOD))],
    'tls-nul': [hello(name(GOOD + b'\\0.' + EVIL))],
    'tls-no-name': [hello(extension(16, EVIL))],
    'tls-address': [hello(name(b'127.0.0.9') + extension(16, EVIL))],
    'tls-hidden': [hello(name(GOOD) + extension(0xfe0d, EVIL))],
    'tls-old': [b'\\x80\\x2e\\x01\\x03\\x01' + EVIL * 6],
    'tls-other-bytes': [b'SSH-2.0-' + EVIL + b'\\r\\n'],
    'tls-http': [evil],
    'tls-two-hellos': [good + of_python(EVIL.decode())],
}.items(): tried(what, tls, pieces)
tried('tls-second-hello', retry, [hello(name(GOOD))], [change + hello(name(EVIL))])
for what, pieces in {
    'http-host': [evil],
    'http-case': [request(GET, b'hOsT:' + EVIL)],
    'http-two-hosts': [request(GET, H, E)],
    'http-folded': [request(GET, H + b'\\r\\n ' + EVIL)],
    'http-space': [request(GET, H, b'Host : ' + EVIL)],
    'http-bare-line': [b'GET / HTTP/1.1\\n' + E + b'\\n\\n'],
    'http-no-host': [request(b'GET /' + EVIL + b' HTTP/1.0')],
    'http-absolute': [request(b'GET http://' + EVIL + b'/ HTTP/1.1', H)],
    'http-connect': [request(b'CONNECT ' + EVIL + b':443 HTTP/1.1', H)],
    'http-2': [b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n' + EVIL],
    'http-body-of-get': [request(GET, H, b'Content-Length: %d' % len(evil), body=evil)],
    'http-two-lengths': [request(POST, H, b'Content-Length: 0', b'Content-Length: %d' % len(evil), body=evil)],
    'http-length-and-chunks': [request(POST, H, b'Content-Length: %d' % (len(evil) + 5), b'Transfer-Encoding: chunked', body=b'0\\r\\n\\r\\n' + evil)],
    'http-odd-chunks': [request(POST, H, b'Transfer-Encoding: xchunked', body=b'0\\r\\n\\r\\n' + evil)],
    'http-tls': [of_python(EVIL.decode())],
}.items(): tried(what, http, pieces)
tried('http-next', http, [request(GET, H)], [evil])
tried('http-pipelined', http, [request(GET, H)], [request(GET, H) + evil])
tried('http-after-upgrade', http, [request(GET, H, b'Connection: Upgrade', b'Upgrade: websocket')], [b'\\x81\\x09' + EVIL])
`;

/** The first answer of a server that wants another hello: a handshake's record with that random of RFC 8446. */
const RETRY = Buffer.concat([
  Buffer.from('160303002c020000280303', 'hex'),
  Buffer.from('cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c', 'hex'),
  Buffer.alloc(6),
]);

describe('reaching another host at an address that is listed', () => {
  const arena = makeArena();
  const attack = join(PROGRAMS, 'other-host.py');
  /** What came to the three servers that write down what comes. */
  let received = '';
  /** Whom the real servers were asked for. */
  let asked: string[] = [];
  const servers: Server[] = [];
  const ports: Record<'tls' | 'http' | 'retry' | 'https' | 'web', number> = {
    ...{ tls: 0, http: 0, retry: 0, https: 0, web: 0 },
  };

  const listen = async (server: Server): Promise<number> => {
    servers.push(server);
    await once(server.listen(0, ADDRESS), 'listening');
    return (server.address() as AddressInfo).port;
  };
  const noting = (answer: (socket: Socket, chunk: Buffer) => void) =>
    createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        received += chunk.toString('latin1');
        answer(socket, chunk);
      });
    });
  const sandboxFor = (tier: Tier): Promise<Sandbox> =>
    arena.sandbox(tier, {
      net: [
        // The name, and where it leads, which is no public address.
        ...['tls', 'retry', 'https'].flatMap((one) =>
          [LISTED, ADDRESS].map((host) => `${host}:${ports[one as 'tls']}/tls`),
        ),
        ...['http', 'web'].flatMap((one) =>
          [LISTED, ADDRESS].map((host) => `${host}:${ports[one as 'web']}/http`),
        ),
      ],
      gate: { lookup: async () => ({ addresses: [ADDRESS], ttl: 5 }) },
      policy: { unsafe: { unjudged_commands: true } },
      timeout: 60_000,
    });
  const words = (text: string) =>
    new Map(text.split('\n').map((line) => line.split('=') as [string, string]));

  beforeAll(async () => {
    writeFileSync(attack, ATTACK);
    const [key, cert] = [join(arena.root, 'key.pem'), join(arena.root, 'cert.pem')];
    execFileSync(
      'openssl',
      [
        ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30'],
        ...['-subj', `/CN=${LISTED}`, '-keyout', key, '-out', cert],
      ],
      { stdio: 'ignore' },
    );
    ports.tls = await listen(noting((socket) => socket.write('\x15\x03\x03\x00\x02\x02\x28')));
    ports.http = await listen(
      noting((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')),
    );
    ports.retry = await listen(noting((socket, chunk) => socket.write(chunk[0] === 22 ? RETRY : 'done')));
    const https = createHttps(
      {
        key: readFileSync(key),
        cert: readFileSync(cert),
        SNICallback: (name, done) => {
          asked.push(name);
          done(null);
        },
      },
      (_, response) => response.end(`${ANSWER}\n`),
    );
    https.on('tlsClientError', () => {});
    ports.https = await listen(https);
    ports.web = await listen(
      createHttp((request, response) => {
        asked.push(request.headers.host?.split(':')[0] ?? '');
        response.end(`${ANSWER}\n`);
      }),
    );
  });
  beforeEach(() => {
    received = '';
    asked = [];
  });
  afterAll(() => {
    for (const server of servers) server.close();
  });

  it('works without a sandbox', async () => {
    const child = spawn('python3', [attack, ADDRESS, ...[ports.tls, ports.http, ports.retry].map(String)]);
    let text = '';
    child.stdout.on('data', (chunk) => {
      text += chunk;
    });
    await once(child, 'exit');
    const said = words(text.trim());
    expect([...said].filter(([, what]) => what !== 'answered')).toEqual([]);
    expect(said.size).toBe(41);
    expect(received.split(UNLISTED).length).toBeGreaterThan(33);
  });

  // The usual ports are root's.
  it.runIf(HOST.root)(
    'with verify = "sni", at the usual ports, as the report says (needs root)',
    async () => {
      const address = ownAddress(9);
      const seen: string[] = [];
      const web = createHttp((request, response) => {
        seen.push(request.headers.host ?? '');
        response.end(`${ANSWER}\n`);
      });
      servers.push(web);
      await once(web.listen(80, address), 'listening');
      const sandbox = await arena.sandbox(TIERS[0] as Tier, {
        net: [LISTED, `${address}/tls`, `${address}/http`],
        gate: { lookup: async () => ({ addresses: [address], ttl: 5 }) },
        policy: { network: { verify: 'sni' }, unsafe: { unjudged_commands: true } },
      });
      const network = sandbox.plan.report.controls.find(({ id }) => id === 'network');
      expect(network?.reason).toContain('must themselves name a host that may be reached');
      const good = await sandbox.run(`curl -sm 20 http://${LISTED}/`);
      expect(good.stdout).toContain(ANSWER);
      const evil = await sandbox.run(`curl -sm 20 -H 'Host: ${UNLISTED}' http://${LISTED}/`);
      expect(evil.stdout).toBe('');
      expect(seen).toEqual([LISTED]);
      expect(evil.connections).toContainEqual(expect.objectContaining({ askedFor: UNLISTED, port: 80 }));
    },
  );

  it.runIf(HOST.root)(
    'QUIC, whose names are not seen, is refused with verify = "sni" (needs root)',
    async () => {
      const address = ownAddress(10);
      const host = createSocket('udp4');
      const came: string[] = [];
      host.on('message', (bytes) => came.push(String(bytes)));
      await new Promise<void>((done) => host.bind(443, address, done));
      const send = async (verify: 'none' | 'sni') => {
        await using sandbox = await createSandbox({
          ...{ workspace: arena.workspace, policyFiles: false },
          // Where the name leads, which is no public address: the look refuses what the entry for it would let through.
          net: [`${LISTED}:442-443/udp`, `${address}:${verify === 'sni' ? 442 : 443}/udp`],
          gate: { lookup: async () => ({ addresses: [address], ttl: 5 }) },
          policy: { network: { verify }, unsafe: { unjudged_commands: true } },
        });
        return await sandbox.run(`echo ${verify} > /dev/udp/${LISTED}/443`);
      };
      try {
        expect((await send('none')).connections).toContainEqual(
          expect.objectContaining({ verdict: 'allowed' }),
        );
        expect(await until(() => came.length > 0)).toBe(true);
        const result = await send('sni');
        const { connections } = result;
        const warnings = warningsOf(result);
        expect(connections).toEqual([
          expect.objectContaining({ verdict: 'refused', protocol: 'udp', port: 443, rule: 'network.verify' }),
        ]);
        expect(warnings.join()).toContain('network.verify forbids it');
        expect(warnings.join()).not.toContain('--net');
        // Behind whatever came before.
        host.send('last', 443, address);
        expect(await until(() => came.includes('last'))).toBe(true);
        expect(came).toEqual(['none\n', 'last']);
      } finally {
        host.close();
      }
    },
  );

  describe.each(TIERS)('$name', (tier) => {
    it('is reset before a byte of it arrives, however it is sent; what names the listed host passes', async () => {
      const sandbox = await sandboxFor(tier);
      const argv: Argv = ['python3', attack, LISTED, ...[ports.tls, ports.http, ports.retry].map(String)];
      const result = await sandbox.run(argv);
      const said = words(result.stdout.trim());
      expect(result.stderr).toBe('');
      expect(said.size).toBe(41);
      const isGood = (what: string) => what.startsWith('good');
      expect([...said].filter(([what, how]) => isGood(what) && how !== 'answered')).toEqual([]);
      // What came before it may have been answered already.
      const isLater = (what: string) => ['tls-two-hellos', 'http-pipelined'].includes(what);
      expect([...said].filter(([what, how]) => !isGood(what) && !isLater(what) && how !== 'reset')).toEqual(
        [],
      );
      // What came before is written down by then.
      for (const port of [ports.tls, ports.http, ports.retry]) {
        const last = connect(port, ADDRESS);
        last.end(`last to ${port}`);
        await until(() => received.includes(`last to ${port}`));
        expect(received).toContain(`last to ${port}`);
        last.destroy();
      }
      expect(received).not.toContain(UNLISTED);
      expect(received).toContain(LISTED);
      const refused = (result.connections ?? []).filter(({ verdict }) => verdict === 'refused');
      expect(refused).toContainEqual(
        expect.objectContaining({
          ...{ host: LISTED, askedFor: UNLISTED, port: ports.tls, error: 'ECONNRESET' },
          entry: `${UNLISTED}:${ports.tls}`,
        }),
      );
      expect(refused).toContainEqual(
        expect.objectContaining({
          port: ports.tls,
          flaw: 'a TLS hello that may hide another server name (ECH)',
        }),
      );
      expect(result.connections).toContainEqual(
        expect.objectContaining({
          verdict: 'allowed',
          askedFor: LISTED,
          rule: `${LISTED}:${ports.http}/http`,
        }),
      );
    });

    it.each([
      [
        'curl',
        `curl -skm 20 https://${LISTED}:$S/`,
        `curl -skm 20 --connect-to ::${LISTED}: https://${UNLISTED}:$S/`,
      ],
      [
        'curl to a server by http',
        `curl -sm 20 http://${LISTED}:$P/ -w '%{remote_ip}'`,
        `curl -sm 20 -H 'Host: ${UNLISTED}' http://${LISTED}:$P/`,
      ],
      [
        'openssl',
        `(printf 'GET / HTTP/1.0\\r\\n\\r\\n'; sleep 1) | openssl s_client -quiet -connect ${LISTED}:$S -servername ${LISTED} 2>/dev/null`,
        `openssl s_client -quiet -connect ${LISTED}:$S -servername ${UNLISTED} </dev/null`,
      ],
      [
        'git',
        `GIT_CURL_VERBOSE=1 GIT_SSL_NO_VERIFY=1 git ls-remote https://${LISTED}:$S/x 2>&1 | grep -o 'HTTP/1.1 200 OK' && echo ${ANSWER}`,
        `GIT_SSL_NO_VERIFY=1 git -c http.curloptResolve=${UNLISTED}:$S:${ADDRESS} ls-remote https://${UNLISTED}:$S/x`,
      ],
      [
        'python',
        `python3 -c "import ssl,urllib.request as u; print(u.urlopen('https://${LISTED}:$S/', context=ssl._create_unverified_context()).read())"`,
        `python3 -c "import ssl,socket; ssl._create_unverified_context().wrap_socket(socket.create_connection(('${LISTED}', $S)), server_hostname='${UNLISTED}')"`,
      ],
      [
        'node',
        `node -e "require('https').get({host:'${LISTED}',port:$S,rejectUnauthorized:false},r=>r.pipe(process.stdout))"`,
        `node -e "require('https').get({host:'${LISTED}',servername:'${UNLISTED}',port:$S,rejectUnauthorized:false},r=>r.pipe(process.stdout))"`,
      ],
    ])(
      '%s reaches the one and not the other',
      async (_, good, evil) => {
        const sandbox = await sandboxFor(tier);
        const env = { S: String(ports.https), P: String(ports.web) };
        const reached = await sandbox.run(good, { env });
        expect(reached.stdout).toContain(ANSWER);
        expect(new Set(asked)).toEqual(new Set([LISTED]));
        const refused = await sandbox.run(evil, { env });
        expect(refused.stdout).not.toContain(ANSWER);
        expect(asked).not.toContain(UNLISTED);
        expect(refused.connections).toContainEqual(
          expect.objectContaining({ verdict: 'refused', askedFor: UNLISTED, host: LISTED }),
        );
        expect(refusedForModel(refused)).toContain(`${UNLISTED}:`);
      },
      60_000,
    );
  });
});
