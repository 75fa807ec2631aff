// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { afterAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { expectNothingLeft, processesWith } from '../support/leftovers.ts';
import { HOST } from '../support/tiers.ts';
import { openPane } from '../support/tmux.ts';
import { makeShellPlace, runProgram } from './sandbox-sh-support.ts';

const place = makeShellPlace();
const { workspace, shell } = place;
const outside = join(place.root, 'outside.txt');
writeFileSync(outside, 'the-secret-91ab\n');
afterAll(async () => {
  await expectNothingLeft(place);
  place.dispose();
});

const at = (name: string) => join(workspace, name);
const file = (name: string, text: string, mode = 0o644) => writeFileSync(at(name), text, { mode });
/** With a view nothing is there; Landlock alone lets everybody see that a file is there, and nobody read it. */
const REACHES = HOST.namespaces ? `test -e ${outside}` : `cat ${outside} > /dev/null 2>&1`;
/** Says whether it is kept in: the file is there for everybody else. */
const LOOK = `if ${REACHES}; then echo out; else echo kept in; fi`;
const KEPT_IN = 'kept in\n';
let count = 0;
const mark = () => `${700_000 + (process.pid % 10_000) * 10 + count++}.5`;

describe('programs that start a shell', () => {
  it('without ours they are not kept in', async () => {
    const { stdout } = await runProgram(place, ['/bin/bash', '-c', LOOK]);
    expect(stdout).toBe('out\n');
  });

  it('make, as its SHELL', async () => {
    file('Makefile', `all:\n\t@${LOOK}\n\t@echo $$0 && exit 3\n`);
    const { stdout, status } = await runProgram(place, ['make', '-s', `SHELL=${shell}`]);
    expect(stdout).toBe(`${KEPT_IN}/bin/bash\n`);
    expect(status).toBe(2);
  });

  it('npm, as its script shell', async () => {
    const scripts = { look: LOOK, words: 'printf "<%s>"', fails: 'exit 7' };
    file('package.json', JSON.stringify({ name: 'x', version: '1.0.0', scripts }));
    const npm = (...args: string[]) =>
      runProgram(place, ['npm', '--silent', `--script-shell=${shell}`, ...args], {
        env: { npm_config_update_notifier: 'false', npm_config_cache: join(place.root, 'npm') },
      });
    expect((await npm('run', 'look')).stdout).toBe(KEPT_IN);
    expect((await npm('run', 'words', '--', 'a b', '$c')).stdout).toBe('<a b><$c>');
    expect((await npm('run', 'fails')).status).toBe(7);
  });

  it('git, in an alias and as its editor', async () => {
    await runProgram(place, ['git', 'init', '-q', '.']);
    const alias = await runProgram(place, ['git', '-c', `alias.look=!sandbox-sh -c '${LOOK}'`, 'look']);
    expect(alias.stdout).toBe(KEPT_IN);
    file('edit.sh', `#!/usr/bin/env sandbox-sh\n${LOOK} > "$1"\n`, 0o755);
    const env = {
      ...{ GIT_EDITOR: at('edit.sh'), GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@b.c' },
      ...{ GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@b.c', SANDBOX_SH_WORKSPACE: workspace },
    };
    // What git lets people edit lies in .git, which commands may write in part.
    const committed = await runProgram(place, ['git', 'commit', '-q', '--allow-empty'], { env });
    expect(committed).toMatchObject({ status: 0, stderr: '' });
    const { stdout } = await runProgram(place, ['git', 'log', '--format=%s']);
    expect(stdout).toBe(KEPT_IN);
  });

  it("Python's subprocess", async () => {
    const code = [
      'import subprocess, sys',
      'ran = subprocess.run(sys.argv[2], shell=True, executable=sys.argv[1], capture_output=True, text=True)',
      'print(ran.stdout, end="")',
      'kill = subprocess.run("kill -9 $$", shell=True, executable=sys.argv[1])',
      'print(kill.returncode)',
    ].join('\n');
    const { stdout, stderr } = await runProgram(place, ['python3', '-c', code, shell, LOOK]);
    expect({ stdout, stderr }).toEqual({ stdout: `${KEPT_IN}137\n`, stderr: '' });
  });

  it("Node's child_process", async () => {
    const code = `
      const { exec, execSync, spawn } = require('node:child_process');
      const [, shell, look] = process.argv;
      console.log(execSync(look, { shell }).toString().trim());
      exec('exit 9', { shell }, (error) => console.log(error.code));
      const child = spawn('cat; echo joined', ['by node'], { shell });
      child.stdout.pipe(process.stdout);
      child.stdin.end('piped\\n');
    `;
    const { stdout } = await runProgram(place, [process.execPath, '-e', code, shell, LOOK]);
    expect(stdout.split('\n').sort()).toEqual(['', '9', 'joined by node', 'kept in', 'piped']);
  });

  it('vim, in :! and in filters', async () => {
    file('edited.txt', 'b\na\n');
    const { status } = await runProgram(
      place,
      [
        'vim',
        '-u',
        'NONE',
        '-es',
        '-c',
        ':%!sort',
        '-c',
        `:silent !(${LOOK}) > from-vim`,
        '-c',
        ':wq',
        'edited.txt',
      ],
      { env: { SHELL: shell } },
    );
    expect(status).toBe(0);
    expect(readFileSync(at('edited.txt'), 'utf8')).toBe('a\nb\n');
    expect(readFileSync(at('from-vim'), 'utf8')).toBe(KEPT_IN);
  });

  it('script', async () => {
    const { stdout, status } = await runProgram(
      place,
      ['script', '-qec', `${LOOK}; test -t 1 && echo a terminal; exit 6`, '/dev/null'],
      { env: { SHELL: shell } },
    );
    // What a host without namespaces lacks is said on a terminal.
    const lacks = HOST.namespaces ? '' : /^.*protected-paths only in part: .*\n/;
    expect(stdout.replaceAll('\r', '').replace(lacks, '')).toBe(`${KEPT_IN}a terminal\n`);
    expect(status).toBe(6);
  });

  it('tmux, as its default shell', async () => {
    const pane = await openPane([`${LOOK}; read -r line; echo "typed $line"; sleep 30`], {
      cwd: workspace,
      env: { ...place.env, SHELL: shell },
    });
    try {
      await pane.shows('kept in');
      await pane.type('something', 'Enter');
      await pane.shows('typed something');
    } finally {
      await pane.close();
    }
    await eventually(() => expect(processesWith(workspace)).toEqual([]));
  });

  it('find, xargs and env -S', async () => {
    mkdirSync(at('tree'));
    writeFileSync(at('tree/one'), '');
    const found = await runProgram(place, [
      'find',
      'tree',
      '-type',
      'f',
      '-exec',
      shell,
      '-c',
      `echo "$1"; ${LOOK}`,
      '_',
      '{}',
      ';',
    ]);
    expect(found.stdout).toBe(`tree/one\n${KEPT_IN}`);
    const each = await runProgram(place, ['xargs', '-n1', shell, '-c', 'echo "<$0>"'], { input: 'a b' });
    expect(each.stdout).toBe('<a>\n<b>\n');
    file('strict.sh', `#!/usr/bin/env -S sandbox-sh -eu\n${LOOK}\necho "$0 $*"\nfalse\necho no\n`, 0o755);
    const strict = await runProgram(place, ['./strict.sh', 'x', 'y']);
    expect(strict).toMatchObject({ stdout: `${KEPT_IN}./strict.sh x y\n`, status: 1 });
  });
});

describe('a shell within a sandbox', () => {
  /** Beneath the workspace, as a project has it that depends on the package. */
  const linkIn = () => {
    mkdirSync(at('node_modules/.bin'), { recursive: true });
    symlinkSync(realpathSync(shell), at('node_modules/.bin/sandbox-sh'));
  };
  const checkout = dirname(dirname(realpathSync(shell)));
  const inner = mkdtempSync(join(realpathSync(tmpdir()), 'sandbox-sh-policy-'));
  const policy = join(inner, 'policy.toml');
  writeFileSync(
    policy,
    `[unsafe]\nunjudged_commands = true\n[filesystem]\nread = [${JSON.stringify(checkout)}]\n`,
    { mode: 0o600 },
  );
  afterAll(() => rmSync(inner, { recursive: true, force: true }));
  const env = { SANDBOX_SH_POLICY: policy };

  it('programs find the real one in SHELL', async () => {
    const { stdout } = await runProgram(place, [shell, '-c', 'echo $SHELL; $SHELL -c "echo again"'], {
      env: { SHELL: shell },
    });
    expect(stdout).toBe('/bin/bash\nagain\n');
  });

  it.runIf(HOST.namespaces)('is bash itself, and still kept in (needs namespaces)', async () => {
    linkIn();
    const text = `node_modules/.bin/sandbox-sh -O extglob -c 'echo $0 $1; ${LOOK}; exit 5' name arg; echo $?`;
    expect(await runProgram(place, [shell, '-c', text], { env })).toEqual({
      status: 0,
      stdout: `name arg\n${KEPT_IN}5\n`,
      stderr: '',
    });
  });

  // Without a view nothing that the kernel says tells that there is a sandbox around it: it wants to make one.
  it.runIf(!HOST.namespaces)(
    'is not recognized without a view, and runs nothing (no namespaces)',
    async () => {
      linkIn();
      const text = `node_modules/.bin/sandbox-sh -c 'echo ran'`;
      const { status, stdout, stderr } = await runProgram(place, [shell, '-c', text], { env });
      expect({ status, stdout }).toEqual({ status: 125, stdout: '' });
      expect(stderr).toMatch(/^sandbox-run: no workspace is set: [^\n]+\n$/);
    },
  );

  const MAKE = 'make in it can have it for its SHELL, and its commands end with it (needs namespaces)';
  it.runIf(HOST.namespaces)(MAKE, async () => {
    file('Makefile', `all:\n\t@${LOOK}\n`);
    const text = 'make -s SHELL=$PWD/node_modules/.bin/sandbox-sh';
    const { stdout, stderr } = await runProgram(place, [shell, '-c', text], { env });
    expect({ stdout, stderr }).toEqual({ stdout: KEPT_IN, stderr: '' });
  });
});

describe('signals', () => {
  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    '%s reaches the command, and nothing is left',
    async (signal) => {
      const seconds = mark();
      const running = execa(
        shell,
        ['-c', `trap 'echo caught; exit 42' TERM INT HUP; echo ready; sleep ${seconds} & wait`],
        {
          cwd: workspace,
          env: place.env,
          extendEnv: false,
          reject: false,
          stdin: 'ignore',
        },
      );
      await new Promise<void>((ready) => running.stdout.once('data', () => ready()));
      running.kill(signal);
      const { exitCode, stdout } = await running;
      expect({ exitCode, stdout }).toEqual({ exitCode: 42, stdout: 'ready\ncaught' });
      await eventually(() => expect(processesWith(seconds)).toEqual([]));
    },
  );

  it('the end of the launcher is the end of the command', async () => {
    const seconds = mark();
    const running = execa(shell, ['-c', `echo ready; sleep ${seconds}`], {
      cwd: workspace,
      env: place.env,
      extendEnv: false,
      reject: false,
      stdin: 'ignore',
    });
    await new Promise<void>((ready) => running.stdout.once('data', () => ready()));
    running.kill('SIGKILL');
    await running;
    await eventually(() => expect(processesWith(seconds)).toEqual([]));
    rmSync(place.tmp, { recursive: true, force: true });
    mkdirSync(place.tmp);
  });

  it('a reader that goes away ends it', async () => {
    const { stdout, status } = await runProgram(place, [
      '/bin/bash',
      '-c',
      `set -o pipefail; ${shell} -c yes | head -n 1`,
    ]);
    expect({ stdout, status }).toEqual({ stdout: 'y\n', status: 141 });
  });
});

describe('a shell for people', () => {
  it('on a terminal: lines with editing and history, one shell, Ctrl-C', async () => {
    writeFileSync(join(place.root, 'rc'), "PS1='outside> '\n");
    const pane = await openPane(['bash', '--noprofile', '--rcfile', join(place.root, 'rc'), '-i'], {
      cwd: workspace,
      env: place.env,
    });
    const seconds = mark();
    try {
      await pane.shows('outside> ');
      await pane.type('sandbox-sh', 'Enter');
      await pane.shows('sandbox$ ');
      await pane.type('cd tree && greeting=hel""lo', 'Enter');
      await pane.type('echo $greeting from ${PWD##*/}', 'Enter');
      await pane.shows('hello from tree');
      await pane.type('for word in a b', 'Enter');
      await pane.type('do echo "<$word>"; done', 'Enter');
      await pane.shows(/^<a>\n<b>$/m);
      await pane.type(`clear; ${LOOK}`, 'Enter');
      await pane.shows(/kept in\s+sandbox\$/);
      await pane.type('echo "never ended', 'Enter');
      await pane.keys('C-c');
      await pane.shows(/\^C\s+sandbox\$/);
      await pane.type(`sleep ${seconds}`, 'Enter');
      await eventually(() => expect(processesWith(seconds)).not.toEqual([]));
      await pane.keys('C-c');
      await eventually(() => expect(processesWith(seconds)).toEqual([]));
      await pane.type('echo it""self', 'Enter');
      await pane.shows(/^itself/m);
      await pane.keys('Up', 'Up', 'C-u');
      await pane.type('exit 7', 'Enter');
      await pane.shows(/outside> \s*$/);
      await pane.type('echo status $?; stty -a | grep -o " icanon"', 'Enter');
      await pane.shows(/status 7\s+icanon/);
    } finally {
      await pane.close();
    }
  });

  it('-i from a pipe: each line as it comes, state kept, the last status', async () => {
    const running = execa(shell, ['-i'], { cwd: workspace, env: place.env, extendEnv: false, reject: false });
    let shown = '';
    running.stdout.on('data', (chunk: Buffer) => {
      shown += chunk.toString();
    });
    running.stdin.write('x=1; cd sub 2>/dev/null || mkdir sub && cd sub; echo "<<1 $?>>"\n');
    // The answer comes before there is more to read.
    await eventually(() => expect(shown).toContain('<<1 0>>'));
    running.stdin.write('cat <<E\nhere $x\nE\necho ${PWD##*/}; false\n');
    running.stdin.end();
    const { exitCode, stdout, stderr } = await running;
    expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 1, stdout: '<<1 0>>\nhere 1\nsub', stderr: '' });
  });

  it('-i: what is allowed is said with the first refusal, and not again', async () => {
    const { stderr } = await execa(shell, ['-i'], {
      ...{ cwd: workspace, extendEnv: false, reject: false },
      env: { ...place.env, XDG_CONFIG_HOME: join(place.root, 'no-config') },
      input: 'sudo ls\ncat ~/.ssh/id_rsa\nsudo true\n',
    });
    expect(stderr.match(/^Not run: /gm)).toHaveLength(3);
    expect(stderr.match(/^Allowed: /gm)).toHaveLength(1);
    expect(stderr).not.toMatch(/\s--[a-z]/);
  });
});
