import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { ASKS_ABOUT_LOSSES, SUPERVISED } from '../support/unjudged-policy.ts';
import { CLI, cli, expectOneLine, makePlace, PTY_DRIVER, startCli } from './support.ts';

const made = makePlace();
const place = { ...made, env: { ...made.env, XDG_STATE_HOME: join(made.root, 'state') } };
const policyFile = join(place.root, 'config/sandbox-run/policy.toml');
const hasRun = () => existsSync(join(place.workspace, 'made'));
const set = (policy: string) => writeFileSync(policyFile, policy, { mode: 0o600 });

beforeEach(() => {
  set('');
  rmSync(join(place.workspace, 'made'), { recursive: true, force: true });
  rmSync(place.env.XDG_STATE_HOME, { recursive: true, force: true });
});
afterAll(() => place.dispose());

const run = (...args: readonly string[]) => cli(place, args);

describe('the budget', () => {
  it('holds over command lines, is shown and can be reset', async () => {
    set('[security]\nmax_actions_per_hour = 2\n');
    expect((await run('true')).exitCode).toBe(0);
    // What does not start uses nothing up.
    expect((await run('no-such-program')).exitCode).toBe(127);
    expect((await run('touch', '/etc/shadow')).exitCode).toBe(126);
    expect((await run('true')).exitCode).toBe(0);
    const third = await run('true');
    expect(third.exitCode).toBe(126);
    expectOneLine(third.stderr);
    const shown = await run('budget', 'show');
    expect(shown.stdout).toMatch(/^uid:\d+: 2 actions in the last hour, of 2, 0 left\n$/);
    expect(JSON.parse((await run('budget', 'show', '--json')).stdout)).toMatchObject({ used: 2, limit: 2 });
    expect((await run('budget', 'reset')).stdout).toMatch(/: 2 actions forgotten\n$/);
    expect((await run('true')).exitCode).toBe(0);
  });

  it('explains itself, and refuses what it does not know', async () => {
    expect((await run('budget', '--help')).stdout).toContain('sandbox-run budget reset');
    for (const args of [
      ['budget', 'rest'],
      ['budget', 'show', 'more'],
      ['budget', 'show', '--jso'],
    ])
      expect(await run(...args)).toMatchObject({ exitCode: 125, stdout: '' });
  });
});

describe('sessions', () => {
  it('are made by their use, shown, tainted and ended', async () => {
    expect((await run('--session', 'fix-1', 'true')).exitCode).toBe(0);
    expect((await run('session', 'taint', 'fix-1', 'secret', '--reason', 'pasted')).exitCode).toBe(0);
    const shown = await run('session', 'show', 'fix-1');
    expect(shown.stdout).toMatch(/^fix-1: secret; started .*\n {2}secret +since .*: pasted\n$/);
    expect(JSON.parse((await run('session', 'show', 'fix-1', '--json')).stdout)).toMatchObject({
      id: 'fix-1',
      taintsInForce: ['secret'],
    });
    expect((await run('session', 'list')).stdout).toMatch(/^fix-1: secret;/);
    expect((await run('session', 'end', 'fix-1')).exitCode).toBe(0);
    for (const args of [
      ['end', 'fix-1'],
      ['show', 'other'],
      ['show', '../x'],
      ['taint', 'fix-1', 'mud'],
    ]) {
      const result = await run('session', ...args);
      expect(result.exitCode).toBe(125);
      expectOneLine(result.stderr);
    }
  });

  it('show the names of files that tainted them, and nothing that a terminal would obey', async () => {
    const reason = 'read \x1b]0;owned\x07\u202e\u009b2J.txt';
    const tainted = await run('--session', 's', 'true').then(() =>
      run('session', 'taint', 's', 'secret', '--reason', reason),
    );
    expect(tainted.exitCode).toBe(0);
    const shown = await run('session', 'show', 's');
    expect(shown.stdout).toContain('read \\u{1b}]0;owned\\u{7}\\u{202e}\\u{9b}2J.txt');
    for (const args of [
      ['show', 's'],
      ['show', 's', '--json'],
      ['list', '--json'],
    ]) {
      const { stdout } = await run('session', ...args);
      expect(stdout).not.toMatch(/[^\n -~]/);
    }
    const [listed] = JSON.parse(`[${(await run('session', 'list', '--json')).stdout}]`);
    expect(listed.taints).toMatchObject([{ reason }]);
  });

  it('are asked before the network, once they are tainted', async () => {
    set('[security]\nautonomy = "autonomous"\n[network]\nmode = "open"\n[filesystem]\nsecret = [".env"]\n');
    writeFileSync(join(place.workspace, '.env'), 'KEY=1\n');
    const fetching = ['--session', 's', '-c', 'curl -sL http://127.0.0.1:9/ || true'];
    expect((await run('--session', 's', 'cat', '.env')).stdout).toBe('KEY=1\n');
    const asked = await run(...fetching);
    expect(asked.exitCode).toBe(126);
    expect(asked.stderr).toContain('saw secret data');
    expect((await run('--session', 's', 'ls')).exitCode).toBe(0);
  });
});

describe('a question', () => {
  beforeEach(() => set(SUPERVISED));

  it('in the queue waits for an answer from elsewhere', async () => {
    const waiting = startCli(place, ['--ask', 'queue', '-c', 'mkdir made && echo done']);
    let id = '';
    await eventually(async () => {
      const [request] = JSON.parse(`[${(await run('approvals', 'list', '--json')).stdout.trim()}]`);
      id = request.id;
    });
    expect(hasRun()).toBe(false);
    const shown = await run('approvals', 'show', id);
    expect(shown.stdout).toContain('mkdir made && echo done');
    expect(shown.stdout).toContain(place.workspace);
    expect((await run('approvals', 'approve', id)).exitCode).toBe(0);
    expect(await waiting).toMatchObject({ exitCode: 0, stdout: 'done\n' });
    expect((await waiting).stderr).toContain(`approvals show ${id}`);
    expect(hasRun()).toBe(true);
    // Used up.
    expect((await run('approvals', 'approve', id)).exitCode).toBe(125);
  });

  it('in the queue that is denied, or not answered, does not run', async () => {
    set(`${SUPERVISED}[approval]\nask = "queue"\ntimeout_seconds = 1\n`);
    const late = await run('-c', 'mkdir made');
    expect(late).toMatchObject({ exitCode: 126, stdout: '' });
    expect(late.stderr).toContain('there was no answer within 1 s');
    set(`${SUPERVISED}[approval]\nask = "queue"\n`);
    const waiting = startCli(place, ['-q', '-c', 'mkdir made']);
    await eventually(async () => {
      const { stdout } = await run('approvals', 'list', '--json');
      expect((await run('approvals', 'deny', JSON.parse(stdout).id)).exitCode).toBe(0);
    });
    expect(await waiting).toMatchObject({ exitCode: 126 });
    expect(hasRun()).toBe(false);
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'in the queue is withdrawn when its asker is ended by %s, with status 128+n',
    async (signal) => {
      const waiting = startCli(place, ['--ask', 'queue', '-c', 'mkdir made']);
      await eventually(async () => {
        expect((await run('approvals', 'list', '--json')).stdout).toContain('mkdir made');
      });
      waiting.kill(signal);
      const { exitCode, stderr } = await waiting;
      expect(exitCode).toBe(128 + constants.signals[signal]);
      expect(stderr).toContain(`${signal} came before the command began`);
      expect((await run('approvals', 'list', '--json')).stdout).toBe('');
      expect(hasRun()).toBe(false);
    },
  );

  it('is refused at once with --ask nobody, and without a terminal', async () => {
    for (const args of [['--ask', 'nobody'], []]) {
      const refused = await run(...args, '-c', 'mkdir made');
      expect(refused).toMatchObject({ exitCode: 126, stdout: '' });
      expectOneLine(refused.stderr);
    }
    expect(hasRun()).toBe(false);
  });

  /** Types an answer on a terminal of its own. */
  async function onTerminal(args: readonly string[], steps: readonly object[]) {
    const input = JSON.stringify({
      argv: [process.execPath, CLI, ...args],
      cwd: place.workspace,
      env: place.env,
      size: [40, 100],
      steps,
    });
    const { stdout } = await execa('python3', [PTY_DRIVER], { input });
    return JSON.parse(stdout);
  }
  const QUESTION = { expect: '\\[y\\]es once.*\\[n\\]o: ' };
  const CONFIRM = { expect: '\\n\\[y\\]es  \\[n\\]o: ' };
  const choose = (word: string) => [{ insist: `\x15${word}`, until: `\\x08?${word}` }, { send: '\r' }];

  it('on the terminal is answered there, and the terminal is the command’s afterwards', async () => {
    const yes = await onTerminal(
      ['-c', 'mkdir made && read -p "name? " name && echo "hello $name"'],
      [QUESTION, ...choose('y'), { expect: 'name\\? ' }, { send: 'world\r' }, { expect: 'hello world' }],
    );
    expect(yes).toMatchObject({ failed: null, status: 0 });
    expect(hasRun()).toBe(true);
  });

  it('of a loss is asked on the terminal with the default level, too', async () => {
    set(ASKS_ABOUT_LOSSES);
    // What the sandbox holds is no question (control).
    expect(await run('-c', 'mkdir own && echo draft > own/notes && rm -r own')).toMatchObject({
      exitCode: 0,
      stderr: '',
    });
    execFileSync('git', ['init', '-q'], { cwd: place.workspace });
    mkdirSync(join(place.workspace, 'made'));
    writeFileSync(join(place.workspace, 'made/notes'), 'draft');
    for (const [loss, reason] of [
      ['rm -r made', 'which version control cannot restore'],
      ['git clean -fdx', 'would delete files that are not tracked'],
    ] as const) {
      const no = await onTerminal(['-c', loss], [QUESTION, ...choose('n')]);
      expect(no).toMatchObject({ failed: null, status: 126 });
      expect(no.output).toContain(reason);
      expect(hasRun()).toBe(true);
    }
    const yes = await onTerminal(['-c', 'rm -r made; echo gone'], [QUESTION, ...choose('y')]);
    expect(yes).toMatchObject({ failed: null, status: 0 });
    expect(hasRun()).toBe(false);
    rmSync(join(place.workspace, '.git'), { recursive: true });
  });

  it('on the terminal that is not answered with a yes does not run', async () => {
    for (const key of ['\r', '\x04']) {
      const no = await onTerminal(
        ['-c', 'mkdir made'],
        [QUESTION, { insist: key, until: 'refused by the person who was asked' }],
      );
      expect(no.failed).toBeNull();
      expect(no.status).toBe(126);
    }
    expect(hasRun()).toBe(false);
  });

  it('on the terminal that is answered with Ctrl-C ends as by SIGINT', async () => {
    const no = await onTerminal(
      ['-c', 'mkdir made'],
      // A second one could come when the first has been heard, and would end the program before it says so.
      [QUESTION, { insist: '\x03', until: 'SIGINT came before the command began', every: 3 }],
    );
    expect(no).toMatchObject({ failed: null, status: 130 });
    expect(hasRun()).toBe(false);
  });

  it('that was answered for always is not asked again, until that is revoked', async () => {
    // No rule answers for two commands: exactly this line is remembered.
    const twice = 'mkdir -p made && mkdir -p made/b';
    const always = await onTerminal(
      ['-c', twice],
      [QUESTION, ...choose('a'), { expect: 'until it is revoked' }, CONFIRM, ...choose('y')],
    );
    expect(always).toMatchObject({ failed: null, status: 0 });
    expect((await run('-c', twice)).exitCode).toBe(0);
    expect((await run('-c', 'mkdir -p made')).exitCode).toBe(126);
    const [grant] = JSON.parse(`[${(await run('approvals', 'grants', '--json')).stdout.trim()}]`);
    expect(grant).toMatchObject({ scope: 'always' });
    expect((await run('approvals', 'revoke', grant.id)).exitCode).toBe(0);
    expect((await run('-c', twice)).exitCode).toBe(126);
  });

  const RULE = `[[commands.rules]]\nprogram = "mkdir"\nwords = [ "-p", "made" ]\ndirectory = ${JSON.stringify(place.workspace)}\nverdict = "allow"\n`;
  const offered = (answer: string) =>
    onTerminal(
      ['-c', 'mkdir -p made'],
      [
        QUESTION,
        ...choose('a'),
        { expect: 'always allows mkdir -p made in ' },
        { expect: 'verdict = "allow"' },
        CONFIRM,
        ...choose(answer),
      ],
    );

  it('can be answered with a rule, which is shown, and written only after that', async () => {
    const before = `# mine\n[security] # risk\nautonomy   =   "supervised"\n\n[commands]\nallow = ["mkdir"]`;
    set(before);
    const no = await offered('no');
    expect(no).toMatchObject({ failed: null, status: 126 });
    expect(no.output).toContain(policyFile);
    expect(readFileSync(policyFile, 'utf8')).toBe(before);
    const yes = await offered('yes');
    expect(yes).toMatchObject({ failed: null, status: 0 });
    expect(readFileSync(policyFile, 'utf8')).toBe(`${before}\n\n${RULE}`);
    expect(statSync(policyFile).mode & 0o777).toBe(0o600);
    expect((await run('-c', 'mkdir -p made')).exitCode).toBe(0);
    for (const other of ['mkdir -p made/b', 'mkdir made2', 'mkdir -p made; mkdir c', 'mkdir -p made $X'])
      expect([other, (await run('-c', other)).exitCode]).toEqual([other, 126]);
    // It is no grant: what takes it back is the file.
    expect((await run('approvals', 'grants')).stdout).toContain('Nothing is remembered');
  });

  it('offers no rule that would hold a secret, nor one for work that is lost', async () => {
    writeFileSync(join(place.workspace, 'lost'), 'x');
    for (const command of [
      'rm lost',
      'mkdir made; mkdir other',
      'mkdir "$X"',
      'mkdir --password=hunter2secret',
    ]) {
      const asked = await onTerminal(['-c', command], [QUESTION, ...choose('n')]);
      expect(asked).toMatchObject({ failed: null, status: 126 });
      expect([command, asked.output]).toEqual([command, expect.not.stringContaining('commands.rules')]);
    }
  });

  it('leaves a policy as it is at whose end no rule can stand, and asks again', async () => {
    const before = '[security]\nautonomy = "supervised"\n[commands]\nrules = []\n';
    set(before);
    const asked = await onTerminal(
      ['-c', 'mkdir -p made'],
      [QUESTION, ...choose('a'), { expect: 'is left as it is' }, QUESTION, ...choose('n')],
    );
    expect(asked).toMatchObject({ failed: null, status: 126 });
    expect(readFileSync(policyFile, 'utf8')).toBe(before);
  });

  it('of the queue can be answered with a rule, by a person at a terminal alone', async () => {
    const queued = async (command: string) => {
      const waiting = startCli(place, ['--ask', 'queue', '-c', command]);
      let id = '';
      await eventually(async () => {
        id = JSON.parse((await run('approvals', 'list', '--json')).stdout).id;
      });
      return { waiting, approve: ['approvals', 'approve', id, '--rule'] as const, id };
    };
    const mine = '# mine\n[security]\nautonomy = "supervised"\n';
    set(mine);
    const { waiting, approve, id } = await queued('mkdir -p made');
    // A pipe is no person, and neither is a terminal on which something else was typed.
    const piped = await cli(place, approve, { input: 'yes\n' });
    expect(piped).toMatchObject({ exitCode: 125, stdout: '' });
    expect(piped.stderr).toContain('a person has to say yes on a terminal');
    expect(await run(...approve, '--scope', 'always')).toMatchObject({ exitCode: 125 });
    const asked = (answer: string) =>
      onTerminal(approve, [
        { expect: 'always allows mkdir -p made in ' },
        { expect: 'verdict = "allow"' },
        CONFIRM,
        ...choose(answer),
      ]);
    const no = await asked('nope');
    expect(no).toMatchObject({ failed: null, status: 0 });
    expect(no.output).toContain(policyFile);
    expect(readFileSync(policyFile, 'utf8')).toBe(mine);
    expect(hasRun()).toBe(false);
    expect(await asked('yes')).toMatchObject({ failed: null, status: 0 });
    expect((await waiting).exitCode).toBe(0);
    expect(readFileSync(policyFile, 'utf8')).toBe(`${mine}\n${RULE}`);
    expect((await run('-c', 'mkdir -p made')).exitCode).toBe(0);
    expect(await run('approvals', 'approve', id, '--rule')).toMatchObject({ exitCode: 125 });

    // What is lost, and several things at once, are answered once.
    for (const command of ['rm lost', 'mkdir other; mkdir more']) {
      writeFileSync(join(place.workspace, 'lost'), 'x');
      const other = await queued(command);
      const refused = await onTerminal(other.approve, [{ expect: 'no rule can answer' }]);
      expect([command, refused.failed, refused.status]).toEqual([command, null, 125]);
      expect((await run('approvals', 'deny', other.id)).exitCode).toBe(0);
      expect((await other.waiting).exitCode).toBe(126);
    }
    expect(readFileSync(policyFile, 'utf8')).toBe(`${mine}\n${RULE}`);
  });

  it('is void if the script is changed before the answer', async () => {
    mkdirSync(join(place.workspace, 'made'));
    const script = join(place.workspace, 'made/deploy.sh');
    writeFileSync(script, 'echo good\n');
    const waiting = startCli(place, ['--ask', 'queue', '-c', 'bash made/deploy.sh']);
    let id = '';
    await eventually(async () => {
      id = JSON.parse((await run('approvals', 'list', '--json')).stdout).id;
    });
    writeFileSync(script, 'echo evil\n');
    await run('approvals', 'approve', id);
    const result = await waiting;
    expect(result).toMatchObject({ exitCode: 126, stdout: '' });
    expect(result.stderr).toContain('something changed after the question was asked');
  });
});
