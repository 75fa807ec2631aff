import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { HOST } from '../support/tiers.ts';
import { buildOuterFilter } from './support/outer-filter.ts';
import {
  ALL_BROKEN,
  expectHonest,
  expectHonestOrRefused,
  expectRefused,
  makeWorld,
  ROOT,
} from './support/world.ts';

const VIEW_ALONE = 'by a view of our own without Landlock';
const LANDLOCK = ['landlock_create_ruleset', 'landlock_add_rule', 'landlock_restrict_self'];
/** There are some in a namespace, too. */
const CAPABILITIES = HOST.namespaces || !/^CapPrm:\s+0+$/m.test(readFileSync('/proc/self/status', 'utf8'));
/** Calls that give capabilities up. */
const GIVES_UP = ['prctl[0=28]', 'capset'];

/**
 * A container, systemd or another sandbox around us answers system calls itself, with EPERM or ENOSYS (crun, Docker,
 * firejail). Every call that the addon makes, one by one, by what comes of it. Not in the list is what Node itself does not
 * start without: clone3 with EPERM, eventfd2, pipe2, fcntl, ioctl, rt_sigaction, rt_sigprocmask, newfstatat.
 */
const CALLS: Readonly<Record<string, readonly string[]>> = {
  'by Landlock and seccomp without a view of our own': [
    ...['setns', 'unshare', 'mount', 'umount2', 'pivot_root', 'open_tree', 'move_mount', 'openat2'],
    ...['mkdirat', 'mknodat', 'symlinkat', 'socket', 'clone[0&0x7e020000]'],
  ],
  ...(HOST.namespaces ? { [VIEW_ALONE]: LANDLOCK } : {}),
  'with a warden that looks for the processes of a tree': ['kill'],
  'with nothing missing': [
    ...[
      'close_range',
      // Mount flags can be set in another way.
      'mount_setattr',
      'execveat',
      'signalfd4',
      'sendto',
      'waitid',
      'pidfd_open',
      'pidfd_send_signal',
      'tgkill',
    ],
    ...['getrusage', 'umask', 'fchmod', 'flistxattr', 'utimensat', 'statx', 'nanosleep', 'clock_gettime'],
    ...['setpriority', 'prctl[0=36]', 'prctl[0=47]', 'prctl[0=15]'],
    ...(CAPABILITIES ? [] : GIVES_UP),
  ],
};
/** Nothing takes the place of these. */
const NEEDED = [
  ...['seccomp', 'prctl', 'prctl[0=1]', 'prctl[0=38]', 'capget', 'clone', 'dup3', 'setsid'],
  ...['prlimit64', 'socketpair', 'poll', 'ppoll', 'wait4', 'getppid', 'chdir', 'flock', 'mkdir'],
  ...(CAPABILITIES ? GIVES_UP : []),
  ...(HOST.namespaces ? [] : LANDLOCK),
];

const world = makeWorld();
const filter = buildOuterFilter();

/** Not where a filter of somebody else's refuses clone3 already, as Docker's does. */
const NODE_STARTS_WITHOUT_CLONE = !HOST.filtered || nodeStarts(filter({ clone: 'EPERM' }));

function nodeStarts([program = '', ...words]: readonly string[]): boolean {
  try {
    execFileSync(program, [...words, process.execPath, '-e', ''], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

interface Refusal {
  readonly errno: 'EPERM' | 'ENOSYS';
}

/** What comes of both ways to refuse. */
const both = (rules: (refusal: Refusal) => Readonly<Record<string, Refusal['errno']>>) =>
  Promise.all(
    (['EPERM', 'ENOSYS'] as const).map((errno) => world.attack({ host: filter(rules({ errno })) })),
  );

it('the attack works where nothing holds it', async () => {
  const { stdout, left } = await world.attack({ unconfined: true });
  // Docker's own filter is on every process already, and so may be no_new_privs.
  const broken = ALL_BROKEN.filter(
    (line) => !(line === 'SYSCALLS' && HOST.filtered) && !(line === 'PRIVS' && HOST.noNewPrivileges),
  );
  expect(stdout?.split('\n')).toEqual(expect.arrayContaining([...broken, ...(ROOT ? ['CAPS'] : [])]));
  expect(left).toBe(true);
});

it('a filter that refuses nothing changes nothing', async () => {
  const answer = await world.attack({ host: filter({ uselib: 'EPERM' }) });
  expectHonest(answer);
  expect(answer.backend).toBe('landlock');
});

describe('a command is held', () => {
  describe.each(Object.entries(CALLS))('%s', (how, calls) => {
    it.each(calls)('where %s is refused', async (call) => {
      for (const answer of await both(({ errno }) => ({ [call]: errno }))) {
        expectHonest(answer);
        const { backend, tier, states } = answer;
        const found = { backend, tier, view: states?.['filesystem-view'] };
        if (how === VIEW_ALONE) expect(found).toMatchObject({ backend: 'namespaces', tier: 'subreaper' });
        else expect(found.backend).toBe('landlock');
        if (how.startsWith('by Landlock')) expect(found.view).toBe('unsupported');
        if (how.startsWith('with a warden')) expect(found.tier).toBe('subreaper');
        if (how.startsWith('with nothing'))
          expect(found).toEqual({
            backend: 'landlock',
            tier: 'signal-scope',
            view: HOST.namespaces ? 'enforced' : 'unsupported',
          });
      }
    });
  });
});

describe('nothing is run, and one line says why,', () => {
  it.each(NEEDED)('where %s is refused', async (call) => {
    for (const answer of await both(({ errno }) => ({ [call]: errno }))) {
      if (call === 'clone' && !NODE_STARTS_WITHOUT_CLONE) {
        expect(answer.crashed).toContain('SIGABRT');
        expect(answer.stdout).toBeUndefined();
        expect(answer.left).toBe(false);
      } else expectRefused(answer);
    }
  });
});

it('a launcher that cannot wait for its children refuses, time and again', async () => {
  const host = filter({ wait4: 'EPERM' });
  for (let time = 0; time < 5; time += 1) expectRefused(await world.attack({ host }));
});

/** Without Landlock another warden does other things. */
describe('without Landlock as well, a command is held or not run,', () => {
  it.each(
    [
      ...[
        'pidfd_open',
        'pidfd_send_signal',
        'signalfd4',
        'ppoll',
        'execveat',
        'sendto',
        'waitid',
        'kill',
        'nanosleep',
      ],
      ...['close_range', 'readlinkat', 'seccomp', 'unshare', 'setns', 'clone[0&0x7e020000]'],
    ].map((call, at) => [call, at % 2 === 0 ? 'EPERM' : 'ENOSYS'] as const),
  )('where %s is refused with %s', async (call, errno) => {
    const host = filter({ landlock_create_ruleset: errno, [call]: errno });
    expectHonestOrRefused(await world.attack({ host }));
  });
});
