import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ExecutionResult } from '../../src/model/index.ts';
import { CLI, cli, makePlace, type Place, startCli } from '../cli/support.ts';
import { AS_STRANGER } from '../hosts/support/mounts.ts';
import { makeArena } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';
import { HOST, WITH_VIEW } from '../support/tiers.ts';
import { watchJournals } from './support/cut-short.ts';
import { useOwnState } from './support/own-state.ts';

// With workspace.undo, files go from the layer into the workspace as they are, and back into it.

const arena = makeArena();
useOwnState(arena);
const describe_ = describe.skipIf(!HOST.namespaces);

function idOf({ changes }: ExecutionResult): string {
  if (changes?.id === undefined) throw new Error('nothing was changed');
  return changes.id;
}

const policyOf = ({ env }: Place) => join(env.XDG_CONFIG_HOME ?? '', 'sandbox-run/policy.toml');

async function undoing(writable: readonly string[] = []) {
  const root = arena.freshCorner();
  const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root, undo: 'always', writable });
  const run = async (command: string) => {
    const result = await sandbox.run(command);
    expect([result.status, result.stderr, result.warnings]).toEqual(['exited', '', []]);
    return result;
  };
  const read = (name: string) => readFileSync(join(root, name), 'utf8');
  return { root, sandbox, run, read, changes: await sandbox.changes() };
}

describe_('a file that a command left (needs namespaces)', () => {
  it('is in the workspace itself, without the marks of the layer', async () => {
    const { root, run } = await undoing();
    writeFileSync(join(root, 'old'), 'one\n');
    const { stdout } = await run('mkdir d; echo new > d/new; echo two >> old; stat -c %i d/new');
    expect(stdout).toBe(`${lstatSync(join(root, 'd/new')).ino}\n`);
    const marks = 'import os; print([os.listxattr(f) for f in ["d/new", "old"]])';
    expect(String(execFileSync('/usr/bin/python3', ['-c', marks], { cwd: root }))).toBe('[[], []]\n');
  });

  it('is a copy where the layer holds more than is taken over', async () => {
    const { root, run, read } = await undoing();
    const { stdout } = await run(
      `/usr/bin/python3 -c "import os; open('f', 'w').write('x'); os.setxattr('f', 'user.own', b'1')"; echo a > a; ln a b; stat -c %i f a`,
    );
    const all = ['f', 'a', 'b'].map((name) => lstatSync(join(root, name)));
    expect(stdout.split('\n').slice(0, 2)).not.toEqual(all.slice(0, 2).map(({ ino }) => String(ino)));
    const listed = 'import os; print(os.listxattr("f"))';
    expect(String(execFileSync('/usr/bin/python3', ['-c', listed], { cwd: root }))).toBe('[]\n');
    expect([all[1]?.ino === all[2]?.ino, all[1]?.nlink, read('b')]).toEqual([true, 2, 'a\n']);
  });

  it('is shown, taken back and applied again when later commands changed it', async () => {
    const { root, run, read, changes } = await undoing();
    const first = idOf(await run('echo one > f; mkdir d; echo one > d/g; echo stays > h'));
    const second = idOf(await run('echo two >> f; rm -r d'));
    const third = idOf(await run('rm f; mkdir f'));
    for (const name of ['f', 'd/g', 'h'])
      expect(await changes.diff(first, name)).toContain(name === 'h' ? '+stays' : '+one');
    expect(await changes.diff(second, 'f')).toContain(' one\n+two');
    for (const id of [third, second, first]) expect((await changes.undo(id)).notDone).toEqual([]);
    expect(readdirSync(root)).toEqual([]);
    expect(await changes.diff(first, 'f')).toContain('+one');
    for (const id of [first, second]) {
      const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root });
      expect((await (await sandbox.changes()).apply(id)).notDone).toEqual([]);
    }
    expect([readdirSync(root).toSorted(), read('f')]).toEqual([['f', 'h'], 'one\ntwo\n']);
  });

  it('keeps its name as a file that was renamed', async () => {
    const { root, run, changes } = await undoing();
    writeFileSync(join(root, 'a'), 'content that is moved\n');
    const id = idOf(await run('mv a b'));
    expect((await changes.show(id)).changes).toEqual([
      expect.objectContaining({ change: 'renamed', from: 'a', path: 'b', applied: true }),
    ]);
  });

  it('is not applied again once it went or was changed by others, and says so', async () => {
    const { root, run, read, changes } = await undoing();
    const id = idOf(await run('echo one > gone; echo one > changed; echo one > same'));
    rmSync(join(root, 'gone'));
    writeFileSync(join(root, 'changed'), 'mine\n');
    expect(await changes.diff(id, 'changed')).not.toContain('mine');
    const back = await changes.undo(id);
    expect(back.notDone).toEqual([{ path: 'changed', why: expect.stringContaining('it changed') }]);
    expect([readdirSync(root), read('changed')]).toEqual([['changed'], 'mine\n']);
    const again = await changes.apply(id);
    expect(again.notDone).toEqual([{ path: 'gone', why: expect.stringContaining('is not kept') }]);
    expect([readdirSync(root).toSorted(), read('same')]).toEqual([['changed', 'same'], 'one\n']);
  });

  it('does not come where another command may still write to it', async () => {
    const shared = arena.freshCorner();
    const { root, sandbox } = await undoing([shared]);
    const job = sandbox.start(
      `/usr/bin/python3 -c "
import socket, array, os, signal, time
s = socket.socket(socket.AF_UNIX); s.bind('${shared}/sock'); s.listen(); c, _ = s.accept()
_, anc, _, _ = c.recvmsg(10, 4096)
fd = array.array('i', anc[0][2][:4])[0]
c.send(b'x')
while not os.path.exists('${shared}/write'): time.sleep(0.01)
os.pwrite(fd, b'EVIL', 0); open('${shared}/written', 'w').close(); signal.pause()"`,
      { background: true },
    );
    await eventually(() => expect(existsSync(join(shared, 'sock'))).toBe(true));
    const result = await sandbox.run(`/usr/bin/python3 -c "
import socket, array, os
f = os.open('f', os.O_RDWR | os.O_CREAT, 0o644); os.write(f, b'good' * 100)
s = socket.socket(socket.AF_UNIX); s.connect('${shared}/sock')
s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [f]))]); s.recv(1)"; echo ok > other`);
    expect(result.warnings).toEqual([
      expect.stringContaining('f is not in the workspace: something writes'),
      `what the command made of that is kept: sandbox-run changes diff ${result.changes?.id}`,
    ]);
    writeFileSync(join(shared, 'write'), '');
    await eventually(() => expect(existsSync(join(shared, 'written'))).toBe(true));
    expect(readdirSync(root)).toEqual(['other']);
    await job.kill('SIGKILL');
  }, 30_000);
});

describe_('workspace.undo on the command line (needs namespaces)', () => {
  let place: Place;
  beforeEach(() => {
    place = makePlace();
  });
  afterEach(() => {
    // Directories that a command shut are shut for who removes them, too.
    execFileSync('chmod', ['-R', 'u+rwX', place.root]);
    place.dispose();
  });

  // For root every directory is open.
  it('takes over files in directories that a command shut, of a user who is not root', async () => {
    appendFileSync(policyOf(place), '\n[workspace]\nundo = "always"\n');
    if (HOST.root) execFileSync('chown', ['-R', '54321:54321', place.root]);
    const [program = '', ...words] = [...(HOST.root ? AS_STRANGER : []), process.execPath, CLI];
    const run = async (...args: readonly string[]) => {
      const { exitCode, stderr } = await execa(program, [...words, ...args], {
        ...{ cwd: place.workspace, env: place.env, extendEnv: false, reject: false },
      });
      expect([exitCode, stderr]).toEqual([0, expect.not.stringContaining('warning')]);
    };
    await run('-c', 'mkdir d; echo new > d/f; echo more > d/g; chmod 555 d');
    expect(readFileSync(join(place.workspace, 'd/f'), 'utf8')).toBe('new\n');
    expect(lstatSync(join(place.workspace, 'd')).mode & 0o777).toBe(0o555);
    await run('undo');
    expect(readdirSync(place.workspace)).toEqual([]);
    await run('redo');
    expect(readFileSync(join(place.workspace, 'd/g'), 'utf8')).toBe('more\n');
  });

  it('redo goes on with the next one where of the last one nothing can come any more', async () => {
    appendFileSync(policyOf(place), '\n[workspace]\nundo = "always"\n');
    await cli(place, ['-c', 'echo one > f']);
    await cli(place, ['-c', 'echo two > g']);
    rmSync(join(place.workspace, 'f'));
    for (const round of [1, 2]) expect([round, (await cli(place, ['undo'])).exitCode]).toEqual([round, 0]);
    expect(await cli(place, ['redo'])).toMatchObject({ exitCode: 0 });
    expect(readdirSync(place.workspace)).toEqual(['g']);
    // It says why.
    expect(await cli(place, ['redo'])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('f: what the command left went or changed'),
    });
  });

  it('undo takes back what came last, also if it had waited since before', async () => {
    appendFileSync(policyOf(place), '\n[workspace]\nundo = "always"\n');
    await cli(place, ['--preview', '-c', 'echo one > f']);
    await cli(place, ['-c', 'echo two > g']);
    const idsOf = async (...words: readonly string[]) =>
      (await cli(place, words)).stdout.split('\n').flatMap((line) => /^\S+/.exec(line) ?? []);
    const [preview = '', command = ''] = await idsOf('changes', 'list');
    await cli(place, ['changes', 'apply', preview]);
    expect(await idsOf('history')).toEqual([command, preview]);
    await cli(place, ['undo']);
    expect(readdirSync(place.workspace)).toEqual(['g']);
    await cli(place, ['redo']);
    await cli(place, ['undo', '--to', command]);
    expect(readdirSync(place.workspace)).toEqual([]);
  });

  it('is finished by the next command, and can be taken back', { timeout: 300_000 }, async () => {
    appendFileSync(policyOf(place), '\n[workspace]\nundo = "always"\n');
    const picture = `find . -printf "%P %y %m %n %l\\n" | sort; find . -type f | sort | xargs -r cat; /usr/bin/python3 -c "import os; print([f for d, _, n in os.walk('.') for f in n if os.listxattr(os.path.join(d, f), follow_symlinks=False)])"`;
    const tree = (cwd: string) => String(execFileSync('bash', ['-c', picture], { cwd }));
    const make =
      'umask 022; for d in 1 2 3 4; do mkdir d$d; for f in $(seq 100); do echo $d.$f > d$d/f$f; done; done';
    execFileSync('bash', ['-c', make], { cwd: place.workspace });
    const before = tree(place.workspace);
    const change =
      'umask 022; rm -r d1; for f in d2/*; do echo more >> $f; done; rm -r d3; mkdir -p d3/in n; for f in $(seq 200); do echo $f > n/$f; echo new > d3/f$f; done; ln -s n l; ln n/1 n/other';
    const plain = join(place.root, 'plain');
    execFileSync('bash', ['-c', `cp -a ${place.workspace} ${plain}; cd ${plain}; ${change}`]);
    const wanted = tree(plain);
    const journals = watchJournals(join(place.root, 'home/.local/state/sandbox-run'));
    let cutShort = 0;
    for (let round = 0; round < 4 || (cutShort < 4 && round < 60); round++) {
      const running = startCli(place, ['-c', change]);
      if (await journals.kill(running, (round % 4) * 75)) cutShort++;
      const next = await cli(place, ['-c', 'true']);
      expect([next.exitCode, next.stderr, journals.begun()]).toEqual([0, '', []]);
      expect(tree(place.workspace)).toBe(wanted);
      const back = startCli(place, ['undo']);
      if (round % 2 === 1) {
        if (await journals.kill(back, (round % 4) * 75)) cutShort++;
        await cli(place, ['-c', 'true']);
      } else expect((await back).exitCode).toBe(0);
      expect(tree(place.workspace)).toBe(before);
    }
    const redone = await cli(place, ['redo']);
    expect([redone.exitCode, tree(place.workspace)]).toEqual([0, wanted]);
    // Otherwise nothing was tried.
    expect(cutShort).toBeGreaterThan(3);
  });
});
