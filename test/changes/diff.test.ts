import { execFileSync, spawnSync } from 'node:child_process';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ChangeSets } from '../../src/run/index.ts';
import { cli, makePlace, type Place } from '../cli/support.ts';
import { makeArena } from '../support/arena.ts';
import { HOST, WITH_VIEW } from '../support/tiers.ts';
import { useOwnState } from './support/own-state.ts';

// A diff is what a person decides by, and what git and other programs take.

const arena = makeArena();
useOwnState(arena);
const describe_ = describe.skipIf(!HOST.namespaces);

/** What changes are made of. */
const BEFORE = `
  printf one > unended; : > empty; seq 100 > long; printf 'a\\r\\nb\\r\\n' > crlf; echo '\ufffd' > replaced-character
  echo x > 'odd
name'; echo x > 'q"uo\\te'; echo x > 'u\u00f1i'; printf x > "$(printf 'by\\377te')"; echo x > 'a\\u{b'; echo x > '-dash  spaces '
  mkdir -p gone/deep 'gone/o
dd' dir; echo g > gone/deep/file; ln -s nowhere gone/link; : > gone/empty; echo g > 'gone/o
dd/g'; echo d > dir/d
  ln -s long link; ln -s long was-link; echo f > was-file; echo m > mode; echo moved > old; echo h > h1`;

const CHANGE = `
  printf more >> unended; echo now > empty; sed -i s/50/fifty/ long; printf 'a\\r\\nc\\r\\n' > crlf; echo more >> replaced-character
  for f in 'odd
name' 'q"uo\\te' 'u\u00f1i' "$(printf 'by\\377te')" 'a\\u{b' '-dash  spaces '; do echo y > "./$f"; done
  rm -r gone; rm dir/d; rmdir dir; echo file > dir; ln -sfn unended link; rm was-link; echo f > was-link
  rm was-file; ln -s long was-file; chmod 755 mode; mv old new; chmod 700 new; ln h1 h2
  echo created > created; : > created-empty; ln -s created created-link; mkdir -p made/in; echo f > made/in/f; chmod 755 made/in/f`;

/** Names, kinds, permissions as git knows them, and contents. */
const TREE = `
  find . -path ./.git -prune -o -type l -printf '%P -> %l\\n' -o -type f -perm -100 -printf '%P x\\n' -o -type f -printf '%P\\n' | LC_ALL=C sort
  find . -path ./.git -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha1sum`;

const bash = (root: string, script: string) =>
  execFileSync('bash', ['-c', script], { cwd: root, encoding: 'latin1' });

async function changed(before: string, command: string) {
  const root = arena.freshCorner();
  bash(root, before);
  const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root });
  const result = await sandbox.run(command, { effect: 'preview', approved: true });
  expect([result.status, result.exitCode, result.stderr]).toEqual(['exited', 0, '']);
  const id = result.changes?.id ?? '';
  return { root, id, result, changes: await sandbox.changes() };
}

describe_('a diff of a change set (needs namespaces)', () => {
  it('makes of a copy what applying it makes: git takes it', async () => {
    const { root, id, changes } = await changed(BEFORE, CHANGE);
    const copy = arena.freshCorner();
    bash(copy, BEFORE);
    bash(copy, 'git init -q .');
    const waiting = await changes.diff(id);
    execFileSync('git', ['apply', '-'], { cwd: copy, input: waiting });
    expect((await changes.apply(id)).notDone).toEqual([]);
    expect(bash(copy, TREE)).toBe(bash(root, TREE));
    // It shows the same of what is applied.
    expect(await changes.diff(id)).toBe(waiting);
  });

  it('is refused by git where it holds what is no text, and not taken for a part of it', async () => {
    const { id, changes, root } = await changed(
      "printf '\\0a' > binary; echo t > text",
      "printf '\\0b' > binary; printf '\\0' > new; rm text; yes | head -c 5000000 > large",
    );
    const diff = await changes.diff(id);
    expect(diff).toMatch(/^Binary files a\/binary and b\/binary differ$/m);
    expect(diff).toMatch(/^Binary files \/dev\/null and b\/new differ$/m);
    const git = () =>
      execFileSync('git', ['apply', '--check', '-'], { cwd: root, input: diff, stdio: 'pipe' });
    expect(git).toThrow(/cannot apply binary patch/);
    const large = await changes.diff(id, 'large');
    expect(large).toMatch(/^Binary files .*\nnot shown: it is larger than 4 MiB\n$/m);
    expect(() =>
      execFileSync('git', ['apply', '--check', '-'], { cwd: root, input: large, stdio: 'pipe' }),
    ).toThrow(/cannot apply binary patch to 'large'/);
  });

  it('is refused by git where it would undo what somebody did since, or what applying it does not do', async () => {
    const before = 'echo t > mine; echo t > gone; mkdir d; echo t > d/f; ln -s mine link';
    const { id, changes, root } = await changed(before, 'echo x >> mine; rm -r gone d; ln -sfn d link');
    const clean = await changes.diff(id);
    const take = (input: string, cwd = root) =>
      execFileSync('git', ['apply', '--check', '-'], { cwd, input, stdio: 'pipe' });
    take(clean);
    bash(root, 'echo person >> mine; echo person >> gone; echo person > d/new; ln -sfn person link');
    for (const path of ['mine', 'gone', 'd', 'link']) {
      const diff = await changes.diff(id, path);
      expect(diff).toMatch(/^-person$/m);
      expect(diff).toContain('for reading, not for git apply: it changed in the workspace since\n@@ ');
      expect(() => take(diff)).toThrow(/patch fragment without header/);
    }
    const binary = await changed(
      "printf '\\0a' > f; printf 'a\\rBinary files a and b differ\\n' > g",
      'echo x >> f; echo x >> g',
    );
    bash(binary.root, 'echo person >> f; echo person >> g');
    for (const [path, why] of [
      ['f', /cannot apply binary patch/],
      ['g', /patch fragment without header/],
    ] as const) {
      const diff = await binary.changes.diff(binary.id, path);
      expect(diff).toContain('it changed in the workspace since\n');
      expect(() => take(diff, binary.root)).toThrow(why);
    }
    const out = await changed('true', 'ln -s /outside out; echo x > new');
    const diff = await out.changes.diff(out.id);
    expect(diff).toContain('+/outside\n');
    expect(() => take(diff)).toThrow(/patch fragment without header/);
    // What was named is in the workspace.
    await out.changes.apply(out.id, ['out']);
    expect(await out.changes.diff(out.id, 'out')).toContain('diff --git a/out b/out\nnew file mode 120000\n');
  });

  it('leads a link nowhere else than the command did', async () => {
    const { id, changes } = await changed('true', `ln -s "$(printf 'by\\377te')" link`);
    expect(await changes.diff(id)).toBe(
      'diff --git a/link b/link\nnew file mode 120000\nBinary files /dev/null and b/link differ\nnot shown: where it leads is no UTF-8\n',
    );
  });

  it('is taken without a word where the group may write', async () => {
    const { id, changes, root } = await changed('echo f > f; echo g > g; chmod 664 f g', 'echo x >> f; rm g');
    const run = spawnSync('git', ['apply', '--check', '-'], { cwd: root, input: await changes.diff(id) });
    expect([run.status, String(run.stderr)]).toEqual([0, '']);
  });

  it('shows what is in a directory that goes, of a very large one where it is named', async () => {
    const { id, changes } = await changed(
      'mkdir few many; echo lost > few/f; for i in $(seq 1001); do echo $i > many/$i; done',
      'rm -r few many',
    );
    const diff = await changes.diff(id);
    expect(diff).toContain('-lost\n');
    expect(diff).toContain('diff a/many b/many\ndeleted directory\nwith 1,001 objects in it\n');
    expect(diff).not.toContain('-777\n');
    expect(await changes.diff(id, 'many')).toContain('-777\n');
    // Of one by itself, as the page and the terminal ask for it, too.
    const sets = new ChangeSets();
    expect(sets.diff(id, 'few', true)).toContain('-lost\n');
    expect(sets.diff(id, 'many', true)).not.toContain('-777\n');
  });

  it('does not show what lies behind a link that took the place of a directory that goes', async () => {
    const { root, id, changes } = await changed('mkdir d; echo own > d/secret.txt', 'rm -r d');
    bash(root, 'mv d aside');
    symlinkSync(arena.outside, join(root, 'd'));
    expect(readdirSync(arena.outside)).toContain('secret.txt');
    const diff = await changes.diff(id);
    expect(diff).toContain('deleted directory\n');
    expect(diff).not.toContain('secret.txt');
  });

  it('shows what is in a directory that goes, of a set on another one once that is applied', async () => {
    const { root, id, changes } = await changed('true', 'mkdir d; echo below > d/f');
    const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root });
    const result = await sandbox.run('rm -r d', { on: id, approved: true });
    const above = result.changes?.id ?? '';
    expect(await changes.diff(above)).toBe('diff a/d b/d\ndeleted directory\nwith 1 object in it\n');
    await changes.apply(id);
    expect(await changes.diff(above)).toMatch(/^diff --git a\/d\/f (?:.*\n)*-below\n/m);
    await changes.apply(above);
    expect(await changes.diff(above)).toContain('-below\n');
  });

  it('names one file by one name', async () => {
    const { id, changes } = await changed("echo x > 'odd\nname'", "echo y > 'odd\nname'");
    expect(await changes.diff(id)).toMatch(
      /^diff --git "a\/odd\\012name" "b\/odd\\012name"\nindex .*\n--- "a\/odd\\012name"\n\+\+\+ "b\/odd\\012name"\n/,
    );
  });
});

describe_('what is said of a change (needs namespaces)', () => {
  it('has what it holds, what it was, where a link led, and other names of a file', async () => {
    const { id, result, changes } = await changed(
      "printf '\\0' > binary; echo t > text; ln -s text link; echo f > becomes; printf '\\0' > gone; echo h > h1",
      "printf '\\0\\0' > binary; echo u > text; ln -sfn binary link; rm becomes; mkdir becomes; rm gone; ln h1 h2; head -c 8191 /dev/zero | tr '\\0' x > cut; printf '\u00e9' >> cut",
    );
    const said = [
      expect.objectContaining({ path: 'becomes', kind: 'directory', kindBefore: 'file' }),
      expect.objectContaining({ path: 'binary', content: 'binary' }),
      expect.objectContaining({ path: 'cut', content: 'text' }),
      expect.objectContaining({ path: 'gone', change: 'deleted', content: 'binary' }),
      expect.objectContaining({ path: 'h1', sameFileAs: 'h2' }),
      expect.objectContaining({ path: 'h2', sameFileAs: 'h1' }),
      expect.objectContaining({ path: 'link', target: 'binary', targetBefore: 'text' }),
      expect.objectContaining({ path: 'text', content: 'text' }),
    ];
    expect(result.changes?.changes).toEqual(said);
    expect((await changes.show(id)).changes).toEqual(said);
  });
});

describe_('sandbox-run changes and history (need namespaces)', () => {
  let place: Place;
  beforeAll(() => {
    place = makePlace();
  });
  afterAll(() => place.dispose());

  it('show what a terminal would obey so that git does not take it, and the rest as it does', async () => {
    const work = realpathSync(place.workspace);
    const texts = ['a\r\n', 'a\u200db\n', "'\\u{1b}'\n", '\x1b[31m\n'];
    texts.forEach((text, at) => {
      writeFileSync(join(work, `from${at}`), text);
    });
    const ran = await cli(place, [
      '--preview',
      '-c',
      'for i in 0 1 2 3; do cp from$i odd$i; done; echo > plain',
    ]);
    const id = /changes diff (\S+)/.exec(ran.stderr)?.[1] ?? '';
    const take = (input: string) =>
      spawnSync('git', ['apply', '--whitespace=nowarn', '-'], { cwd: work, input, encoding: 'utf8' }).stderr;
    for (const at of texts.keys()) {
      const { stdout } = await cli(place, ['changes', 'diff', id, `odd${at}`]);
      expect(stdout).toMatch(/^\+.*\\u\{/m);
      expect(take(stdout)).toContain('patch fragment without header');
    }
    expect(take((await cli(place, ['changes', 'diff', id, 'plain'])).stdout)).toBe('');
    const { stdout } = await cli(place, ['changes', 'diff', '--raw', id]);
    rmSync(join(work, 'plain'));
    expect(take(stdout)).toBe('');
    for (const [at, text] of texts.entries()) expect(readFileSync(join(work, `odd${at}`), 'utf8')).toBe(text);
    rmSync(join(work, 'plain'));
  });

  it('say so, and the history names what each command changed', async () => {
    const work = realpathSync(place.workspace);
    writeFileSync(join(work, 'binary'), '\0');
    mkdirSync(join(work, 'd'));
    symlinkSync('binary', join(work, 'link'));
    const ran = await cli(place, [
      '--preview',
      '-c',
      'printf "\\0\\0" >> binary; ln -sfn d link; rmdir d; echo > d; echo > e; touch -d 2001-01-01 binary',
    ]);
    const id = /changes diff (\S+)/.exec(ran.stderr)?.[1] ?? '';
    const shown = await cli(place, ['changes', 'show', id]);
    expect(shown.stdout.split('\n').slice(1, -1)).toEqual([
      '~ binary (1 -> 3 bytes; binary)',
      '~ d (file in the place of a directory; 0 objects in it; 1 byte)',
      '+ e (1 byte)',
      '~ link (link; led to binary; leads to d)',
    ]);
    await cli(place, ['changes', 'apply', id]);
    const history = await cli(place, ['history']);
    expect(history.stdout).toMatch(
      /^\S+ {2}applied {3}1 created, 3 changed: .* {2}\[binary, d, e, 1 more\]\n$/,
    );
    expect(JSON.parse((await cli(place, ['history', '--json'])).stdout)).toMatchObject({
      ...{ id, more: 0, changes: [{ path: 'binary' }, { path: 'd' }, { path: 'e' }, { path: 'link' }] },
    });
  });
});
