import { execFileSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox, type Sandbox } from '../../src/index.ts';
import { onOnePort } from '../support/one-port.ts';

const NAME = 'listed.test';
const ADDRESSES = ['127.0.0.9', '127.0.0.8'] as const;

/** Each prints `WORD from ADDRESS` for what comes back. */
const PYTHON_UNCONNECTED = `
import os, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
places = [(host, int(os.environ['PORT'])) for host in ('127.0.0.9', '127.0.0.8', '127.0.0.9')]
for place in places: s.sendto(b'hello', place)
got = [s.recvfrom(100) for _ in places]
assert sorted(g[1] for g in got) == sorted(places), got
assert all(g[0] == b'hello at ' + g[1][0].encode() for g in got), got
s.settimeout(0.2)
try: s.recvfrom(100); raise SystemExit('something came')
except TimeoutError: print('all from where they were sent')`;
const PYTHON_BY_NAME = `
import os, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((os.environ['NAME'], int(os.environ['PORT'])))
s.send(b'hello')
data, ancillary, flags, source = s.recvmsg(100)
assert source == s.getpeername() == ('127.0.0.9', int(os.environ['PORT'])), source
assert s.getsockname()[0] == '127.0.0.1' and s.getsockname()[1] > 0
print(data.decode())`;
const NODE = `
const socket = require('dgram').createSocket('udp4');
socket.on('message', (message, from) => { console.log(String(message), 'from', from.address + ':' + from.port); socket.close(); });
socket.send('hello', process.env.PORT, '127.0.0.8');`;
const NODE_CONNECTED = `
const socket = require('dgram').createSocket('udp4');
socket.on('message', (message) => { console.log(String(message), 'at', socket.remoteAddress().address); socket.close(); });
socket.connect(Number(process.env.PORT), '127.0.0.9', () => socket.send('hello'));`;
const C = `
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
int main(int argc, char **argv) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in to[2] = {{AF_INET, htons(atoi(argv[1]))}, {AF_INET, htons(atoi(argv[1]))}}, from[2];
  inet_pton(AF_INET, "127.0.0.8", &to[0].sin_addr); inet_pton(AF_INET, "127.0.0.9", &to[1].sin_addr);
  struct iovec half[2] = {{"hel", 3}, {"lo", 2}}; char answers[2][32] = {{0}};
  struct mmsghdr out[2] = {{{&to[0], sizeof to[0], half, 2}}, {{&to[1], sizeof to[1], half, 2}}};
  if (sendmmsg(fd, out, 2, 0) != 2 || out[0].msg_len != 5 || out[1].msg_len != 5) return 1;
  for (int got = 0; got < 2; got++) {
    struct iovec room[1] = {{answers[got], got == 0 ? 31 : 9}};
    struct mmsghdr in[1] = {{{&from[got], sizeof from[got], room, 1}}};
    if (recvmmsg(fd, in, 1, 0, 0) != 1 || in[0].msg_hdr.msg_namelen != sizeof from[got]) return 2;
    if ((got == 1) != ((in[0].msg_hdr.msg_flags & MSG_TRUNC) != 0)) return 3;
    printf("%.9s%s\\n", answers[got], inet_ntoa(from[got].sin_addr));
  }
  return 0;
}`;
const PYTHON_SERVER = `
import socket, threading
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(('127.0.0.1', 0))
def serve():
    for _ in range(6):
        data, source = server.recvfrom(65535)
        server.sendto(data.upper(), source)
thread = threading.Thread(target=serve); thread.start()
clients = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
for n, client in enumerate(clients): client.sendto(b'client %d' % n, ('localhost', server.getsockname()[1]))
for n, client in enumerate(clients): assert client.recvfrom(100) == (b'CLIENT %d' % n, server.getsockname())
for size in (0, 1, 60000):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.connect(server.getsockname()); one.send(b'x' * size)
    assert one.recv(65535) == b'X' * size, size
thread.join()
port = server.getsockname()[1]
for _ in range(4):
    server.close()
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); server.bind(('127.0.0.1', port))
taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try: taken.bind(('127.0.0.1', port)); raise SystemExit('it was given twice')
except OSError: print('served inside')`;
const NODE_SERVER = `
const dgram = require('dgram');
const server = dgram.createSocket('udp4').on('message', (message, from) => server.send(String(message).toUpperCase(), from.port, from.address));
server.bind(0, '127.0.0.1', () => {
  const client = dgram.createSocket('udp4');
  client.on('message', (message, from) => { console.log(String(message), from.port === server.address().port); client.close(); server.close(); });
  client.send('inside', server.address().port, '127.0.0.1');
});`;
/** A question of a DNS server of one's own, which answers what no name server would. */
const DIG = 'dig +short +tries=1 +time=5 -p $PORT @127.0.0.9 x.test TXT';

const PROGRAMS: readonly (readonly [name: string, command: string, shows: string])[] = [
  ['python, to two places by turns', 'python3 -c "$PYTHON_UNCONNECTED"', 'all from where they were sent'],
  ['python, connected by name', 'python3 -c "$PYTHON_BY_NAME"', 'hello at 127.0.0.9'],
  ['node', 'node -e "$NODE"', 'hello at 127.0.0.8 from 127.0.0.8:'],
  ['node, connected', 'node -e "$NODE_CONNECTED"', 'hello at 127.0.0.9 at 127.0.0.9'],
  [
    'bash itself',
    'exec 3<>/dev/udp/127.0.0.9/$PORT; echo -n hello >&3; head -c 18 <&3',
    'hello at 127.0.0.9',
  ],
  ['C, several messages at a time', './several $PORT | sort', 'hello at 127.0.0.8\nhello at 127.0.0.9'],
  ['dig', DIG, 'the very server'],
];
const has = (program: string) =>
  process.env.PATH?.split(':').some((directory) => existsSync(join(directory, program))) === true;
const there = PROGRAMS.filter(([name]) => name !== 'dig' || has('dig'));

describe('UDP where the network is listed', () => {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'listed-datagrams-'));
  const workspace = join(root, 'workspace');
  const servers: Socket[] = [];
  let port = 0;
  let datagrams = 0;
  const sandboxes: Sandbox[] = [];
  const sandboxOf = async (net: readonly string[]) => {
    const sandbox = await createSandbox({
      workspace,
      net,
      env: { NAME, PYTHON_UNCONNECTED, PYTHON_BY_NAME, NODE, NODE_CONNECTED, PYTHON_SERVER, NODE_SERVER },
      gate: { lookup: async () => ({ addresses: ['127.0.0.9'], ttl: 5 }) },
      policy: { unsafe: { unjudged_commands: true } },
    });
    sandboxes.push(sandbox);
    return sandbox;
  };

  beforeAll(async () => {
    mkdirSync(workspace);
    writeFileSync(join(root, 'several.c'), C);
    execFileSync('gcc', ['-w', '-o', join(workspace, 'several'), join(root, 'several.c')]);
    port = await onOnePort(async () => {
      let at = 0;
      for (const address of ADDRESSES) {
        const server = createSocket('udp4');
        servers.push(server);
        server.on('message', (message, from) => {
          datagrams += 1;
          server.send(answerTo(message, address), from.port, from.address);
        });
        await once(server.bind(at, address), 'listening');
        at = server.address().port;
      }
      return at;
    });
  });
  afterAll(async () => {
    for (const sandbox of sandboxes) await sandbox.close();
    for (const server of servers) server.close();
    rmSync(root, { recursive: true, force: true });
  });
  const run = (sandbox: Sandbox, command: string) =>
    sandbox.run(command, { env: { PORT: String(port) }, timeout: 30_000 });

  it.each(there)(
    '%s: reaches what is listed, and is answered from there',
    async (_, command, shows) => {
      const listed = ADDRESSES.map((address) => `${address}:${port}/udp`);
      const sandbox = await sandboxOf([`${NAME}:${port}/udp`, ...listed]);
      const result = await run(sandbox, command);
      expect(result.stdout + result.stderr).toContain(shows);
      expect(result.connections).toContainEqual(
        expect.objectContaining({ verdict: 'allowed', protocol: 'udp', port }),
      );
    },
    60_000,
  );

  it.each(there)(
    '%s: reaches nothing with the same place listed for TCP, and the user is told what would allow it',
    async (name, command) => {
      const sandbox = await sandboxOf([`${NAME}:${port}`, ...ADDRESSES.map((one) => `${one}:${port}`)]);
      const before = datagrams;
      const result = await run(sandbox, `timeout 3 bash -c '${command.replaceAll("'", `'\\''`)}'`);
      expect(datagrams).toBe(before);
      expect(result.stdout).not.toContain('hello at');
      const host = name.includes('by name') ? NAME : expect.stringMatching(/^127\.0\.0\.[89]$/);
      expect(result.connections).toContainEqual(
        expect.objectContaining({
          ...{ verdict: 'refused', protocol: 'udp', host, port },
          entry: expect.stringMatching(new RegExp(`:${port}/udp$`)),
        }),
      );
    },
    60_000,
  );

  it.each([
    ['python', 'python3 -c "$PYTHON_SERVER"', 'served inside'],
    ['node', 'node -e "$NODE_SERVER"', 'INSIDE true'],
  ])(
    '%s: a server and its clients inside, with nothing listed for UDP',
    async (_, command, shows) => {
      const sandbox = await sandboxOf(['unused.test']);
      const result = await run(sandbox, command);
      expect(result.stdout + result.stderr).toContain(shows);
      expect(result.connections ?? []).toEqual([]);
    },
    60_000,
  );

  it('a server inside answers another command of the sandbox, and a host program does not reach it', async () => {
    const sandbox = await sandboxOf(['unused.test']);
    const server = run(
      sandbox,
      `python3 -uc 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("0.0.0.0", 4567)); d, a = s.recvfrom(9); s.sendto(d, a); print(d)'`,
    );
    const client = `import socket, time
for _ in range(100):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)
    try: s.sendto(b"inside", ("127.0.0.1", 4567)); print(s.recvfrom(9)); break
    except OSError: time.sleep(0.1)`;
    const outside = createSocket('udp4');
    outside.on('error', () => {});
    outside.send('outside', 4567, '127.0.0.1');
    const { stdout } = await sandbox.run(['python3', '-c', client], { timeout: 100_000 });
    expect(stdout).toContain("(b'inside', ('127.0.0.1', 4567))");
    expect((await server).stdout).toContain("b'inside'");
    outside.close();
  });
});

/** A text that names the server; to what is no `hello` an answer of DNS. */
function answerTo(message: Buffer, address: string): Buffer {
  if (message.toString() === 'hello') return Buffer.from(`hello at ${address}`);
  const question = message.subarray(12, message.indexOf(0, 12) + 5);
  const head = Buffer.from([message[0] ?? 0, message[1] ?? 0, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
  const text = Buffer.from('the very server');
  const record = Buffer.from([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 5, 0, text.length + 1, text.length]);
  return Buffer.concat([head, question, record, text]);
}
