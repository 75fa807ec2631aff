import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { expectNothingLeft, processesWith } from '../support/leftovers.ts';
import { openPane, type Pane } from '../support/tmux.ts';
import { makeSupervisedConfiguration } from '../support/unjudged-policy.ts';
import { CLI, cli, expectOneLine, makePlace } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());

/** Typed in the shell of the pane. */
writeFileSync(
  join(place.root, 'rc'),
  `PS1='outside> '; sandbox-run() { '${process.execPath}' '${CLI}' "$@"; }\n`,
);
const OUTSIDE = ['bash', '--noprofile', '--rcfile', join(place.root, 'rc'), '-i'];
const INSIDE = "sandbox-run -t --env 'PS1=inside> ' -- bash --norc --noprofile -i";
let count = 0;
const mark = () => `${600_000 + (process.pid % 10_000) * 10 + count++}.5`;

let pane: Pane;
beforeEach(async () => {
  pane = await openPane(OUTSIDE, { cwd: place.workspace, env: place.env });
  await pane.shows('outside> ');
  await pane.type('stty -g > before', 'Enter');
  await pane.type('clear', 'Enter');
});
afterEach(async () => {
  await pane.close();
  await expectNothingLeft(place);
});

/** The settings of the user's terminal are those of before. */
async function expectTerminalRestored(): Promise<void> {
  await pane.type('stty -g > after; cmp before after && echo the""same', 'Enter');
  await pane.shows('thesame');
}

describe('a shell on a terminal of its own', () => {
  it('has job control, and Ctrl-C reaches what runs in it', async () => {
    const [first, second] = [mark(), mark()];
    await pane.type(INSIDE, 'Enter');
    await pane.shows('inside> ');
    await pane.type(`sleep ${first}`, 'Enter');
    await eventually(() => expect(processesWith(first)).not.toEqual([]));
    await pane.keys('C-z');
    await pane.shows(/Stopped +sleep/);
    await pane.type('clear; jobs', 'Enter');
    await pane.shows(/\[1\]\+ +Stopped +sleep/);
    await pane.type('fg', 'Enter');
    await pane.shows(/^sleep \d+/m);
    await pane.keys('C-c');
    await pane.shows(/\^C\s+inside> /);
    await eventually(() => expect(processesWith(first)).toEqual([]));
    await pane.type(`sleep ${second} & kill -l INT; jobs`, 'Enter');
    await pane.shows(/Running +sleep/);
    await pane.type('exit 7', 'Enter');
    await eventually(() => expect(processesWith(second)).toEqual([]));
    await pane.type('echo status $?', 'Enter');
    await pane.shows('status 7');
    await expectTerminalRestored();
  });

  it('Ctrl-Z suspends what runs inside, not the launcher', async () => {
    await pane.type(`sandbox-run -t -c 'echo rea""dy; cat'`, 'Enter');
    await pane.shows('ready');
    await pane.keys('C-z');
    await pane.shows('^Z');
    expect(await pane.screen()).not.toMatch(/outside> \s*$/);
    await pane.keys('C-c');
    await pane.shows(/outside> \s*$/);
    await pane.type('echo status $?', 'Enter');
    await pane.shows('status 130');
    await expectTerminalRestored();
  });

  it('has a name for its terminal', async () => {
    await pane.type(`sandbox-run -t -c 'test -c "$(tty)" && echo it is $(tty); stty size'`, 'Enter');
    await pane.shows(/it is \/dev\/pts\/\d+\s+24 90/);
  });

  it('learns a new size', async () => {
    await pane.type(INSIDE, 'Enter');
    await pane.shows('inside> ');
    await pane.resize(120, 40);
    await pane.type('clear; stty size', 'Enter');
    await pane.shows('40 120');
    await pane.type('vim -u NONE -n', 'Enter');
    await pane.shows(/^~\s*$/m);
    await pane.type(':set ruler laststatus=0', 'Enter');
    await pane.resize(70, 18);
    // A redraw for the new size takes away what was said before.
    await eventually(async () => {
      await pane.type(':echo &lines &columns', 'Enter');
      expect(await pane.screen()).toContain('18 70');
    });
    await pane.type(':q!', 'Enter');
    await pane.shows(/inside> \s*$/);
    await pane.type('exit', 'Enter');
    await pane.shows(/outside> \s*$/);
    await expectTerminalRestored();
  });

  it('a password is not shown', async () => {
    await pane.type(
      `sandbox-run -t -c 'read -s -p "secret? " s; echo; echo -n "$s" | wc -c; echo characters'`,
      'Enter',
    );
    await pane.shows(/^secret\? /m);
    await pane.type('hunter2', 'Enter');
    await pane.shows(/7\s+characters/);
    expect(await pane.screen()).not.toContain('hunter2');
  });
});

describe('programs on a terminal of their own', () => {
  it('vim edits and writes a file', async () => {
    await pane.type('sandbox-run -t -- vim -u NONE -n note.txt', 'Enter');
    await pane.shows(/^~\s*$/m);
    await pane.type('ihello from vim');
    await pane.shows('hello from vim');
    await pane.keys('Escape');
    await pane.type(':wq', 'Enter');
    await pane.shows(/outside> \s*$/);
    expect(readFileSync(join(place.workspace, 'note.txt'), 'utf8')).toBe('hello from vim\n');
    await expectTerminalRestored();
  });

  it('less turns pages and quits', async () => {
    await pane.type("sandbox-run -t -c 'seq 1000 | less'", 'Enter');
    await pane.shows(/^23$/m);
    await pane.keys('Space');
    await pane.shows(/^46$/m);
    await pane.type('/777', 'Enter');
    await pane.shows(/^777$/m);
    await pane.type('G');
    await pane.shows(/^1000$/m);
    await pane.type('q');
    await pane.shows(/outside> \s*$/);
    await expectTerminalRestored();
  });

  it('the prompt of python: lines, Ctrl-C and Ctrl-D', async () => {
    await pane.type('sandbox-run -t -- python3 -q', 'Enter');
    await pane.shows('>>> ');
    await pane.type('6 * 7', 'Enter');
    await pane.shows(/^42$/m);
    await pane.type('import time; time.sleep(100)', 'Enter');
    await pane.type('', 'C-c');
    await pane.shows('KeyboardInterrupt');
    await pane.type('1000 + 1', 'Enter');
    await pane.shows(/^1001$/m);
    await pane.keys('C-d');
    await pane.shows(/outside> \s*$/);
    await expectTerminalRestored();
  });

  it('npm init asks and writes package.json', async () => {
    await pane.type('sandbox-run -t -- npm init', 'Enter');
    await pane.shows('package name:');
    await pane.type('asked-for', 'Enter');
    for (const question of [
      'version:',
      'description:',
      'entry point:',
      'test command:',
      'git repository:',
      'keywords:',
      'author:',
      'license:',
    ]) {
      await pane.shows(question);
      await pane.keys('Enter');
    }
    for (let more = 0; more < 2; more++) {
      await pane.shows(/Is this OK\?|type: /);
      if (/Is this OK\?/.test(await pane.screen())) break;
      await pane.keys('Enter');
    }
    await pane.shows('Is this OK?');
    await pane.keys('Enter');
    await pane.shows(/outside> \s*$/);
    expect(JSON.parse(readFileSync(join(place.workspace, 'package.json'), 'utf8'))).toMatchObject({
      name: 'asked-for',
    });
    await expectTerminalRestored();
  });

  it('lines that only feed stay in their column', async () => {
    await pane.type(`sandbox-run -t -c 'stty -onlcr; printf "12345\\nabc\\r\\n"; stty onlcr'`, 'Enter');
    await pane.shows(/^12345\n {5}abc$/m);
  });
});

describe('the terminal of the user is put back', () => {
  /** Starts a command that ends by SIGKILL only. `shell`: types the words to start it in the pane's shell. */
  const start = async (options = '', shell = (words: string) => `sandbox-run ${words}`) => {
    const name = mark();
    const script = `trap "" TERM HUP; echo rea""dy; sleep ${name}`;
    await pane.type(shell(`-t ${options} --env MARK=${name} -c '${script}'`), 'Enter');
    await pane.shows('ready');
    const inner = `sleep\0${name}`;
    await eventually(() => expect(processesWith(inner)).not.toEqual([]));
    const launcher = await launcherOf(`MARK=${name}`);
    // It is raw by now.
    await eventually(async () => {
      const { stdout } = await execa('stty', ['-a', '-F', await terminalOf(launcher)]);
      expect(stdout).toContain('-icanon');
    });
    return { launcher, inner };
  };

  it.each([
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('after %s to the launcher', async (signal, status) => {
    const { launcher, inner } = await start();
    process.kill(launcher, signal);
    await pane.shows(/outside> \s*$/);
    await pane.type('echo status $?', 'Enter');
    await pane.shows(`status ${status}`);
    await eventually(() => expect(processesWith(inner)).toEqual([]));
    await expectTerminalRestored();
  });

  it('after a time-out', async () => {
    const name = mark();
    await pane.type(`sandbox-run -t --timeout 1 -c 'trap "" TERM; echo rea""dy; sleep ${name}'`, 'Enter');
    await pane.shows(/ready\s(.*\n)*.*timed out after/);
    const inner = `sleep\0${name}`;
    await pane.type('echo status $?', 'Enter');
    await pane.shows('status 124');
    await eventually(() => expect(processesWith(inner)).toEqual([]));
    await expectTerminalRestored();
  });

  it.each([
    'SIGABRT',
    'SIGSEGV',
    'SIGBUS',
    'SIGALRM',
    'SIGUSR2',
    'SIGTRAP',
    'SIGSYS',
    'SIGXCPU',
    'SIGVTALRM',
    'SIGPROF',
    'SIGIO',
    'SIGPWR',
    'SIGSTKFLT',
    37,
  ] as const)('after a signal that ends the launcher (%s)', async (signal) => {
    // Under a shell that does not put the terminal right by itself, as an interactive bash does when a job was killed.
    const file = join(place.root, 'crash');
    const { launcher, inner } = await start('', (words) => {
      const command = `'${process.execPath}' '${CLI}' ${words}`;
      writeFileSync(file, `${command}; stty -g > after; cmp before after && echo the""same\n`);
      return `sh '${file}'`;
    });
    process.kill(launcher, signal);
    await pane.shows('thesame');
    // The rest of a launcher that crashed.
    for (const left of processesWith(inner)) process.kill(left, 'SIGKILL');
    for (const name of readdirSync(place.tmp)) rmSync(join(place.tmp, name), { recursive: true });
  });

  it('while the launcher is stopped, and is raw again afterwards', async () => {
    await pane.type(INSIDE, 'Enter');
    await pane.shows('inside> ');
    const launcher = await launcherOf('PS1=inside> ');
    process.kill(launcher, 'SIGTSTP');
    await pane.shows(/Stopped[^\n]+\n(.*\n)*outside> \s*$/);
    await pane.type('clear', 'Enter');
    await expectTerminalRestored();
    await pane.resize(100, 30);
    await pane.type('fg', 'Enter');
    await pane.type('stty size', 'Enter');
    await pane.shows('30 100');
    await pane.type('exit', 'Enter');
    await pane.shows(/outside> \s*$/);
    await expectTerminalRestored();
  });
});

describe('around the terminal', () => {
  it('a question is asked before', async () => {
    const env = {
      ...place.env,
      XDG_CONFIG_HOME: makeSupervisedConfiguration(place.root),
      XDG_STATE_HOME: join(place.root, 'state'),
    };
    const judged = await openPane(OUTSIDE, { cwd: place.workspace, env });
    try {
      await judged.shows('outside> ');
      await judged.type('sandbox-run -t -c \'chmod +x x.sh; read -p "well? " w; echo "[$w]"\'', 'Enter');
      await judged.shows(/\[y\]es once/);
      // Keys that come at once are no answer: it is typed until it is shown.
      await eventually(async () => {
        await judged.keys('C-u');
        await judged.type('y');
        expect(await judged.screen()).toMatch(/\[n\]o: y\s*$/);
      });
      await judged.keys('Enter');
      // Not the command's text, which the question shows: what is typed while it is open answers that.
      await judged.shows(/^well\? /m);
      await judged.type('yes', 'Enter');
      await judged.shows('[yes]');
      await judged.shows(/outside> \s*$/);
    } finally {
      await judged.close();
    }
  });

  it('standard output may lead elsewhere', async () => {
    await pane.type("sandbox-run -t -c 'test -t 1 && echo on a terminal' | tr a-z A-Z", 'Enter');
    await pane.shows('ON A TERMINAL');
    await pane.shows(/outside> \s*$/);
    await expectTerminalRestored();
  });

  it('a reader that goes away ends the command', async () => {
    await pane.type('set -o pipefail; sandbox-run -t -- yes | head -1; echo $?', 'Enter');
    await pane.shows(/^y\n(.*\n)*129/m);
    await expectTerminalRestored();
  });

  it('10 MB reach the terminal whole and in order', async () => {
    await pane.type(
      'sandbox-run -t -- seq 1400000 | tr -d "\\r" | cmp - <(seq 1400000) && echo the""same',
      'Enter',
    );
    await pane.shows('thesame');
  });

  it('without a terminal it is refused in one line', async () => {
    const { exitCode, stderr } = await cli(place, ['-t', '--', 'true']);
    expect(exitCode).toBe(125);
    expectOneLine(stderr);
    expect(stderr).toContain('-t needs a terminal on standard input');
  });

  it('with --json what it shows is captured, and standard input is typed', async () => {
    const { exitCode, stdout } = await cli(place, ['-t', '--json', '-c', 'stty size; cat; exit 3'], {
      input: 'typed\n',
    });
    expect(exitCode).toBe(3);
    const result = JSON.parse(stdout);
    expect(result.stdout.replaceAll('typed\r\n', '')).toBe('24 80\r\n');
    expect(result.stdout.match(/typed/g)).toHaveLength(2);
    expect(result.stderr).toBe('');
  });
});

/** The launcher with an argument, once its warden is no copy of it any more. */
async function launcherOf(argument: string): Promise<number> {
  let found: readonly number[] = [];
  await eventually(() => {
    found = processesWith(`${CLI}\0`).filter((pid) => processesWith(argument).includes(pid));
    expect(found).toHaveLength(1);
  });
  return found[0] ?? 0;
}

/** The terminal of a process. */
async function terminalOf(pid: number): Promise<string> {
  const { stdout } = await execa('ps', ['-o', 'tty=', '-p', `${pid}`]);
  return `/dev/${stdout.trim()}`;
}
