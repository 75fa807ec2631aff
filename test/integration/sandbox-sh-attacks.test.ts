import { spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { expectOneLine } from '../cli/support.ts';
import { expectNothingLeft } from '../support/leftovers.ts';
import { HOST } from '../support/tiers.ts';
import { openPane } from '../support/tmux.ts';
import { makeAskingConfiguration, makeSupervisedConfiguration } from '../support/unjudged-policy.ts';
import { makeShellPlace, runProgram, type ShellStart } from './sandbox-sh-support.ts';

const unjudged = makeShellPlace();
const configuredBy = (configuration: string) => ({
  ...unjudged,
  env: { ...unjudged.env, XDG_CONFIG_HOME: configuration },
});
/** Where commands are judged, and asked about by risk, whatever the sandbox holds. */
const judged = configuredBy(makeSupervisedConfiguration(unjudged.root));
/** Where the policy is the built-in one, but for undo. */
const byDefault = configuredBy(makeAskingConfiguration(unjudged.root));
const { workspace, root, shell } = unjudged;
const SECRET = 'the-secret-5c0d';
const secret = join(root, 'secret.sh');
writeFileSync(secret, `${SECRET} x\n`);
afterAll(async () => {
  await expectNothingLeft(unjudged);
  unjudged.dispose();
});

const at = (name: string) => join(workspace, name);
const sh = (args: readonly string[], start?: ShellStart) => runProgram(judged, [shell, ...args], start);
const unjudgedSh = (args: readonly string[], start?: ShellStart) =>
  runProgram(unjudged, [shell, ...args], start);
const READ = `cat ${secret}; echo end`;

describe('what a model can say', () => {
  it('is judged: as text, as a script, on standard input, in arguments', async () => {
    writeFileSync(at('push.sh'), '#!/usr/bin/env sandbox-sh\ngit push\n', { mode: 0o755 });
    const all = [
      await sh(['-c', 'git push']),
      await sh(['-lc', 'git push']),
      await sh(['-euo', 'pipefail', '-c', 'git push', 'name', 'x']),
      await sh(['push.sh']),
      await sh(['-s', 'a'], { input: 'git push\n' }),
      await sh([], { input: 'git push\n' }),
      await sh(['-i'], { input: 'git push\n' }),
      await runProgram(judged, [at('push.sh')]),
      await sh(['-c', '"$@"', '_', 'git', 'push']),
      await sh(['-c', 'sandbox-sh -c "git push"']),
    ];
    for (const { status, stdout, stderr } of all) {
      expect(status).toBe(126);
      expect(stdout).toBe('');
      expect(stderr).toMatch(/^Not run: .*\nRule: .*\(command\.(?:needs_approval|denied)\)/);
    }
  });

  it('does not grant anything: the options of sandbox-run are none of a shell', async () => {
    for (const option of [
      '--approved',
      '--autonomy=autonomous',
      '--profile=networked',
      '--rw=/',
      '--backend=application',
    ]) {
      const { status, stderr } = await sh([option, '-c', 'git push']);
      expect(status).toBe(2);
      expect(stderr).toBe(`sandbox-sh: ${option}: invalid option\n`);
    }
  });

  it.each([
    ['--rcfile', [`--rcfile`, 'evil', '-i']],
    ['--init-file', ['--init-file', 'evil', '-i']],
  ])('has no start-up file run by %s', async (_, args) => {
    writeFileSync(at('evil'), 'echo ran\n');
    expect(await sh(args, { input: ':\n' })).toMatchObject({ status: 2, stdout: '' });
  });

  it('has no start-up file run by the environment or the home directory', async () => {
    writeFileSync(at('evil'), 'echo ran\n');
    for (const name of ['.bashrc', '.profile', '.bash_profile'])
      writeFileSync(join(root, 'home', name), 'echo ran\n');
    const env = {
      BASH_ENV: at('evil'),
      ENV: at('evil'),
      'BASH_FUNC_ls%%': '() { echo ran; }',
      PROMPT_COMMAND: 'echo ran',
    };
    for (const args of [
      ['-c', 'ls /usr/bin/env'],
      ['-lc', 'ls /usr/bin/env'],
      ['-ic', 'ls /usr/bin/env'],
    ])
      expect((await unjudgedSh(args, { env })).stdout).toBe('/usr/bin/env\n');
    expect((await unjudgedSh(['-li'], { env, input: 'ls /usr/bin/env\n' })).stdout).toBe('/usr/bin/env\n');
  });
});

describe('a script', () => {
  it('outside of what commands may read is not read for them', async () => {
    symlinkSync(secret, at('link.sh'));
    for (const path of [secret, 'link.sh', '../secret.sh', at('../secret.sh')]) {
      for (const place of [judged, unjudged]) {
        const { status, stdout, stderr } = await runProgram(place, [shell, path]);
        expect([126, 127]).toContain(status);
        expect(stdout + stderr).not.toContain(SECRET);
      }
    }
  });

  it('that is a descriptor of the program that starts the shell is not read', async () => {
    for (const path of [
      '/dev/fd/3',
      '/dev/stdin',
      '/proc/self/fd/3',
      '/proc/self/../self/fd/3',
      '/proc/1/fd/0',
      '/dev/../dev/fd/3',
    ]) {
      const handle = openSync(secret, 'r');
      const child = spawn(shell, [path], {
        cwd: workspace,
        env: unjudged.env,
        stdio: ['ignore', 'pipe', 'pipe', handle],
      });
      closeSync(handle);
      let said = '';
      for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (said += chunk));
      const status = await new Promise((done) => child.once('close', done));
      expect([126, 127]).toContain(status);
      expect(said).not.toContain(SECRET);
    }
  });

  it('that changes while it runs is what was judged', async () => {
    // A bash that reads the file would read on, and run what was added.
    const text = 'echo first\necho "echo added" >> "$0"\necho last\n';
    writeFileSync(at('grows.sh'), text);
    expect((await runProgram(unjudged, ['/bin/bash', 'grows.sh'])).stdout).toBe('first\nlast\nadded\n');
    writeFileSync(at('grows.sh'), text);
    expect((await unjudgedSh(['grows.sh'])).stdout).toBe('first\nlast\n');
  });

  it('does not hide what it does by naming the file that it is', async () => {
    writeFileSync(at('asks.sh'), '# BASH_SOURCE\ngit push\n');
    const { status, stderr } = await sh(['asks.sh']);
    expect(status).toBe(126);
    expect(stderr).toMatch(/^Not run: .*\nRule: .*\(command\.needs_approval\)/m);
  });
});

describe('what the environment says', () => {
  it('takes nobody out of the sandbox', async () => {
    const env = {
      ...{ SANDBOX_RUN: '1', SANDBOX_SH: '1', IN_SANDBOX: '1', SANDBOX_RUN_INSIDE: '1', container: 'docker' },
      ...{ SHLVL: '5', SHELL: '/bin/bash', BASH: '/bin/bash', HOME: '/home/sandbox', TMPDIR: unjudged.tmp },
      // Nothing of ours is made in a home of this machine.
      XDG_STATE_HOME: join(root, 'state'),
    };
    const { stdout } = await unjudgedSh(['-c', READ], { env });
    expect(stdout).toBe('end\n');
  });

  it.each(['INSIDE', 'AUTONOMY', 'APPROVED', 'WRITABLE', 'BACKEND', 'NETWORK'])(
    'SANDBOX_SH_%s is no setting, and nothing runs',
    async (name) => {
      const { status, stdout, stderr } = await sh(['-c', 'echo ran'], {
        env: { [`SANDBOX_SH_${name}`]: '1' },
      });
      expect({ status, stdout }).toEqual({ status: 125, stdout: '' });
      expect(stderr).toMatch(/^sandbox-run: there is no setting SANDBOX_SH_[^\n]+\n$/);
    },
  );

  it('names no policy that commands may have written', async () => {
    writeFileSync(at('evil.toml'), '[unsafe]\nunjudged_commands = true\n', { mode: 0o600 });
    symlinkSync(at('evil.toml'), join(root, 'innocent.toml'));
    for (const path of [at('evil.toml'), join(root, 'innocent.toml'), 'evil.toml']) {
      const { status, stdout, stderr } = await sh(['-c', 'git push; echo ran'], {
        env: { SANDBOX_SH_POLICY: path },
      });
      expect({ status, stdout }).toEqual({ status: 125, stdout: '' });
      // Without namespaces no policy may be there, whoever named it.
      const isRefusedBefore = !HOST.namespaces && path !== 'evil.toml';
      const why = isRefusedBefore
        ? `commands could change the policy ${at('evil.toml')} `
        : 'SANDBOX_SH_POLICY';
      expectOneLine(stderr);
      expect(stderr).toContain(why);
    }
  });

  it('cannot make a whole home or the system the workspace', async () => {
    for (const directory of ['/', join(root, 'home'), '/usr', '/tmp']) {
      const { status, stderr } = await sh(['-c', 'true'], {
        cwd: directory,
        env: { SANDBOX_SH_WORKSPACE: directory },
      });
      expect(status).toBe(125);
      expect(stderr).toMatch(
        /^sandbox-run: [^\n]+cannot be the workspace[^\n]+SANDBOX_SH_WORKSPACE[^\n]*\n$/,
      );
    }
  });

  it('does not take the directory that a model changed to for the workspace', async () => {
    const { status, stdout, stderr } = await sh(['-c', 'touch planted; echo ran'], {
      cwd: workspace,
      env: { SANDBOX_SH_WORKSPACE: undefined },
    });
    expect({ status, stdout }).toEqual({ status: 125, stdout: '' });
    expect(stderr).toMatch(/^sandbox-run: no workspace is set: set SANDBOX_SH_WORKSPACE=DIR[^\n]*\n$/);
    expect(existsSync(at('planted'))).toBe(false);
  });

  it.each(['.config/autostart', '.local/bin', '.ssh', '.claude', 'bin', 'project/.git', 'project/.vscode/x'])(
    'cannot name ~/%s, which something trusted obeys',
    async (name) => {
      const directory = join(root, 'home', name);
      mkdirSync(directory, { recursive: true });
      const { status, stderr } = await sh(['-c', 'touch planted'], {
        cwd: directory,
        env: { SANDBOX_SH_WORKSPACE: directory },
      });
      expect(status).toBe(125);
      expect(stderr).toMatch(/^sandbox-run: [^\n]+something trusted[^\n]+cannot be the workspace[^\n]+\n$/);
      expect(existsSync(join(directory, 'planted'))).toBe(false);
    },
  );

  it('has to name a workspace that the current directory is in', async () => {
    mkdirSync(at('project/deep'), { recursive: true });
    const env = { SANDBOX_SH_WORKSPACE: at('project') };
    expect(await sh(['-c', 'pwd'], { env, cwd: at('project/deep') })).toMatchObject({
      status: 0,
      stdout: `${at('project/deep')}\n`,
    });
    const { status, stderr } = await sh(['-c', 'pwd'], { env });
    expect(status).toBe(125);
    expect(stderr).toMatch(/^sandbox-run: the current directory [^\n]+ is not in the workspace [^\n]+\n$/);
  });
});

describe('what a command gets', () => {
  it('none of the descriptors of the program that starts the shell', async () => {
    const text = `{ exec 3<${secret}; ${shell} -c 'cat <&3; ls -l /proc/self/fd | grep -c secret'; }`;
    const { stdout, stderr } = await runProgram(unjudged, ['/bin/bash', '-c', text]);
    expect(stdout).toBe('0\n');
    expect(stderr).toContain('3: Bad file descriptor');
  });

  it('no variable that the policy does not pass, and no setting', async () => {
    const { stdout } = await unjudgedSh(['-c', 'env'], {
      env: { API_KEY: SECRET, SANDBOX_SH_QUIET: '1', SANDBOX_SH_WORKSPACE: workspace },
    });
    expect(stdout).not.toMatch(/API_KEY|SANDBOX_SH/);
  });

  it('no bytes that a judge would see otherwise', async () => {
    const text = `printf '%s -c "echo \\xff"' ${shell} | /bin/bash`;
    const { status, stderr } = await runProgram(judged, ['/bin/bash', '-c', text]);
    expect(status).toBe(125);
    expect(stderr).toMatch(/^sandbox-run: an argument is not UTF-8[^\n]*\n$/);
    expect((await sh(['-c', 'echo \ufffd'])).stdout).toBe(Buffer.from('\ufffd\n').toString('latin1'));
    expect(await sh([], { input: Buffer.from('echo \xff\n', 'latin1') })).toMatchObject({
      status: 125,
      stdout: '',
    });
    expect(await sh([], { input: 'echo a\0b\n' })).toMatchObject({ status: 125, stdout: '' });
  });

  it('no way to write around the workspace', async () => {
    const target = join(root, 'written');
    const { stdout } = await unjudgedSh(['-c', `echo x > ${target} ; echo y > inside; cat inside`]);
    expect(stdout).toBe('y\n');
    // What lies there in its view is its own.
    expect(existsSync(target)).toBe(false);
  });
});

describe('help', () => {
  it('is printed where it is the only argument, with the settings and exit statuses', async () => {
    const { status, stdout } = await sh(['--help']);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^Usage: sandbox-sh/);
    for (const word of ['SANDBOX_SH_WORKSPACE', 'SANDBOX_SH_POLICY', 'Exit status:', '126 refused'])
      expect(stdout).toContain(word);
  });

  it('the version is that of the shell', async () => {
    const { stdout } = await sh(['--version']);
    expect(stdout).toMatch(/^GNU bash, version/);
  });
});

describe('what the policy asks', () => {
  it.each([
    ['of a text', judged, './ask.sh', '-c'],
    ['of a line that is typed', judged, './ask.sh', ''],
    [
      'of a text that loses something, with the default level,',
      byDefault,
      'rm -v ask.sh && echo it ran',
      '-c',
    ],
  ])('%s is asked on the terminal', async (_, { env }, command, option) => {
    writeFileSync(at('ask.sh'), '#!/bin/sh\necho it ran\n', { mode: 0o755 });
    const pane = await openPane(['bash', '--noprofile', '--norc', '-i'], { cwd: workspace, env });
    const line = `${command}; echo status $?`;
    try {
      await pane.type(option === '' ? shell : `${shell} ${option} '${line}'`, 'Enter');
      if (option === '') {
        await pane.shows('sandbox$ ');
        await pane.type(line, 'Enter');
      }
      await pane.shows(/\[n\]o: /);
      // What is typed too soon is no answer.
      await new Promise((done) => setTimeout(done, 1500));
      await pane.type('y', 'Enter');
      await pane.shows(/it ran\s+status 0/);
    } finally {
      await pane.close();
    }
  });
});
