import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { isBeneath } from '../../src/base/absolute-path.ts';
import type { SandboxOptions } from '../../src/index.ts';
import { makeDirectory } from '../support/state-home.ts';
import { HOST_TIERS, rowsFor, sandboxIn, type Tier } from '../support/tiers.ts';

/**
 * What a workspace may hold, from an archive or from an earlier command, that says it were a part of somebody else's repository.
 * The scripts are bash, run in a directory with `victim`, a repository with `secret` in it and a linked worktree `side`, and `work`.
 */
interface Forgery {
  readonly name: string;
  readonly make: string;
  /** The workspace. Default: work. */
  readonly workspace?: string;
  /** What may be granted in the directory all the same, relative. */
  readonly granted?: readonly string[];
  /** HOME, relative. */
  readonly home?: string;
  readonly options?: Pick<SandboxOptions, 'policy' | 'isCopy'>;
  /** What the caller is told. */
  readonly says?: RegExp;
  readonly ofAnotherUser?: string;
}

const POINTS = 'echo "gitdir: $PWD/victim/.git/worktrees/side" > work/.git';
/** A directory that looks like a common directory, beside the workspace, with a worktree that points back. */
const FAKE =
  'mkdir -p fake/worktrees/w fake/objects fake/refs; echo ref: refs/heads/main | tee fake/HEAD > fake/worktrees/w/HEAD; echo "$PWD/work/.git" > fake/worktrees/w/gitdir; echo ../.. > fake/worktrees/w/commondir; echo "gitdir: $PWD/fake/worktrees/w" > work/.git';
const AS_MODULE =
  'git -C victim config -f $PWD/victim/.git/modules/m/config core.worktree $PWD/work; echo "gitdir: ../victim/.git/modules/m" > work/.git';

const FORGERIES: readonly Forgery[] = [
  {
    name: 'a .git file that names a worktree of another one',
    make: POINTS,
    says: /does not lead back to it, so git .*; if it is yours, run `git worktree repair`/,
  },
  {
    name: 'a .git file that names a repository',
    make: 'echo "gitdir: $PWD/victim/.git" > work/.git',
    says: /core\.worktree/,
  },
  {
    name: 'the same, in a directory above the workspace',
    make: 'mkdir work/sub; echo "gitdir: ../victim/.git" > work/.git; echo secret > work/secret',
    workspace: 'work/sub',
  },
  {
    name: 'a fake directory of git in the workspace, whose commondir leads out',
    make: `${FAKE}; mv fake work; echo "$PWD/victim/.git" > work/fake/worktrees/w/commondir; echo "gitdir: fake/worktrees/w" > work/.git`,
  },
  {
    name: 'a fake one beside it, whose commondir leads elsewhere',
    make: `${FAKE}; echo ../../../victim/.git > fake/worktrees/w/commondir`,
  },
  {
    name: 'commondir goes up to the directory around all',
    make: `${FAKE}; echo ../../.. > fake/worktrees/w/commondir; mkdir objects refs; touch HEAD`,
  },
  {
    name: 'commondir goes up behind a link',
    make: `${FAKE}; ln -s $PWD/victim/.git fake/worktrees/w/l; echo l/../../.. > fake/worktrees/w/commondir`,
  },
  {
    name: 'commondir is a link',
    make: `${FAKE}; mv fake/worktrees/w/commondir c; ln -s $PWD/c fake/worktrees/w/commondir`,
  },
  {
    name: 'gitdir is a link',
    make: `${FAKE}; mv fake/worktrees/w/gitdir g; ln -s $PWD/g fake/worktrees/w/gitdir`,
  },
  {
    name: 'the worktree is a link into another repository',
    make: `${FAKE}; rm -r fake/worktrees/w; ln -s $PWD/victim/.git/worktrees/side fake/worktrees/w`,
  },
  { name: 'the common directory is reached by a link', make: `${FAKE}; mv fake real; ln -s real fake` },
  {
    name: 'its objects are a link',
    make: `${FAKE}; rmdir fake/objects; ln -s $PWD/victim/.git/objects fake/objects`,
  },
  {
    name: '.git is a link to a repository',
    make: 'ln -s $PWD/victim/.git work/.git',
    says: /is a link, which is not followed/,
  },
  {
    name: '.git is a link to a .git file that is right for another one',
    make: `${POINTS}; rm work/.git; ln -s $PWD/side/.git work/.git`,
  },
  {
    name: '.git above is a link',
    make: 'mkdir work/sub; ln -s $PWD/victim/.git work/.git',
    workspace: 'work/sub',
  },
  { name: '.git is a FIFO', make: 'mkfifo work/.git' },
  {
    name: 'a module whose settings name another working tree',
    make: `${AS_MODULE}; git config -f victim/.git/modules/m/config core.worktree $PWD/side`,
    says: /git -C \S+ config core\.worktree/,
  },
  {
    name: 'a module whose settings are a link',
    make: `${AS_MODULE}; mv victim/.git/modules/m/config c; ln -s $PWD/c victim/.git/modules/m/config`,
  },
  {
    name: 'a repository above that is none',
    make: 'mkdir -p .git/refs; echo x > .git/HEAD; echo secret > secret',
  },
  {
    name: 'a repository above whose files are elsewhere',
    make: 'git init -q .; git config core.worktree $PWD/victim; echo secret > secret',
  },
  {
    name: 'a repository above that is bare',
    make: 'git init -q .; git config core.bare true; echo secret > secret',
  },
  { name: 'a repository whose top is the home', make: 'git init -q .; echo secret > secret', home: '.' },
  { name: 'one above the home', make: 'mkdir home; git init -q .; echo secret > secret', home: 'home' },
  {
    name: 'one above the home, which is a link',
    make: 'mkdir real; ln -s real home; git init -q .; echo secret > secret',
    home: 'home',
  },
  { name: 'one of another user', make: 'git init -q .; echo secret > secret', ofAnotherUser: '.' },
  { name: 'a worktree of another user', make: FAKE, ofAnotherUser: 'fake/worktrees/w' },
  { name: 'a common directory of another user', make: FAKE, ofAnotherUser: 'fake' },
  { name: 'a gitdir of another user', make: FAKE, ofAnotherUser: 'fake/worktrees/w/gitdir' },
  {
    name: 'a right one, of which the policy wants nothing',
    make: 'git -C victim worktree add -q $PWD/work2',
    workspace: 'work2',
    options: { policy: { filesystem: { repository: 'none' } } },
  },
  {
    name: 'a right one, of which the workspace wants nothing',
    make: 'git -C victim worktree add -q $PWD/work2; printf "[filesystem]\\nrepository = \\"none\\"\\n" > work2/.sandbox-run.toml',
    workspace: 'work2',
  },
  {
    name: 'a repository around what another machine sent',
    make: 'git init -q .; echo secret > secret',
    options: { isCopy: true },
  },
  {
    name: 'alternates of a right one that lead elsewhere',
    make: `${FAKE}; mkdir fake/objects/info; echo $PWD/victim/.git/objects > fake/objects/info/alternates`,
    granted: ['fake'],
  },
  {
    name: 'another worktree of a right one that names a file elsewhere',
    make: `${FAKE}; mkdir -p fake/worktrees/o sub/.git; echo $PWD/victim/secret > fake/worktrees/o/gitdir; mkdir fake/worktrees/p; echo $PWD/victim/.git > fake/worktrees/p/gitdir; mkdir fake/worktrees/q; echo $PWD/side/.git > fake/worktrees/q/gitdir`,
    granted: ['fake'],
  },
];

const VICTIM =
  'mkdir work; git init -q -b main victim; cd victim; echo secret > secret; git add .; git commit -qm s; git worktree add -q -b side ../side; mkdir -p .git/modules/m; cp -r .git/objects .git/refs .git/HEAD .git/config .git/modules/m/';

function inBash(script: string, cwd: string): string {
  const env = {
    PATH: process.env.PATH,
    HOME: cwd,
    GIT_CONFIG_NOSYSTEM: '1',
    ...Object.fromEntries(
      ['AUTHOR', 'COMMITTER'].flatMap((who) => [
        [`GIT_${who}_NAME`, 'me'],
        [`GIT_${who}_EMAIL`, 'me@localhost'],
      ]),
    ),
  };
  return execFileSync('bash', ['-ec', script], { cwd, env, encoding: 'utf8' });
}

function makeForgery({ make, ofAnotherUser }: Forgery): string {
  const root = makeDirectory(join(realpathSync(tmpdir()), 'forge-'));
  inBash(`${VICTIM}`, root);
  inBash(make, root);
  // In a user namespace, as without Landlock, root is nobody special to the files of users that are not mapped.
  chmodSync(root, 0o755);
  if (ofAnotherUser !== undefined) chownSync(join(root, ofAnotherUser), 12345, 12345);
  return root;
}

const { HOME } = process.env;
afterEach(() => {
  process.env.HOME = HOME;
});

async function planned(tier: Tier, forgery: Forgery) {
  const root = makeForgery(forgery);
  if (forgery.home !== undefined) process.env.HOME = join(root, forgery.home);
  const workspace = join(root, forgery.workspace ?? 'work');
  await using sandbox = await sandboxIn(tier, { workspace, policyFiles: true, ...forgery.options });
  const granted = sandbox.plan.paths
    .map(({ path }) => path)
    .filter((path) => isBeneath(path, root) || isBeneath(root, path));
  const { stdout, warnings } = await sandbox.run(
    `cat ../secret ../victim/secret ../../secret ../../victim/secret '${root}/secret' '${root}/victim/secret'; git -C '${root}' show HEAD:secret; git show main:secret; git --git-dir='${root}/victim/.git' show main:secret`,
  );
  return { root, granted, stdout, said: warnings.join('\n') };
}

describe.each(HOST_TIERS)('nothing more is opened $name by', (tier) => {
  const rows = FORGERIES.filter(
    ({ ofAnotherUser }) => ofAnotherUser === undefined || process.getuid?.() === 0,
  );
  it.each(rowsFor(tier, rows).map((row) => [row.name, row] as const))('%s', async (_, forgery) => {
    const { root, granted, stdout, said } = await planned(tier, forgery);
    expect(granted.sort()).toEqual(
      [forgery.workspace ?? 'work', ...(forgery.granted ?? [])].map((path) => join(root, path)).sort(),
    );
    expect(stdout).not.toContain('secret');
    if (forgery.says !== undefined) expect(said).toMatch(forgery.says);
  });
});

describe.each(HOST_TIERS)(
  'what is right is opened $name, so that the attacks above could succeed:',
  (tier) => {
    it.each(
      rowsFor(tier, [
        [
          'a worktree',
          'git -C victim worktree add -q $PWD/work2',
          'work2',
          ['victim/.git', 'side/.git'],
          false,
        ],
        [
          'a directory of a worktree',
          'git -C victim worktree add -q $PWD/work2; mkdir work2/sub',
          'work2/sub',
          ['work2', 'victim/.git', 'side/.git'],
          true,
        ],
        [
          'a directory of a repository',
          'mkdir victim/sub',
          'victim/sub',
          ['victim', 'victim/.git', 'side/.git'],
          true,
        ],
        ['a module', AS_MODULE, 'work', ['victim/.git/modules/m'], false],
        ['a fake repository that nothing is wrong with', FAKE, 'work', ['fake'], false],
      ] as const),
    )('%s', async (_, make, workspace, beside, isRead) => {
      const { root, granted, stdout } = await planned(tier, { name: '', make, workspace });
      expect(granted.sort()).toEqual([workspace, ...beside].map((path) => join(root, path)).sort());
      expect(stdout.includes('secret')).toBe(
        isRead || beside.some((path) => path === 'victim/.git' || path === 'victim/.git/modules/m'),
      );
    });
  },
);

describe.each(HOST_TIERS)('objects of another repository by objects/info/alternates, $name', (tier) => {
  const clone =
    'git init -q -b main "$1/base" && cd "$1/base" && echo base > f && git add f && git -c user.name=n -c user.email=e commit -qm m && git clone -q --shared "$1/base" "$1/work"';

  it('are not seen, which is told with the option that shows them, and what a command names opens nothing', async () => {
    const root = makeDirectory(join(realpathSync(tmpdir()), 'alternates-'));
    execFileSync('bash', ['-c', clone, 'clone', root]);
    const workspace = join(root, 'work');
    const objects = join(root, 'base/.git/objects');
    await using sandbox = await sandboxIn(tier, { workspace });
    const failed = await sandbox.run('git log');
    expect([failed.ok, failed.stdout]).toEqual([false, '']);
    expect(failed.warnings.join()).toContain(`the option readable ${objects} shows them`);
    // A command can write objects/info/alternates: it gets access to nothing by that, and only a repository is proposed.
    const forged = [
      '/etc/ssl',
      `${root}/base`,
      `${root}/base/.git`,
      '../../../../../base/.git/objects/',
      '/proc/self/root',
    ];
    for (const path of forged) {
      const { warnings } = await sandbox.run(
        `printf '%s\\n' '${path}' > .git/objects/info/alternates; exit 128`,
      );
      expect([path, warnings.filter((warning) => warning.includes(`--ro ${path}`))]).toEqual([path, []]);
    }
    await sandbox.run(`echo ${objects} > .git/objects/info/alternates; git log`);
    await using again = await sandboxIn(tier, { workspace });
    expect((await again.run(`ls ${objects} || git log`)).ok).toBe(false);
    await using granted = await sandboxIn(tier, { workspace, policy: { filesystem: { read: [objects] } } });
    expect((await granted.run('git log --format=%s')).stdout).toBe('m\n');
  });
});
