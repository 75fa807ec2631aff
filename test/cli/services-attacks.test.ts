import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { eventually, sleep } from '../support/eventually.ts';
import { HOST } from '../support/tiers.ts';
import {
  begin,
  expectNothingLeft,
  processesWith,
  recordsOf,
  serverWords,
  services,
  sr,
} from './services-support.ts';
import { expectOneLine, serversOf } from './support.ts';
import { makeWarmPlace } from './warm-support.ts';

const place = makeWarmPlace();
afterEach(async () => {
  await sr(place, ['stop', '--all']);
});
afterAll(() => place.dispose());

/** So long that nothing ends by itself, and as nobody else sleeps. */
const long = (number: number) => `${8_000 + number}.${process.pid}`;
const up = (...words: readonly string[]) => sr(place, ['up', ...words]);
const supervisor = async (): Promise<number> => (await services(place))[0]?.supervisor ?? 0;

/** Connects to each socket of the state directory and prints the first byte that it is told, or why not. */
const KNOCK = (directory: string) => `
const { readdirSync } = require('node:fs');
let names = [];
try { names = readdirSync(${JSON.stringify(directory)}); } catch (e) { console.log(e.code); }
for (const name of names.filter((one) => one.endsWith('.sock')))
  require('node:net').connect(${JSON.stringify(directory)} + '/' + name)
    .on('error', (e) => console.log(e.code))
    .on('close', () => console.log('closed'))
    .on('data', (d) => { console.log('told ' + d); process.exit(); });`;

describe('a command in a sandbox', () => {
  it.each([
    ['without a network', []],
    ['with the network of the host', ['--profile', 'networked']],
    ['of another workspace', ['--workspace', '../beside']],
  ])('cannot talk to the supervisor, stop a service or read it: %s', async (_, words) => {
    mkdirSync(join(place.root, 'beside'), { recursive: true });
    await up('web', '-c', `echo its-output; exec sleep ${long(1)}`);
    const knock = [process.execPath, '-e', KNOCK(place.state)];
    const outside = await execa(process.execPath, ['-e', KNOCK(place.state)]);
    expect(outside.stdout).toBe('told H');
    const inside = await sr(place, ['-q', ...words, '--', ...knock]);
    expect(inside.stdout).not.toContain('told');
    const root = join(import.meta.dirname, '../..');
    const program = `${process.execPath} ${root}/dist/cli.cjs`;
    const asking = `${program} logs web; ${program} stop web; ${program} stop --all; ${program} ps`;
    const asked = await sr(place, ['-q', '--ro', root, ...words, '-c', asking]);
    // Each of the four ran, and found nobody.
    expect(asked.stderr.match(/^sandbox-run: /gm)).toHaveLength(4);
    expect(asked.stdout).not.toContain('its-output');
    expect(asked.stdout).not.toContain(`sleep ${long(1)}`);
    expect(processesWith(long(1))).toHaveLength(1);
    expect(await services(place)).toMatchObject([{ name: 'web', state: 'running' }]);
  });

  it('is not let in at a supervisor whose socket it was granted', async () => {
    await up('web', '--', 'sleep', long(2));
    const [socket = ''] = readdirSync(place.state).filter((name) => name.endsWith('.sock'));
    const granted = ['--unix', join(place.state, socket), '--', process.execPath, '-e', KNOCK(place.state)];
    expect((await sr(place, ['-q', ...granted])).stdout).not.toContain('told');
  });

  it('is not let in with fewer rights than the supervisor has', async () => {
    await up('web', '--', 'sleep', long(3));
    const confined = { by: ['setpriv', '--no-new-privs'] };
    const refused = await sr(place, ['stop', 'web'], confined);
    expect(refused.exitCode).toBe(125);
    expectOneLine(refused.stderr);
    expect(processesWith(long(3))).toHaveLength(1);
    // The same by a caller that is like the supervisor.
    expect((await sr(place, ['stop', 'web'], { by: ['env'] })).exitCode).toBe(0);
  });

  it.runIf(process.getuid?.() === 0)('nor is another user', async () => {
    await up('web', '--', 'sleep', long(4));
    const other = ['--reuid', '65533', '--regid', '65533', '--clear-groups'];
    const knocked = await execa('setpriv', [...other, process.execPath, '-e', KNOCK(place.state)], {
      reject: false,
    });
    expect(knocked.stdout).not.toContain('told');
    expect(knocked.exitCode).toBe(0);
  });
});

describe('a service', () => {
  it('is ended with what it put into other sessions, and with what heeds no signal', async () => {
    const daemon = `import os, signal, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.closerange(0, 100)
time.sleep(float("${long(5)}"))`;
    writeFileSync(join(place.workspace, 'daemon.py'), daemon);
    await up(
      'web',
      '-c',
      `setsid python3 daemon.py ${long(5)}; trap '' TERM; sleep ${long(6)} & sleep ${long(6)}; wait`,
    );
    await eventually(() => {
      expect(processesWith(long(5))).toHaveLength(1);
      expect(processesWith(long(6))).toHaveLength(2);
    });
    expect((await sr(place, ['stop', 'web'])).exitCode).toBe(0);
    expect(processesWith(long(5))).toEqual([]);
    expect(processesWith(long(6))).toEqual([]);
  });

  it('that floods its log fills nothing, and holds nobody up', async () => {
    await up('flood', '-c', `yes ${'x'.repeat(70)}; sleep ${long(7)}`);
    const stuck = begin(place, ['logs', '-f', 'flood']);
    stuck.stdout.pause();
    const server = await supervisor();
    const [writer = 0] = processesWith('x'.repeat(70));
    const kilobytes = (path: string, line: RegExp, bytes: number) =>
      (Number(line.exec(readFileSync(path, 'utf8'))?.[1]) * bytes) / 1024;
    // Node collects its garbage when it likes: what counts is how little of all that it keeps.
    await eventually(() => {
      expect(kilobytes(`/proc/${server}/status`, /^VmRSS:\s+(\d+)/m, 1024)).toBeLessThan(700_000);
      expect(kilobytes(`/proc/${writer}/io`, /^wchar: (\d+)/m, 1)).toBeGreaterThan(2_000_000);
    }, 60_000);
    const { stdout, stderr, exitCode } = await sr(place, ['logs', 'flood']);
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
    expect(stdout.length).toBeGreaterThan(900_000);
    // What was there when it was asked, however much comes meanwhile.
    expect(stdout.length).toBeLessThan(1_100_000);
    expect((await up('other', '--', 'sleep', long(8))).exitCode).toBe(0);
    expect((await sr(place, ['stop', '--all'])).exitCode).toBe(0);
    stuck.kill('SIGKILL');
    await stuck;
  });

  it('that listens at hundreds of ports has a few of them named', async () => {
    const listen = `import socket, time; all = [socket.create_server(("127.0.0.1", 0)) for _ in range(300)]; print("open", flush=True); time.sleep(${long(17)})`;
    const began = await up('many', '--ready-line', 'open', '--', 'python3', '-c', listen);
    expect(began.stdout).toMatch(
      /^many is ready, reach it at (?:localhost:\d+ ){5}and 295 more \(process \d+\)\n$/,
    );
    expect((await sr(place, ['ps'])).stdout).toMatch(/ (?:localhost:\d+ ){5}and 295 more /);
  });

  it('is stopped while it starts', async () => {
    const asking = begin(place, [
      'up',
      'web',
      '--ask',
      'queue',
      '--autonomy',
      'supervised',
      '--policy',
      judged(),
      '--',
      'rm',
      '-rf',
      `gone-${long(9)}`,
    ]);
    let said = '';
    asking.stderr.on('data', (bytes) => {
      said += String(bytes);
    });
    await eventually(() => expect(said).toContain('waits for an answer'));
    expect((await sr(place, ['stop', 'web'])).exitCode).toBe(0);
    expect((await asking).exitCode).not.toBe(0);
    const waiting = begin(place, ['up', 'slow', '--ready', '1', '--', 'sleep', long(10)]);
    await eventually(() => expect(processesWith(long(10))).toHaveLength(1));
    expect((await sr(place, ['stop', 'slow'])).exitCode).toBe(0);
    expect((await waiting).exitCode).not.toBe(0);
    await expectNothingLeft(place, long(10));
  });

  it('cannot take what it listens on along to a second start', async () => {
    await up(
      'web',
      '--ready',
      '5173',
      '-c',
      `(setsid ${process.execPath} -e 'setTimeout(() => {}, 1e7)' ${long(11)} &) ; exec ${quoted(serverWords(5173, 'again'))}`,
    );
    expect((await sr(place, ['restart', 'web'])).exitCode).toBe(0);
    await eventually(async () =>
      expect(await services(place)).toMatchObject([{ state: 'ready', restarts: 1 }]),
    );
    expect(processesWith(long(11))).toHaveLength(1);
  });
});

describe('a supervisor that is killed', () => {
  /** What is lost is told once, and nothing of it stays. */
  async function expectLost(word: string): Promise<void> {
    await eventually(() => expect(processesWith(word)).toEqual([]));
    const told = await sr(place, ['ps']);
    expect(told.exitCode).toBe(0);
    if (told.stderr !== '') {
      expectOneLine(told.stderr);
      expect(told.stderr).toContain('web of');
      expect(told.stderr).toContain('was lost');
    }
    expect((await sr(place, ['ps'])).stderr).toBe('');
    await expectNothingLeft(place, word);
    // The next one takes its socket and its private directories away.
    expect((await up('web', '--', 'true')).stderr).toBe('sandbox-run: web ended: exited with 0\n');
    await sr(place, ['stop', 'web']);
    await eventually(() => expect(serversOf(place.state)).toEqual([]));
    expect(readdirSync(place.state).filter((name) => name.endsWith('.sock'))).toEqual([]);
    const own = readdirSync(place.tmp).filter((name) => name.startsWith('.sandbox-run-'));
    for (const name of own)
      expect(readdirSync(join(place.tmp, name)).filter((slot) => slot.includes('slot'))).toEqual([]);
  }

  it('takes its services with it, and the next ps says so once', async () => {
    await up('web', '-c', `(setsid sleep ${long(12)} &); exec sleep ${long(12)}`);
    await eventually(() => expect(processesWith(long(12))).toHaveLength(2));
    process.kill(await supervisor(), 'SIGKILL');
    await eventually(() => expect(processesWith(long(12))).toEqual([]));
    expect(recordsOf(place)).toHaveLength(1);
    expect((await sr(place, ['logs', 'web'])).stderr).toContain('was lost');
    expect(recordsOf(place)).toBeUndefined();
    await up('web', '--', 'sleep', long(12));
    process.kill(await supervisor(), 'SIGKILL');
    const told = await sr(place, ['ps']);
    expect(told.stderr).toContain('was lost');
    await expectLost(long(12));
  });

  it.each([0, 60, 150, 250, 400, 600])('at any moment of a start: %i ms after it began', async (delay) => {
    // It has to be there already, so that the time is one of the start.
    await up('other', '--', 'sleep', long(13));
    const server = await supervisor();
    // Never ready: another supervisor that takes the call gives up soon.
    const words = ['up', 'web', '--ready', '1', '--ready-timeout', '1', '-c', `sleep ${long(14)}; true`];
    const starting = begin(place, words);
    await sleep(delay / 4);
    process.kill(server, 'SIGKILL');
    expect((await starting).exitCode).not.toBe(0);
    // Where the call had not been handed over yet, another supervisor may have taken it.
    await sr(place, ['stop', 'web']);
    await sr(place, ['stop', 'other']);
    await expectLost(long(14));
    expect(processesWith(long(13))).toEqual([]);
  });

  it('in the middle of a stop', async () => {
    await up('web', '-c', `trap '' TERM; echo ready; while :; do sleep ${long(15)} & wait; done`);
    await eventually(() => expect(processesWith(long(15))).not.toEqual([]));
    const server = await supervisor();
    const stopping = begin(place, ['stop', 'web']);
    await sleep(300);
    process.kill(server, 'SIGKILL');
    await stopping;
    await expectLost(long(15));
  });
});

/** A policy file under which commands are judged, whatever the place of the tests says. */
function judged(): string {
  const path = join(place.root, 'judged.toml');
  writeFileSync(path, '[unsafe]\nunjudged_commands = false\n', { mode: 0o600 });
  return path;
}

const quoted = (words: readonly string[]) =>
  words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');

it.runIf(HOST.namespaces)('what a service writes is no message of ours', async () => {
  const forged = `printf 'sandbox-run: web was lost\\n\\033]0;title\\007'; exit 3`;
  const failed = await up('web', '--ready', '1', '-c', forged);
  expect(failed.stderr).not.toContain('\u001b');
  expect(failed.stderr).not.toContain('\u0007');
  await up('odd', '--', '\u001b[31mno\u202eprogram');
  const { stdout } = await sr(place, ['stop', 'odd']);
  expect(stdout).toBe('odd had ended: \\u{1b}[31mno\\u{202e}program: no such program in PATH\n');
});
