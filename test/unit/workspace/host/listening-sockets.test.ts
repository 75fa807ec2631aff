import { spawn } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { listedTcp, listedUnix, listeningSockets } from '../../../../src/workspace/host/listening-sockets.ts';

const TCP = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1001 1 0000000000000000 100 0 0 10 0
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1002 1 0000000000000000 100 0 0 10 0
   2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 1003 1 0000000000000000 20 4 30 10 -1
`;
const address6 = (address: string) =>
  `h\n   0: ${address}:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7 1 0\n`;
const UNIX = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 2001 /tmp/a socket
0000000000000000: 00000003 00000000 00000000 0001 03 2002 /tmp/a socket
0000000000000000: 00000002 00000000 00010000 0005 01 2003 @abstract
0000000000000000: 00000002 00000000 00000000 0002 01 2004
`;

describe('tables of the kernel', () => {
  it('only listening sockets of TCP count', () => {
    expect(listedTcp(TCP)).toEqual([
      ['1001', { protocol: 'tcp', address: '127.0.0.1', port: 8080 }],
      ['1002', { protocol: 'tcp', address: '0.0.0.0', port: 22 }],
    ]);
    expect(listedTcp('')).toEqual([]);
  });

  it.each([
    ['00000000000000000000000000000000', '::'],
    ['00000000000000000000000001000000', '::1'],
    ['0000000000000000FFFF00000100007F', '::ffff:127.0.0.1'],
    ['B80D0120000000000000000001000000', '2001:db8::1'],
    ['000080FE000000000102030405060708', 'fe80::403:201:807:605'],
    ['B80D0120010000000000000001000000', '2001:db8:0:1::1'],
  ])('%s is %s', (hex, address) => {
    expect(listedTcp(address6(hex))[0]?.[1]).toEqual({ protocol: 'tcp', address, port: 80 });
  });

  it('only listening Unix sockets count, with names that have blanks', () => {
    expect(listedUnix(UNIX)).toEqual([
      ['2001', { protocol: 'unix', address: '/tmp/a socket', port: undefined }],
      ['2003', { protocol: 'unix', address: '@abstract', port: undefined }],
    ]);
  });
});

describe('listening sockets of processes', () => {
  const listen = (server: Server, where: object) =>
    new Promise<void>((done, fail) => void server.once('error', fail).listen(where, done));

  it('finds what this process listens on', async () => {
    const path = join(tmpdir(), `listening ${process.pid}`);
    const [four, local] = [createServer(), createServer()];
    await listen(four, { host: '127.0.0.1', port: 0 });
    await listen(local, { path });
    try {
      const { port } = four.address() as { readonly port: number };
      const found = listeningSockets([process.pid, 4_194_304]);
      expect(found).toContainEqual({ protocol: 'tcp', address: '127.0.0.1', port, pid: process.pid });
      expect(found).toContainEqual({ protocol: 'unix', address: path, port: undefined, pid: process.pid });
    } finally {
      four.close();
      local.close();
    }
  });

  it('takes no socket of this process for one of a child, which has all of them until it begins its program', async () => {
    const server = createServer();
    await listen(server, { host: '127.0.0.1', port: 0 });
    const { fd } = (server as unknown as { readonly _handle: { readonly fd: number } })._handle;
    const child = spawn('sleep', ['60'], { stdio: ['ignore', 'ignore', 'ignore', fd] });
    try {
      expect(readlinkSync(`/proc/${child.pid}/fd/3`)).toBe(readlinkSync(`/proc/self/fd/${fd}`));
      expect(listeningSockets([child.pid ?? 0])).toEqual([]);
    } finally {
      child.kill('SIGKILL');
      server.close();
    }
  });

  it('finds nothing of processes that are gone', () => {
    expect(listeningSockets([])).toEqual([]);
    expect(listeningSockets([4_194_304])).toEqual([]);
  });
});
