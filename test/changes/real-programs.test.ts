import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';
import { HOST, WITH_VIEW } from '../support/tiers.ts';
import { useOwnState } from './support/own-state.ts';

const arena = makeArena();
useOwnState(arena);
/** A program in PATH, or a command that succeeds. */
const has = (program: string) => {
  try {
    execFileSync('sh', ['-c', program.includes(' ') ? program : `command -v ${program}`]);
    return true;
  } catch {
    return false;
  }
};

/** Names, kinds, modes and contents, without what says when it was made. */
const picture = (root: string, leftOut: string) =>
  String(
    execFileSync(
      'bash',
      [
        '-c',
        `find . ${leftOut} -printf '%P %y %m %l\\n' | sort; find . ${leftOut} -type f -print0 | sort -z | xargs -r0 sha256sum`,
      ],
      { cwd: root, maxBuffer: 64 * 1024 * 1024 },
    ),
  );

/** A program that does real work. `makes`: what it works on; `leftOut`: what differs between two runs of it anyway. */
interface Work {
  readonly needs: string;
  readonly makes?: string;
  readonly does: string;
  readonly leftOut?: string;
}

const GIT =
  'export GIT_AUTHOR_DATE=2026-01-01T00:00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00:00Z; git config user.name A; git config user.email a@b';
const WORKS: Readonly<Record<string, Work>> = {
  'git: commits, branches, merges, a rebase and gc': {
    needs: 'git',
    makes: `git init -q -b main .; ${GIT}; for i in 1 2 3; do echo $i > f$i; git add .; git commit -qm c$i; done`,
    does: `${GIT}; git switch -qc side; echo s > s; git add s; git commit -qm s; git switch -q main; git rm -q f1; git commit -qm rm; git merge -q --no-edit side; git gc -q; git status --short; git fsck --strict`,
    // When the index was written, and what files it has seen, is another time in each tree.
    leftOut: "-path ./.git/index -prune -o -path './.git/logs' -prune -o",
  },
  'make, and make again': {
    needs: 'make',
    makes:
      "printf 'all: out\\nout: in\\n\\tcp in out; echo built >> log\\n' > Makefile; echo one > in; make -s",
    does: 'make -s; echo two > in; touch -d @1 out; make -s; make -s; cat log',
  },
  ninja: {
    needs: 'ninja',
    makes: "printf 'rule cp\\n command = cp $in $out\\nbuild out: cp in\\n' > build.ninja; echo one > in",
    does: 'ninja --quiet; ninja --quiet; rm out; ninja --quiet',
    leftOut: "-name '.ninja_log' -prune -o -name '.ninja_deps' -prune -o",
  },
  'sqlite: a database with a write-ahead log': {
    needs: 'python3',
    makes: `python3 -c "import sqlite3; c=sqlite3.connect('db'); c.execute('create table t(a)'); c.execute('insert into t values(1)'); c.commit()"`,
    does: `python3 -c "
import sqlite3
c=sqlite3.connect('db'); c.execute('pragma journal_mode=wal'); c.executemany('insert into t values(?)', [(i,) for i in range(5000)]); c.commit(); c.execute('delete from t where a%2'); c.commit(); c.execute('vacuum'); c.execute('pragma journal_mode=delete'); print(c.execute('select count(*), sum(a) from t').fetchone())"`,
  },
  'a writer by mmap, a sparse file, a file that grows': {
    needs: 'python3',
    makes: `python3 -c "open('m','wb').write(b'a'*100000)"; echo x > grow`,
    does: `python3 -c "
import mmap
f=open('m','r+b'); m=mmap.mmap(f.fileno(),0); m[5:9]=b'MMAP'; m.flush(); m.close()
s=open('sparse','wb'); s.seek(5_000_000); s.write(b'end')"; for i in $(seq 200); do echo $i >> grow; done`,
  },
  'npm: packages of a workspace': {
    needs: 'npm',
    makes: `mkdir -p a b; echo '{"name":"r","version":"1.0.0","workspaces":["a","b"]}' > package.json; echo '{"name":"a","version":"1.0.0","dependencies":{"b":"1.0.0"}}' > a/package.json; echo '{"name":"b","version":"1.0.0","bin":"b.js"}' > b/package.json; printf '#!/usr/bin/env node\\n' > b/b.js`,
    does: 'npm install --offline --silent --no-audit --no-fund; node -p "require.resolve(\\"b/package.json\\")" >/dev/null',
  },
  'python: a venv, compiled modules': {
    needs: 'python3',
    makes: 'mkdir pkg; echo "x = 1" > pkg/__init__.py; echo "from pkg import x" > main.py',
    does: '/usr/bin/python3 -m venv --without-pip v; v/bin/python -c "import sys; print(sys.prefix != sys.base_prefix)"; python3 -m compileall -q --invalidation-mode checked-hash pkg; python3 main.py',
    leftOut: "-path './v/*' -prune -o",
  },
  'pip: a wheel, and a package that is built': {
    needs: '/usr/bin/python3 -m pip --version',
    makes: `mkdir two; echo 'x = 2' > two/two.py; cat > two/wheels.py <<'EOF'
import zipfile
def make(at, name, value):
    file = f'{name}-1.0-py3-none-any.whl'
    info = f'{name}-1.0.dist-info/'
    with zipfile.ZipFile(f'{at}/{file}', 'w') as wheel:
        for inside, text in {f'{name}.py': f'x = {value}', info + 'METADATA': f'Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n', info + 'WHEEL': 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n', info + 'entry_points.txt': f'[console_scripts]\\n{name} = {name}:main\\n', info + 'RECORD': ''}.items():
            wheel.writestr(zipfile.ZipInfo(inside), text)
    return file
def build_wheel(directory, config_settings=None, metadata_directory=None):
    open('built', 'w').write('here')
    return make(directory, 'two', 2)
EOF
printf '[build-system]\nrequires = []\nbuild-backend = "wheels"\nbackend-path = ["."]\n' > two/pyproject.toml; PYTHONPATH=two /usr/bin/python3 -B -c 'import wheels; wheels.make(".", "one", 1)'`,
    does: 'export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore; pip="/usr/bin/python3 -m pip install -q --no-index --no-cache-dir --no-compile --no-build-isolation"; $pip --target t ./one-1.0-py3-none-any.whl ./two; $pip --upgrade --target t ./two; PYTHONPATH=t /usr/bin/python3 -c "import one, two; print(one.x, two.x)"; rm t/one.py',
  },
  'cargo: a crate with a library, built twice': {
    needs: '/usr/bin/cargo --version',
    makes:
      'mkdir -p src; printf \'[package]\\nname = "made"\\nversion = "0.1.0"\\nedition = "2021"\\n\' > Cargo.toml; echo "pub fn x() -> u8 { 1 }" > src/lib.rs; echo "fn main() { println!(\\"{}\\", made::x()) }" > src/main.rs',
    does: 'export CARGO_INCREMENTAL=0 PATH=/usr/bin:/bin; cargo build -q --offline; ./target/debug/made; echo "pub fn x() -> u8 { 2 }" > src/lib.rs; touch -d "+1 hour" src/lib.rs; cargo build -q --offline; ./target/debug/made',
    // A table that is written in no order.
    leftOut: '-name .rustc_info.json -prune -o',
  },
  'tar, cp -a, hard links, rename of a directory, case pairs': {
    needs: 'tar',
    makes:
      'mkdir -p d/e; for i in a A b; do echo $i > d/$i; done; chmod 750 d/e; echo x > d/e/x; chmod 400 d/e/x',
    does: 'tar cf t.tar --sort=name --mtime=@0 d; tar xf t.tar --one-top-level=u; cp -a d v; mv d w; ln w/a w/second; ln w/a third; rm w/b; cmp u/d/e/x w/e/x && echo same',
  },
};

const it_ = it.skipIf(!HOST.namespaces);

describe('what real programs do in a preview that is applied is what they do without it (needs namespaces)', () => {
  async function workspace(makes: string) {
    const root = arena.freshCorner();
    execFileSync('bash', ['-c', makes], { cwd: root });
    return { root, sandbox: () => arena.sandbox(WITH_VIEW, { workspace: root, timeout: 120_000 }) };
  }

  it_.each(Object.entries(WORKS))(
    '%s',
    { timeout: 120_000 },
    async (_, { needs, makes = 'true', does, leftOut = '' }) => {
      expect(has(needs), `${needs} is needed`).toBe(true);
      const { root, sandbox } = await workspace(makes);
      const before = picture(root, '');
      const saved = arena.freshCorner();
      execFileSync('cp', ['-a', `${root}/.`, saved]);
      const direct = await (await sandbox()).run(does);
      expect([direct.exitCode, direct.stderr]).toEqual([0, '']);
      const wanted = picture(root, leftOut);
      // At the same place again: what programs make has its name in it.
      execFileSync('find', [root, '-mindepth', '1', '-delete']);
      execFileSync('cp', ['-a', `${saved}/.`, root]);
      const again = await sandbox();
      const previewed = await again.run(does, { effect: 'preview' });
      expect([previewed.exitCode, previewed.stderr, previewed.stdout]).toEqual([0, '', direct.stdout]);
      expect(picture(root, '')).toBe(before);
      const changes = await again.changes();
      const id = previewed.changes?.id ?? '';
      const applied = await changes.apply(id);
      expect(applied.notDone).toEqual([]);
      expect(picture(root, leftOut)).toBe(wanted);
      expect((await changes.undo(id)).notDone).toEqual([]);
      expect(picture(root, '')).toBe(before);
    },
  );

  it_('holes stay holes', async () => {
    const { root, sandbox: open } = await workspace('true');
    const sandbox = await open();
    const result = await sandbox.run('truncate -s 200M big; echo end >> big', { effect: 'preview' });
    await (await sandbox.changes()).apply(result.changes?.id ?? '');
    const { size, blocks } = statSync(join(root, 'big'));
    expect([size, blocks * 512 < 1_000_000]).toEqual([200 * 1024 * 1024 + 4, true]);
  });

  it_(
    'a watcher sees what a command of the preview changes, and the time of a file is kept to the nanosecond',
    async () => {
      const { root, sandbox: open } = await workspace('echo x > watched');
      const sandbox = await open();
      const watching = `python3 -c "
import ctypes, os, threading, time
c=ctypes.CDLL(None); fd=c.inotify_init(); c.inotify_add_watch(fd, b'.', 0x100)
open('new','w').close(); print(len(os.read(fd, 4096)) > 0)
os.utime('watched', ns=(1, 1234567890123456789))"`;
      const result = await sandbox.run(watching, { effect: 'preview' });
      expect(result.stdout).toBe('True\n');
      await (await sandbox.changes()).apply(result.changes?.id ?? '');
      expect(statSync(join(root, 'watched'), { bigint: true }).mtimeNs).toBe(1234567890123456789n);
    },
  );

  it_(
    'rm -rf of 10,000 files is told in one line, applied and taken back',
    { timeout: 120_000 },
    async () => {
      const { root, sandbox: open } = await workspace('true');
      const sandbox = await open();
      execFileSync(
        'bash',
        ['-c', 'for d in $(seq 100); do mkdir -p t/$d; (cd t/$d; touch $(seq 100)); done'],
        { cwd: root },
      );
      const result = await sandbox.run('rm -rf t', { effect: 'preview' });
      expect(result.changes).toMatchObject({
        changes: [{ path: 't', change: 'deleted', objects: 10_100 }],
        more: 0,
      });
      const changes = await sandbox.changes();
      await changes.apply(result.changes?.id ?? '');
      expect(existsSync(join(root, 't'))).toBe(false);
      await changes.undo(result.changes?.id ?? '');
      expect(readFileSync(join(root, 't/100/100'), 'utf8')).toBe('');
      mkdirSync(join(root, 'rest'));
      writeFileSync(join(root, 'rest/f'), '');
    },
  );

  it_('names of any bytes, times, modes and hard links', async () => {
    const all = `/usr/bin/python3 -c "
import os
os.mkdir(b'new'); os.chdir(b'new')
for b in range(1, 256):
    if b in (46, 47): continue
    n=b'n'+bytes([b])+b'm'
    open(n,'wb').write(n); os.symlink(b'to'+n, b'link-'+n)
for n in (b'a', b'A', bytes([0xc3,0xa9]), bytes([0x65,0xcc,0x81]), bytes([0xff]), b'.x.', b' ', b'-rf', b'x'*255): open(n,'wb').write(n)
for m in range(0, 0o1000, 0o21): open(b'f%o'%m,'wb').write(b'f%o'%m); os.chmod(b'f%o'%m, m)
for i in range(3): os.link(b'a', b'hard%d'%i)
for m in (0o500, 0o555, 0o700, 0o1777):
    os.mkdir(b'd%o'%m); open(b'd%o/in'%m,'wb').write(b'in'); os.link(b'd%o/in'%m, b'out%o'%m); os.chmod(b'd%o'%m, m)
t=10**18+1234567891
for base, ds, fs in os.walk(b'.', topdown=False):
    for n in fs+ds+[b'.']:
        t+=10**9+1001
        os.utime(os.path.join(base,n), ns=(t//1000*1000,t//1000*1000), follow_symlinks=False)
"`;
    const look = (root: string) =>
      execFileSync(
        'bash',
        [
          '-c',
          "find new -printf '%P %y %m %n %T@ %l\\n' | LC_ALL=C sort; find new -type f -readable -print0 | LC_ALL=C sort -z | xargs -r0 sha256sum",
        ],
        { cwd: root, encoding: 'latin1', maxBuffer: 64 * 1024 * 1024 },
      );
    const { root, sandbox: open } = await workspace('true');
    const direct = await (await open()).run(all);
    expect([direct.exitCode, direct.stderr]).toEqual([0, '']);
    const wanted = look(root);
    // Some directories are shut for their owner.
    execFileSync('bash', ['-c', 'chmod -R u+rwx new; rm -r new'], { cwd: root });
    const sandbox = await open();
    const { changes: made, stderr } = await sandbox.run(all, { effect: 'preview' });
    expect([stderr, existsSync(join(root, 'new'))]).toEqual(['', false]);
    const changes = await sandbox.changes();
    expect((await changes.apply(made?.id ?? '')).notDone).toEqual([]);
    expect(look(root)).toBe(wanted);
    expect((await changes.undo(made?.id ?? '')).notDone).toEqual([]);
    expect(existsSync(join(root, 'new'))).toBe(false);
  });

  it_('a watcher outside sees what is applied, each file whole', async () => {
    const { root, sandbox: open } = await workspace('echo old > seen');
    const sandbox = await open();
    const { changes: made } = await sandbox.run('head -c 3000000 /dev/zero > seen; echo 1 > other', {
      effect: 'preview',
    });
    const sizes = new Set<number>();
    const names = new Set<string>();
    const watcher = watch(root, (_, name) => {
      names.add(String(name));
      if (name === 'seen') sizes.add(statSync(join(root, 'seen')).size);
    });
    try {
      await (await sandbox.changes()).apply(made?.id ?? '');
      await eventually(() => expect([...names]).toEqual(expect.arrayContaining(['seen', 'other'])));
      expect([...sizes].filter((size) => size !== 4 && size !== 3_000_000)).toEqual([]);
    } finally {
      watcher.close();
    }
  });
});
