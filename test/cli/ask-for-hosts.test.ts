import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { CLI, cli, makePlace, startCli } from './support.ts';

const place = makePlace();
/** Of this file alone. */
const env = { XDG_STATE_HOME: join(place.root, 'state') };
const ADDRESS = '127.0.0.9';
const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;

describe('a connection that somebody is asked about', () => {
  let server: Server;
  let url = '';
  let net: readonly string[] = [];

  beforeAll(async () => {
    mkdirSync(env.XDG_STATE_HOME);
    server = createServer((_, response) => response.end('hello\n'));
    await once(server.listen(0, ADDRESS), 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    // A name of this machine: it is not listed, and may lead nowhere here.
    url = `http://localhost.localdomain:${address.port}/`;
    net = ['--net', `${ADDRESS}:${address.port}`, '--unlisted', 'ask'];
  });
  afterAll(() => {
    server.close();
    place.dispose();
  });
  const ask = (command: string, ...options: readonly string[]) =>
    startCli(place, [...net, ...options, '--json', '-c', command], { env });
  const waiting = async () => {
    const { stdout } = await cli(place, ['approvals', 'list', '--json'], { env });
    return /"id":\s*"([^"]+)"/.exec(stdout)?.[1];
  };
  /** Answers what comes to wait in the queue; returns how it is shown. */
  const answer = async (...words: readonly string[]): Promise<string> => {
    let id: string | undefined;
    await eventually(async () => {
      id = await waiting();
      expect(id).toBeDefined();
    });
    const shown = await cli(place, ['approvals', 'show', id ?? ''], { env });
    const [verb = '', ...rest] = words;
    const answered = await cli(place, ['approvals', verb, id ?? '', ...rest], { env });
    expect(answered.exitCode).toBe(0);
    return shown.stdout;
  };

  it('waits in the queue, shows what it is, and is refused by a no', async () => {
    const running = ask(`curl -sS -m 50 ${url}`, '--ask', 'queue');
    const shown = await answer('deny');
    expect(shown).toMatch(/\n {2}Reached: localhost\.localdomain:\d+\n/);
    expect(shown).toContain('"curl" (process ');
    const result = JSON.parse((await running).stdout);
    expect(result).toMatchObject({ exitCode: 7 });
    expect(result.connections).toEqual([
      expect.objectContaining({
        verdict: 'refused',
        approval: expect.objectContaining({ reason: 'denied' }),
      }),
    ]);
  });

  it('is remembered as a grant, which says what it is for and can be revoked', async () => {
    const running = ask(`curl -sS -m 50 ${url}`, '--ask', 'queue');
    await answer('approve', '--scope', 'always');
    // The name leads to this machine, wherever the answer was yes.
    expect(JSON.parse((await running).stdout).connections).toEqual([
      expect.objectContaining({ verdict: 'refused', approval: expect.objectContaining({ approved: true }) }),
    ]);
    const grants = await cli(place, ['approvals', 'grants'], { env });
    expect(grants.stdout).toMatch(
      /Allows commands in this workspace connections to localhost\.localdomain:\d+, without/,
    );
    const again = JSON.parse((await ask(`curl -sS -m 50 ${url}`, '--ask', 'queue')).stdout);
    expect(again.connections[0].approval.by).toContain('remembered for always');
    const id = /^(\w{24})/m.exec(grants.stdout)?.[1] ?? '';
    expect((await cli(place, ['approvals', 'revoke', id], { env })).exitCode).toBe(0);
    expect((await cli(place, ['approvals', 'grants'], { env })).stdout).not.toContain(
      'localhost.localdomain',
    );
  });

  it('is not asked about on a terminal that the command can write to', async () => {
    const words = [process.execPath, CLI, ...net, '-c', `curl -sS -m 50 ${url}`].map(quoted).join(' ');
    const { stdout } = await execa('script', ['-qec', words, '/dev/null'], {
      ...{ cwd: place.workspace, extendEnv: false, stdin: 'ignore', reject: false },
      env: { ...place.env, ...env, SHELL: '/bin/bash', NO_COLOR: '1' },
    });
    expect(stdout).not.toContain('Reached: localhost.localdomain');
    expect(stdout).toContain('asking failed (the command can write to this terminal while it runs');
  });

  it('is asked about there if what the command writes goes to a file', async () => {
    const words = [process.execPath, CLI, ...net, '-c', `curl -sS -m 50 ${url}`].map(quoted).join(' ');
    const { stdout } = await execa('script', ['-qec', `${words} </dev/null >out 2>err`, '/dev/null'], {
      ...{ cwd: place.workspace, extendEnv: false, reject: false, input: '\n' },
      env: { ...place.env, ...env, SHELL: '/bin/bash', NO_COLOR: '1' },
    });
    expect(stdout).toMatch(/\n {2}"curl" \(process/);
    expect(stdout).toContain('Reached: localhost.localdomain:');
  });

  it('cannot be let through by a file in the workspace', async () => {
    writeFileSync(join(place.workspace, '.sandbox-run.toml'), '[network]\nunlisted = "ask"\n');
    const { exitCode, stderr } = await cli(place, ['true'], { env });
    expect(exitCode).toBe(125);
    expect(stderr).toContain('network.unlisted');
  });
});
