import { once } from 'node:events';
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox, type ExecutionResult, type Sandbox } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';

const ADDRESS = '127.0.0.9';
const HOST = 'carried.test';
const MIB = 1024 ** 2;
const END = '\r\n\r\n';

/** What programs of the command say to a server that is reached through the supervisor; \`ask(…)\` begins each of them. */
const PRELUDE = `
import errno, hashlib, os, select, socket, sys, time
HOST, PORT, SHUT = '${HOST}', int(os.environ['PORT']), int(os.environ['SHUT'])
def ask(path, method='GET', body=None, more=b''):
    one = socket.create_connection((HOST, PORT), timeout=90)
    length = b'' if body is None else b'Content-Length: %d\\r\\n' % len(body)
    one.sendall(('%s %s HTTP/1.1\\r\\nHost: %s\\r\\n' % (method, path, HOST)).encode() + length + more + b'\\r\\n')
    if body is not None: one.sendall(body)
    return one
def rest(one):
    got = b''
    while True:
        piece = one.recv(1 << 18)
        if not piece: return got
        got += piece
`;

/** A server whose path says what it is to do. What it was sent with a request is counted. */
function serve(counts: Map<string, number>): Server {
  return createServer({ allowHalfOpen: true }, (socket: Socket) => {
    let head = '';
    let path = '';
    socket.on('error', () => {});
    socket.on('close', () => counts.set('closed', (counts.get('closed') ?? 0) + 1));
    socket.on('end', () => {
      if (path === '/half-close') socket.end(`got ${counts.get(path) ?? 0}`);
      else if (path !== '/endless') socket.end();
    });
    socket.on('data', (chunk) => {
      if (path !== '') {
        counts.set(path, (counts.get(path) ?? 0) + chunk.length);
        return;
      }
      head += chunk.toString('latin1');
      const end = head.indexOf(END);
      if (end === -1) return;
      path = head.split(' ')[1] ?? '/';
      const body = head.length - end - END.length;
      counts.set(path, (counts.get(path) ?? 0) + body);
      if (path.startsWith('/large/')) send(socket, Number(path.slice(7)) * MIB);
      else if (path === '/reset') socket.write('some', () => socket.resetAndDestroy());
      else if (path === '/endless') send(socket, Number.MAX_SAFE_INTEGER);
      else if (path !== '/half-close' && path !== '/upload') socket.write('answer');
    });
  });
}

function send(socket: Socket, bytes: number): void {
  const piece = Buffer.alloc(Math.min(bytes, 256 * 1024), 'x');
  let left = bytes;
  const more = () => {
    while (left > 0) {
      const size = Math.min(left, piece.length);
      left -= size;
      if (!socket.write(piece.subarray(0, size))) {
        socket.once('drain', more);
        return;
      }
    }
    socket.end();
  };
  more();
}

describe('connections that are carried, because what they are for is looked for in them', () => {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'carried-'));
  const counts = new Map<string, number>();
  const server = serve(counts);
  let sandbox: Sandbox;
  let ports: Readonly<Record<string, string>> = {};

  beforeAll(async () => {
    await once(server.listen(0, ADDRESS), 'listening');
    const port = (server.address() as AddressInfo).port;
    const shut = createServer();
    await once(shut.listen(0, ADDRESS), 'listening');
    const shutPort = (shut.address() as AddressInfo).port;
    shut.close();
    await once(shut, 'close');
    ports = { PORT: String(port), SHUT: String(shutPort) };
    const workspace = join(root, 'workspace');
    mkdirSync(workspace);
    sandbox = await createSandbox({
      workspace,
      net: [HOST, ADDRESS].flatMap((host) => [`${host}:${port}/http`, `${host}:${shutPort}/http`]),
      gate: { lookup: async () => ({ addresses: [ADDRESS], ttl: 5 }) },
      policy: { unsafe: { unjudged_commands: true } },
    });
  });
  afterAll(async () => {
    await sandbox?.close();
    server.close();
    rmSync(root, { recursive: true, force: true });
  });

  const run = (program: string): Promise<ExecutionResult> =>
    sandbox.run(['python3', '-c', PRELUDE + program], { env: ports, timeout: 90_000 });
  const saying = async (program: string, text: string): Promise<ExecutionResult> => {
    const result = await run(program);
    expect(result.stderr).toBe('');
    expect(result.stdout.trim()).toBe(text);
    return result;
  };

  it('arrive whole, also where the reader is slow', async () => {
    await saying(
      `
one = ask('/large/40'); size = 0
for turn in range(1 << 30):
    piece = one.recv(1 << 18)
    if not piece: break
    assert piece.strip(b'x') == b''
    size += len(piece)
    if turn % 40 == 0: time.sleep(0.01)
print(size)`,
      String(40 * MIB),
    );
  });

  it('take a large body, and tell the server that nothing more comes', async () => {
    counts.clear();
    await saying(
      `one = ask('/upload', 'POST', b'y' * (20 << 20)); one.shutdown(1); print(len(rest(one)))`,
      '0',
    );
    expect(counts.get('/upload')).toBe(20 * MIB);
    await saying(
      `one = ask('/half-close', 'POST', b'abc'); one.shutdown(1); print(rest(one).decode())`,
      'got 3',
    );
  });

  it('hold a server up whose reader does not read, and not this process', async () => {
    const before = process.memoryUsage.rss();
    // Meanwhile much more arrives at one that does read.
    await saying(
      `
one, two = ask('/endless'), ask('/large/200')
while two.recv(1 << 18): pass
print('done')`,
      'done',
    );
    expect(process.memoryUsage.rss() - before).toBeLessThan(150 * MIB);
  });

  it('pass a reset on', async () => {
    await saying(
      `
one = ask('/reset')
try: rest(one); print('end')
except ConnectionResetError: print('reset')`,
      'reset',
    );
  });

  it('look to programs as if nothing lay between', async () => {
    await saying(
      `
one = ask('/x')
one.recv(100)
print(one.getpeername() == ('${ADDRESS}', PORT), one.getsockname()[0] != '0.0.0.0', one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
two = socket.socket(); two.setblocking(False)
poll = select.epoll(); poll.register(two, select.EPOLLOUT)
print(two.connect_ex((HOST, PORT)) == errno.EINPROGRESS, poll.poll(90)[0][1] & select.EPOLLOUT, two.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), two.getpeername()[1] == PORT)
print(two.connect_ex((HOST, PORT)) == errno.EISCONN)
three = socket.socket()
print(errno.errorcode[three.connect_ex((HOST, SHUT))])
three = socket.socket(); three.setblocking(False)
error = three.connect_ex((HOST, SHUT))
if error == errno.EINPROGRESS:
    select.select([], [three], [], 90)
    error = three.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
print(error in (errno.ECONNREFUSED, errno.ECONNRESET))
four = socket.socket(); four.bind(('', 0))
four.connect((HOST, PORT)); print(four.getpeername()[1] == PORT)`,
      'True True 0\nTrue 4 0 True\nTrue\nECONNREFUSED\nTrue\nTrue',
    );
  });

  it('are as many as there may be, and as many again', async () => {
    await saying(
      `
kept = []
try:
    while len(kept) < 1000: kept.append(ask('/x'))
except OSError as error: print(errno.errorcode[error.errno])
print(len(kept) >= 200, all(one.recv(10) == b'answer' for one in kept))
for one in kept: one.close()
def again():
    while True:
        try: return ask('/x')
        except OSError as error: assert error.errno == errno.EAGAIN
for turn in range(300):
    one = again(); assert one.recv(10) == b'answer'; one.close()
print('again')`,
      'EAGAIN\nTrue True\nagain',
    );
  });

  it('end with the command, and what it had sent before arrives', async () => {
    counts.clear();
    await run(`import os; one = ask('/sent', 'POST', b'z' * (1 << 20)); kept = ask('/endless'); os._exit(0)`);
    await eventually(() => expect([counts.get('/sent'), counts.get('closed')]).toEqual([MIB, 2]));
  });
});
