import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { privateParentIn } from '../../src/workspace/index.ts';
import { buildOuterFilter } from '../hosts/support/outer-filter.ts';
import { eventually } from '../support/eventually.ts';
import { abandonedOnSharedMemory } from '../support/shared-memory.ts';
import { SLOW_HOST } from '../support/slow-host.ts';
import { HOST } from '../support/tiers.ts';
import { makeUnjudgedConfiguration } from '../support/unjudged-policy.ts';

const LIBRARY = fileURLToPath(new URL('../../dist/index.js', import.meta.url));
if (!existsSync(LIBRARY)) throw new Error('dist/ is missing: run `npm run build:ts` first');

const root = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-descriptors-')));
const [workspace, tmp] = [join(root, 'work'), join(root, 'tmp')];
for (const path of [workspace, tmp]) mkdirSync(path);
afterAll(() => rmSync(root, { recursive: true, force: true }));

const outerFilter = buildOuterFilter();

/** Many times what a limit has room for. */
const MANY = SLOW_HOST ? 300 : 500;
/** An emulated machine with an old kernel takes seconds for each of them. */
const PATIENCE = SLOW_HOST ? 900_000 : 120_000;

/** Runs a command with a /dev/shm of its own, on which nobody else leaves anything. */
const WITH_OWN_SHARED_MEMORY =
  process.getuid?.() === 0
    ? ['unshare', '--mount', 'bash', '-c', 'mount -t tmpfs own /dev/shm && exec "$@"', '-']
    : [
        ...['unshare', '--user', '--map-root-user', '--mount', 'bash', '-c'],
        // Back to the user that it was: the superuser of a namespace is another case.
        `mount -t tmpfs own /dev/shm && exec unshare --user --map-user=${process.getuid?.()} --map-group=${process.getgid?.()} "$@"`,
        '-',
      ];
const CAN_HAVE_OWN = spawnSync('env', [...WITH_OWN_SHARED_MEMORY, 'true']).status === 0;

/**
 * What of these files on shared memory is this program's: all of them where it is its own, else those that nobody has a lock
 * on, because a launcher of another test locks its directories as long as it lives.
 */
const ofNobody = (left: readonly string[]) =>
  CAN_HAVE_OWN
    ? left
    : abandonedOnSharedMemory()
        .map(({ path }) => basename(path))
        .filter((name) => left.includes(name));

/** What a program says as JSON that has the library, and this limit of open files. It leaves nothing on shared memory. */
async function within(limit: number, program: string, outer: readonly string[] = []): Promise<unknown> {
  const script = `
    import { openSync, closeSync, readdirSync } from 'node:fs';
    import { createSandbox } from ${JSON.stringify(LIBRARY)};
    const open = () => readdirSync('/proc/self/fd').length;
    const say = (value) => console.log(JSON.stringify(value));
    const workspace = ${JSON.stringify(workspace)};
    ${program}`;
  const before = CAN_HAVE_OWN ? [] : abandonedOnSharedMemory().map(({ path }) => basename(path));
  const limited = `(ulimit -n ${limit}; exec "$0" --input-type=module -e "$1"); ls -A ${privateParentIn('/dev/shm').path} >&2`;
  const { stdout, stderr } = await execa(
    'env',
    [
      ...(CAN_HAVE_OWN ? WITH_OWN_SHARED_MEMORY : []),
      ...outer,
      'bash',
      '-c',
      limited,
      process.execPath,
      script,
    ],
    {
      env: {
        PATH: process.env.PATH ?? '',
        HOME: join(root, 'home'),
        TMPDIR: tmp,
        XDG_CONFIG_HOME: makeUnjudgedConfiguration(root),
      },
      extendEnv: false,
    },
  );
  const left = stderr.split('\n').filter((line) => line !== '' && !before.includes(line));
  // One that somebody is just making or removing has no lock for a moment.
  await eventually(() => expect(ofNobody(left)).toEqual([]));
  return JSON.parse(stdout);
}

describe('a limit of open files', () => {
  it.each([
    [MANY, 1_024],
    [MANY, 128],
    [50, 56],
  ])(
    'lets %i commands at once wait for their turn where it is %i, and nothing is left',
    async (many, limit) => {
      const said = await within(
        limit,
        `const sandbox = await createSandbox({ workspace });
         const alone = await sandbox.run('echo alone');
         const atRest = open();
         const results = await Promise.all(Array.from({ length: ${many} }, (_, index) =>
           sandbox.run(['sh', '-c', 'mkdir -p "$TMPDIR/a/b"; : > "$TMPDIR/a/b/c"; echo ' + index])));
         await sandbox.close();
         say({
           good: results.filter(({ status, stdout }, index) => status === 'exited' && stdout === index + '\\n').length,
           why: [...new Set(results.map(({ error }) => error?.message ?? ''))],
           reports: new Set([alone, ...results].map(({ report }) => JSON.stringify(report))).size,
           more: Math.max(0, open() - atRest),
         });`,
      );
      expect(said).toEqual({ good: many, why: [''], reports: 1, more: 0 });
      expect(readdirSync(privateParentIn(tmp).path)).toEqual([]);
    },
    PATIENCE,
  );

  it(
    'lets commands wait whose whole output is kept in files, and keeps no file of a launch that was tried again',
    async () => {
      const said = await within(
        64,
        `const sandbox = await createSandbox({ workspace });
       const results = await Promise.all(Array.from({ length: 60 }, (_, index) =>
         sandbox.run('sleep 0.02; echo ' + index, { spill: true })));
       await sandbox.close();
       const kept = results.flatMap(({ spilled }) => spilled === undefined ? [] : [spilled.stdout, spilled.stderr]);
       const { dirname } = await import('node:path');
       say({
         good: results.filter(({ status, stdout }, index) => status === 'exited' && stdout === index + '\\n').length,
         why: [...new Set(results.map(({ error }) => error?.message ?? ''))],
         kept: kept.length,
         files: readdirSync(dirname(kept[0])).length,
       });`,
      );
      expect(said).toEqual({ good: 60, why: [''], kept: 120, files: 120 });
    },
    PATIENCE,
  );

  it.each([
    ['unix', 'socket.socket(socket.AF_UNIX)'],
    ['UDP', 'socket.socket(socket.AF_INET, socket.SOCK_DGRAM)'],
  ])(
    'counts what a supervisor keeps of the sockets of a command: %s',
    async (_, made) => {
      const holder = `import os, socket, time
kept = []
while len(kept) < 60:
    try: kept.append(${made})
    except OSError: break
print(len(kept), flush=True)
while not os.path.exists("let-go-${made.length}"): time.sleep(0.02)`;
      const said = await within(
        128,
        `const { mkdirSync } = await import('node:fs');
       const sandbox = await createSandbox({ workspace, net: ['unused.test'] });
       await sandbox.run('true');
       let has = () => {};
       const ready = new Promise((done) => (has = done));
       const holder = sandbox.run(['python3', '-c', ${JSON.stringify(holder)}], { onOutput: has });
       await ready;
       const results = await Promise.all(Array.from({ length: 30 }, (_, index) => sandbox.run('sleep 0.02; echo ' + index)));
       // Until now they were held.
       mkdirSync(workspace + '/let-go-${made.length}');
       const held = Number((await holder).stdout);
       await sandbox.close();
       say({
         good: results.filter(({ status, stdout }, index) => status === 'exited' && stdout === index + '\\n').length,
         why: [...new Set(results.map(({ error }) => error?.message ?? ''))],
         some: held >= 4,
       });`,
      );
      expect(said).toEqual({ good: 30, why: [''], some: true });
    },
    PATIENCE,
  );

  it.each([
    { host: 'this host', refuses: {} },
    // As in containers: a path of a command is read from a file of /proc then.
    { host: 'one that refuses process_vm_readv', refuses: { process_vm_readv: 'EPERM' } as const },
  ])(
    'says that it does not know what was denied while it had none left to look with, on $host',
    async ({ refuses }) => {
      const outside = realpathSync(mkdtempSync('/var/tmp/unseen-'));
      onTestFinished(() => rmSync(outside, { recursive: true, force: true }));
      const said = await within(
        256,
        `const { mkdirSync } = await import('node:fs');
       const sandbox = await createSandbox({ workspace });
       const told = [];
       for (const isShort of [false, true]) {
         const go = workspace + '/go-' + process.pid + isShort;
         let begins;
         const ready = new Promise((done) => (begins = done));
         const script = 'echo ready; until [ -e ' + go + ' ]; do :; done; mkdir ${outside}/denied';
         const running = sandbox.run(['bash', '-c', script], { onOutput: begins });
         await ready;
         const taken = [];
         if (isShort) try { for (;;) taken.push(openSync('/', 0)); } catch {}
         mkdirSync(go);
         // What ends the command needs a descriptor of its own: one for the event loop is always there.
         const { status, denials = [], notLookedAt = [] } = await running;
         for (const fd of taken) closeSync(fd);
         told.push([status, denials.map(({ object }) => object), notLookedAt.includes('create')]);
       }
       await sandbox.close();
       say(told);`,
        outerFilter(refuses),
      );
      expect(said).toEqual([
        ['exited', [join(outside, 'denied')], false],
        ['exited', [], true],
      ]);
    },
  );

  it('refuses a command whose output is to be kept in files where none can be opened', async () => {
    const said = await within(
      128,
      `const sandbox = await createSandbox({ workspace });
       await sandbox.run('true', { spill: true });
       const taken = [];
       // The place of the first command is still cleared on another thread, which gives back what it opens for that.
       for (let idle = 0; idle < 50; idle++) {
         try { for (;; idle = 0) taken.push(openSync('/', 0)); } catch {}
         await new Promise((done) => setTimeout(done, 5));
       }
       const { status, error } = await sandbox.run('true', { spill: true }).catch((error) => ({ error }));
       for (const fd of taken) closeSync(fd);
       await sandbox.close();
       say([status, error.code]);`,
    );
    expect(said).toEqual(['setup-failed', 'state.unusable']);
  });

  it('refuses at once what nothing that ends by itself makes room for', async () => {
    const said = await within(
      128,
      `const sandbox = await createSandbox({ workspace });
       const jobs = [];
       let refused;
       while (jobs.length < 20 && refused === undefined) {
         const job = sandbox.start('sleep 100', { background: true });
         if (await job.launched) jobs.push(job); else refused = await job.wait();
       }
       await Promise.all(jobs.map((job) => job.end()));
       const after = await sandbox.run('echo after');
       await sandbox.close();
       say([jobs.length > 1, refused.status, refused.error.code, refused.error.message, after.stdout]);`,
    );
    expect(said).toEqual([
      true,
      'setup-failed',
      'launch.failed',
      'too many files are open for one more command; run fewer at a time, or raise the limit (`ulimit -n`)',
      'after\n',
    ]);
    expect(readdirSync(privateParentIn(tmp).path)).toEqual([]);
  });

  it('lets a command that waits be given up, and its time limit begins when it does', async () => {
    const said = await within(
      96,
      `const { mkdirSync } = await import('node:fs');
       const sandbox = await createSandbox({ workspace });
       const go = workspace + '/let-first-go';
       const first = [1, 2, 3, 4].map(() => sandbox.run('until [ -e ' + go + ' ]; do sleep 0.02; done'));
       const abort = new AbortController();
       const [canceled, aborted, late] = [
         sandbox.start('echo canceled'), sandbox.start('echo aborted', { signal: abort.signal }),
         sandbox.start('echo late', { timeout: 2000 }),
       ];
       // It waits for longer than it may run: only then may the first ones end.
       setTimeout(() => mkdirSync(go), 2100);
       canceled.cancel();
       abort.abort();
       const results = await Promise.all([canceled.result, aborted.result, late.result, ...first]);
       const left = sandbox.run('sleep 100');
       const never = sandbox.run('echo never');
       await sandbox.close();
       say([...results, await left, await never].map(({ status, stdout }) => status + ' ' + stdout.trim()));`,
    );
    expect(said).toEqual([
      'canceled ',
      'canceled ',
      'exited late',
      ...Array(4).fill('exited '),
      'canceled ',
      'canceled ',
    ]);
  });

  it('ends no process with streams in the middle: one that has no pipes is refused, and none of them is left', async () => {
    const said = await within(
      128,
      `const sandbox = await createSandbox({ workspace });
       await sandbox.run('true');
       const codes = new Set();
       let atRest = 0;
       for (let round = 0; round < 32; round++) {
         const left = round % 16;
         // Once all that is kept for later commands is there.
         if (round === 16) atRest = open();
         const taken = [];
         try { for (;;) taken.push(openSync('/', 0)); } catch {}
         for (let some = left; some > 0; some--) closeSync(taken.pop());
         for (const pty of [undefined, { cols: 80, rows: 24 }]) {
           try {
             const { stdin, stdout, stderr, result } = sandbox.spawn('true', pty === undefined ? {} : { pty });
             for (const stream of [stdin, stdout, stderr]) stream.on('error', () => {}).on('data', () => {});
             const { status, error } = await result;
             codes.add(error?.code ?? status);
           } catch (error) { codes.add(error.code); }
         }
         for (const fd of taken) closeSync(fd);
         await new Promise((wait) => setTimeout(wait, 50));
       }
       // Nothing of it stays; a pipe is closed when the other side has seen that it is over.
       for (const end = Date.now() + 60_000; open() > atRest && Date.now() < end; )
         await new Promise((wait) => setTimeout(wait, 50));
       const more = open() - atRest;
       await sandbox.close();
       say({ codes: [...codes].sort(), more: Math.max(0, more) });`,
    );
    expect(said).toEqual({ codes: ['exited', 'launch.failed'], more: 0 });
  });

  it.each([...(HOST.landlockAbi > 0 ? ['landlock'] : []), ...(HOST.namespaces ? ['namespaces'] : [])])(
    'is reckoned with what a command of the backend %s needs at most',
    async (backend) => {
      const needed = await within(
        400,
        `const sandbox = { workspace, backend: ${JSON.stringify(backend)} };
         let needed = 0;
         for (let status; status !== 'exited'; ) {
           needed += 1;
           const one = await createSandbox(sandbox);
           let other;
           await new Promise((runs) => (other = one.start('echo runs; exec sleep 100', { onOutput: runs })));
           const taken = [];
           try { for (;;) taken.push(openSync('/', 0)); } catch {}
           for (let left = needed; left > 0; left--) closeSync(taken.pop());
           ({ status } = await one.run('true', { spill: true }));
           for (const fd of taken) closeSync(fd);
           other.cancel();
           await one.close();
         }
         say(needed);`,
      );
      // kToStart and kForExtras of native/core/descriptor_room.cc and native/binding/decode.cc.
      expect(needed).toBeLessThanOrEqual(21 + 8);
    },
    PATIENCE,
  );
});
