import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { cli } from '../cli/support.ts';
import { HOST } from '../support/tiers.ts';
import { buildOuterFilter } from './support/outer-filter.ts';
import { DIST, expectHonest, expectRefused, makeWorld } from './support/world.ts';

const world = makeWorld();
const filter = buildOuterFilter();
const CLI = join(DIST, 'cli.cjs');

const NAMES = [
  'with spaces ',
  'a\nline\n',
  'tab\tand\rreturn',
  'ünïcödé 日本語 🎉',
  `quotes'"\`$(id)$HOME`,
  '-rf',
  '--policy=x',
  'colon:comma,equals=percent%41',
  'back\\slash',
  '*?[a]{b,c}',
  '#comment; & | > <',
  '~',
  '\u001b[31mred',
  `${'n'.repeat(254)}x`,
];

/** 4,000 bytes from the root, of which no part is too long. */
function longPath(bytes: number): string {
  const parent = join(world.root, 'long');
  let path = parent;
  while (path.length < bytes)
    path = join(path, 'd'.repeat(Math.min(200, Math.max(1, bytes - path.length - 1))));
  // Deeper than mkdir takes at once in some file systems, not here.
  mkdirSync(path, { recursive: true });
  return path;
}

/** All names where most is done with them: a view mounts what they name. */
const tiers = [
  ['with a view', [], NAMES],
  ['without a view', filter({ unshare: 'EPERM' }), NAMES.filter((_, at) => at % 3 === 1)],
] as const;

describe.each(tiers)('%s,', (_, host, names) => {
  it.each(names)('workspace, working directory, paths, TMPDIR, home and state called %j', async (name) => {
    const top = join(world.root, `places-${host.length}`);
    const place = (kind: string) => join(top, kind, name);
    const [workspace, readable, writable] = [place('workspace'), place('read'), place('write')];
    const cwd = join(workspace, name);
    const env = { TMPDIR: place('tmp'), HOME: place('home'), XDG_STATE_HOME: place('state') };
    for (const path of [cwd, readable, writable, ...Object.values(env)]) mkdirSync(path, { recursive: true });
    writeFileSync(join(readable, 'in'), 'content of it\n');
    const quoted = (path: string) => `'${path.replaceAll("'", `'\\''`)}'`;
    const answer = await world.attack({
      host,
      workspace,
      cwd,
      env,
      options: { readable: [readable], writable: [writable] },
      more: `cat ${quoted(join(readable, 'in'))}; (echo no > ${quoted(join(readable, 'out'))}) 2>/dev/null && echo UNHELD
             echo yes > ${quoted(join(writable, 'out'))}`,
    });
    expectHonest(answer);
    expect(answer.stdout).toContain('content of it');
    expect(answer.stdout).not.toContain('UNHELD');
    expect(readFileSync(join(writable, 'out'), 'utf8')).toBe('yes\n');
  });

  it.each([1000, 3000, 4000])('a workspace of %i bytes: held, or refused in one line', async (bytes) => {
    const workspace = longPath(bytes);
    const answer = await world.attack({ host, workspace });
    // The view lies deeper than what it shows: at 4,000 bytes there is no room for it beneath PATH_MAX.
    if (answer.refused === undefined && answer.error === undefined) expectHonest(answer);
    else expectRefused(answer);
    if (bytes < 4000) expectHonest(answer);
  });

  it('a readable path and a TMPDIR of 3,900 bytes: held, or refused in one line', async () => {
    const path = longPath(3900);
    for (const given of [{ options: { readable: [path] } }, { env: { TMPDIR: path } }]) {
      const answer = await world.attack({ host, ...given });
      if (answer.refused === undefined && answer.error === undefined) expectHonest(answer);
      else
        expectRefused(answer, [
          'confinement.failed',
          'launch.failed',
          'policy.path_missing',
          'state.unusable',
        ]);
    }
  });
});

it('paths beyond PATH_MAX or with a name beyond 255 bytes are refused in one line', async () => {
  for (const path of [`/${'x'.repeat(300)}`, `/tmp/${'y/'.repeat(3000)}`]) {
    for (const options of [{ workspace: path }, { readable: [path] }, { writable: [path] }]) {
      const answer = await world.attack({ ...('workspace' in options ? options : { options }) });
      expect(answer.crashed, answer.stderr).toBeUndefined();
      expect(answer.refused?.ours, JSON.stringify(answer.refused)).toBe(true);
      expect(answer.refused?.message).not.toContain('\n');
    }
  }
});

describe('the command line', () => {
  it.each(NAMES)(
    'takes a policy file, a workspace and paths called %j, and says nothing over two lines',
    async (name) => {
      const place = join(world.root, 'cli', name);
      mkdirSync(place, { recursive: true });
      const policy = join(place, 'policy.toml');
      writeFileSync(policy, '[unsafe]\nunjudged_commands = true\n');
      const other = join(world.root, 'cli-workspace', name);
      mkdirSync(other, { recursive: true });
      const words = ['--quiet', '--policy', policy, '--workspace', other, '--ro', place, '--', 'pwd'];
      expect(await cli({ workspace: other, env: world.env }, words)).toMatchObject({
        exitCode: 0,
        stdout: `${other}\n`,
        stderr: '',
      });
    },
  );

  it.each(['no\nsuch', 'no\u001b[31msuch', 'no such'])(
    'names a missing workspace called %j in one line',
    async (name) => {
      const { exitCode, stderr } = await cli(world, ['--workspace', join(world.root, name), '--', 'true']);
      expect(exitCode).toBe(125);
      expect(stderr).toMatch(/^sandbox-run: [^\n]+\n$/);
      expect(stderr).not.toContain('\u001b');
    },
  );
});

it('a name with bytes that are no UTF-8 cannot be written in a string: what it leads to is not found, and nothing is run', async () => {
  const odd = Buffer.concat([Buffer.from(join(world.root, 'bytes-')), Buffer.from([0xff, 0xfe])]);
  mkdirSync(odd);
  symlinkSync(odd, join(world.root, 'to-bytes'));
  const answer = await world.attack({ workspace: join(world.root, 'to-bytes') });
  expectRefused(answer, ['workspace.missing', 'confinement.failed', 'policy.path_missing']);
});

describe('bytes that are no UTF-8', () => {
  const top = join(world.root, 'bytes');
  const workspace = join(top, 'work');
  // What Node shows of the first is the name of the second.
  const odd = Buffer.concat([Buffer.from(join(top, 'odd')), Buffer.from([0xff])]);
  const twin = join(top, 'odd\ufffd');
  for (const path of [workspace, odd, twin]) mkdirSync(path, { recursive: true });
  symlinkSync(odd, join(top, 'link'));
  const policy = join(top, 'policy.toml');
  writeFileSync(policy, '[unsafe]\nunjudged_commands = true\n[environment]\npass = ["SHOWN"]\n');

  /** `words`: of bash, with $odd for the directory, $run for the command line and $sh for sandbox-sh. */
  async function bash(words: string) {
    const prepare = `odd=${top}/odd$'\\xff' twin=${top}/odd$'\\xef\\xbf\\xbd'; cd ${workspace};
      main="${process.execPath} ${CLI}" run="${process.execPath} ${CLI} --quiet --policy ${policy}" sh="${process.execPath} ${join(DIST, 'sandbox-sh.cjs')}"; ${words}`;
    const { exitCode, stdout, stderr } = await execa('bash', ['-c', prepare], {
      env: { ...world.env, SANDBOX_SH_WORKSPACE: workspace, SANDBOX_SH_POLICY: policy, LC_ALL: 'C' },
      extendEnv: false,
      reject: false,
      stripFinalNewline: false,
    });
    return { exitCode, stdout, stderr };
  }

  it.each([
    ['the current directory', 'cd "$odd"; $run -- touch made'],
    ['a workspace', '$run --workspace "$odd" -- touch made'],
    ['a link that leads to the workspace', `$run --workspace ${top}/link -- touch made`],
    ['a path that is granted', '$run --rw "$odd" -- touch made'],
    ['an argument', "$run -- touch made a$'\\xff'b"],
    ['a command for bash', "$run -c $'touch made a\\xff'"],
    ['a command for sandbox-sh', "$sh -c $'touch made a\\xff'"],
    ['HOME', 'HOME="$odd" $run -- touch made'],
    ['TMPDIR', 'TMPDIR="$odd" $run -- touch made'],
    ['TMPDIR through a link', `TMPDIR=${top}/link $run -- touch made`],
    ['XDG_STATE_HOME', 'XDG_STATE_HOME="$odd" $run -- touch made'],
    ['an entry of PATH', 'PATH="$odd:$PATH" $run -- touch made'],
    ['a variable that is passed', "SHOWN=$'a\\xff' $run -- touch made"],
  ])('in %s: nothing is run, least of all in what has the name that they are shown as', async (_, words) => {
    const { exitCode, stdout, stderr } = await bash(words);
    expect(stderr).toMatch(/^sandbox-run: [^\n]*not (?:valid )?UTF-8[^\n]*\n$/);
    expect([exitCode, stdout]).toEqual([125, '']);
    expect([workspace, odd, twin].map((path) => readdirSync(path))).toEqual([[], [], []]);
  });

  it.each([
    ['a directory', 'cd "$twin"; $run -- pwd', `${twin}\n`],
    ['an argument', "$run -- printf %s $'\\xef\\xbf\\xbd'", '\ufffd'],
    ['a variable', 'SHOWN="$twin" $run -- sh -c \'printf %s "$SHOWN"\'', twin],
    ['nothing, where a variable that is not passed has them', "OTHER=$'\\xff' $run -- echo fine", 'fine\n'],
  ])('are not what U+FFFD is: it is taken as it is in %s', async (_, words, said) => {
    expect(await bash(words)).toEqual({ exitCode: 0, stdout: said, stderr: '' });
  });

  it('in names of files disturb neither commands nor the protection of repositories, nor what is cleaned up', async () => {
    const place = join(top, 'files');
    // All three are shown alike, and the last has the name that they are shown by.
    const prepare = `mkdir -p ${place}/.git/hooks ${place}/$'\\xff'/.git; cd ${place};
      for m in m$'\\xff' m$'\\xfe' m$'\\xef\\xbf\\xbd'; do mkdir -p .git/modules/$m/hooks; : > .git/modules/$m/HEAD; done; echo text > f$'\\xff'; : > .env$'\\xff'; ln -s /etc$'\\xff'/passwd link; `;
    const command = `cat f*; echo new > n$'\\xfe'; mkdir -p "$TMPDIR"/$'\\xff'/$'\\xfe'; : > "$TMPDIR"/$'\\xff'/$'\\xfe'/x;
      cat link 2>/dev/null || echo no link`;
    await bash(prepare);
    const first = await bash(`cd ${place}; $run -c ${JSON.stringify(command).replaceAll('$', '\\$')}`);
    const attack = 'for m in .git/modules/*; do echo evil > $m/hooks/post-checkout || echo refused; done';
    const second = await bash(
      `cd ${place}; $run -c ${JSON.stringify(attack).replaceAll('$', '\\$')} 2>/dev/null`,
    );
    // Without namespaces it is taken away when the command ends.
    expect(second).toEqual({ exitCode: 0, stdout: HOST.namespaces ? 'refused\n'.repeat(3) : '', stderr: '' });
    for (const name of ['m\xff', 'm\xfe', 'm\xef\xbf\xbd']) {
      const hook = join(place, '.git/modules', name, 'hooks/post-checkout');
      expect([name, existsSync(Buffer.from(hook, 'latin1'))]).toEqual([name, false]);
    }
    expect(first).toEqual({ exitCode: 0, stdout: 'text\nno link\n', stderr: '' });
    expect(readdirSync(place, 'buffer').map((name) => name.toString('latin1'))).toContain('n\xfe');
    expect(readdirSync(world.env.TMPDIR ?? '').filter((name) => name.startsWith('sandbox-run-'))).toEqual([]);
  });

  it('in very many names that are shown alike: all are taken away, and each can be put back', async () => {
    const place = join(top, 'alike');
    await bash(`mkdir -p ${place}/.git/hooks`);
    const attack = `import os
for i in range(150):
    d = bytes([0x80 + i % 16, 0x90 + i // 16])
    os.mkdir(d); open(d + b'/.envrc', 'w').write(d.hex())`;
    writeFileSync(join(place, 'attack.py'), attack);
    const { stdout } = await bash(`cd ${place}; $run --json -- /usr/bin/python3 attack.py`);
    const left = JSON.parse(stdout).leftBehind as { done: string; kept: string }[];
    expect(left.map(({ done }) => done)).toEqual(Array.from({ length: 150 }, () => 'shut'));
    const count = `cd ${place}; for d in *; do test -e "$d/.envrc" && test "$(cat "$d/.envrc")" = "$(printf %s "$d" | od -An -tx1 | tr -d ' \n')" && echo "$d"; done | wc -l`;
    expect((await bash(count)).stdout).toBe('0\n');
    const ids = left.map(({ kept }) => kept);
    for (const id of ids.slice(0, 2)) {
      const { exitCode, stdout: said } = await bash(`$main kept restore ${id}`);
      expect([exitCode, said]).toEqual([0, expect.stringMatching(/ is back\n$/)]);
    }
    expect((await bash(count)).stdout).toBe('2\n');
    const listed = await bash('$main kept list --json');
    expect(listed.stdout).not.toContain('\\udc');
  });
});
