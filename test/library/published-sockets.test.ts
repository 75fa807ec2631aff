import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, connect as netConnect } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createSandbox, type SandboxOptions } from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';

const arena = makeArena();
const SERVER = `require('node:net').createServer((socket) => socket.end('served')).listen(8123, '127.0.0.1', () => console.log('up'))`;

/** What somebody is sent who connects to a socket. */
const read = (path: string) =>
  new Promise<string>((done, failed) => {
    let all = '';
    netConnect(path)
      .on('data', (bytes) => {
        all += bytes;
      })
      .on('error', failed)
      .on('close', () => done(all));
  });

const directory = (name: string) => {
  const path = join(arena.root, name);
  mkdirSync(path);
  return path;
};

const open = (socket: string, options: Partial<SandboxOptions> = {}) =>
  createSandbox({ workspace: arena.workspace, publish: [{ socket, inner: 8123 }], ...options });

/** A command that serves, with its port published at a socket. */
async function serve(socket: string) {
  const sandbox = await open(socket);
  const job = await sandbox.run(['node', '-e', SERVER], { background: true });
  for await (const line of job) if (line === 'up') break;
  return { sandbox, job };
}

it('a Unix socket leads to a port of the sandbox while a command runs, for its user alone', async () => {
  const path = join(directory('own'), 'web.sock');
  const { sandbox, job } = await serve(path);
  expect(await read(path)).toBe('served');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(job.published).toEqual([{ addresses: [], socket: path, port: 0, inner: 8123, relayed: true }]);
  expect((await job.ports()).map(({ published }) => published)).toEqual([[path]]);
  if (process.getuid?.() === 0) {
    const ask = `require('node:net').connect(${JSON.stringify(path)}).on('error', (e) => console.log(e.code)).on('connect', () => process.exit())`;
    for (const way of [arena.root, join(arena.root, 'own')]) chmodSync(way, 0o755);
    const asOther = (text: string) =>
      execFileSync('runuser', ['-u', 'nobody', '--', 'node', '-e', text], { encoding: 'utf8' }).trim();
    expect(asOther(ask)).toBe('EACCES');
    chmodSync(path, 0o666);
    expect(asOther(ask)).toBe('');
  }
  await job.end();
  await eventually(() => expect(existsSync(path)).toBe(false));
  await sandbox.close();
});

it('is made anew where a launcher left one that was killed, and never in the place of anything else', async () => {
  const place = directory('taken');
  const left = join(place, 'left.sock');
  const leave = `require('node:net').createServer().listen(${JSON.stringify(left)}, () => process.kill(process.pid, 'SIGKILL'))`;
  spawnSync('node', ['-e', leave]);
  expect(existsSync(left)).toBe(true);
  const { sandbox, job } = await serve(left);
  expect(await read(left)).toBe('served');
  await job.end();
  await sandbox.close();

  const file = join(place, 'file');
  writeFileSync(file, 'mine');
  const link = join(place, 'link');
  symlinkSync(join(place, 'elsewhere'), link);
  const used = join(place, 'used');
  const server = createServer((socket) => socket.end('mine')).listen(used);
  await once(server, 'listening');
  for (const [path, code] of [
    [file, 'publish.taken'],
    [link, 'file.unusable'],
    [used, 'publish.taken'],
  ] as const) {
    await using other = await open(path);
    expect(await other.run(['true'])).toMatchObject({ status: 'setup-failed', error: { code } });
  }
  expect(readFileSync(file, 'utf8')).toBe('mine');
  expect(existsSync(join(place, 'elsewhere'))).toBe(false);
  expect(await read(used)).toBe('mine');
  server.close();
});

it('is not made where commands can write, nor by a link of theirs', async () => {
  const codeOf = async (path: string) => {
    await using sandbox = await open(path);
    return (await sandbox.run(['true'])).error?.code;
  };
  expect(await codeOf(join(arena.workspace, 'web.sock'))).toBe('publish.refused');
  const place = directory('aimed');
  symlinkSync(place, join(arena.workspace, 'way'));
  expect(await codeOf(join(arena.workspace, 'way', 'web.sock'))).toBe('file.unusable');
  expect(await codeOf(join(arena.root, 'missing', 'web.sock'))).toBe('publish.failed');
  expect(await codeOf(join(place, 'web.sock'))).toBeUndefined();
  expect(readdirSync(place)).toEqual([]);
});
