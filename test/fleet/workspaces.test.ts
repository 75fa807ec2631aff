import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it, vi } from 'vitest';
import { deferred } from '../../src/base/deferred.ts';
import { Blobs, openQueue, sendManifest, sendWorkspace, withDirectories } from '../../src/fleet/index.ts';
import { connectNats } from '../../src/gate/nats/index.ts';
import { createSandbox } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { HOST } from '../support/tiers.ts';
import { makeFleetWorld, startWorkerProcess } from './support.ts';

const world = makeFleetWorld();

/** A directory with files, a program, a link and an empty directory. */
function makeProject(name: string): string {
  const project = join(world.place.root, name);
  mkdirSync(join(project, 'src/deep'), { recursive: true });
  mkdirSync(join(project, 'empty'));
  writeFileSync(join(project, 'src/a.txt'), 'a\n');
  writeFileSync(join(project, 'src/deep/same.txt'), 'a\n');
  writeFileSync(join(project, 'src/gone.txt'), 'gone\n');
  writeFileSync(join(project, 'run'), '#!/bin/sh\necho ran\n');
  chmodSync(join(project, 'run'), 0o755);
  symlinkSync('src/a.txt', join(project, 'link'));
  return project;
}

describe('a workspace that is sent', () => {
  it('is what it was, and the job cannot reach that of another', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const project = makeProject('sent');
    const result = await fleet.run(
      './run; cat link; find . -printf "%y %m %p\\n" | sort; ls ..; touch /var/tmp/outside',
      { workspaceFrom: project },
    );
    expect(result.stdout).toContain('ran\na\n');
    for (const line of ['d 755 ./empty', 'f 755 ./run', 'f 644 ./src/a.txt', 'l 777 ./link'])
      expect(result.stdout).toContain(line);
    expect(result.ok).toBe(false);
    expect(readdirSync(join(world.place.root, 'scratch'))).toEqual([]);
  });

  it('has nothing of what the policy of the submitter hides', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const project = makeProject('hiding');
    mkdirSync(join(project, 'secrets/in'), { recursive: true });
    for (const path of ['.env', 'src/.env', 'secrets/in/key']) writeFileSync(join(project, path), 'SECRET\n');
    linkSync(join(project, 'secrets/in/key'), join(project, 'key2'));
    const script = 'cat .env src/.env secrets/in/key key2 src/a.txt';
    expect((await fleet.run(script, { workspaceFrom: project })).stdout).toBe(`${'SECRET\n'.repeat(4)}a\n`);
    writeFileSync(join(project, '.sandbox-run.toml'), '[filesystem]\nhide = [".env", "secrets/"]\n');
    // The worker hides it from the command by the same file; what was sent comes back.
    const hidden = await fleet.run(script, { workspaceFrom: project, artefacts: ['**'] });
    expect(hidden.stdout).toBe('a\n');
    const into = join(world.place.root, 'what-was-sent');
    await fleet.download(hidden.fleet.artefacts ?? '', into);
    expect(readdirSync(into).sort()).toEqual(['run', 'src']);
    expect(readdirSync(join(into, 'src')).sort()).toEqual(['a.txt', 'deep', 'gone.txt']);
  });

  it('may be deleted in without a question, as it is a copy; the workspace of the worker may not', async () => {
    const queue = world.queue();
    const judged = { unsafe: { unjudged_commands: false } };
    await world.worker(queue, { sandbox: { workspace: world.place.workspace, policy: judged } });
    const fleet = await world.fleet(queue);
    // Without namespaces /tmp is the host's, and closed where the workspace lies in it.
    const removes = `rm -r src && mv run ${HOST.namespaces ? '/tmp' : '"$TMPDIR"'} && ls`;
    const workspaceFrom = makeProject('deleted-in');
    expect(await fleet.run(removes, { workspaceFrom })).toMatchObject({ ok: true, stdout: 'empty\nlink\n' });
    expect(existsSync(join(workspaceFrom, 'src/a.txt'))).toBe(true);
    writeFileSync(join(world.place.workspace, 'kept'), 'kept');
    expect(await fleet.run('rm kept')).toMatchObject({ status: 'denied' });
    expect(readFileSync(join(world.place.workspace, 'kept'), 'utf8')).toBe('kept');
  });

  it('is sent once, whatever is run on it, and each content once', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const project = makeProject('once');
    writeFileSync(join(project, 'large'), Buffer.alloc(2_000_000, 'x'));
    await fleet.run(['true'], { workspaceFrom: project });
    const before = await storedBytes(queue);
    expect(before).toBeGreaterThan(2_000_000);
    expect(before).toBeLessThan(2_100_000);
    for (let times = 0; times < 2; times += 1) await fleet.run(['true'], { workspaceFrom: project });
    expect(await storedBytes(queue)).toBe(before);
    // The positive control: what is new is sent.
    writeFileSync(join(project, 'large'), Buffer.alloc(2_000_000, 'y'));
    await fleet.run(['true'], { workspaceFrom: project });
    expect(await storedBytes(queue)).toBeGreaterThan(before + 2_000_000);
  });

  it('is sent once by runs that begin at the same time', async () => {
    const queue = world.queue();
    await world.worker(queue, { slots: 4 });
    const fleet = await world.fleet(queue);
    const project = makeProject('at-once');
    writeFileSync(join(project, 'large'), Buffer.alloc(1_000_000, 'z'));
    const runs = Array.from({ length: 8 }, () => fleet.run(['true'], { workspaceFrom: project }));
    for (const { ok } of await Promise.all(runs)) expect(ok).toBe(true);
    // Of a million bytes, of three small contents and of the manifest.
    expect(await everStored(queue)).toBe(Math.ceil(1_000_000 / (128 * 1024)) + 3 + 1 + 5);
  });

  it('replaces a content in the store that is not what its name says', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const project = makeProject('poisoned');
    writeFileSync(join(project, 'file'), 'what it is');
    const connection = await connectNats({ url: world.servers.url }, 'poisons');
    const { Objm } = await import('@nats-io/obj');
    const store = await new Objm(connection).open(`sr_blobs_${queue}`);
    const name = createHash('sha256').update('what it is').digest('hex');
    await store.putBlob({ name }, Buffer.from('what is not'));
    await connection.close();
    expect(await fleet.run('cat file', { workspaceFrom: project })).toMatchObject({ stdout: 'what it is' });
  });

  it('is not kept under the name of what it was before it changed', async () => {
    const queue = world.queue();
    const connection = await connectNats({ url: world.servers.url }, 'sends');
    const blobs = await Blobs.open(await openQueue(connection, queue));
    const name = createHash('sha256').update('before').digest('hex');
    await expect(blobs.putAs(name, () => Readable.from([Buffer.from('after')]))).rejects.toMatchObject({
      code: 'file.unusable',
    });
    await expect(blobs.read(name, 100)).rejects.toMatchObject({ code: 'fleet.unknown' });
    await connection.close();
  });

  it('is read although another one replaces it meanwhile', async () => {
    const queue = world.queue();
    const connection = await connectNats({ url: world.servers.url }, 'reads');
    const opened = await openQueue(connection, queue);
    const blobs = await Blobs.open(opened);
    const content = Buffer.alloc(3_000_000, 'x');
    const digest = await blobs.put(content);
    const { Objm } = await import('@nats-io/obj');
    const store = await new Objm(connection).open(`sr_blobs_${queue}`);
    const info = await store.info(digest);
    // Its pieces are gone, and what says where they are is not replaced yet: for the time of a request.
    await opened.manager.streams.purge(`OBJ_sr_blobs_${queue}`, {
      filter: `$O.sr_blobs_${queue}.C.${info?.nuid}`,
    });
    const reading = blobs.read(digest, content.length);
    await store.putBlob({ name: digest }, content);
    expect((await reading).equals(content)).toBe(true);
    await connection.close();
  });

  it('of a repository runs nothing that its configuration names', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const project = makeProject('hostile');
    const git = (...args: string[]) =>
      execFileSync('git', ['-C', project, '-c', 'user.name=a', '-c', 'user.email=a@example.org', ...args], {
        encoding: 'utf8',
      });
    git('init', '-q');
    git('add', '-A');
    git('commit', '-q', '-m', 'one');
    const object = git('rev-parse', 'HEAD:src/a.txt').trim();
    rmSync(join(project, '.git/objects', object.slice(0, 2), object.slice(2)));
    const ran = join(world.place.root, 'ran-by-git');
    // A partial clone, whose missing contents git asks a program of the configuration for.
    for (const [key, value] of [
      ['core.repositoryformatversion', '1'],
      ['extensions.partialClone', 'origin'],
      ['remote.origin.url', project],
      ['remote.origin.promisor', 'true'],
      ['remote.origin.uploadpack', `sh -c 'touch ${ran}; exit 1' #`],
    ] as const)
      git('config', key, value);
    await expect(fleet.run('true', { workspaceFrom: `git:${project}` })).rejects.toMatchObject({
      code: 'file.unusable',
    });
    expect(existsSync(ran)).toBe(false);
  });

  it('may be a revision of a git repository', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const project = makeProject('committed');
    const git = (...args: string[]) =>
      execFileSync('git', ['-C', project, '-c', 'user.name=a', '-c', 'user.email=a@example.org', ...args]);
    git('init', '-q');
    git('add', '-A');
    git('commit', '-q', '-m', 'one');
    writeFileSync(join(project, 'uncommitted'), 'secret');
    const result = await fleet.run('./run; cat link; ls -A', { workspaceFrom: `git:${project}` });
    expect(result.stdout).toBe('ran\na\nlink\nrun\nsrc\n');
    await expect(fleet.run('true', { workspaceFrom: `git:${project}@no-such` })).rejects.toMatchObject({
      code: 'file.unusable',
    });
  });

  it('may have a large file in a git repository, which is not copied for each piece that git writes', async () => {
    const project = makeProject('large-in-git');
    const size = 16_000_000;
    writeFileSync(join(project, 'large'), '');
    truncateSync(join(project, 'large'), size);
    const git = (...args: string[]) =>
      execFileSync('git', ['-C', project, '-c', 'user.name=a', '-c', 'user.email=a@example.org', ...args]);
    git('init', '-q');
    git('add', '-A');
    git('commit', '-q', '-m', 'large');
    const copied = vi.spyOn(Buffer, 'concat');
    try {
      const blobs = { put: () => 'sent', putAs: () => true };
      expect(await sendWorkspace(blobs as never, `git:${project}`)).toBe('sent');
      const results = copied.mock.results.map(({ value }) => (value as Buffer).length);
      const bytes = results.reduce((sum, length) => sum + length, 0);
      expect(bytes).toBeGreaterThan(size);
      expect(bytes).toBeLessThan(3 * size);
    } finally {
      copied.mockRestore();
    }
  });

  it('is not run on where there was no room for all of it', async () => {
    const queue = world.queue();
    const { pid } = await startWorkerProcess(world, queue, {
      args: ['--scratch', join(world.place.root, 'scratch')],
    });
    const fleet = await world.fleet(queue);
    const project = makeProject('too-large');
    writeFileSync(join(project, 'large'), Buffer.alloc(350_000, 'x'));
    // As on a full disk: the last piece fits in part.
    execFileSync('prlimit', ['--pid', String(pid), '--fsize=300000']);
    expect(await fleet.run('wc -c < large', { workspaceFrom: project })).toMatchObject({
      ...{ status: 'setup-failed', stdout: '' },
    });
  });

  it('gives back what was asked for, and no more', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const project = makeProject('made');
    const result = await fleet.run(
      'mkdir -p dist/in; echo 1 > dist/in/one; echo 2 > two.log; echo 3 > three; ln -s /etc/passwd dist/link; mkfifo dist/fifo; chmod 4755 dist/in/one || chmod 755 dist/in/one',
      { workspaceFrom: project, artefacts: ['dist/**', '*.log'] },
    );
    expect(result).toMatchObject({ ok: true });
    const into = join(world.place.root, 'artefacts');
    await fleet.download(result.fleet.artefacts ?? '', into);
    expect(readdirSync(into, { recursive: true }).sort()).toEqual([
      'dist',
      'dist/in',
      'dist/in/one',
      'two.log',
    ]);
    expect(lstatSync(join(into, 'dist/in/one')).mode & 0o7777).toBe(0o755);
    await expect(fleet.download(result.fleet.artefacts ?? '', into)).rejects.toMatchObject({
      code: 'file.unusable',
    });
  });

  it('do not come back by way of a link that a command could have made', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const result = await fleet.run('mkdir dist; echo 1 > dist/one', {
      ...{ workspaceFrom: makeProject('linked'), artefacts: ['dist/**'] },
    });
    const digest = result.fleet.artefacts ?? '';
    const [own, link] = [join(world.place.root, 'own'), join(world.place.root, 'planted')];
    mkdirSync(own);
    symlinkSync(own, link);
    for (const into of [link, join(link, 'new')])
      await expect(fleet.download(digest, into)).rejects.toMatchObject({ code: 'file.unusable' });
    expect(readdirSync(own)).toEqual([]);
    await fleet.download(digest, own);
    expect(readdirSync(own)).toEqual(['dist']);
  });

  it('that cannot come back leaves the result of the command what it was', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const project = makeProject('holes');
    // More than travels, on a disk that has it not: nobody reads it to the end.
    const command = 'truncate -s 8000G holes; echo made > made; echo ran; exit 3';
    const options = { workspaceFrom: project, artefacts: ['**'], changes: true };
    const result = await fleet.run(command, options);
    expect(result).toMatchObject({ ...{ status: 'exited', exitCode: 3, stdout: 'ran\n' } });
    expect(result).toHaveProperty('warnings', [
      expect.stringMatching(/changed cannot come back: .*bytes/),
      expect.stringMatching(/artefacts cannot come back: .*bytes/),
    ]);
    // What was not asked for is nothing against what was.
    const made = await fleet.run(command, { workspaceFrom: project, artefacts: ['made'] });
    expect(made.fleet.artefacts).toMatch(/^[0-9a-f]{64}$/);
  });

  it('goes with its job although no path leads to its deepest directory', async () => {
    const queue = world.queue();
    await world.worker(queue);
    const fleet = await world.fleet(queue);
    const project = makeProject('deep');
    const deeper = 'name=$(printf "a%.0s" {1..200}); for i in {1..60}; do mkdir $name && cd $name; done';
    const command = `${deeper}; touch last; chmod 0 .; chmod 0 ..; echo ran`;
    const result = await fleet.run(command, { workspaceFrom: project, changes: true });
    expect(result).toMatchObject({ status: 'exited', exitCode: 0, stdout: 'ran\n', fleet: { attempts: 1 } });
    expect(result).toHaveProperty('warnings', [expect.stringMatching(/changed cannot come back/)]);
    expect(readdirSync(join(world.place.root, 'scratch'))).toEqual([]);
  });

  it('is given up while it is fetched when its job is canceled, or its worker ends', async () => {
    const queue = world.queue();
    const worker = await world.worker(queue);
    const fleet = await world.fleet(queue);
    const project = join(world.place.root, 'many');
    mkdirSync(project);
    for (let at = 0; at < 200; at += 1) writeFileSync(join(project, `file-${at}`), `${at}`);
    const files = () => {
      const [fetched] = readdirSync(join(world.place.root, 'scratch'));
      return fetched === undefined ? 0 : readdirSync(join(world.place.root, 'scratch', fetched)).length;
    };
    const fetching = () => eventually(() => expect(files()).toBeGreaterThan(10), 60_000);
    // After twenty files it stands still until it has to end.
    const { get } = Blobs.prototype;
    let end = deferred<void>();
    const made = vi.spyOn(Blobs.prototype, 'get').mockImplementation(async function* (this: Blobs, ...of) {
      if (made.mock.calls.length > 20) await end.promise;
      yield* get.apply(this, of);
    });
    const told = vi.spyOn(AbortController.prototype, 'abort');
    /** Lets it go on once so many have been told to end. */
    const goOn = async (count: number) => {
      await eventually(() => expect(told.mock.calls.length).toBeGreaterThanOrEqual(count), 60_000);
      end.resolve();
    };
    try {
      const job = await fleet.submit(['true'], { workspaceFrom: project });
      await fetching();
      job.cancel();
      // The submitter, and the worker.
      await goOn(2);
      expect(await job.result).toMatchObject({ status: 'canceled' });
      expect(made.mock.calls.length).toBeLessThan(150);
      made.mockClear();
      told.mockClear();
      end = deferred();
      await fleet.submit(['true'], { workspaceFrom: project });
      await fetching();
      const stopped = worker.stop(0);
      await goOn(2);
      await stopped;
      expect(made.mock.calls.length).toBeLessThan(150);
    } finally {
      end.resolve();
      told.mockRestore();
      made.mockRestore();
    }
  });

  it('is not sent with a pattern that is none, nor is a pattern without one', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    for (const options of [
      ...['[a', '../a', './a', '/a', 'a//b', 'a/'].map((pattern) => ({
        ...{ workspaceFrom: world.place.workspace, artefacts: [pattern] },
      })),
      { artefacts: ['a'] },
      { changes: true },
    ])
      await expect(fleet.run('true', options)).rejects.toMatchObject({ code: 'usage.invalid' });
  });

  it('gives back nothing that a trusted program would run or obey', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const planted = [
      ...['a/.git', 'b/.git/config', 'bare/HEAD', 'bare/config', 'bare/objects/x', 'c/.envrc'],
      ...['.vscode/tasks.json', 'fine'],
    ];
    // As of a worker that does not look at what a command leaves behind.
    const connection = await connectNats({ url: world.servers.url }, 'test');
    const blobs = await Blobs.open(await openQueue(connection, queue));
    const content = Buffer.from('evil');
    const digest = await blobs.put(content);
    const file = (path: string) => ({
      kind: 'file' as const,
      path,
      mode: 0o644,
      size: content.length,
      digest,
    });
    const artefacts = await sendManifest(blobs, withDirectories(planted.map(file)));
    const into = join(world.place.root, 'planted-artefacts');
    const { leftOut } = await fleet.download(artefacts, into);
    await connection.close();
    const files = readdirSync(into, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    expect(files.map(({ name }) => name)).toEqual(['fine']);
    expect([...leftOut].sort()).toEqual(planted.filter((path) => path !== 'fine').sort());
  });

  it('gives back no links, which lead out of where files came to', async () => {
    const queue = world.queue();
    const fleet = await world.fleet(queue);
    const connection = await connectNats({ url: world.servers.url }, 'test');
    const blobs = await Blobs.open(await openQueue(connection, queue));
    const artefacts = await sendManifest(blobs, [{ kind: 'link', path: 'out', target: '/etc/passwd' }]);
    await connection.close();
    const into = join(world.place.root, 'linked-artefacts');
    await expect(fleet.download(artefacts, into)).rejects.toMatchObject({ code: 'file.unusable' });
    expect(readdirSync(into)).toEqual([]);
  });

  it.runIf(HOST.namespaces)(
    'gives back what the job changed as a change set, which is applied (needs namespaces)',
    async () => {
      const queue = world.queue();
      await world.worker(queue);
      const fleet = await world.fleet(queue);
      const project = makeProject('changed');
      const result = await fleet.run(
        'echo b > src/a.txt; rm src/gone.txt link; ln -s run link; mkdir new; echo n > new/file; echo mine > src/deep/same.txt; rm -r empty; echo x > empty',
        { workspaceFrom: project, changes: true },
      );
      expect(result).toMatchObject({ ok: true });
      // Meanwhile here:
      writeFileSync(join(project, 'src/deep/same.txt'), 'changed here\n');
      const { held, conflicts } = await fleet.hold(result.fleet.changes ?? '', project);
      expect(conflicts).toEqual(['src/deep/same.txt']);
      expect(readFileSync(join(project, 'src/a.txt'), 'utf8')).toBe('a\n');
      const sandbox = await createSandbox({ workspace: project });
      try {
        const changes = await sandbox.changes();
        await changes.apply(held ?? '');
        expect(readFileSync(join(project, 'src/a.txt'), 'utf8')).toBe('b\n');
        expect(readFileSync(join(project, 'new/file'), 'utf8')).toBe('n\n');
        expect(readFileSync(join(project, 'empty'), 'utf8')).toBe('x\n');
        expect(existsSync(join(project, 'src/gone.txt'))).toBe(false);
        expect(readlinkSync(join(project, 'link'))).toBe('run');
        expect(readFileSync(join(project, 'src/deep/same.txt'), 'utf8')).toBe('changed here\n');
        await changes.undo(held ?? '');
        expect(readFileSync(join(project, 'src/a.txt'), 'utf8')).toBe('a\n');
      } finally {
        await sandbox.close();
      }
    },
  );
});

async function storeOf(queue: string) {
  const connection = await connectNats({ url: world.servers.url }, 'looks');
  const { manager } = await openQueue(connection, queue);
  const { state } = await manager.streams.info(`OBJ_sr_blobs_${queue}`);
  await connection.close();
  return state;
}
const storedBytes = async (queue: string) => (await storeOf(queue)).bytes;
/** Messages that the object store ever took: pieces of contents, and one for each that says where they are. */
const everStored = async (queue: string) => (await storeOf(queue)).last_seq;

describe('a hostile manifest', () => {
  const digest = createHash('sha256').update('evil').digest('hex');
  const file = { kind: 'file', mode: 0o644, size: 4, digest };
  const directory = { kind: 'directory', mode: 0o755 };
  const hostile: Readonly<Record<string, readonly object[]>> = {
    'leaves by ..': [{ ...file, path: '../evil' }],
    'leaves by .. in the middle': [
      { ...directory, path: 'a' },
      { ...file, path: 'a/../../evil' },
    ],
    'is absolute': [{ ...file, path: '/tmp/evil' }],
    'has an empty part': [
      { ...directory, path: 'a' },
      { ...file, path: 'a//evil' },
    ],
    'has a NUL': [{ ...file, path: 'a\0b' }],
    'writes through a link': [
      { kind: 'link', path: 'a', target: '/tmp' },
      { ...file, path: 'a/evil' },
    ],
    'writes through a link that comes later': [
      { ...directory, path: 'a' },
      { kind: 'link', path: 'a', target: '/tmp' },
      { ...file, path: 'a/evil' },
    ],
    'makes a file twice': [
      { ...file, path: 'a' },
      { ...file, path: 'a' },
    ],
    'writes beneath a file': [
      { ...file, path: 'a' },
      { ...file, path: 'a/evil' },
    ],
    'has no directory for a file': [{ ...file, path: 'a/evil' }],
    'makes a set-user-ID file': [{ ...file, path: 'a', mode: 0o4755 }],
    'makes a device': [{ kind: 'device', path: 'a', mode: 0o644, major: 1, minor: 1 }],
    'is of a huge file': [{ ...file, path: 'a', size: 2 ** 50 }],
    'is huge in sum': [1, 2, 3].map((at) => ({ ...file, path: `a${at}`, size: 2 ** 31 })),
    'says another size': [{ ...file, path: 'a', size: 3 }],
    'says more than there is': [{ ...file, path: 'a', size: 5 }],
    'says what it has no word for': [{ ...file, path: 'a', owner: 0 }],
  };

  it.each(Object.entries(hostile))('that %s is not unpacked', async (_name, entries) => {
    const queue = await hostileQueue();
    const manifest = Buffer.from(JSON.stringify({ version: 1, entries }));
    const sent = await queue.put(manifest);
    const result = await queue.fleet.run(['true'], { workspaceFrom: `object:${sent}` });
    expect(result).toMatchObject({ status: 'setup-failed', error: { code: 'file.unusable' } });
    expect(readdirSync(join(world.place.root, 'scratch'))).toEqual([]);
    for (const path of [join(world.place.root, 'evil'), join(world.place.root, 'scratch/evil'), '/tmp/evil'])
      expect(existsSync(path)).toBe(false);
  });

  it('is the reason: the same content in a plain one is unpacked', async () => {
    const queue = await hostileQueue();
    const sent = await queue.put(
      Buffer.from(
        JSON.stringify({
          version: 1,
          entries: [
            { ...directory, path: 'a' },
            { ...file, path: 'a/evil' },
          ],
        }),
      ),
    );
    expect(await queue.fleet.run('cat a/evil', { workspaceFrom: `object:${sent}` })).toMatchObject({
      stdout: 'evil',
    });
  });

  it('cannot be named by what is not what it says', async () => {
    const queue = await hostileQueue();
    const good = Buffer.from(JSON.stringify({ version: 1, entries: [] }));
    const name = createHash('sha256').update(good).digest('hex');
    await queue.putAs(name, Buffer.from(JSON.stringify({ version: 1, entries: [{ ...file, path: 'a' }] })));
    expect(await queue.fleet.run(['true'], { workspaceFrom: `object:${name}` })).toMatchObject({
      error: { code: 'file.unusable' },
    });
    expect(await queue.fleet.run(['true'], { workspaceFrom: `object:${'0'.repeat(64)}` })).toMatchObject({
      error: { code: 'fleet.unknown' },
    });
  });

  let opened: ReturnType<typeof openHostileQueue> | undefined;
  const hostileQueue = () => {
    opened ??= openHostileQueue();
    return opened;
  };

  async function openHostileQueue() {
    const name = world.queue();
    await world.worker(name);
    const fleet = await world.fleet(name);
    const connection = await connectNats({ url: world.servers.url }, 'hostile');
    const blobs = await Blobs.open(await openQueue(connection, name));
    await blobs.put(Buffer.from('evil'));
    const { Objm } = await import('@nats-io/obj');
    const store = await new Objm(connection).open(`sr_blobs_${name}`);
    const putAs = (as: string, content: Buffer) => store.putBlob({ name: as }, content);
    return { fleet, put: (content: Buffer) => blobs.put(content), putAs };
  }
});
