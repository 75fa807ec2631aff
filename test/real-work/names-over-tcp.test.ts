import { once } from 'node:events';
import { existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSandbox, type Sandbox } from '../../src/index.ts';

const LOOK_UP = `
import socket, sys
try: print('found', socket.getaddrinfo(sys.argv[1], 1, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
except socket.gaierror as error: print('error', error.errno)`;

/** Questions as RFC 7766 allows them: in pieces, many at a time, and after the last one. */
const ASK = `
import socket, struct
def question(number, name):
    labels = b''.join(bytes([len(part)]) + part.encode() for part in name.split('.')) + b'\\0'
    message = struct.pack('>HHHHHH', number, 0x100, 1, 0, 0, 0) + labels + struct.pack('>HH', 1, 1)
    return struct.pack('>H', len(message)) + message
def answer(s):
    def exactly(size):
        data = b''
        while len(data) < size:
            more = s.recv(size - len(data))
            if not more: raise EOFError
            data += more
        return data
    message = exactly(struct.unpack('>H', exactly(2))[0])
    return struct.unpack('>H', message[:2])[0], message[3] & 15, socket.inet_ntoa(message[-4:])
def connect():
    s = socket.create_connection(('127.0.0.1', 53), 10)
    assert s.getpeername() == ('127.0.0.1', 53), s.getpeername()
    return s
s = connect()
for byte in question(7, 'listed.test'): s.send(bytes([byte]))
print('in pieces', *answer(s))
s.send(question(8, 'other.test'))
print('unlisted', *answer(s)[:2])
s.send(b''.join(question(n, 'listed.test' if n % 2 else 'other.test') for n in range(60)))
s.shutdown(socket.SHUT_WR)
print('many', sorted(answer(s)[:2] for _ in range(60)) == [(n, 0 if n % 2 else 3) for n in range(60)])
print('over', s.recv(1))
s = connect()
s.send(b'\\xff\\xffGET / HTTP/1.1')
try: print('no question', s.recv(1))
except ConnectionResetError: print('no question', b'')
print('another one', connect().send(question(9, 'listed.test')) > 0)`;

const root = mkdtempSync(join(realpathSync(tmpdir()), 'names-over-tcp-'));
let sandbox: Sandbox;
let trap: Server | undefined;
let trapped = 0;

beforeAll(async () => {
  // A name server of the machine, which is not listed. Not everybody may have that port.
  const server = createServer((socket) => {
    trapped += 1;
    socket.destroy();
  });
  server.listen(53, '127.0.0.1');
  const listens = await Promise.race([
    once(server, 'listening').then(() => true),
    once(server, 'error').then(() => false),
  ]).catch(() => false);
  if (listens) trap = server;
  sandbox = await createSandbox({
    workspace: root,
    // Whatever a range allows at that port, questions are answered for the names that are listed.
    net: ['listed.test:1', '127.0.0.9:1', '127.0.0.0/8:53'],
    env: { LOOK_UP, ASK },
    gate: { lookup: async () => ({ addresses: ['127.0.0.9'], ttl: 5 }) },
    policy: { unsafe: { unjudged_commands: true } },
  });
});
afterAll(async () => {
  await sandbox.close();
  trap?.close();
  rmSync(root, { recursive: true, force: true });
  expect(trapped).toBe(0);
});

it('glibc asks so with use-vc', async () => {
  const run = async (name: string) =>
    (await sandbox.run(['sh', '-c', `RES_OPTIONS=use-vc python3 -c "$LOOK_UP" ${name}`])).stdout.trim();
  expect(await run('listed.test')).toBe('found 127.0.0.9');
  expect(await run('unlisted.test')).toBe('error -2');
}, 30_000);

it('questions come in pieces, many at a time, and an answer may be the last thing', async () => {
  const { stdout, stderr } = await sandbox.run('python3 -c "$ASK"', { timeout: 30_000 });
  expect([stdout, stderr]).toEqual([
    [
      'in pieces 7 0 127.0.0.9',
      'unlisted 8 3',
      'many True',
      "over b''",
      "no question b''",
      'another one True',
      '',
    ].join('\n'),
    '',
  ]);
});

it.runIf(process.env.PATH?.split(':').some((directory) => existsSync(join(directory, 'dig'))))(
  'dig +tcp',
  async () => {
    const { stdout } = await sandbox.run('dig +short +tcp +tries=1 @127.0.0.1 listed.test', {
      timeout: 30_000,
    });
    expect(stdout.trim()).toBe('127.0.0.9');
  },
  60_000,
);
