import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, describe, expect, it } from 'vitest';
import { leftIn } from '../support/leftovers.ts';
import { CLI, expectOneLine, makePlace } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());

/** The command line under a limit of the shell that starts it; its report as JSON if there is one. */
async function under(limit: string, words: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { exitCode, stdout, stderr, timedOut } = await execa(
    'bash',
    ['-c', `${limit} || exit 99; exec "$0" "$@"`, process.execPath, CLI, ...words],
    {
      cwd: place.workspace,
      env: { ...place.env, ...env },
      extendEnv: false,
      reject: false,
      stripFinalNewline: false,
      stdin: 'ignore',
      timeout: 60_000,
    },
  );
  expect(timedOut).toBe(false);
  return { exitCode, stdout, stderr };
}

/** Either the command ran, or one line and 125. */
function expectRunOrOneLine({ exitCode, stdout, stderr }: Awaited<ReturnType<typeof under>>): void {
  if (exitCode === 0) {
    expect([stdout, stderr]).toEqual(['fine\n', '']);
    return;
  }
  expect([exitCode, stdout]).toEqual([125, '']);
  expectOneLine(stderr);
  expect(stderr).toMatch(/ulimit -n/);
}

// Fewer are not enough for Node itself, which then ends in its own way. A command runs with some 42 of them.
const FEW = Array.from({ length: 40 }, (_, index) => 19 + index);
/** Every so manieth of them. */
const each = (step: number, from = 0) => FEW.filter((_, index) => index % step === from);

describe('few descriptors', () => {
  it.each([
    ['an argument vector', ['--', 'echo', 'fine'], each(2, 0)],
    ['a shell string', ['-c', 'echo fine | cat'], each(2, 1)],
  ])('are enough for %s, or it is one line and 125', { timeout: 180_000 }, async (_, words, numbers) => {
    const ended: (number | undefined)[] = [];
    for (const few of numbers) {
      const result = await under(`ulimit -n ${few}`, words);
      expectRunOrOneLine(result);
      ended.push(result.exitCode);
    }
    // Once it works it goes on to, and it does work.
    expect(ended.slice(ended.indexOf(0))).toEqual(ended.slice(ended.indexOf(0)).map(() => 0));
    expect(ended.at(-1)).toBe(0);
    expect(leftIn(place.tmp)).toEqual([]);
  });

  it('change nothing of what is enforced', { timeout: 120_000 }, async () => {
    const words = ['--json=full', '--spill', '--', 'echo', 'fine'];
    const { stdout } = await under('true', words);
    const { report } = JSON.parse(stdout);
    for (const few of each(4)) {
      const result = await under(`ulimit -n ${few}`, words);
      if (result.stdout === '') expectOneLine(result.stderr);
      else expect(JSON.parse(result.stdout).report).toEqual(report);
    }
  });

  it('do not keep the attacks of the doctor from ending', { timeout: 300_000 }, async () => {
    for (const few of [36, 42, 48, 64]) {
      const { exitCode, stdout, stderr } = await under(`ulimit -n ${few}`, ['doctor', '--attack', '--json']);
      if (exitCode === 125) {
        expectOneLine(stderr);
        continue;
      }
      expect(stderr).toBe('');
      const report = JSON.parse(stdout);
      const attacks = report.controls.flatMap(({ attacks }: { attacks: { result: string }[] }) => attacks);
      const failed = attacks.filter(({ result }: { result: string }) => result === 'failed');
      // One that had no descriptors is none that was held, nor one that does not work here anyway.
      expect([exitCode, report.ok]).toEqual(
        attacks.length === 0 || failed.length > 0 ? [1, false] : [0, true],
      );
    }
  });

  it('let no tool call of an agent through', { timeout: 120_000 }, async () => {
    for (const few of each(3)) {
      const { exitCode, stdout } = await under(`ulimit -n ${few}`, ['hook', 'claude-code']);
      expect(exitCode === 2 || (exitCode === 0 && stdout.includes('"deny"'))).toBe(true);
    }
  });
});

describe('few processes, threads or little memory', () => {
  it.runIf(process.geteuid?.() === 0)(
    'are one line and 125, or the command runs',
    { timeout: 120_000 },
    async () => {
      // A user id that nobody else has, whose processes are counted.
      const uid = 60_000 + (process.pid % 5_000);
      const home = join(place.root, 'few');
      mkdirSync(home, { recursive: true });
      for (let most = 12; most <= 24; most += 1) {
        const { exitCode, stdout, stderr } = await execa(
          'setpriv',
          [
            ...[`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', 'bash', '-c'],
            `ulimit -u ${most}; exec "$0" "$@"`,
            ...[process.execPath, CLI, '--json', '--workspace', '/usr/share', '--', 'echo', 'fine'],
          ],
          {
            stdin: 'ignore',
            env: { ...place.env, HOME: '/nonexistent', TMPDIR: '/tmp', XDG_CONFIG_HOME: '/nonexistent' },
            extendEnv: false,
            reject: false,
            cwd: '/',
            timeout: 30_000,
          },
        );
        if (exitCode !== 0)
          expect([exitCode, stdout === '' ? stderr : '']).toEqual([
            125,
            expect.stringMatching(/^(sandbox-run: [^\n]+)?$/),
          ]);
      }
    },
  );
});

describe('a temporary directory', () => {
  const isRoot = process.geteuid?.() === 0;
  it.runIf(isRoot).each([
    ['without room', 'size=4k', 'head -c 4096 /dev/zero > "$TMPDIR/full"', /ENOSPC.*df/],
    ['without inodes', 'nr_inodes=3', 'true', /ENOSPC.*df/],
    ['that is read-only', 'ro', 'true', /EROFS.*set TMPDIR/],
  ])('%s is one line and 125, and nothing is left in it', async (_, options, fill, said) => {
    const tmp = join(place.root, 'small');
    mkdirSync(tmp, { recursive: true });
    // It becomes a file in the private home.
    mkdirSync(join(place.root, 'home'), { recursive: true });
    writeFileSync(join(place.root, 'home/.gitconfig'), '[user]\n\tname = Somebody\n\temail = a@b.example\n');
    const script = `mount -t tmpfs -o ${options} none "$TMPDIR" && ${fill} || exit 99
      "$0" "$@"; status=$?; find "$TMPDIR" -mindepth 2 -path "*/.sandbox-run-*"; exit $status`;
    const words = ['-m', 'bash', '-c', script, process.execPath, CLI, '--', 'echo', 'fine'];
    const { exitCode, stdout, stderr } = await execa('unshare', words, {
      cwd: place.workspace,
      env: { ...place.env, TMPDIR: tmp },
      extendEnv: false,
      reject: false,
      stripFinalNewline: false,
    });
    expect([exitCode, stdout]).toEqual([125, '']);
    expectOneLine(stderr);
    expect(stderr).toMatch(said);
  });
});
