import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { cli, makePlace } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());

const LEFT_OUT =
  /^sandbox-run: warning: credentials stay outside of the sandbox: registry in ~\/\.npmrc; [^\n]+$/m;

it('the credentials that commands do not get are one line of those that a server refuses, and none with -q', async () => {
  const home = join(place.root, 'home');
  mkdirSync(home, { recursive: true });
  const settings = (login: string, port = 1) =>
    writeFileSync(join(home, '.npmrc'), `registry=http://${login}127.0.0.1:${port}/\n`);
  const looking = ['--profile', 'networked', '--', 'npm', 'config', 'get', 'registry'];
  settings('');
  expect(await cli(place, looking)).toMatchObject({ stdout: 'http://127.0.0.1:1/\n', stderr: '' });
  // What works needs none.
  settings('me:abc123@');
  expect(await cli(place, looking)).toMatchObject({ stdout: 'http://127.0.0.1:1/\n', stderr: '' });

  const server = createServer((_, response) => response.writeHead(401).end()).listen(0, '127.0.0.1');
  await new Promise((listening) => server.once('listening', listening));
  const { port } = server.address() as AddressInfo;
  const npm = ['npm', '--no-update-notifier', '--fetch-retries=0', 'view', 'a-package'];
  for (const open of [
    ['--profile', 'networked'],
    ['--net', `localhost:${port}`],
  ]) {
    settings('me:abc123@', port);
    const refused = await cli(place, [...open, '--', ...npm]);
    expect(refused.exitCode).not.toBe(0);
    expect(refused.stderr).toMatch(LEFT_OUT);
    expect(refused.stderr).not.toContain('abc123');
    expect((await cli(place, ['-q', ...open, '--', ...npm])).stderr).not.toMatch(LEFT_OUT);
    settings('', port);
    expect((await cli(place, [...open, '--', ...npm])).stderr).not.toMatch(LEFT_OUT);
  }
  settings('me:abc123@', port);
  // It fails for another reason: without a network, without a server, and by itself.
  for (const words of [
    npm,
    ['--net', 'localhost:1', '--', ...npm],
    ['--net', `localhost:${port}`, '--', 'false'],
  ])
    expect((await cli(place, words)).stderr).not.toMatch(LEFT_OUT);
  await new Promise((closed) => server.close(closed));
});

it('aliases of ssh whose hosts the policy lists are in the settings of commands, and nothing else of these', async () => {
  mkdirSync(join(place.root, 'home/.ssh'), { recursive: true });
  const config = 'Host build\n  HostName build.example.org\n  Port 2222\n  IdentityFile ~/.ssh/other\n';
  writeFileSync(join(place.root, 'home/.ssh/config'), config, { mode: 0o600 });
  const read = 'import os; print(open(os.path.expanduser("~/.ssh/config")).read(), end="")';
  const shown = (...args: readonly string[]) =>
    cli(place, ['--approved', ...args, '--', 'python3', '-c', read]);
  expect(await shown('--net', 'build.example.org:2222')).toMatchObject({
    exitCode: 0,
    stdout: 'Host build\n  hostname build.example.org\n  port 2222\n',
  });
  expect(await shown('--net', 'other.example.org')).toMatchObject({ exitCode: 1, stdout: '' });
  expect(await shown()).toMatchObject({ exitCode: 1, stdout: '' });
});
