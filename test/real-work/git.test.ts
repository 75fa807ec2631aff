import { expect, it } from 'vitest';
import { lacks } from '../support/programs.ts';
import { everywhere, expectPrinted, type Lab, type Project } from './support/lab.ts';

everywhere(
  (lab) => {
    it('init, add, commit with the identity of the user', async () => {
      lab.writeHome({ '.gitconfig': '[user]\n\tname = Zoë "Z" O\'Neil\n\temail = zoe@example.org\n' });
      const project = lab.project();
      expectPrinted(
        await project.run(
          'git init -q . && echo x > f && git add . && git commit -qm first && git log --format="%an <%ae> %s"',
        ),
        "Zoë Z O'Neil <zoe@example.org> first\n",
      );
    });

    it('everyday commands in a repository that was there before', async () => {
      const project = repository(lab);
      const script = `
        set -e
        git status --short
        echo more >> f; git diff --stat | tail -1
        git checkout -q -b topic; git commit -qam second; git checkout -q -; git merge -q topic
        git stash list; echo y > g; git add g; git stash -q; git stash pop -q; git commit -qm third
        git tag -am v1 v1; git describe; git blame -s f | wc -l; git rebase -q HEAD~1; git cherry-pick --abort 2>/dev/null || true
        git reset -q --hard HEAD~1; git reflog | wc -l | tr -d ' '
        git grep -n more; git archive HEAD | tar t | head -1; git bisect start >/dev/null; git bisect reset >/dev/null 2>&1
        git clean -fdq; git rm -q f; git restore --staged f; git checkout -q f; git mv f h; git commit -qm moved
        git log --oneline | wc -l | tr -d ' '`;
      const answer = await project.run(script);
      expectPrinted(answer, /1 file changed.*v1.*f:2:more\nf\n3\n$/s);
    });

    it('gc, repack, fsck and worktrees', async () => {
      const project = repository(lab);
      expectPrinted(
        await project.run(
          'set -e; git gc -q --prune=now; git repack -adq; git fsck --no-progress; git worktree add -q wt -b other; (cd wt; echo z > z; git add z; git commit -qm z); git worktree remove wt; git log --oneline other | wc -l; git worktree prune; git pack-refs --all; git maintenance run --quiet',
        ),
        '2\n',
      );
    });

    it('init in a repository that is there does not lose the modes of files', async () => {
      const project = repository(lab);
      const script = `set -e; git init -q; echo x > run; chmod +x run; git add run; git ls-files -s run | cut -c-6
        git init -q fresh; cd fresh; echo x > run; chmod +x run; git add run; git ls-files -s run | cut -c-6; git config core.filemode`;
      expectPrinted(await project.run(script), '100755\n100755\ntrue\n');
    });

    it('a repository that says that modes do not last is believed', async () => {
      const project = repository(lab);
      project.outside('git', ['config', 'core.filemode', 'false']);
      expectPrinted(await project.run('chmod +x f; git status --short; git config core.filemode'), 'false\n');
    });

    it('clone, push and pull within the workspace', async () => {
      const project = lab.project();
      withIdentity(lab);
      expectPrinted(
        await project.run(
          'set -e; git init -q --bare origin.git; git clone -q origin.git a 2>/dev/null; cd a; echo x > f; git add f; git commit -qm one; git push -q origin HEAD; cd ..; git clone -q origin.git b; cd b; git pull -q; cat f; git submodule status',
        ),
        'x\n',
      );
    });

    it('a subdirectory of the repository as the current directory', async () => {
      const project = repository(lab);
      project.write({ 'sub/deep/file': 'x' });
      expectPrinted(
        await project.run('git status --short && git rev-parse --show-prefix', { cwd: 'sub/deep' }),
        '?? ../\nsub/deep/\n',
      );
    });

    it('read-only: status, log and diff', async () => {
      const project = repository(lab);
      project.write({ f: 'changed\n' });
      const sandbox = { profile: 'read-only' };
      expectPrinted(
        await project.run('git status --short && git log --oneline | wc -l && git diff --stat | wc -l', {
          sandbox,
        }),
        ' M f\n1\n2\n',
      );
      expect((await project.run('git commit -qam no', { sandbox })).outcome).toBe('exited 128');
    });

    it.skipIf(lacks('git-lfs'))('git lfs pull ends soon without a network', async () => {
      const project = repository(lab);
      const lfs = 'clean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f';
      lab.writeHome({
        '.gitconfig': `[filter "lfs"]\n\tprocess = git-lfs filter-process\n\t${lfs}\n\trequired = true\n`,
      });
      project.write({
        '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n',
        'a.bin': `version https://git-lfs.github.com/spec/v1\noid sha256:${'ab'.repeat(32)}\nsize 1000\n`,
      });
      project.outside('git', ['remote', 'add', 'origin', 'http://lfs.invalid/x.git']);
      const identity = '-c user.name=a -c user.email=b';
      const script = `git add . && git ${identity} commit -qm lfs
        tries() { GIT_TRACE=1 git $1 lfs pull 2>&1 | grep -c 'enqueue retry'; }
        tries; tries '-c lfs.transfer.maxretries=3'`;
      // Asked for, it tries as often as it is told: each takes twice as long as the one before.
      expectPrinted(await project.run(script), '1\n3\n');
    });
  },
  { home: 'fresh' },
);

everywhere(
  (lab) => {
    it('works without a home directory', async () => {
      const project = lab.project();
      expectPrinted(
        await project.run(
          'git init -q . && echo x > f && git add . && git -c user.name=a -c user.email=b commit -qm first && git status --short',
        ),
        '',
      );
    });
  },
  { home: 'missing' },
);

function withIdentity(lab: Lab): void {
  lab.writeHome({
    '.gitconfig': '[user]\n\tname = A\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n',
  });
}

/** A repository made outside, as an agent finds it. */
function repository(lab: Lab): Project {
  withIdentity(lab);
  const project = lab.project({ f: 'x\n' });
  project.outside('git', ['init', '-q', '.']);
  project.outside('git', ['add', '.']);
  project.outside('git', ['commit', '-qm', 'first']);
  return project;
}
