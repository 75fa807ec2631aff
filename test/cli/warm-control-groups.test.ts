import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readlinkSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { patience } from '../support/slow-host.ts';
import { HOST } from '../support/tiers.ts';
import { clientWords, processesWith, serverWords } from './services-support.ts';
import { CLI, serversOf } from './support.ts';
import { CLIENT, makeWarmPlace, pathOf, programOf, WARM } from './warm-support.ts';

/** In another namespace of control groups, and for root, only the very same group counts. */
const FIRST_NAMESPACE = 'cgroup:[4026531835]';
const canTell = HOST.namespaces && readlinkSync('/proc/self/ns/cgroup') === FIRST_NAMESPACE;

const SERVICE = '/user.slice/user-1000.slice/user@1000.service';
const TERMINAL = `${SERVICE}/app.slice/app-org.gnome.Terminal.slice`;
const [TAB, OTHER_TAB] = [`${TERMINAL}/vte-spawn-1.scope`, `${TERMINAL}/vte-spawn-2.scope`];
const LIMITED = `${SERVICE}/app.slice/run-u1.scope`;
const FEWER_PROCESSES = `${SERVICE}/app.slice/run-u2.scope`;
/** A group that the system made: its user cannot see everything that may restrict its processes. */
const SESSION = '/user.slice/user-1000.slice/session-2.scope';

/** Files of the groups, as far as they tell one from another. */
const UNSET = { 'cgroup.procs': '', 'cgroup.freeze': '0', 'memory.max': 'max', 'pids.max': '4915' };
const GROUPS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '/user.slice': {},
  // Without a list of members that is its own.
  '/user.slice/user-1000.slice': {},
  [SERVICE]: UNSET,
  [`${SERVICE}/app.slice`]: { ...UNSET, 'pids.max': 'max' },
  [TERMINAL]: { ...UNSET, 'pids.max': 'max' },
  [TAB]: UNSET,
  [OTHER_TAB]: UNSET,
  [LIMITED]: { ...UNSET, 'memory.max': '4294967296' },
  [FEWER_PROCESSES]: { ...UNSET, 'pids.max': '100' },
  [SESSION]: UNSET,
};

const long = (number: number) => `${8_000 + number}.${process.pid}`;

describe.runIf(canTell)('a caller in another control group (needs namespaces)', () => {
  const place = makeWarmPlace();
  const groups = join(place.root, 'groups');
  let world: Awaited<ReturnType<typeof makeWorld>>;

  /**
   * Namespaces in which an ordinary user finds these groups where those of the kernel are, and in which it is told of a
   * process in which of them that is. A real group needs a host with cgroup v2 alone (test/native/core/control_group_test.cc).
   */
  async function makeWorld() {
    for (const [group, files] of Object.entries(GROUPS)) {
      mkdirSync(join(groups, group), { recursive: true });
      for (const [file, text] of Object.entries(files)) writeFileSync(join(groups, group, file), `${text}\n`);
    }
    const user = ['--user', '--map-user=1000', '--map-group=1000', '--mount', '--keep-caps'];
    const mounter = spawn('unshare', [...user, '/bin/sh'], { stdio: ['pipe', 'pipe', 'inherit'] });
    const answers = createInterface(mounter.stdout)[Symbol.asyncIterator]();
    const mount = async (words: string) => {
      mounter.stdin.write(`mount ${words} && echo mounted\n`);
      expect((await answers.next()).value).toBe('mounted');
    };
    await mount(`--bind '${groups}' /sys/fs/cgroup`);
    // The user of this number outside has directories of his own there.
    await mount('-t tmpfs own /dev/shm');
    const enter = ['-U', '-m', '--preserve-credentials', '-t', String(mounter.pid)];
    const put = async (pid: number, group: string) => {
      const file = join(groups, `of-${pid}`);
      writeFileSync(file, `0::${group}\n`);
      await mount(`--bind '${file}' /proc/${pid}/cgroup`);
    };
    return {
      put,
      /** Starts a program there in a group; in an object, as the process can be awaited itself. */
      start: async (group: string, words: readonly string[], env: Readonly<Record<string, string>> = {}) => {
        // Entering another mount namespace leads to its root directory.
        const begin = ['/bin/sh', '-c', 'cd "$0" && read -r _ && exec "$@"', place.workspace];
        const running = execa('nsenter', [...enter, ...begin, ...words], {
          ...{ env: { ...place.env, ...env }, extendEnv: false, reject: false },
        });
        await eventually(() => expect(programOf(running.pid)).toBe(realpathSync('/bin/sh')));
        await put(running.pid ?? 0, group);
        running.stdin.end('\n');
        return { running };
      },
      end: async () => {
        mounter.stdin.end();
        await once(mounter, 'exit');
      },
    };
  }

  const run = async (...args: Parameters<typeof world.start>) => {
    const { running } = await world.start(...args);
    const { exitCode, stdout, stderr } = await running;
    return { exitCode, stdout, stderr };
  };

  /** The program that a call from a group has become when its command runs: the client, if a server has taken it. */
  async function programFrom(
    group: string,
    number: number,
    by: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const { running } = await world.start(
      group,
      [...by, ...WARM, '--warm', '--', 'sleep', long(number)],
      env,
    );
    await eventually(() => expect(processesWith(long(number)).length).toBeGreaterThan(0), 60_000);
    const program = programOf(running.pid);
    running.kill('SIGTERM');
    await running;
    return program;
  }

  /** The server of calls from a group, which a first one starts. */
  async function serverFor(group: string): Promise<number> {
    const before = serversOf(place.state);
    const first = await run(group, [...WARM, '--warm', '--', 'true']);
    expect(first).toMatchObject({ exitCode: 0, stderr: '' });
    const added = () => serversOf(place.state).filter((pid) => !before.includes(pid));
    await eventually(() => expect(added()).toHaveLength(1), 60_000);
    const [server = 0] = added();
    await world.put(server, group);
    return server;
  }

  let server = 0;
  beforeAll(async () => {
    world = await makeWorld();
    server = await serverFor(TAB);
  }, patience(60_000));
  afterAll(async () => {
    await world.end();
    await place.dispose();
  });

  it('is served where neither group sets anything', async () => {
    for (const group of [TAB, OTHER_TAB])
      await eventually(async () => expect(await programFrom(group, 1)).toBe(CLIENT), 60_000);
    expect(serversOf(place.state)).toEqual([server]);
  });

  it.each([
    ['has a limit of its own', LIMITED],
    ['may have fewer processes', FEWER_PROCESSES],
    ['belongs to the system', SESSION],
  ])('is not served where the group %s, and has a server of its own', async (_, group) => {
    // Nor by a server that it is sent to.
    const sent = { SANDBOX_RUN_WARM_AT: pathOf(server) };
    expect(await programFrom(group, 2, [], sent)).toBe(realpathSync(process.execPath));
    const own = await serverFor(group);
    expect(pathOf(own)).not.toBe(pathOf(server));
    await eventually(async () => expect(await programFrom(group, 3)).toBe(CLIENT), 60_000);
  });

  it('is not served if it is more confined than the server', async () => {
    const sent = { SANDBOX_RUN_WARM_AT: pathOf(server) };
    expect(await programFrom(OTHER_TAB, 4, [], sent)).toBe(CLIENT);
    for (const by of [
      ['setpriv', '--no-new-privs'],
      ['nice', '-n', '3'],
    ])
      expect(await programFrom(OTHER_TAB, 4, by, sent)).toBe(realpathSync(process.execPath));
  });

  it('is not served any more by a server whose group has got a limit', async () => {
    const limit = join(groups, TAB, 'memory.max');
    const sent = { SANDBOX_RUN_WARM_AT: pathOf(server) };
    writeFileSync(limit, '4294967296\n');
    expect(await programFrom(OTHER_TAB, 5, [], sent)).toBe(realpathSync(process.execPath));
    writeFileSync(limit, 'max\n');
    expect(await programFrom(OTHER_TAB, 5, [], sent)).toBe(CLIENT);
  });

  it('reaches services from another tab, and is told of the group where it does not', async () => {
    const words = ['/bin/sh', CLI];
    const up = [...words, 'up', 'web', '--ready', '5173', '--', ...serverWords(5173, 'from web')];
    expect(await run(TAB, up)).toMatchObject({ exitCode: 0, stderr: '' });
    try {
      const connect = [...words, '--', ...clientWords(5173)];
      expect(await run(OTHER_TAB, connect)).toMatchObject({ exitCode: 0, stdout: 'from web', stderr: '' });
      const told = await run(LIMITED, connect);
      expect(told.stdout).toBe('ECONNREFUSED');
      expect(told.stderr).toContain(
        `web was started by a process with "control group 0::${SERVICE}", and this one has "control group 0::${LIMITED}"`,
      );
      expect((await run(FEWER_PROCESSES, connect)).stderr).toContain(
        'web was started by a process with "control group pids.max 4915", and this one has "control group pids.max 100"',
      );
    } finally {
      expect(await run(OTHER_TAB, [...words, 'stop', '--all'])).toMatchObject({ exitCode: 0 });
    }
  });
});
