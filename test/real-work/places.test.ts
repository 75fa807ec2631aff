import { spawnSync } from 'node:child_process';
import {
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { CLI } from '../cli/support.ts';
import { everywhere, expectPrinted } from './support/lab.ts';

/** What tools do in a workspace: renames, links, git, locks, shared mappings, sparse files. */
const WORK =
  "echo 1 > a && mkdir -p d/e && mv a d/e/a && ln d/e/a d/b && chmod 755 d/b && git init -q . && git add -A && git -c user.name=n -c user.email=e@x commit -qm m && git status --short && rm -r d && git checkout -q -- d && cat d/b && python3 -c \"import fcntl,mmap; f=open('m','w+b'); f.truncate(4096); fcntl.flock(f,2); mmap.mmap(f.fileno(),4096)[0:1]=b'x'; print(open('m').read(1))\" && cp --sparse=always m n && ls";

it('a workspace on a tmpfs (needs namespaces)', () => {
  const place = mkdtempSync(join(realpathSync(tmpdir()), 'on-tmpfs-'));
  try {
    const mounting =
      'mount -t tmpfs own "$1" && mkdir "$1/project" && cd "$1/project" && stat -fc %T . && echo x > f && exec "$2" "$3" -- bash -c "$4"';
    const alone = process.geteuid?.() === 0 ? ['--mount'] : ['--user', '--map-root-user', '--mount'];
    const argv = [...alone, 'bash', '-c', mounting, '-', place, process.execPath, CLI, WORK];
    const env = { ...process.env, HOME: place, XDG_STATE_HOME: join(place, 'state') };
    const { stdout, stderr } = spawnSync('unshare', argv, { env, encoding: 'utf8' });
    expect([stderr, stdout]).toEqual(['', 'tmpfs\n1\nx\nd\nf\nm\nn\n']);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
});

everywhere((lab) => {
  it('a workspace named through a symbolic link', async () => {
    const project = lab.project({ f: 'x\n' });
    const link = `${project.directory}-link`;
    symlinkSync(project.directory, link);
    const answer = await project.run('pwd; cat f; echo y > g; cat "$LINK/g"; cd "$LINK" && pwd; pwd -P', {
      sandbox: { workspace: link, env: { LINK: link } },
    });
    expectPrinted(answer, `${link}\nx\ny\n${link}\n${project.directory}\n`);
  });

  it('a link that commands could lead elsewhere is not the name of the workspace', async () => {
    const project = lab.project({ f: 'x\n' });
    const around = lab.project();
    const link = join(around.directory, 'link');
    symlinkSync(project.directory, link);
    const answer = await project.run('pwd; cat f', {
      sandbox: { workspace: link, policy: { filesystem: { write: [around.directory] } } },
    });
    expectPrinted(answer, `${project.directory}\nx\n`);
  });

  it('a subdirectory as the current directory', async () => {
    const project = lab.project({ 'a/b/f': 'x\n', top: 'up\n' });
    expectPrinted(
      await project.run('cat f ../../top; echo y > ../new; pwd', { cwd: 'a/b' }),
      `x\nup\n${project.directory}/a/b\n`,
    );
    expect(project.read('a/new')).toBe('y\n');
  });

  it('a workspace with spaces, quotes and letters of all kinds in its name', async () => {
    const base = lab.project();
    const project = lab.project({ f: 'x\n' }, join(base.directory, 'a b\'"$x ü 日本\nnext'));
    expectPrinted(
      await project.run(
        'cat "$PWD/f"; git init -q . && git status --short; python3 -c "print(open(\'f\').read())"',
      ),
      'x\n?? f\nx\n\n',
    );
  });

  it('a workspace deep down', async () => {
    const base = lab.project();
    const project = lab.project(
      { f: 'x\n' },
      join(base.directory, ...Array.from({ length: 12 }, () => 'd'.repeat(200))),
    );
    expectPrinted(await project.run('cat f; echo y > g; cat "$PWD/g"'), 'x\ny\n');
  });

  it('a workspace that belongs to another group', async () => {
    const project = lab.project({ f: 'x\n' });
    // Root can give it to a group that its owner is not in, an ordinary user to one of their own.
    const group = process.geteuid?.() === 0 ? 4242 : (process.getgroups?.()[0] ?? 0);
    const { uid } = statSync(project.directory);
    for (const path of [project.directory, join(project.directory, 'f')]) chownSync(path, uid, group);
    expectPrinted(await project.run(WORK), '1\nx\nd\nf\nm\nn\n');
    expect(statSync(project.directory)).toMatchObject({ uid, gid: group });
  });

  it('the profile read-only: reads, computes, and writes only to private places', async () => {
    const project = lab.project({ f: 'x\n' });
    const sandbox = { profile: 'read-only' };
    expectPrinted(
      await project.run(
        'cat f; sort f > "$TMPDIR/s"; cat "$TMPDIR/s"; grep -c x f; find . -type f; touch f new 2>/dev/null || echo refused',
        { sandbox },
      ),
      'x\nx\n1\n./f\nrefused\n',
    );
    expectPrinted(
      await project.run('python3 -c "import json, multiprocessing; multiprocessing.Lock(); print(1)"', {
        sandbox,
      }),
      '1\n',
    );
  });

  it('the profile offline-build', async () => {
    const project = lab.project({ 'main.c': 'int main(void) { return 0; }\n' });
    expectPrinted(
      await project.run('gcc main.c -o main && ./main && echo built', {
        sandbox: { profile: 'offline-build' },
      }),
      'built\n',
    );
  });

  it('the profile networked', async () => {
    const project = lab.project();
    expectPrinted(
      await project.run(
        'node -e "require(\'net\').createServer().listen(0, function () { console.log(this.address().port > 0); this.close(); })"',
        { sandbox: { profile: 'networked' } },
      ),
      'true\n',
    );
  });

  it('nothing stays in the private places for the next command', async () => {
    const project = lab.project();
    expectPrinted(await project.run('touch ~/left "$TMPDIR/left"; ls ~ "$TMPDIR" | grep -c left'), '2\n');
    expectPrinted(await project.run('ls -A ~ "$TMPDIR" | grep -c left || true'), '0\n');
  });
});

everywhere(
  (lab) => {
    it('a workspace beneath the home directory, beside the tool chains', async () => {
      const directory = mkdtempSync(join(homedir(), '.sandbox-run-real-work-'));
      try {
        mkdirSync(join(directory, 'w'));
        writeFileSync(join(directory, 'beside'), 'private\n');
        const project = lab.project({ f: 'x\n' }, join(directory, 'w'));
        expectPrinted(
          await project.run(
            'cat f; echo y > g; cat g; cat ../beside 2>/dev/null || echo closed; python3 -c "print(7)"',
          ),
          'x\ny\nclosed\n7\n',
        );
      } finally {
        rmSync(directory, { recursive: true });
      }
    });
  },
  { who: 'self' },
);

everywhere(
  (lab) => {
    it('an environment without HOME', async () => {
      const project = lab.project();
      expectPrinted(
        await project.run(
          'cd && touch x && ls x; cd - >/dev/null; python3 -c "import os; print(os.path.isdir(os.path.expanduser(\'~\')))"; node -p "require(\'os\').homedir() === process.env.HOME"',
        ),
        'x\nTrue\ntrue\n',
      );
    });
  },
  { home: 'missing' },
);
