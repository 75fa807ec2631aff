import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createSandbox, type PolicyFile, type SandboxOptions } from '../../src/index.ts';
import { HOST } from '../support/tiers.ts';

/** Containers may have none. */
const HAS_IPV6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === '::1'),
);

const UNJUDGED: PolicyFile = { unsafe: { unjudged_commands: true } };

describe.runIf(HOST.signalScope)('what was denied, in the library', () => {
  let root: string;
  let workspace: string;
  let outside: string;
  let server: Server;
  let port: number;
  beforeAll(async () => {
    root = realpathSync(mkdtempSync('/var/tmp/denials-'));
    workspace = join(root, 'workspace');
    outside = join(root, 'outside');
    mkdirSync(workspace);
    mkdirSync(outside);
    writeFileSync(join(outside, 'file'), 'content\n');
    writeFileSync(join(outside, 'tool'), '#!/bin/sh\ntrue\n', { mode: 0o755 });
    server = createServer((socket) => socket.end());
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const address = server.address();
    port = typeof address === 'object' && address !== null ? address.port : 0;
  });
  afterAll(() => {
    server.close();
    rmSync(root, { recursive: true, force: true });
  });

  async function sandboxWith(options: SandboxOptions = {}) {
    const sandbox = await createSandbox({ workspace, policyFiles: false, policy: UNJUDGED, ...options });
    onTestFinished(() => sandbox.close());
    return sandbox;
  }
  const brief = (denials: readonly { readonly operation: string; readonly object: string }[] | undefined) =>
    denials?.map(({ operation, object }) => `${operation} ${object.replace(outside, 'O')}`);

  it('is told of a command that failed, and of one that did not where all is looked at', async () => {
    const script = `(echo x > ${outside}/new) 2> /dev/null`;
    const usual = await sandboxWith();
    expect(brief((await usual.run(['bash', '-c', script])).denials)).toEqual(['create O/new']);
    expect((await usual.run(['bash', '-c', `${script}; true`])).denials).toBeUndefined();
    const all = await sandboxWith({ explain: 'always' });
    expect(brief((await all.run(['bash', '-c', `${script}; true`])).denials)).toContain('create O/new');
  });

  it('is that of a turn, in a session', async () => {
    const sandbox = await sandboxWith();
    const session = await sandbox.session();
    const turn = async (text: string) => brief((await session.run(text)).denials);
    expect(await turn(`mkdir ${outside}/one`)).toEqual(['create O/one']);
    expect(await turn('false')).toBeUndefined();
    expect(await turn(`mkdir ${outside}/two; mkdir ${outside}/three; false`)).toEqual([
      'create O/two',
      'create O/three',
    ]);
    await session.close();
  });

  it('is told of a limit as of everything else', async () => {
    const sandbox = await sandboxWith({ limits: { tmpBytes: 1024 ** 2 } });
    const result = await sandbox.run(['bash', '-c', 'head -c 8M /dev/zero > $TMPDIR/x; sleep 5']);
    expect(result).toMatchObject({ status: 'limit-exceeded' });
    expect(result.denials).toMatchObject([
      { operation: 'limit', object: 'tmp', control: 'resource-limits', allow: { key: 'limits.tmp_bytes' } },
    ]);
  });

  it.each(['never', 'auto', 'always'] as const)(
    'opens nothing of a listed network, however much is looked at (%s)',
    async (explain) => {
      const other = createServer((socket) => socket.end());
      await new Promise<void>((done) => other.listen(0, '127.0.0.1', done));
      onTestFinished(() => void other.close());
      const address = other.address();
      const unlisted = typeof address === 'object' && address !== null ? address.port : 0;
      const sandbox = await sandboxWith({ explain, net: [`localhost:${port}`] });
      const connect = (to: number) =>
        sandbox.run(['python3', '-c', `import socket; socket.create_connection(("127.0.0.1", ${to}))`]);
      expect((await connect(port)).exitCode).toBe(0);
      const refused = await connect(unlisted);
      expect([refused.exitCode, refused.connections]).toEqual([
        1,
        [expect.objectContaining({ verdict: 'refused', port: unlisted })],
      ]);
    },
  );

  it.runIf(HOST.namespaces)('says of what stays where it is whether it is hidden', async () => {
    mkdirSync(join(workspace, 'around'), { recursive: true });
    for (const name of ['.env', 'around/.env']) writeFileSync(join(workspace, name), 'x');
    const sandbox = await sandboxWith({ hide: ['.env'] });
    const { denials } = await sandbox.run(['bash', '-c', 'mv .env other; mv around another; false']);
    expect(denials).toMatchObject([
      { object: join(workspace, '.env'), control: 'hidden-paths', why: 'filesystem.hide hides it' },
      { object: join(workspace, 'around'), control: 'hidden-paths' },
    ]);
  });

  it.runIf(HOST.namespaces)('says nothing of its own servers, at a port that the host has, too', async () => {
    const datagrams = createSocket('udp4').bind(0, '127.0.0.1');
    await once(datagrams, 'listening');
    onTestFinished(() => void datagrams.close());
    const udp = datagrams.address().port;
    const sandbox = await sandboxWith();
    const denied = async (serve: string, to: string, at: number) => {
      const code = `
import socket, sys
def tcp(family, host):
    s = socket.socket(family); s.bind((host, ${port})); s.listen(); return s
def udp(host):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((host, ${udp})); return s
server = ${serve}
for _ in range(50):
    one = socket.socket(socket.AF_INET6 if ':' in '${to}' else socket.AF_INET, socket.${at === udp ? 'SOCK_DGRAM' : 'SOCK_STREAM'})
    try: one.connect(('${to}', ${at}))
    except ConnectionRefusedError: pass
sys.exit(1)`;
      const { exitCode, denials } = await sandbox.run(['python3', '-c', code]);
      expect(exitCode).toBe(1);
      return denials?.map(({ operation, object, count }) => `${operation} ${object} ${count}`);
    };
    expect(await denied('tcp(socket.AF_INET, "127.0.0.1")', '127.0.0.1', port)).toBeUndefined();
    expect(await denied('tcp(socket.AF_INET, "0.0.0.0")', '127.0.0.1', port)).toBeUndefined();
    expect(await denied('udp("127.0.0.1")', '127.0.0.1', udp)).toBeUndefined();
    expect(await denied('udp("0.0.0.0")', '127.0.0.1', udp)).toBeUndefined();
    if (HAS_IPV6) {
      // Node's servers are of this kind: one socket for both.
      expect(await denied('tcp(socket.AF_INET6, "::")', '127.0.0.1', port)).toBeUndefined();
      expect(await denied('tcp(socket.AF_INET6, "::")', '::1', port)).toBeUndefined();
    }
    expect(await denied('None', '127.0.0.1', port)).toEqual([`connect 127.0.0.1:${port} 50`]);
    expect(await denied('None', '127.0.0.1', udp)).toEqual([`connect 127.0.0.1:${udp} 50`]);
    // Another protocol's server is no server.
    expect(await denied(`udp("127.0.0.1")`, '127.0.0.1', port)).toEqual([`connect 127.0.0.1:${port} 50`]);
  });

  it('is told of a listed network with the line that lets it through', async () => {
    const ask = (address: string) =>
      `import socket; socket.socket(socket.AF_INET6 if ":" in "${address}" else socket.AF_INET).connect(("${address}", ${port}))`;
    const denied = async (address: string, net: string) => {
      const sandbox = await sandboxWith({ net: [net] });
      const { ok, denials = [] } = await sandbox.run(['python3', '-c', ask(address)]);
      return [ok, denials.map(({ object, allow }) => `${object} ${allow?.value}`)];
    };
    // Linux takes it for this machine, and so do entries.
    expect(await denied('0.0.0.0', 'other.test')).toEqual([false, [`0.0.0.0:${port} localhost:${port}`]]);
    expect(await denied('0.0.0.0', `localhost:${port}`)).toEqual([true, []]);
    if (!HAS_IPV6) return;
    expect(await denied('::', 'other.test')).toEqual([false, [`[::]:${port} localhost:${port}`]]);
    expect(await denied('::1', 'other.test')).toEqual([false, [`[::1]:${port} localhost:${port}`]]);
  });

  it('is told of the entry that denies a listed name, and offers none that would not help', async () => {
    const sandbox = await sandboxWith({
      // Where the name leads; at another port.
      net: ['api.test:80-90', '127.0.0.9:1'],
      policy: { ...UNJUDGED, network: { deny: ['api.test:81'] } },
      gate: { lookup: async () => ({ addresses: ['127.0.0.9'], ttl: 5 }) },
    });
    const connect = (at: number) =>
      sandbox.run(['python3', '-c', `import socket; socket.create_connection(("api.test", ${at}))`]);
    const { denials } = await connect(81);
    expect(denials).toEqual([expect.objectContaining({ object: 'api.test:81' })]);
    expect(denials?.[0]?.why).toContain('api.test:81');
    expect(denials?.[0]?.allow).toBeUndefined();
    expect((await connect(79)).denials?.[0]?.allow?.value).toBe('127.0.0.9:79');
  });

  describe.runIf(HOST.namespaces)('by another policy', () => {
    const open: PolicyFile = { ...UNJUDGED, network: { mode: 'open' } };
    const script = () =>
      [
        `cat ${outside}/file`,
        `echo x >> ${outside}/file`,
        `echo x > ${outside}/new; rm ${outside}/new`,
        `${outside}/tool`,
        `python3 -c 'import socket; socket.create_connection(("127.0.0.1", ${port}))'`,
        'echo own > own; cat own; mkdir d; rmdir d; echo x > $TMPDIR/x; cat /etc/passwd > /dev/null',
      ].join('; ');

    it('is what it would be denied, and nothing that both allow', async () => {
      const sandbox = await sandboxWith({ policy: open, writable: [outside], shadow: UNJUDGED });
      const { exitCode, wouldDeny } = await sandbox.run(['bash', '-c', script()]);
      expect(exitCode).toBe(0);
      expect(brief(wouldDeny)).toEqual(
        expect.arrayContaining(['read O/file', 'write O/file', 'create O/new', 'execute O/tool']),
      );
      const others = wouldDeny?.filter(({ object }) => !object.startsWith(outside)) ?? [];
      expect(brief(others.filter(({ object }) => object.startsWith(workspace)))).toEqual([]);
      expect(brief(others.filter(({ operation }) => operation !== 'read'))).toEqual([]);
      expect(wouldDeny?.find(({ object }) => object === join(outside, 'new'))?.allow).toMatchObject({
        key: 'filesystem.write',
        value: outside,
      });
    });

    it('is nothing of what the other policy allows as well', async () => {
      const shadow: PolicyFile = { filesystem: { write: [outside] } };
      const sandbox = await sandboxWith({ policy: open, writable: [outside], shadow });
      const { wouldDeny = [] } = await sandbox.run(['bash', '-c', script()]);
      expect(brief(wouldDeny.filter(({ object }) => object.startsWith(root)))).toEqual([]);
    });

    it('is nothing that is denied today already', async () => {
      const sandbox = await sandboxWith({ policy: open, shadow: UNJUDGED });
      const { denials, wouldDeny } = await sandbox.run(['bash', '-c', `cat ${outside}/file`]);
      expect(brief(denials)).toContain('read O/file');
      expect(brief(wouldDeny?.filter(({ object }) => object.startsWith(root)))).toEqual(undefined);
    });

    it('is told of a service of this machine', async () => {
      const shadow: PolicyFile = { network: { mode: 'listed', allow: ['other.test'] } };
      const sandbox = await sandboxWith({
        shadow,
        net: [`localhost:${port}`],
      });
      const ask = `import socket; socket.create_connection(("localhost", ${port}))`;
      const { exitCode, wouldDeny } = await sandbox.run(['python3', '-c', ask]);
      expect([exitCode, brief(wouldDeny?.filter(({ operation }) => operation === 'connect'))]).toEqual([
        0,
        [`connect 127.0.0.1:${port}`],
      ]);
    });

    it.runIf(HAS_IPV6)(
      'is told of datagrams by their own entries, and of an IPv6 address in brackets',
      async () => {
        const datagrams = createSocket('udp4').bind(0, '127.0.0.1');
        const server = createServer((socket) => socket.end()).listen(0, '::1');
        await Promise.all([once(datagrams, 'listening'), once(server, 'listening')]);
        const six = (server.address() as AddressInfo).port;
        const udp = `localhost:${datagrams.address().port}/udp`;
        const send = `import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b"x", ("127.0.0.1", ${datagrams.address().port})); socket.create_connection(("::1", ${six}))`;
        const told = async (allow: readonly string[]) => {
          const shadow: PolicyFile = { network: { mode: 'listed', allow: [...allow] } };
          const sandbox = await sandboxWith({ shadow, net: [udp, `[::1]:${six}`] });
          const { exitCode, wouldDeny } = await sandbox.run(['python3', '-c', send]);
          const connects = wouldDeny?.filter(({ operation }) => operation === 'connect') ?? [];
          return [exitCode, connects.map(({ allow: line }) => line?.value).sort()];
        };
        const inUdp = await told([udp]);
        const inTcp = await told([udp.replace('/udp', ''), `[::1]:${six}`]);
        server.close();
        datagrams.close();
        expect([inUdp, inTcp]).toEqual([
          [0, [`[::1]:${six}`]],
          [0, [udp]],
        ]);
      },
    );
  });
});
