import { readFileSync, realpathSync, rmSync } from 'node:fs';
import { constants } from 'node:os';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { expectNothingLeft, leftIn, processesWith } from '../support/leftovers.ts';
import { cli, makePlace, startCli } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());
afterEach(() => expectNothingLeft(place));

/** Says when it is ready, then the name of each signal that it gets; ends after the last of them. */
const REPORTER = `
import os, signal, sys
names = sys.argv[1:]
def report(number, frame):
    os.write(1, signal.Signals(number).name.encode() + b'\\n')
    names.pop()
for name in names:
    signal.signal(getattr(signal, name), report)
os.write(1, b'ready\\n')
while names:
    signal.pause()
`;

function collect(child: ReturnType<typeof startCli>): { readonly text: () => string } {
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  return { text: () => text };
}

/** The state letter of a process, for example `T` for stopped. */
function stateOf(pid: number | undefined): string | undefined {
  return /^State:\s*(\S)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
}

describe('signals', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGWINCH', 'SIGCONT', 'SIGUSR1'] as const)(
    '%s reaches the command, which may handle it',
    async (signal) => {
      const child = startCli(place, ['python3', '-c', REPORTER, signal]);
      const output = collect(child);
      await eventually(() => expect(output.text()).toBe('ready\n'));
      child.kill(signal);
      const result = await child;
      expect(output.text()).toBe(`ready\n${signal}\n`);
      expect(result.exitCode).toBe(0);
      // Node's own answer to SIGUSR1.
      expect(result.stderr).not.toContain('Debugger');
    },
  );

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const)(
    '%s ends a command that does not handle it, with status 128+n',
    async (signal) => {
      // bash itself ignores SIGQUIT, and so do its background jobs.
      const child = startCli(place, ['--', 'sh', '-c', 'echo ready; exec sleep 60']);
      const output = collect(child);
      await eventually(() => expect(output.text()).toBe('ready\n'));
      child.kill(signal);
      expect((await child).exitCode).toBe(128 + constants.signals[signal]);
    },
  );

  it('SIGTSTP reaches the command and stops it and the launcher; SIGCONT lets both go on', async () => {
    const mark = `stopped-${process.pid}`;
    const script = 'trap "echo tstp" TSTP; trap "echo cont" CONT; echo ready; while :; do sleep 0.05; done';
    const child = startCli(place, ['--', 'bash', '-c', script, mark]);
    const output = collect(child);
    await eventually(() => expect(output.text()).toBe('ready\n'));
    // The warden is a copy of the launcher for a moment, and bash has copies of itself until they execute `sleep`.
    let inside: number | undefined;
    await eventually(() => {
      const others = processesWith(mark).filter((pid) => pid !== child.pid);
      expect(others).toHaveLength(1);
      inside = others[0];
    });
    child.kill('SIGTSTP');
    await eventually(() => {
      expect(stateOf(child.pid)).toBe('T');
      expect(stateOf(inside)).toBe('T');
    });
    child.kill('SIGCONT');
    // A shell that was stopped before it came to its first trap does both now, in whichever order.
    await eventually(() => {
      expect(output.text()).toContain('cont');
      expect(output.text()).toContain('tstp');
    });
    expect(stateOf(child.pid)).not.toBe('T');
    expect(stateOf(inside)).not.toBe('T');
    child.kill('SIGTERM');
    expect((await child).exitCode).toBe(143);
  });

  it('can be stopped and continued twice', async () => {
    const child = startCli(place, ['-c', 'echo ready; sleep 60 & wait']);
    const output = collect(child);
    await eventually(() => expect(output.text()).toBe('ready\n'));
    for (let round = 0; round < 2; round++) {
      child.kill('SIGTSTP');
      await eventually(() => expect(stateOf(child.pid)).toBe('T'));
      child.kill('SIGCONT');
      await eventually(() => expect(stateOf(child.pid)).not.toBe('T'));
    }
    child.kill('SIGINT');
    expect((await child).exitCode).toBe(130);
  });

  const mapsOf = (pid: number | undefined) => readFileSync(`/proc/${pid}/maps`, 'utf8');
  it.each<[string, (pid: number | undefined, mark: string) => void]>([
    ['at once', () => {}],
    ['once Node is there', (pid) => expect(mapsOf(pid)).toContain(realpathSync(process.execPath))],
    ['once the addon is loaded', (pid) => expect(mapsOf(pid)).toContain('.node')],
    ['once its private directory is there', () => expect(leftIn(place.tmp)).not.toEqual([])],
    [
      'once the command is there',
      (pid, mark) => expect(processesWith(mark).filter((other) => other !== pid)).not.toEqual([]),
    ],
  ])('SIGINT %s ends it and leaves nothing', async (_, isThere) => {
    const mark = `60.${process.pid}`;
    const child = startCli(place, ['sleep', mark]);
    // Looked at as often as can be: each of these is there for a moment only before the next.
    await eventually(() => isThere(child.pid, mark), 60_000);
    child.kill('SIGINT');
    const { exitCode, signal } = await child;
    expect(signal ?? exitCode).toBe(signal === undefined ? 130 : 'SIGINT');
    expect(leftIn(place.tmp)).toEqual([]);
  });

  it('the same signal twice, at once, leaves nothing', async () => {
    const child = startCli(place, ['--', 'sh', '-c', 'echo ready; exec sleep 60']);
    const output = collect(child);
    await eventually(() => expect(output.text()).toBe('ready\n'));
    child.kill('SIGINT');
    child.kill('SIGHUP');
    const { exitCode, signal } = await child;
    // The second may come when everything is over and put away: then it is nobody's but the kernel's.
    expect(signal ?? exitCode).toBeOneOf([129, 130, 'SIGHUP']);
    expect(leftIn(place.tmp)).toEqual([]);
  });

  it('a signal to a command that starts children reaches all of its process group', async () => {
    const mark = `group-${process.pid}`;
    const child = startCli(place, [
      '-c',
      `for i in 1 2 3; do sleep 60.${process.pid} ${mark} & done 2> /dev/null; sh -c 'echo ready; sleep 60' ${mark}; :`,
    ]);
    const output = collect(child);
    await eventually(() => expect(output.text()).toBe('ready\n'));
    child.kill('SIGTERM');
    await child;
    expect(processesWith(mark)).toEqual([]);
  });
});

describe('the end of the launcher', () => {
  it('by SIGKILL ends the command', async () => {
    const mark = `orphan-${process.pid}`;
    const child = startCli(place, ['--', 'sh', '-c', 'echo ready; while :; do sleep 0.05; done', mark]);
    const output = collect(child);
    await eventually(() => expect(output.text()).toBe('ready\n'));
    const inside = processesWith(mark).filter((pid) => pid !== child.pid);
    expect(inside.length).toBeGreaterThan(0);
    child.kill('SIGKILL');
    await child;
    await eventually(() => expect(processesWith(mark)).toEqual([]));
    // A launcher that is killed cannot take its directory away.
    for (const name of leftIn(place.tmp)) rmSync(name, { recursive: true });
  });
});

describe('what is left', () => {
  it('nothing of a daemon that leaves the session, where the host can tell', async () => {
    const mark = `daemon-${process.pid}`;
    const result = await cli(place, [
      '--json=full',
      '-c',
      `setsid sh -c ': > daemon-begun; sleep 60; :' ${mark} > /dev/null 2>&1 & until [ -e daemon-begun ]; do sleep 0.01; done`,
    ]);
    const { treeEnded } = JSON.parse(result.stdout);
    if (treeEnded) expect(processesWith(mark)).toEqual([]);
    else for (const pid of processesWith(mark)) process.kill(pid, 'SIGKILL');
    expect(treeEnded).toBe(true);
  });

  it('no private directory on shared memory', async () => {
    const { stdout } = await cli(place, [
      '-c',
      'touch "$TMPDIR/x" "$HOME/y" /dev/shm/z 2> /dev/null; cat /proc/self/mountinfo',
    ]);
    const own = /^\S+ \S+ \S+ (\/\.?sandbox-run-\S+) \/dev\/shm /m.exec(stdout)?.[1];
    if (own === undefined) return;
    expect(() => readFileSync(`/dev/shm${own}`)).toThrow(/ENOENT/);
  });
});
