import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { createSandbox, type Sandbox } from '../../src/index.ts';
import { LINES_OF_GIT, LOSING_LINES } from '../cases/losses.ts';
import { makeArena } from '../support/arena.ts';
import { makeRepositories, type State, WORK } from '../support/repository-states.ts';
import { HOST } from '../support/tiers.ts';

// What may lose work in the workspace runs on a layer instead of being asked about, and undo brings all of it back.

const arena = makeArena();
const describe_ = describe.skipIf(!HOST.namespaces);

/** Everything in a tree that undo has to bring back: names as bytes, content, modes, links, times of files. */
function everythingIn(root: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  const look = (at: Buffer): void => {
    const info = lstatSync(at, { bigint: true });
    const content = info.isSymbolicLink()
      ? readlinkSync(at, 'latin1')
      : info.isFile()
        ? readFileSync(at, 'latin1')
        : '';
    const time = info.isDirectory() ? '' : String(info.mtimeNs);
    const names = info.isDirectory() ? '' : String(info.nlink);
    found[at.toString('latin1').slice(root.length)] = [info.mode, time, names, content].join(' ');
    if (info.isDirectory())
      for (const name of readdirSync(at, { encoding: 'buffer' }))
        look(Buffer.concat([at, Buffer.from('/'), name]));
  };
  look(Buffer.from(root));
  return found;
}

/** A workspace of which version control has nothing but `tracked`. `isDirectory`: what `notes` is. */
function workspaceWith(isDirectory = false): string {
  const root = arena.freshCorner();
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-C', root, '-c', 'user.name=a', '-c', 'user.email=a@b', ...args]);
  git('init', '-q');
  writeFileSync(join(root, 'tracked'), 'tracked\n');
  git('add', 'tracked');
  git('commit', '-qm', 'first');
  if (isDirectory) {
    mkdirSync(join(root, 'notes/deep'), { recursive: true, mode: 0o700 });
    writeFileSync(join(root, 'notes/a.txt'), 'mine\n', { mode: 0o640 });
    writeFileSync(Buffer.from(`${root}/notes/no\xff`, 'latin1'), 'bytes\n');
    linkSync(join(root, 'notes/a.txt'), join(root, 'notes/deep/same'));
    symlinkSync('a.txt', join(root, 'notes/link'));
    chmodSync(join(root, 'notes/deep'), 0o750);
    utimesSync(join(root, 'notes/a.txt'), 1_000_000_000, 1_000_000_001);
  } else {
    writeFileSync(join(root, 'notes'), 'mine\n', { mode: 0o640 });
    linkSync(join(root, 'notes'), join(root, 'same'));
    utimesSync(join(root, 'notes'), 1_000_000_000, 1_000_000_001);
  }
  for (const name of ['sub/dist', 'dist', 'src', 'build', 'a/dist', 'b'])
    mkdirSync(join(root, name), { recursive: true });
  writeFileSync(join(root, 'list'), 'notes\nsrc/mine.c\n');
  writeFileSync(join(root, 'src/mine.c'), 'int x;\n');
  writeFileSync(join(root, 'dist/x.map'), '');
  writeFileSync(join(root, 'env.sh'), 'OUT=notes\n');
  symlinkSync('notes', join(root, 'to-notes'));
  return root;
}

/** A workspace with a sandbox for it, as long as each line leaves it as it was. */
interface Ground extends AsyncDisposable {
  readonly workspace: string;
  readonly before: Readonly<Record<string, string>>;
  readonly sandbox: Sandbox;
}

/** Keeps the ground of the lines before, which undo brought back; makes another one where something else is there. */
function groundsFor(make: (kind: string) => string) {
  const grounds = new Map<string, Ground>();
  afterAll(() => Promise.all([...grounds.values()].map((ground) => ground[Symbol.asyncDispose]())));
  return async (kind: string): Promise<Ground> => {
    const known = grounds.get(kind);
    if (known !== undefined && isDeepStrictEqual(everythingIn(known.workspace), known.before)) return known;
    await known?.[Symbol.asyncDispose]();
    const workspace = make(kind);
    // Some lines read what nobody writes.
    const sandbox = await createSandbox({ workspace, timeout: 5_000 });
    const ground = {
      ...{ workspace, sandbox, before: everythingIn(workspace) },
      [Symbol.asyncDispose]: () => sandbox.close(),
    };
    grounds.set(kind, ground);
    return ground;
  };
}

describe_('each line of the corpora of losses is taken back byte for byte (needs namespaces)', () => {
  const seen = { undone: 0, changed: 0 };

  /** Runs a line; where it ran on a layer, undo leaves nothing of it. */
  async function expectTakenBack({ workspace, sandbox, before }: Ground, line: string): Promise<void> {
    const result = await sandbox.run(line);
    const { changes, decision } = result;
    const isAskedForLoss = decision?.reasons.every(
      ({ verdict, check }) => verdict !== 'ask' || check === 'losses',
    );
    const isAsked = result.error?.code === 'command.needs_approval';
    expect([isAsked, isAsked && isAskedForLoss]).toEqual([isAsked, false]);
    if (changes?.effect !== 'undoable') return;
    seen.undone += 1;
    if (!isDeepStrictEqual(everythingIn(workspace), before)) seen.changed += 1;
    const { notDone } = await (await sandbox.changes()).undo(changes.id ?? '');
    expect(notDone).toEqual([]);
    expect(everythingIn(workspace)).toEqual(before);
  }

  const groundOf = groundsFor((kind) => workspaceWith(kind === 'directory'));
  it.each(LOSING_LINES)('%s', async (line) => {
    for (const kind of ['file', 'directory']) await expectTakenBack(await groundOf(kind), line);
  });

  const { bash, repositoryIn } = makeRepositories();
  let count = 0;
  const repositoryOf = groundsFor((state) => {
    const workspace = repositoryIn(state as State, `repository-${count++}`);
    for (const work of Object.values(WORK)) bash(work, workspace);
    return workspace;
  });
  it.each(LINES_OF_GIT)('in a repository: %s: %s', async (state, line) => {
    await expectTakenBack(await repositoryOf(state), line);
  });

  it('and most of them did lose something', () => {
    expect(seen.changed).toBeGreaterThan(100);
    expect(seen.undone).toBeGreaterThanOrEqual(seen.changed);
  });
});
