import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeHold } from '../support/hold.ts';
import { HOST } from '../support/tiers.ts';
import { LIBRARY, makePlaceWithSandbox } from './support.ts';

const { place, sandbox } = await makePlaceWithSandbox();
const stateHomeBefore = process.env.XDG_STATE_HOME;
let output = '';
beforeEach(() => {
  process.env.XDG_STATE_HOME = mkdtempSync(join(place.root, 'state-'));
  output = join(process.env.XDG_STATE_HOME, 'sandbox-run/output');
});
afterEach(() => rmSync(dirname(dirname(output)), { recursive: true }));
afterAll(() => {
  process.env.XDG_STATE_HOME = stateHomeBefore;
});

const LARGE = 1024 ** 3;

describe('spilled output', () => {
  it('is in files that only their owner can read, whole', async () => {
    const result = await sandbox.run('seq 300000; echo err >&2', { spill: true, maxOutput: 10 });
    expect(result.truncated.stdout).toBeGreaterThan(1_900_000);
    const { stdout = '', stderr = '', incomplete } = result.spilled ?? {};
    expect(incomplete).toBeUndefined();
    expect(readFileSync(stdout, 'utf8')).toBe(
      Array.from({ length: 300_000 }, (_, i) => `${i + 1}\n`).join(''),
    );
    expect(readFileSync(stderr, 'utf8')).toBe('err\n');
    expect(dirname(stdout)).toBe(output);
    expect(statSync(stdout).mode & 0o777).toBe(0o600);
    expect(statSync(output).mode & 0o777).toBe(0o700);
  });

  it('is there for streamed and combined output too', async () => {
    let streamed = '';
    const result = await sandbox.run('echo a; echo b >&2', {
      spill: true,
      combined: true,
      onOutput: ({ bytes }) => {
        streamed += Buffer.from(bytes);
      },
    });
    expect(streamed).toBe('a\nb\n');
    expect(result.spilled?.stderr).toBeUndefined();
    expect(readFileSync(result.spilled?.stdout ?? '', 'utf8')).toBe('a\nb\n');
    expect(readdirSync(output).length).toBe(1);
  });

  it('is not there unless it was asked for', async () => {
    expect((await sandbox.run('echo a')).spilled).toBeUndefined();
    expect((await sandbox.run('echo a', { spill: false })).spilled).toBeUndefined();
    expect(existsSync(output)).toBe(false);
  });

  it('ends at its limit, and says so', async () => {
    const result = await sandbox.run('seq 300000', { spill: { maxBytes: 100_000 } });
    expect(result.spilled?.incomplete).toBe(
      'stdout ends after 100000 bytes: the limit of 100000 bytes was reached',
    );
    expect(statSync(result.spilled?.stdout ?? '').size).toBe(100_000);
    expect(result.outputBytes.stdout).toBe(1_988_895);
    const exact = await sandbox.run(['printf', 'abc'], { spill: { maxBytes: 3 } });
    expect(exact.spilled?.incomplete).toBeUndefined();
    const all = await sandbox.run(['printf', 'abc'], { spill: { maxBytes: Infinity } });
    expect(all.spilled?.incomplete).toBeUndefined();
  });

  // A disk of its own, to be filled, is made in a mount namespace.
  it.runIf(HOST.namespaces)(
    'on a full disk does not keep the command from going on (needs namespaces)',
    () => {
      const program = `
      import { createSandbox } from ${JSON.stringify(LIBRARY)};
      const sandbox = await createSandbox({ workspace: ${JSON.stringify(place.workspace)} });
      const result = await sandbox.run('seq 300000', { spill: true, maxOutput: 10_000_000 });
      console.log(JSON.stringify([result.status, result.exitCode, result.stdout.length, result.spilled]));
      await sandbox.close();`;
      const mounted = join(place.root, 'full');
      mkdirSync(mounted);
      const script = `mount -t tmpfs -o size=256k,mode=700 tmpfs "$0" && exec "$1" --input-type=module -e "$2"`;
      const { stdout, stderr } = spawnSync(
        'unshare',
        [
          ...(process.geteuid?.() === 0 ? [] : ['--user', '--map-root-user']),
          ...['--mount', 'sh', '-c', script, mounted, process.execPath, program],
        ],
        { encoding: 'utf8', env: { ...process.env, XDG_STATE_HOME: mounted } },
      );
      expect(stderr).toBe('');
      const [status, exitCode, length, spilled] = JSON.parse(stdout);
      expect([status, exitCode, length]).toEqual(['exited', 0, 1_988_895]);
      expect(spilled.incomplete).toMatch(/^stdout ends after \d{5,6} bytes: writing failed \(ENOSPC\)$/);
    },
    20_000,
  );

  it('keeps a command from running where no file can be made for it', async () => {
    mkdirSync(dirname(output), { mode: 0o700 });
    writeFileSync(output, 'in the way');
    const result = await sandbox.run('touch ran', { spill: true });
    expect(result).toMatchObject({ status: 'setup-failed', error: { code: 'state.untrusted' } });
    rmSync(output);
    mkdirSync(output, { mode: 0o700 });
    chmodSync(output, 0o777);
    expect((await sandbox.run('touch ran', { spill: true })).status).toBe('setup-failed');
    expect(existsSync(join(place.workspace, 'ran'))).toBe(false);
  });

  it('makes room for the next: what is older than 7 days, and the oldest beyond 1 GiB', async () => {
    const [first, second] = [
      await sandbox.run('echo 1', { spill: true }),
      await sandbox.run('echo 2', { spill: true }),
    ];
    const days = (count: number) => new Date(Date.now() - count * 24 * 3600 * 1000);
    const [old = '', young = ''] = [first.spilled?.stdout, second.spilled?.stdout];
    utimesSync(old, days(7.1), days(7.1));
    utimesSync(young, days(6.9), days(6.9));
    writeFileSync(join(output, 'mine'), '');
    utimesSync(join(output, 'mine'), days(30), days(30));
    await sandbox.run('echo 3', { spill: true });
    expect([existsSync(old), existsSync(young), existsSync(join(output, 'mine'))]).toEqual([
      false,
      true,
      true,
    ]);
    const large = (await sandbox.run('echo 4', { spill: true })).spilled?.stdout ?? '';
    truncateSync(large, LARGE);
    utimesSync(large, days(1), days(1));
    const last = await sandbox.run('echo 5', { spill: true });
    // The oldest goes first, and with it enough is gone only when the large one goes too.
    expect([existsSync(young), existsSync(large)]).toEqual([false, false]);
    expect(readFileSync(last.spilled?.stdout ?? '', 'utf8')).toBe('5\n');
  });

  it('leaves the files of running commands alone', async () => {
    const { words, letGo } = makeHold(place.workspace);
    const running = sandbox.start(`echo begin; ${words}; echo end`, { spill: true });
    const [name = ''] = readdirSync(output).filter((file) => file.endsWith('.out'));
    utimesSync(join(output, name), new Date(0), new Date(0));
    await sandbox.run('echo other', { spill: true });
    letGo();
    const { spilled } = await running.result;
    expect(readFileSync(spilled?.stdout ?? '', 'utf8')).toBe('begin\nend\n');
  });
});
