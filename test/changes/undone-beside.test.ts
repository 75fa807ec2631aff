import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { createSandbox, type ExecutionResult, type Sandbox, type SandboxOptions } from '../../src/index.ts';
import { makeArena, snapshot } from '../support/arena.ts';
import { HOST } from '../support/tiers.ts';

// Work that a command loses in a workspace is taken back, too, where commands can also write outside of it: git's own files of a
// linked worktree, a submodule or a directory of a monorepo, and what the policy grants.

const arena = makeArena();
const describe_ = describe.skipIf(!HOST.namespaces);

const ENV = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME: arena.root,
  GIT_CONFIG_NOSYSTEM: '1',
  ...{ GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@b', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@b' },
};
const bash = (text: string, cwd: string): string =>
  execFileSync('bash', ['-ec', text], { cwd, env: ENV, stdio: ['ignore', 'pipe', 'pipe'] }).toString();

/** Committed, and then changed, staged, staged anew and not tracked. */
const BASE =
  'git init -q -b main; for f in m s k; do echo base > $f; done; git add .; git commit -qm base; git branch other';
const WORK =
  'echo stashed > k; git stash -q; echo mine > m; echo mine > s; git add s; echo mine > n; git add n; echo mine > u; mkdir d; echo mine > d/v';

interface Ground {
  readonly workspace: string;
  readonly options?: SandboxOptions;
}

const KINDS: Readonly<Record<string, () => Ground>> = {
  'linked worktree': () => {
    const root = arena.freshCorner();
    bash(`mkdir main; cd main; ${BASE}; git worktree add -q ../tree -b own; cd ../tree; ${WORK}`, root);
    return { workspace: join(root, 'tree') };
  },
  submodule: () => {
    const root = arena.freshCorner();
    bash(`mkdir lib; cd lib; ${BASE}`, root);
    bash(
      `git init -q -b main super; cd super; git -c protocol.file.allow=always submodule --quiet add ../lib sub; git commit -qm sub; cd sub; ${WORK}`,
      root,
    );
    return { workspace: join(root, 'super/sub') };
  },
  'directory of a monorepo': () => {
    const root = arena.freshCorner();
    bash(
      `git init -q -b main; mkdir part other; echo base > other/f; cd part; for f in m s k; do echo base > $f; done; git add ..; git commit -qm base; ${WORK}`,
      root,
    );
    return { workspace: join(root, 'part') };
  },
  'grant of a directory': () => {
    const root = arena.freshCorner();
    bash(`mkdir ws shared; echo theirs > shared/t; cd ws; ${BASE}; ${WORK}`, root);
    return { workspace: join(root, 'ws'), options: { writable: [join(root, 'shared')] } };
  },
  'grant of a file': () => {
    const root = arena.freshCorner();
    bash(`mkdir ws; echo theirs > notes; cd ws; ${BASE}; ${WORK}`, root);
    return { workspace: join(root, 'ws'), options: { writable: [join(root, 'notes')] } };
  },
  'two grants in a worktree': () => {
    const root = arena.freshCorner();
    bash(
      `mkdir main one two; echo t > one/t; cd main; ${BASE}; git worktree add -q ../tree -b own; cd ../tree; ${WORK}`,
      root,
    );
    return { workspace: join(root, 'tree'), options: { writable: [join(root, 'one'), join(root, 'two')] } };
  },
};

function everythingIn(root: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  const look = (at: string): void => {
    const info = lstatSync(at, { bigint: true });
    const content = info.isSymbolicLink()
      ? readlinkSync(at)
      : info.isFile()
        ? readFileSync(at, 'latin1')
        : '';
    // What git has of files is compared by what git says of it.
    const isDirectory = info.isDirectory();
    found[at.slice(root.length)] = [info.mode, isDirectory ? '' : info.mtimeNs, content].join(' ');
    if (isDirectory) for (const name of readdirSync(at)) if (name !== '.git') look(join(at, name));
  };
  look(root);
  return found;
}

/** All that has to be as before: files, and what git says of them. */
const stateOf = (workspace: string) => ({
  files: everythingIn(workspace),
  git: bash(
    'git ls-files -s; git --no-optional-locks status --porcelain; git stash list; git rev-parse HEAD; git symbolic-ref HEAD; git for-each-ref',
    workspace,
  ),
});

/** They lose something in the working tree, or in the index. */
const LOSING = [
  'rm u',
  'rm -rf d',
  'rm -f u d/v m',
  'rm "d/v" && rm n',
  'git clean -qfd',
  'git clean -fd -- "d*"',
  'git checkout -q -- m',
  'git checkout -q HEAD -- s m',
  'git checkout -q .',
  'git checkout -qf',
  'git restore m',
  'git restore --staged --worktree s m',
  'git restore --source HEAD -SW .',
  'git reset -q --hard',
  'git reset -q --hard HEAD',
  'git rm -qf n',
  'git rm -qrf .',
  'git checkout-index -fa',
  'git read-tree --reset -u HEAD',
  'git diff m | git apply -R',
  'git show HEAD:./m > m',
  'git add -A; rm u; git reset -q --hard',
  'mv u /tmp/',
  'find . -name v -delete',
  'rm n && git reset -q --hard',
];

/** They lose something in git's own files. */
const OF_GIT = [
  'git stash drop -q',
  'git stash clear',
  'git reflog expire --expire=now --all',
  'git gc -q --prune=now',
  'git prune',
  'git update-ref -d refs/stash',
  'git reset -q --hard other',
  'git checkout -qf other',
  'git switch -qf other',
  'rm u; git stash drop -q',
];

const isAskedAbout = ({ error }: ExecutionResult) => error?.code === 'command.needs_approval';

describe_(
  'work is taken back in a workspace of which not all that can be written is in it (needs namespaces)',
  () => {
    const grounds = new Map<string, Ground & { readonly sandbox: Sandbox; readonly before: object }>();
    afterAll(() => Promise.all([...grounds.values()].map(({ sandbox }) => sandbox.close())));
    const groundOf = async (kind: string) => {
      const known = grounds.get(kind);
      if (known !== undefined && isDeepStrictEqual(stateOf(known.workspace), known.before)) return known;
      await known?.sandbox.close();
      const made = KINDS[kind]?.() ?? { workspace: '' };
      const sandbox = await createSandbox({ ...made.options, workspace: made.workspace });
      const ground = { ...made, sandbox, before: stateOf(made.workspace) };
      grounds.set(kind, ground);
      return ground;
    };

    const rows = Object.keys(KINDS).flatMap((kind) => LOSING.map((line) => [kind, line] as const));
    it.each(rows)('%s: %s', async (kind, line) => {
      const { workspace, sandbox, before } = await groundOf(kind);
      const result = await sandbox.run(line);
      expect(result).toMatchObject({ ok: true, changes: { effect: 'undoable', state: 'applied' } });
      // The positive control: something was lost.
      expect(stateOf(workspace)).not.toEqual(before);
      // To look is no change.
      bash('git status', workspace);
      const undone = await (await sandbox.changes()).undo(result.changes?.id ?? '');
      expect(undone).toMatchObject({ state: 'undone', notDone: [] });
      expect(stateOf(workspace)).toEqual(before);
    });

    const outside = ['linked worktree', 'submodule', 'directory of a monorepo', 'two grants in a worktree'];
    it.each(outside.flatMap((kind) => OF_GIT.map((line) => [kind, line] as const)))(
      'the question stays where git has its files outside: %s: %s',
      async (kind, line) => {
        const { workspace, sandbox, before } = await groundOf(kind);
        // Of a branch that is not there nothing would come.
        expect([isAskedAbout(await sandbox.run(line))]).toEqual([true]);
        expect(stateOf(workspace)).toEqual(before);
      },
    );

    it.each(OF_GIT.filter((line) => !/prune|expire/.test(line)))(
      'and none is where they are in the workspace: %s',
      async (line) => {
        const { workspace, sandbox, before } = await groundOf('grant of a directory');
        const result = await sandbox.run(line);
        expect(result).toMatchObject({ ok: true, changes: { effect: 'undoable', state: 'applied' } });
        const undone = await (await sandbox.changes()).undo(result.changes?.id ?? '');
        expect(undone).toMatchObject({ state: 'undone', notDone: [] });
        expect(stateOf(workspace)).toEqual(before);
      },
    );
  },
);

describe_('what lies outside of the layer (needs namespaces)', () => {
  const withShared = (more = '') => {
    const root = arena.freshCorner();
    bash(`mkdir ws shared; echo theirs > shared/t; echo mine > ws/u; echo mine > ws/v; ${more}`, root);
    const [workspace, shared] = [join(root, 'ws'), join(root, 'shared')];
    return { root, workspace, shared, options: { workspace, writable: [shared] } };
  };

  it('is written at once by a command that runs on a layer, and stays so', async () => {
    const { workspace, shared, options } = withShared();
    await using sandbox = await createSandbox(options);
    const result = await sandbox.run(`rm u; echo new > ${shared}/made; echo more >> ${shared}/t`);
    expect(result).toMatchObject({ ok: true, changes: { effect: 'undoable', gone: { files: 1 } } });
    expect(readFileSync(join(shared, 't'), 'utf8')).toBe('theirs\nmore\n');
    await (await sandbox.changes()).undo(result.changes?.id ?? '');
    expect(existsSync(join(workspace, 'u'))).toBe(true);
    expect(readFileSync(join(shared, 'made'), 'utf8')).toBe('new\n');
  });

  it.each([
    'rm ../shared/t',
    'rm u ../shared/t',
    'rm -rf u ../shared',
    'cd ../shared && rm t',
    'rm -rf link/t',
    'rm -rf link/*',
    'rm "$f"',
    'rm -rf "$d"/*',
    'rm -rf /$d',
    'find .. -name t -delete; rm u',
    'find u ../shared -delete',
    'find -L . -name t -delete',
    'find . -follow -name t -delete',
    'find -L . -name t -exec rm {} +',
    'rsync -a --delete ../shared/ .',
    'tar cf /tmp/x.tar --remove-files link/t',
    'for f in u ../shared/t; do rm "$f"; done',
    'xargs rm < list',
    // It would be in the layer alone until the line ends.
    'mv ../shared/t . ; rm u',
  ])('keeps the question for what is lost there: %s', async (line) => {
    const { root, options } = withShared('ln -s ../shared ws/link; printf "u\\n../shared/t\\n" > ws/list');
    const before = snapshot(root);
    await using sandbox = await createSandbox(options);
    expect([isAskedAbout(await sandbox.run(line))]).toEqual([true]);
    expect(snapshot(root)).toEqual(before);
  });

  it('what is moved there and deleted there comes back', async () => {
    const { workspace, shared, options } = withShared();
    const before = everythingIn(workspace);
    await using sandbox = await createSandbox(options);
    for (const line of [
      `mv u ${shared}/x; rm ${shared}/x`,
      `mv u ${shared}; rm -f ${shared}/u v`,
      `rm v; python3 -c 'import shutil, os; shutil.move("u", "${shared}/y"); os.remove("${shared}/y")'`,
    ]) {
      const result = await sandbox.run(line);
      expect([line, result.status, result.changes?.effect]).toEqual([line, 'exited', 'undoable']);
      expect(existsSync(join(workspace, 'u'))).toBe(false);
      const undone = await (await sandbox.changes()).undo(result.changes?.id ?? '');
      expect(undone).toMatchObject({ notDone: [] });
      expect(everythingIn(workspace)).toEqual(before);
    }
    expect(readdirSync(shared)).toEqual(['t']);
  });

  it('a file that nobody may write, and that a command touched, is applied and comes back', async () => {
    const { workspace, options } = withShared('echo x > ws/shut; chmod 444 ws/shut');
    const before = everythingIn(workspace);
    await using sandbox = await createSandbox(options);
    const result = await sandbox.run('rm u; touch shut');
    expect(result).toMatchObject({ changes: { state: 'applied', notApplied: 0 }, warnings: [] });
    const undone = await (await sandbox.changes()).undo(result.changes?.id ?? '');
    expect(undone).toMatchObject({ state: 'undone', notDone: [] });
    expect(everythingIn(workspace)).toEqual(before);
  });

  it('keeps the question where a grant is around the workspace', async () => {
    const { root, workspace } = withShared();
    await using sandbox = await createSandbox({ workspace, writable: [root] });
    expect(isAskedAbout(await sandbox.run('rm u'))).toBe(true);
  });

  it('is settled when the command ends: a hook, settings of git', async () => {
    const { workspace, shared, options } = withShared('git init -q shared; mkdir shared/sub; git init -q ws');
    writeFileSync(join(workspace, 'u'), 'mine\n');
    const config = readFileSync(join(shared, '.git/config'), 'utf8');
    await using sandbox = await createSandbox(options);
    const attack = `rm u; git init -q ${shared}/new; printf '#!/bin/sh\\n' > ${shared}/new/.git/hooks/post-checkout; chmod +x ${shared}/new/.git/hooks/post-checkout; git -C ${shared} config core.fsmonitor /tmp/evil; git -C ${shared}/new config core.fsmonitor /tmp/evil; git config core.fsmonitor /tmp/evil`;
    const layered = await sandbox.run(attack);
    expect(layered.changes?.effect).toBe('undoable');
    expect(existsSync(join(shared, 'new/.git/hooks/post-checkout'))).toBe(false);
    expect(readFileSync(join(shared, '.git/config'), 'utf8')).toBe(config);
    expect(readFileSync(join(shared, 'new/.git/config'), 'utf8')).not.toContain('evil');
    expect(readFileSync(join(workspace, '.git/config'), 'utf8')).not.toContain('evil');
    expect(layered.leftBehind.map(({ path }) => path).join('\n')).toContain(`${shared}/new/.git`);
  });

  it('settings of a repository outside are taken over as after any command', async () => {
    const { workspace } = KINDS['linked worktree']?.() ?? { workspace: '' };
    await using sandbox = await createSandbox({ workspace });
    const result = await sandbox.run('rm u; git config branch.own.description mine');
    expect(result).toMatchObject({ ok: true, changes: { effect: 'undoable' } });
    expect(bash('git config branch.own.description', workspace)).toBe('mine\n');
    expect(await (await sandbox.changes()).undo(result.changes?.id ?? '')).toMatchObject({ notDone: [] });
  });
});

describe_('the index that undo puts back (needs namespaces)', () => {
  const worktree = () => KINDS['linked worktree']?.() ?? { workspace: '' };
  const undo = async (sandbox: Sandbox, { changes }: ExecutionResult) =>
    (await sandbox.changes()).undo(changes?.id ?? '');

  it('stays where somebody staged something since, and is named; files come back', async () => {
    const { workspace } = worktree();
    await using sandbox = await createSandbox({ workspace });
    const result = await sandbox.run('git reset -q --hard');
    bash('echo later > later; git add later', workspace);
    const { notDone } = await undo(sandbox, result);
    expect(notDone).toEqual([
      { path: expect.stringMatching(/worktrees\/tree\/index$/), why: 'it changed since' },
    ]);
    expect(bash('git ls-files later; cat m', workspace)).toBe('later\nmine\n');
  });

  it('stays where the command made a commit, and is named', async () => {
    const { workspace } = worktree();
    await using sandbox = await createSandbox({ workspace });
    const result = await sandbox.run('rm u; git -c user.name=a -c user.email=a@b commit -qm more');
    expect(result).toMatchObject({ ok: true, changes: { effect: 'undoable' } });
    const { notDone } = await undo(sandbox, result);
    expect(notDone.map(({ why }) => why)).toEqual([expect.stringContaining('made commits')]);
    expect(existsSync(join(workspace, 'u'))).toBe(true);
    expect(bash('git ls-files n; git log -1 --format=%s', workspace)).toBe('n\nmore\n');
  });

  it('keeps the question in the middle of a merge, which would be forgotten', async () => {
    const { workspace } = worktree();
    bash(
      'git stash clear; git reset -q --hard; git checkout -q -b left; echo l > m; git commit -qam l; git checkout -q own; echo r > m; git commit -qam r; git merge -q left || true; echo work > m',
      workspace,
    );
    await using sandbox = await createSandbox({ workspace });
    for (const line of ['git reset -q --hard', 'git checkout -qf', 'git restore .'])
      expect([line, isAskedAbout(await sandbox.run(line))]).toEqual([line, true]);
  });

  it('comes back where nothing but the index changed', async () => {
    const { workspace } = worktree();
    bash('rm n', workspace);
    bash('git stash clear; git checkout -q -- m; git checkout -q HEAD -- s', workspace);
    const before = stateOf(workspace);
    await using sandbox = await createSandbox({ workspace });
    const result = await sandbox.run('git reset -q --hard');
    expect(bash('git ls-files n', workspace)).toBe('');
    expect(await undo(sandbox, result)).toMatchObject({ state: 'undone', notDone: [] });
    expect(stateOf(workspace)).toEqual(before);
  });

  it('is not written through a link that a command puts in the place of its directory', async () => {
    const { workspace } = worktree();
    const victims = realpathSync(arena.freshVictims());
    writeFileSync(join(victims, 'index'), 'theirs\n');
    await using sandbox = await createSandbox({ workspace });
    const result = await sandbox.run('git reset -q --hard');
    const own = bash('git rev-parse --absolute-git-dir', workspace).trim();
    renameSync(own, `${own}-away`);
    symlinkSync(victims, own);
    const before = snapshot(victims);
    const { notDone } = await undo(sandbox, result);
    expect(notDone.map(({ why }) => why)).toContain('it changed since');
    expect(snapshot(victims)).toEqual(before);
  });

  it('is not written into another repository that was put in the place of the first one', async () => {
    const { workspace } = worktree();
    await using sandbox = await createSandbox({ workspace });
    const result = await sandbox.run('git reset -q --hard');
    const common = bash('git rev-parse --path-format=absolute --git-common-dir', workspace).trim();
    renameSync(common, `${common}-away`);
    execFileSync('cp', ['-a', `${common}-away`, common]);
    const before = readFileSync(join(common, 'worktrees/tree/index'));
    const { notDone } = await undo(sandbox, result);
    expect(notDone.map(({ why }) => why)).toContain('it changed since');
    expect(readFileSync(join(common, 'worktrees/tree/index'))).toEqual(before);
  });

  it('with a lock of git beside it nothing is taken back, and all with the next try', async () => {
    const { workspace } = worktree();
    const before = stateOf(workspace);
    await using sandbox = await createSandbox({ workspace });
    const result = await sandbox.run('git reset -q --hard');
    const own = bash('git rev-parse --absolute-git-dir', workspace).trim();
    writeFileSync(join(own, 'index.lock'), '');
    await expect(undo(sandbox, result)).rejects.toMatchObject({ code: 'changes.busy' });
    rmSync(join(own, 'index.lock'));
    expect(await undo(sandbox, result)).toMatchObject({ notDone: [] });
    expect(stateOf(workspace)).toEqual(before);
  });

  it('of a forged .git file in the workspace is nobody’s', async () => {
    const root = arena.freshCorner();
    bash(
      `mkdir ws shared; cd shared; ${BASE}; ${WORK}; cd ../ws; mkdir sub; echo "gitdir: ${root}/shared/.git" > sub/.git; echo mine > sub/m`,
      root,
    );
    const workspace = join(root, 'ws');
    await using sandbox = await createSandbox({ workspace, writable: [join(root, 'shared')] });
    const before = bash('git ls-files -s; git stash list', join(root, 'shared'));
    for (const line of [
      'cd sub && git reset -q --hard',
      'git -C sub stash drop -q',
      'cd sub; git checkout -q -- m',
    ])
      expect([line, isAskedAbout(await sandbox.run(line))]).toEqual([line, true]);
    expect(bash('git ls-files -s; git stash list', join(root, 'shared'))).toBe(before);
  });

  it('a directory is not needed for it to be a workspace of its own', async () => {
    const root = arena.freshCorner();
    mkdirSync(join(root, 'ws'));
    writeFileSync(join(root, 'ws/u'), 'mine\n');
    await using sandbox = await createSandbox({ workspace: join(root, 'ws') });
    expect((await sandbox.run('rm u')).changes).toMatchObject({ gone: { files: 1 } });
  });
});
