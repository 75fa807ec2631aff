import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { HostFeatures } from '../../src/model/index.ts';
import { cli, makePlace, type Place } from '../cli/support.ts';
import { HOST, sandboxIn, WITH_VIEW, WITHOUT_VIEW } from '../support/tiers.ts';

/** As bin.js of husky 9 does it: its calls, in their order. */
const HUSKY = `
const fs = require('node:fs');
const { spawnSync } = require('node:child_process');
const { status, stderr } = spawnSync('git', ['config', 'core.hooksPath', '.husky/_']);
if (status !== 0) throw new Error(String(stderr));
fs.rmSync('.husky/_/husky.sh', { force: true });
fs.mkdirSync('.husky/_', { recursive: true });
fs.writeFileSync('.husky/_/.gitignore', '*');
fs.writeFileSync('.husky/_/h', '#!/usr/bin/env sh\\nsh -e "$(dirname "$(dirname "$0")")/$(basename "$0")" "$@"');
fs.chmodSync('.husky/_/h', 0o644);
for (const hook of ['pre-commit'])
  fs.writeFileSync('.husky/_/' + hook, '#!/usr/bin/env sh\\n. "$(dirname "$0")/h"', { mode: 0o755 });
fs.writeFileSync('.husky/_/husky.sh', 'echo "DEPRECATED"');
`;

/** As simple-git-hooks, yorkie and husky 4 do it. */
const IN_GIT = `
const fs = require('node:fs');
fs.mkdirSync('.git/hooks', { recursive: true });
fs.writeFileSync('.git/hooks/pre-commit', '#!/bin/sh\\necho hook-of-the-copy\\n', 'utf-8');
fs.chmodSync('.git/hooks/pre-commit', 0o755);
`;

describe('installers of hooks', () => {
  const places: Place[] = [];
  /** The copies lie on layers, which need a view. */
  const withLayers = it.runIf(HOST.namespaces);
  let place: Place;
  const env = () => ({ ...place.env, XDG_STATE_HOME: join(place.root, 'state') });
  const outside = (script: string) =>
    execFileSync('bash', ['-c', `exec 2>&1; ${script}`], { cwd: place.workspace, env: env() }).toString();
  const inside = (script: string) => cli(place, ['-c', script], { env: env() });
  /** What git obeys, and what it is like. */
  const obeyed = () =>
    outside(
      'find .git/hooks .husky -printf "%p %y %m %l\\n" | sort; cat .git/config; find .git/hooks .husky -type f | sort | xargs cat',
    );
  const COMMIT = 'git commit -q --allow-empty -m x';
  const LINE = 'outside of it `npm run prepare` installs them';
  const linesIn = (text: string) => text.split('\n').filter((line) => line.includes(LINE)).length;
  /** Where this program keeps hooks of the one workspace there is. */
  const keptHooks = () => {
    const caches = join(place.root, 'state/sandbox-run/caches');
    const keys = readdirSync(caches).filter((name) => /^[0-9a-f]{32}$/.test(name));
    return keys.map((key) => join(caches, key, 'hooks')).filter((path) => existsSync(path));
  };
  /** Any time of change is later than what was seen before. */
  const anotherTick = () => outside('sleep 0.05');

  beforeEach(() => {
    place = makePlace();
    places.push(place);
    const write = (name: string, content: string) => writeFileSync(join(place.workspace, name), content);
    mkdirSync(join(place.workspace, '.husky'));
    write('.husky/pre-commit', 'echo hook-of-the-user\n');
    write('husky.js', HUSKY);
    write('in-git.js', IN_GIT);
    write(
      'package.json',
      JSON.stringify({ name: 'x', scripts: { prepare: 'node husky.js', test: 'echo tested' } }),
    );
    outside(`git init -q; git config user.name me; git config user.email me@localhost; ${COMMIT}`);
  });
  afterAll(() => {
    for (const one of places) one.dispose();
  });

  withLayers(
    'husky succeeds in npm, its hooks run at commits of this and of later commands, and one line says how to install them',
    async () => {
      const before = obeyed();
      const { exitCode, stdout, stderr } = await inside(
        `npm install --offline --no-audit && npm test -s && ${COMMIT}`,
      );
      expect(exitCode, stderr).toBe(0);
      expect(stdout).toContain('tested');
      expect(stdout + stderr).toContain('hook-of-the-user');
      expect(linesIn(stderr)).toBe(1);
      for (const line of stderr.split('\n')) expect(line.length).toBeLessThanOrEqual(240);
      expect(stderr).toMatch(
        /^sandbox-run: warning: in the sandbox only: .*; outside of it `[^`]+` installs them/m,
      );
      expect(stderr).not.toContain('set aside');
      expect(obeyed()).toBe(before);
      const next = await inside(COMMIT);
      expect(next.stdout + next.stderr).toContain('hook-of-the-user');
      expect(linesIn(next.stderr)).toBe(0);
      // Once is enough.
      const again = await inside('npm run -s prepare');
      expect([again.exitCode, linesIn(again.stderr)]).toEqual([0, 0]);
      // Outside nothing is installed, until the user does what the line says.
      expect(outside(COMMIT)).toBe('');
      expect(outside(`npm run -s prepare; ${COMMIT}`)).toContain('hook-of-the-user');
    },
  );

  it('succeeds again after an installation outside, and the hooks of the user run', async () => {
    outside('npm run -s prepare');
    const before = obeyed();
    const again = await inside(`npm run -s prepare && ${COMMIT}`);
    expect(again.exitCode, again.stderr).toBe(0);
    expect(again.stdout + again.stderr).toContain('hook-of-the-user');
    // It is what is there already.
    expect(linesIn(again.stderr)).toBe(0);
    expect(obeyed()).toBe(before);
  });

  withLayers('hooks in .git/hooks: those of the copy run until the user installs others', async () => {
    anotherTick();
    const before = obeyed();
    const { exitCode, stdout, stderr } = await inside(`node in-git.js && ${COMMIT}`);
    expect(exitCode, stderr).toBe(0);
    expect(stdout + stderr).toContain('hook-of-the-copy');
    expect(linesIn(stderr)).toBe(1);
    expect(obeyed()).toBe(before);
    expect(outside(COMMIT)).toBe('');
    const later = await inside(COMMIT);
    expect(later.stdout + later.stderr).toContain('hook-of-the-copy');
    anotherTick();
    outside(
      'printf "#!/bin/sh\\necho of-the-user\\n" > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit',
    );
    const next = await inside(COMMIT);
    expect(next.stdout + next.stderr).toMatch(/^of-the-user$/m);
    expect(next.stdout + next.stderr).not.toContain('hook-of-the-copy');
  });

  withLayers.each([
    ['npm run -s prepare', { scripts: { prepare: 'sh inst.sh' } }, 'npm run prepare'],
    [
      'npm run -s prepare',
      { scripts: { prepare: 'npm run -s hooks', hooks: './tools/inst' } },
      'npm run prepare',
    ],
    ['npm install --offline', { scripts: { postinstall: 'node ./tools/inst-node' } }, 'npm run postinstall'],
    ['make -s hooks', {}, 'make hooks'],
    ['sh tools/git-hooks.sh', {}, 'tools/git-hooks.sh'],
  ] as const)('a script of the project that links or copies hooks: %s %j', async (line, manifest, said) => {
    const write = (name: string, content: string) =>
      writeFileSync(join(place.workspace, name), content, { mode: 0o755 });
    const install =
      'cd "$(git rev-parse --show-toplevel)" && ln -sf ../../tools/check .git/hooks/pre-commit\n';
    mkdirSync(join(place.workspace, 'tools'));
    outside('rm -r .husky husky.js in-git.js package.json');
    if ('scripts' in manifest)
      write('package.json', JSON.stringify({ name: 'x', version: '1.0.0', ...manifest }));
    write('tools/check', '#!/bin/sh\necho hook-of-the-project\n');
    if (line.includes('npm')) {
      write('inst.sh', install);
      write('tools/inst', `#!/bin/sh\n${install}`);
      write('tools/inst-node.js', "require('node:fs').copyFileSync('tools/check', '.git/hooks/pre-commit')");
    } else if (line.startsWith('make'))
      write('Makefile', `all:\n\ttrue\n\nhooks: all\n\tcp tools/check .git/hooks/pre-commit\n`);
    else write('tools/git-hooks.sh', install);
    const before = outside('ls -l .git/hooks; cat .git/config');
    const { exitCode, stdout, stderr } = await inside(`${line} && ${COMMIT}`);
    expect(exitCode, stderr).toBe(0);
    expect(stdout + stderr).toContain('hook-of-the-project');
    expect(stderr).toContain(`outside of it \`${said}\` installs them`);
    expect(outside('ls -l .git/hooks; cat .git/config')).toBe(before);
    expect(outside(COMMIT)).toBe('');
  });

  it('a script that says nothing of hooks changes nothing', async () => {
    outside('rm -r .husky husky.js in-git.js; echo true > inst.sh');
    writeFileSync(
      join(place.workspace, 'package.json'),
      JSON.stringify({ name: 'x', scripts: { prepare: 'sh inst.sh' } }),
    );
    const { exitCode } = await inside('ln -s /bin/true .git/hooks/pre-commit');
    expect(exitCode).not.toBe(0);
  });

  withLayers(
    'one sandbox for several commands: the next one has them, and what the user changes meanwhile',
    async () => {
      anotherTick();
      const sandbox = await sandboxIn(WITH_VIEW, { workspace: place.workspace, env: env() });
      try {
        const run = async (script: string) => {
          const { stdout, stderr } = await sandbox.run(script);
          return `${stdout}${stderr}`;
        };
        await run('node in-git.js');
        expect(await run(COMMIT)).toContain('hook-of-the-copy');
        await run('node husky.js');
        expect(await run(COMMIT)).toContain('hook-of-the-user');
        const session = await sandbox.session();
        const said: string[] = [];
        for (const name of ['commit-msg', 'commit-msg', 'pre-push']) {
          const { leftBehind } = await session.run(`date +%N > $PWD/.git/hooks/${name}`);
          said.push(leftBehind.map(({ path }) => path).join());
        }
        await session.close();
        const hooks = join(place.workspace, '.git/hooks');
        expect(said).toEqual([hooks, '', hooks]);
        anotherTick();
        outside(`git config core.hooksPath .git/hooks; echo 'echo outside' > .git/hooks/pre-commit`);
        outside('chmod +x .git/hooks/pre-commit');
        expect(await run(COMMIT)).toMatch(/^outside$/m);
      } finally {
        await sandbox.close();
      }
    },
  );

  withLayers('a prepare script that sets core.hooksPath', async () => {
    mkdirSync(join(place.workspace, '.hökar'));
    outside('printf "#!/bin/sh\\necho of-the-project\\n" > .hökar/pre-commit; chmod +x .hökar/pre-commit');
    const before = obeyed();
    const { stderr } = await inside('git config core.hooksPath .hökar');
    expect(linesIn(stderr)).toBe(1);
    const next = await inside(COMMIT);
    expect(next.stdout + next.stderr).toContain('of-the-project');
    const unset = await inside(`git config --unset core.hooksPath && ${COMMIT}`);
    expect(unset.exitCode, unset.stderr).toBe(0);
    const later = await inside(COMMIT);
    expect(later.stdout + later.stderr).not.toContain('of-the-project');
    expect(obeyed()).toBe(before);
    // What leads out of the workspace is set aside, as without an installer.
    const led = await inside('git config core.hooksPath /etc');
    expect(led.stderr).toContain('core.hookspath=/etc');
    expect((await inside('git config core.hooksPath')).stdout).toBe('');
  });

  withLayers('what a user set counts, and a command does not unset it for the next one', async () => {
    outside('npm run -s prepare');
    const before = obeyed();
    await inside('git config --unset core.hooksPath');
    await inside('git config core.hooksPath .githooks');
    expect((await inside('git config core.hooksPath')).stdout).toBe('.husky/_\n');
    expect(obeyed()).toBe(before);
  });

  withLayers('the copies lie in the state directory, for their owner, and go with the cache', async () => {
    anotherTick();
    await inside('node in-git.js; node husky.js');
    const [hooks = '', ...more] = keptHooks();
    expect(more).toEqual([]);
    for (const name of readdirSync(hooks)) expect(lstatSync(join(hooks, name)).mode & 0o077, name).toBe(0);
    expect(lstatSync(hooks).mode & 0o777).toBe(0o700);
    const seen = await inside(`ls ${hooks}; find / -name hooks -path '*caches*'`);
    expect(seen.stdout).toBe('');
    // What another user could have written is not taken.
    const names = readdirSync(hooks).filter((name) => lstatSync(join(hooks, name)).isDirectory());
    expect(names.length).toBe(2);
    for (const name of names) chmodSync(join(hooks, name), 0o755);
    expect((await inside('cat .git/hooks/pre-commit .husky/_/h')).stdout).toBe('');
    for (const name of names) chmodSync(join(hooks, name), 0o700);
    expect((await inside('cat .git/hooks/pre-commit .husky/_/h')).stdout).toContain('hook-of-the-copy');
    expect((await cli(place, ['cache', 'clear', '--all'], { env: env() })).exitCode).toBe(0);
    expect(keptHooks()).toEqual([]);
    expect((await inside('cat .git/hooks/pre-commit')).stdout).toBe('');
  });

  withLayers('too much is not kept, and one that is not a file is not waited for', async () => {
    anotherTick();
    const { stderr } = await inside('head -c 2000000 /dev/zero > .git/hooks/large; mkfifo .git/hooks/pipe');
    expect(stderr).toContain('for this command only');
    expect(keptHooks()).toEqual([]);
  });

  it('links in place of the directories are not followed', async () => {
    const away = join(place.root, 'away');
    mkdirSync(away);
    symlinkSync(away, join(place.workspace, '.husky/_'));
    outside(`mv .git/hooks ${away}/hooks; ln -s ${away}/hooks .git/hooks`);
    await inside('node in-git.js; node husky.js; true');
    expect(readdirSync(away)).toEqual(['hooks']);
    expect(existsSync(join(away, 'hooks/pre-commit'))).toBe(false);
  });

  withLayers('a linked worktree, and what is hidden beside the hooks', async () => {
    outside(`git add -A; ${COMMIT}; git worktree add -q ../linked`);
    const linked = { workspace: join(place.root, 'linked'), env: place.env };
    writeFileSync(join(linked.workspace, '.husky/secret'), 'secret');
    const before = obeyed();
    const installed = await cli(
      linked,
      ['--hide', '.husky/secret', '-c', 'node husky.js; cat .husky/secret'],
      {
        env: env(),
      },
    );
    expect(installed.exitCode, installed.stderr).toBe(0);
    expect(installed.stdout).toBe('');
    const next = await cli(linked, ['-c', COMMIT], { env: env() });
    expect(next.stdout + next.stderr).toContain('hook-of-the-user');
    expect(obeyed()).toBe(before);
    expect(existsSync(join(linked.workspace, '.husky/_'))).toBe(false);
  });

  withLayers('a project without an installer has no copies', async () => {
    outside('rm -r package.json .husky');
    const { exitCode } = await inside('node in-git.js');
    expect(exitCode).not.toBe(0);
  });

  it.skipIf(HOST.landlockAbi === 0)(
    'without namespaces nothing stays, and the line says what helps',
    async () => {
      const sandbox = await sandboxIn(WITHOUT_VIEW, { workspace: place.workspace, env: env() });
      try {
        const before = obeyed();
        const result = await sandbox.run('node husky.js; node in-git.js');
        expect(obeyed()).toBe(before);
        const reasons = result.leftBehind.map(({ reason }) => reason).join('\n');
        expect(reasons.split('outside of the sandbox `npm run prepare` installs them')).toHaveLength(2);
      } finally {
        await sandbox.close();
      }
    },
  );

  withLayers(
    'where a host has no layers it fails as without them, and one line says what helps',
    async () => {
      const withoutLayers = {
        ...WITH_VIEW,
        asIf: (host: HostFeatures) => ({ ...host, layersRefused: 'for a test' }),
      };
      const sandbox = await sandboxIn(withoutLayers, { workspace: place.workspace, env: env() });
      try {
        const before = obeyed();
        const result = await sandbox.run('node husky.js');
        expect(result.exitCode).not.toBe(0);
        expect(obeyed()).toBe(before);
        const reasons = result.leftBehind.map(({ reason }) => reason);
        expect(reasons).toEqual([
          'git runs the hooks in it; outside of the sandbox `npm run prepare` installs them',
        ]);
        expect((await sandbox.run('git config core.hooksPath')).stdout).toBe('');
      } finally {
        await sandbox.close();
      }
    },
  );

  // From a program: what the text says is refused before.
  const ATTACKS: Readonly<Record<string, string>> = {
    'writes a hook of git': `printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`,
    'changes the hooks of husky': `echo 'touch ran' | tee .husky/pre-commit .husky/_/pre-commit .husky/_/h`,
    'removes them and puts a link there': `rm -rf .husky/_ .husky/pre-commit; ln -s /etc .husky/_; rm -rf .husky; ln -s /etc .husky`,
    'renames the directories': `mv .husky other; mkdir .husky; mv .git/hooks .git/x; mv .git y; echo 'touch ran' > .husky/pre-commit`,
    'exchanges a file by a hard link': `echo 'touch ran' > evil; ln -f evil .husky/pre-commit; ln .husky/pre-commit second; echo 'touch ran' > second`,
    'moves a directory in': `mkdir evil; echo 'touch ran' > evil/h; rm -rf .husky/_; mv -f evil .husky/_`,
    'shuts the copies': `echo x > .husky/x; chmod 000 .husky/_ .husky .git/hooks`,
    'leaves links, programs with more rights and directories in the copies': `ln -s /etc/passwd .git/hooks/pre-commit; ln -s ../../.. .husky/_/up; echo 'touch ran' > .husky/_/s; chmod 6777 .husky/_/s; mkdir -m 777 -p .husky/_/d/e; ln -s "$HOME" .git/hooks/d`,
    'marks the copies for the kernel': `for d in .husky/_ .git/hooks .husky; do for k in opaque redirect metacopy whiteout; do python3 -c "import os,sys; os.setxattr(sys.argv[1], sys.argv[2], b'/etc')" $d user.overlay.$k; done; done 2>/dev/null`,
    'poisons what is kept and then commits': `echo 'touch ran' > .husky/_/pre-commit; git config core.hooksPath .husky/_; git commit -q --allow-empty -m x; rm ran; git add -A; git commit -qam y; git checkout -q -f HEAD~1; git checkout -q -f -; rm -f ran`,
    'has a job write later': `(exec 3> .husky/pre-commit; trap '' HUP TERM; exec > /dev/null 2>&1; sleep 1; echo 'touch ran' >&3) &`,
  };
  /** Without namespaces a command can move or shut these directories, as all others of its workspace. */
  const TAKEN_AWAY = ['renames the directories', 'shuts the copies'];
  it.each(Object.entries(ATTACKS))(
    'a command that %s: it is never run outside, and what the project says of its hooks stays',
    async (name, attack) => {
      outside('npm run -s prepare');
      const before = obeyed();
      writeFileSync(join(place.workspace, 'attack.sh'), `${attack}\ntrue\n`);
      const { stderr } = await inside('bash attack.sh');
      if (!HOST.namespaces && TAKEN_AWAY.includes(name)) {
        outside(`${COMMIT} || true; chmod -R u+rwX .`);
        expect(existsSync(join(place.workspace, 'ran'))).toBe(false);
        expect(stderr).toMatch(/look at this before you use it: .*(?:hooks|husky|package)/);
        return;
      }
      expect(obeyed()).toBe(before);
      const seen = await inside('cat .husky/pre-commit; ls -a .husky .git');
      expect(seen.stdout).toBe(outside('cat .husky/pre-commit; ls -a .husky .git'));
      outside(COMMIT);
      expect(existsSync(join(place.workspace, 'ran'))).toBe(false);
      // The control: outside the same lines work.
      expect(readFileSync(join(place.workspace, '.husky/pre-commit'), 'utf8')).toBe(
        'echo hook-of-the-user\n',
      );
      outside(`echo 'touch ran' > .husky/pre-commit; ${COMMIT}`);
      expect(existsSync(join(place.workspace, 'ran'))).toBe(true);
    },
  );
});
