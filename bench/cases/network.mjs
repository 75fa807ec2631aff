// Connections to a listed server on the loopback interface, and what comes through them, inside and outside a sandbox.
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { median } from '../measure.mjs';
import { printTable, times } from '../table.mjs';

const ADDRESS = '127.0.0.9';
const MEGABYTE = 1024 * 1024;

/**
 * A server that is connected to, and that takes no core for it, as one on another machine does not: the kernel answers for
 * it. Prints its port; ends with its standard input.
 */
const WAITING_SERVER = `
import socket, sys
listener = socket.socket()
listener.bind(('${ADDRESS}', 0))
listener.listen(int(sys.argv[1]))
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
`;

/** In a process of its own, so that its event loop is in nobody's way. Prints microseconds per step, and MB/s. */
const CLIENT = `
import socket, sys, time
waiting, port, count, megabytes = map(int, sys.argv[1:])
made, connected = [], []
for _ in range(count):
    begin = time.perf_counter()
    s = socket.socket()
    between = time.perf_counter()
    s.connect(('${ADDRESS}', waiting))
    end = time.perf_counter()
    s.close()
    made.append(between - begin)
    connected.append(end - between)
s = socket.socket()
s.connect(('${ADDRESS}', port))
s.sendall(b'x')
left, begin = megabytes << 20, time.perf_counter()
buffer = bytearray(1 << 20)
while left > 0: left -= s.recv_into(buffer)
middle = lambda times: sorted(times)[len(times) // 2] * 1e6
print(middle(made), middle(connected), megabytes / (time.perf_counter() - begin))
`;

export async function measureNetwork({ createSandbox, workspace, counts }) {
  const block = Buffer.alloc(MEGABYTE);
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      let left = counts.megabytes;
      const more = () => {
        while (left-- > 0) if (!socket.write(block)) return socket.once('drain', more);
        socket.end();
      };
      more();
    });
  });
  await new Promise((done) => server.listen(0, ADDRESS, done));
  const { port } = server.address();
  const sandbox = await createSandbox({
    workspace,
    net: [`${ADDRESS}:1-65535`],
    policy: { unsafe: { unjudged_commands: true } },
  });
  const contenders = {
    bare: outputOf,
    'listed network': async (argv) => (await sandbox.run(argv)).stdout,
  };
  const found = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
  for (let round = -1; round < counts.rounds; ++round) {
    for (const [name, start] of Object.entries(contenders)) {
      const waiting = await startWaitingServer(counts.connections);
      const given = [waiting.port, port, counts.connections, counts.megabytes].map(String);
      const numbers = (await start(['python3', '-c', CLIENT, ...given])).trim().split(' ').map(Number);
      waiting.end();
      if (numbers.length !== 3 || numbers.some(Number.isNaN))
        throw new Error(`${name}: nothing was measured`);
      if (round >= 0) found[name].push(numbers);
    }
  }
  await sandbox.close();
  server.close();
  const middle = (list) => [0, 1, 2].map((at) => median(list.map((numbers) => numbers[at])));
  return { bare: middle(found.bare), listed: middle(found['listed network']), counts };
}

export function printNetwork({ bare, listed, counts }) {
  printTable(
    `Network (median of ${counts.rounds} rounds of ${counts.connections} connections)`,
    ['', 'bare', 'listed', ''],
    [
      ['socket(), µs', bare[0].toFixed(0), listed[0].toFixed(0), times(listed[0] / bare[0])],
      ['connect(), µs', bare[1].toFixed(0), listed[1].toFixed(0), times(listed[1] / bare[1])],
      ['received, MB/s', bare[2].toFixed(0), listed[2].toFixed(0), times(listed[2] / bare[2])],
    ],
  );
}

export function networkGoals({ bare, listed }) {
  return [
    {
      what: 'connect() where the network is listed, against bare',
      limit: 2.5,
      unit: ' x',
      value: listed[1] / bare[1],
    },
    {
      what: 'what comes through it, against bare',
      limit: 0.95,
      unit: ' x',
      value: listed[2] / bare[2],
      atLeast: true,
    },
  ];
}

function startWaitingServer(connections) {
  const child = spawn('python3', ['-c', WAITING_SERVER, String(connections)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  return new Promise((done, fail) => {
    child.on('error', fail);
    child.stdout.once('data', (text) => done({ port: Number(text), end: () => child.stdin.end() }));
  });
}

function outputOf([program, ...rest]) {
  return new Promise((done, fail) => {
    const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (chunk) => {
      text += chunk;
    });
    child.on('error', fail);
    child.on('close', () => done(text));
  });
}
