import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type ActionBudget,
  type ApprovalAnswer,
  type ApprovalRequest,
  type Approver,
  type AuditRecord,
  createSandbox,
  openSession,
  type SandboxOptions,
} from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { makePlace } from './support.ts';

const place = makePlace();
const before = process.env.XDG_STATE_HOME;
let states = 0;
beforeEach(() => {
  process.env.XDG_STATE_HOME = join(place.root, `state-${++states}`);
  for (const name of ['made', 'script.sh', 'tool', 'tool.py', 'Makefile'])
    rmSync(join(place.workspace, name), { recursive: true, force: true });
});
afterAll(() => {
  if (before === undefined) delete process.env.XDG_STATE_HOME;
  else process.env.XDG_STATE_HOME = before;
  place.dispose();
});

/** The files of a test place do not judge; these tests are about what is judged, and what becomes of a question. */
const sandboxWith = ({ policy, ...options }: Omit<SandboxOptions, 'policy'> & { policy?: object } = {}) =>
  createSandbox({
    workspace: place.workspace,
    autonomy: 'supervised',
    policy: { ...policy, unsafe: { unjudged_commands: false } },
    ...options,
  });

const YES: ApprovalAnswer = { approved: true, scope: 'once', by: 'test' };
/** Somebody who answers, and what was asked. */
function approving(
  answer: (request: ApprovalRequest) => ApprovalAnswer | Promise<ApprovalAnswer> = () => YES,
) {
  const asked: ApprovalRequest[] = [];
  const approver: Approver = {
    ask: async (request) => {
      asked.push(request);
      return answer(request);
    },
  };
  return { asked, gate: { approver } };
}

const write = (name: string, text: string) => {
  writeFileSync(join(place.workspace, name), text);
  chmodSync(join(place.workspace, name), 0o755);
};

describe('an approval', () => {
  it('lets the command run, and the result says who approved', async () => {
    const { asked, gate } = approving();
    await using sandbox = await sandboxWith({ gate, session: 's' });
    expect(await sandbox.run('mkdir made && ls')).toMatchObject({
      status: 'exited',
      stdout: 'made\n',
      approval: YES,
    });
    expect(asked).toMatchObject([
      {
        command: 'mkdir made && ls',
        cwd: place.workspace,
        session: 's',
        profile: 'workspace-write',
        parts: [
          { source: 'mkdir made', executable: expect.stringMatching(/\/mkdir$/) },
          { source: 'ls', executable: expect.stringMatching(/\/ls$/), remarks: [] },
        ],
      },
    ]);
    expect(asked[0]?.parts[0]?.remarks.join()).toContain('mkdir');
    expect(asked[0]?.confinement.join()).toContain(place.workspace);
    // What needs no approval is not asked about.
    await sandbox.run('ls');
    expect(asked).toHaveLength(1);
  });

  it('of a loss is asked for with the default level, too', async () => {
    const { asked, gate } = approving();
    await using sandbox = await createSandbox({
      workspace: place.workspace,
      policy: { unsafe: { unjudged_commands: false }, workspace: { undo: 'never' } },
      gate,
    });
    // What the sandbox holds is no question (control).
    expect((await sandbox.run('mkdir made && echo draft > made/other')).status).toBe('exited');
    expect(asked).toEqual([]);
    write('made/notes', 'draft');
    expect(await sandbox.run('rm -r made; ls')).toMatchObject({
      status: 'exited',
      stdout: '',
      approval: YES,
    });
    expect(asked).toMatchObject([{ command: 'rm -r made; ls' }]);
    expect(asked[0]?.decision.reasons.filter(({ verdict }) => verdict === 'ask')).toMatchObject([
      { check: 'losses', code: 'deletes' },
    ]);
  });

  it.each([
    [
      'a no',
      { approved: false, reason: 'denied', by: 'test' },
      'command.denied',
      /refused by test, which was asked/,
    ],
    [
      'no answer',
      { approved: false, reason: 'expired', by: 'test' },
      'command.needs_approval',
      /there was no answer/,
    ],
    [
      'a broken approver',
      { approved: false, reason: 'failed', by: 'x', detail: 'gone' },
      'command.needs_approval',
      /gone/,
    ],
    ['nonsense', { approved: 'yes' } as never, 'command.needs_approval', /./],
    ['nothing', undefined as never, 'command.needs_approval', /./],
    ['an exception', 'throws' as never, 'command.needs_approval', /./],
  ] as const)('is not given by %s', async (_, answer, code, message) => {
    await using sandbox = await sandboxWith({
      gate: approving(() => {
        if ((answer as unknown) === 'throws') throw new Error('broken');
        return answer as ApprovalAnswer;
      }).gate,
    });
    const result = await sandbox.run('mkdir made');
    expect(result).toMatchObject({ status: 'denied', error: { code } });
    expect(result.error?.message).toMatch(message);
  });

  it('is not asked for what is refused, or cannot be started', async () => {
    const { asked, gate } = approving();
    await using sandbox = await sandboxWith({ gate });
    expect((await sandbox.run('mkdir made; touch /etc/shadow')).error?.code).toBe('command.denied');
    expect((await sandbox.run(['no-such-program'])).error?.code).toBe('program.not_found');
    expect(asked).toEqual([]);
  });

  it.each([
    ['the program', ['./tool'], 'tool'],
    ['a program of a shell string', 'true && ./tool', 'tool'],
    ['a script that is named', ['bash', 'script.sh'], 'script.sh'],
    ['a script behind a redirect', 'python3 < script.sh', 'script.sh'],
    ['a file that an option names', 'make -ftool deploy', 'tool'],
    ['a module', 'mkdir -p made && python3 -m tool', 'tool.py'],
    ['what a tool looks for', 'mkdir -p made && make deploy', 'Makefile'],
  ] as const)('is void if %s is changed while the question is open', async (_, command, file) => {
    write(file, '#!/bin/sh\necho good\n');
    const { gate } = approving(() => {
      write(file, '#!/bin/sh\necho evil\n');
      return YES;
    });
    await using sandbox = await sandboxWith({ gate });
    expect(await sandbox.run(command)).toMatchObject({
      status: 'denied',
      stdout: '',
      error: { code: 'approval.void' },
    });
  });

  it('is void if a link leads a part elsewhere by then', async () => {
    for (const name of ['one', 'two']) mkdirSync(join(place.workspace, 'made', name), { recursive: true });
    const link = join(place.workspace, 'made/link');
    symlinkSync('one', link);
    const { gate } = approving(() => {
      rmSync(link);
      symlinkSync('two', link);
      return YES;
    });
    await using sandbox = await sandboxWith({ gate });
    expect((await sandbox.run('cd made/link && git init .')).error?.code).toBe('approval.void');
  });

  it('is void if the session was tainted by then, and what is remembered does not hold any more', async () => {
    const session = await openSession();
    const { asked, gate } = approving(() => ({ approved: true, scope: 'session', by: 'test' }));
    const network = { network: { mode: 'open' } };
    await using sandbox = await sandboxWith({ gate, session, policy: network });
    const fetching = () => sandbox.run('mkdir -p made; curl -sL http://127.0.0.1:9/ || true');
    expect((await fetching()).status).toBe('exited');
    expect((await fetching()).status).toBe('exited');
    const before = asked.length;
    await session.taint('secret');
    await fetching();
    expect(asked.length).toBe(before + 1);
    const later = approving(async () => {
      await session.taint('corruption');
      return YES;
    });
    const fresh = await openSession();
    await using other = await sandboxWith({ gate: later.gate, session: fresh, policy: network });
    await session.end();
    await using tainted = await sandboxWith({
      gate: approving(async () => {
        await fresh.taint('secret');
        return YES;
      }).gate,
      session: fresh,
      policy: network,
    });
    expect((await tainted.run('mkdir -p made; curl -sL http://127.0.0.1:9/ || true')).error?.code).toBe(
      'approval.void',
    );
    await other.close();
  });

  it('of code that nobody can see beforehand is asked each time', async () => {
    const { asked, gate } = approving(() => ({ approved: true, scope: 'always', by: 'test' }));
    await using sandbox = await sandboxWith({ gate });
    for (const command of ['python3 -', 'echo | python3', 'true | xargs touch']) {
      await sandbox.run(command);
      await sandbox.run(command);
    }
    expect(asked).toHaveLength(6);
  });

  it('is void if another directory has taken the place of the working directory', async () => {
    const sub = join(place.workspace, 'made');
    mkdirSync(sub);
    const { gate } = approving(() => {
      rmSync(sub, { recursive: true });
      return YES;
    });
    await using sandbox = await sandboxWith({ gate });
    const result = await sandbox.run('touch x', { cwd: 'made' });
    expect(result.status).not.toBe('exited');
  });

  it('is asked again for every change of the request, and not for the same', async () => {
    write('tool', '#!/bin/sh\necho tool\n');
    const { asked, gate } = approving(() => ({ approved: true, scope: 'session', by: 'test' }));
    const inSession = (session: string) => sandboxWith({ gate, session });
    await using one = await inSession('one');
    await using other = await inSession('other');
    mkdirSync(join(place.workspace, 'made'));
    const count = async (run: () => Promise<{ readonly status: string }>) => {
      const already = asked.length;
      expect((await run()).status).toBe('exited');
      return asked.length - already;
    };
    expect(await count(() => one.run('./tool x'))).toBe(1);
    expect(await count(() => one.run('./tool x'))).toBe(0);
    expect(await count(() => one.run('./tool y'))).toBe(1);
    expect(await count(() => one.run('./tool  x'))).toBe(1);
    expect(await count(() => one.run(['./tool', 'x']))).toBe(1);
    expect(await count(() => one.run('../tool x', { cwd: 'made' }))).toBe(1);
    expect(await count(() => one.run('./tool x', { env: { A: 'b' } }))).toBe(1);
    expect(await count(() => one.run('./tool x', { env: { SHELL: '/tmp/sh' } }))).toBe(1);
    expect(await count(() => one.run('./tool x', { timeout: 9_000 }))).toBe(0);
    expect(await count(() => one.run('./tool x', { input: 'y' }))).toBe(1);
    expect(await count(() => one.run('./tool x', { input: 'y' }))).toBe(0);
    expect(await count(() => other.run('./tool x'))).toBe(1);
    write('tool', '#!/bin/sh\necho more\n');
    expect(await count(() => one.run('./tool x'))).toBe(1);
    await using networked = await sandboxWith({ gate, session: 'one', profile: 'networked' });
    expect(await count(() => networked.run('./tool x'))).toBe(1);
  });

  it('for always holds in later processes too, without anybody to ask', async () => {
    {
      const { gate } = approving(() => ({ approved: true, scope: 'always', by: 'test' }));
      await using sandbox = await sandboxWith({ gate });
      await sandbox.run('mkdir -p made');
    }
    await using later = await sandboxWith();
    expect(await later.run('mkdir -p made')).toMatchObject({
      status: 'exited',
      approval: { scope: 'always' },
    });
    expect((await later.run('mkdir -p made2')).status).toBe('denied');
    await using strict = await sandboxWith({ ask: 'nobody' });
    expect((await strict.run('mkdir -p made')).status).toBe('denied');
  });

  it('that nobody waits for any more is withdrawn, and nothing runs', async () => {
    let seen: AbortSignal | undefined;
    const approver: Approver = {
      ask: (_, { signal }) => {
        seen = signal;
        return new Promise((done) => {
          signal?.addEventListener('abort', () => done(YES));
        });
      },
    };
    await using sandbox = await sandboxWith({ gate: { approver } });
    const running = sandbox.start('mkdir made');
    await eventually(() => expect(seen).toBeDefined());
    running.cancel();
    expect((await running.result).status).toBe('canceled');
    expect(seen?.aborted).toBe(true);
  });
});

describe('taints', () => {
  const TAINTED = { policy: { network: { mode: 'open' } } } as const;

  it('set by the application hold for later processes of the session', async () => {
    const session = await openSession({ id: 'work' });
    {
      await using sandbox = await sandboxWith({ ...TAINTED, session });
      const clean = await sandbox.run('curl -L http://127.0.0.1:9/', { approved: true });
      expect(clean.decision?.reasons).toContainEqual(expect.objectContaining({ code: 'untainted' }));
    }
    await session.taint('secret', 'a key was shown');
    await session.taint('corruption');
    await using later = await sandboxWith({ ...TAINTED, session: 'work' });
    const { decision } = await later.run('curl -L http://127.0.0.1:9/');
    expect(decision?.reasons).toContainEqual(
      expect.objectContaining({ check: 'reach', code: 'both_taints' }),
    );
    await using none = await sandboxWith(TAINTED);
    expect((await none.run('curl -L http://127.0.0.1:9/')).decision?.reasons).toContainEqual(
      expect.objectContaining({ code: 'untainted' }),
    );
  });

  it('are set by commands that name what is secret, or a directory around it', async () => {
    mkdirSync(join(place.workspace, 'made'));
    writeFileSync(join(place.workspace, 'made/.env'), 'KEY=1');
    const policy = { filesystem: { secret: ['made/.env'] } };
    const commands = [
      ...['cat made/.env', 'grep -r KEY made', ': < made/.env', 'cat made/.e*', 'rg KEY', 'grep -r KEY'],
      ...['F=made/.env; cat "$F"', 'for f in .env; do cat made/$f; done', 'source made/.env'],
      ...['python3 -c \'print(open("made/.env").read())\'', 'echo made/.env | xargs cat', 'cd made; cat .e*'],
    ];
    for (const [index, command] of commands.entries()) {
      const session = await openSession({ id: `s-${index}` });
      await using sandbox = await sandboxWith({ policy, session });
      for (const other of ['ls script.sh; true', 'echo environment', 'cat made/x* ; true'])
        await sandbox.run(other, { approved: true });
      expect(await session.taints()).toEqual([]);
      expect((await sandbox.run(command, { approved: true })).status).toBe('exited');
      expect(await session.taints()).toEqual(['secret']);
      await session.end();
    }
  });

  it('are set by commands that fetch from outside, where they can', async () => {
    const session = await openSession();
    {
      await using offline = await sandboxWith({ session });
      await offline.run('curl -L http://127.0.0.1:9/', { approved: true });
      expect(await session.taints()).toEqual([]);
    }
    await using online = await sandboxWith({ ...TAINTED, session });
    await online.run('curl -L http://127.0.0.1:9/');
    expect(await session.taints()).toEqual([]);
    await online.run('curl -L http://127.0.0.1:9/', { approved: true });
    expect(await session.taints()).toEqual(['corruption']);
  });

  it('of a session of somebody else are not mine to use', async () => {
    await (await openSession({ id: 'theirs', principal: 'agent-1' })).taint('secret');
    await expect(openSession({ id: 'theirs', principal: 'agent-2' })).rejects.toMatchObject({
      code: 'session.invalid',
    });
    await expect(sandboxWith({ session: 'theirs', principal: 'agent-2' })).rejects.toMatchObject({
      code: 'session.invalid',
    });
    for (const id of ['', '../x', 'a b', 'x'.repeat(200)])
      await expect(openSession({ id })).rejects.toMatchObject({ code: 'session.invalid' });
  });
});

describe('hooks of the policy', () => {
  const plugin = join(place.root, 'plugin.mjs');
  const log = join(place.root, 'log');

  it('see tools and sessions, and may refuse', async () => {
    writeFileSync(
      plugin,
      `import { appendFileSync } from 'node:fs';
      const note = (...what) => appendFileSync(${JSON.stringify(log)}, JSON.stringify(what) + '\\n');
      export const session_start = ({ id }) => (note('start', id), { allowed: id !== 'bad' });
      export const before_tool_use = (tool, { command }) => (note('before', tool, command), { allowed: !command.includes('evil') });
      export const session_end = ({ id }) => note('end', id);
      export const after_tool_use = (tool, { command }, { status, exitCode }) => note('after', command, status, exitCode);`,
      { mode: 0o600 },
    );
    const policy = { hooks: { plugins: [{ path: plugin }] } };
    await expect(sandboxWith({ policy, session: 'bad' })).rejects.toMatchObject({ code: 'session.invalid' });
    const session = await openSession({ id: 'good' });
    await using sandbox = await sandboxWith({ policy, session });
    expect((await sandbox.run('echo fine')).stdout).toBe('fine\n');
    expect((await sandbox.run('echo evil')).error?.code).toBe('command.denied');
    await session.end();
    const lines = readFileSync(log, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toEqual([
      ['start', 'bad'],
      ['start', 'good'],
      ['before', 'run_command', 'echo fine'],
      ['after', 'echo fine', 'exited', 0],
      ['before', 'run_command', 'echo evil'],
      ['end', 'good'],
    ]);
  });

  it('are told the agent’s own name of the tool, once for each command, and nothing of what is refused', async () => {
    const named = join(place.root, 'named.mjs');
    const names = join(place.root, 'names');
    writeFileSync(
      named,
      `import { appendFileSync } from 'node:fs';
      const note = (...what) => appendFileSync(${JSON.stringify(names)}, JSON.stringify(what) + '\\n');
      export const before_tool_use = (name, { tool, command }) => (note('before', name, tool, command), command.includes('evil') ? { decision: 'deny', reason: 'not here' } : {});
      export const after_tool_use = (name, { tool, command }) => note('after', name, tool, command);`,
      { mode: 0o600 },
    );
    const policy = { hooks: { plugins: [{ path: named }] } };
    await using sandbox = await sandboxWith({ policy, tool: 'Bash' });
    expect((await sandbox.run('echo fine')).stdout).toBe('fine\n');
    expect((await sandbox.run('echo evil')).error).toMatchObject({ code: 'command.denied' });
    expect((await sandbox.run('sudo ls')).error?.code).toBe('command.denied');
    const lines = readFileSync(names, 'utf8').trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      ['before', 'Bash', 'run_command', 'echo fine'],
      ['after', 'Bash', 'run_command', 'echo fine'],
      ['before', 'Bash', 'run_command', 'echo evil'],
    ]);
    await expect(sandboxWith({ policy, tool: 'two words' })).rejects.toThrow('tool');
  });

  it('that lie where commands can write, or cannot be loaded, refuse everything', async () => {
    writeFileSync(
      join(place.workspace, 'mine.mjs'),
      'export const before_tool_use = () => ({ allowed: true });',
    );
    for (const path of [join(place.workspace, 'mine.mjs'), join(place.root, 'missing.mjs')]) {
      await using sandbox = await sandboxWith({ policy: { hooks: { plugins: [{ path }] } } });
      expect((await sandbox.run('echo x')).error?.code).toBe('command.denied');
    }
  });
});

describe('what an application brings', () => {
  it('is asked once for each command, and its first no stands', async () => {
    let asked = 0;
    const hook = {
      name: 'flip',
      beforeToolUse: async () => {
        asked++;
        return { allowed: asked % 2 === 0 };
      },
    };
    await using sandbox = await sandboxWith({ gate: { hooks: [hook] } });
    expect((await sandbox.run('true')).status).toBe('denied');
    expect(asked).toBe(1);
    expect((await sandbox.run('true')).status).toBe('exited');
    expect(asked).toBe(2);
  });

  it('that never answers holds no run for ever', async () => {
    const never = () => new Promise<never>(() => {});
    const done: string[] = [];
    const reservation = { commit: () => {}, release: () => void done.push('released') };
    let answer = () => {};
    const late = () =>
      new Promise<typeof reservation>((reserved) => {
        answer = () => reserved(reservation);
      });
    const budgets: readonly ActionBudget[] = [
      { used: never, reserve: () => reservation },
      { used: () => 0, reserve: never },
      { used: () => 0, reserve: late },
    ];
    const policy = {
      approval: { reviewer_timeout_seconds: 0.2 },
      security: { max_actions_per_hour: 5 },
    };
    for (const budget of budgets) {
      await using sandbox = await sandboxWith({ gate: { budget }, policy });
      const { status, error } = await sandbox.run('touch made', { approved: true });
      expect({ status, code: error?.code }).toEqual({ status: 'denied', code: 'command.denied' });
      expect(error?.message).toContain('the budget of the application did not answer within 0.2 s');
    }
    expect(done).toEqual([]);
    answer();
    await eventually(() => expect(done).toEqual(['released']));
    const audit = { append: never };
    await using recorded = await sandboxWith({ gate: { audit }, policy });
    expect(await recorded.run('touch made', { approved: true })).toMatchObject({
      status: 'denied',
      error: { code: 'audit.failed', message: expect.stringContaining('did not answer within 0.2 s') },
    });
    expect(existsSync(join(place.workspace, 'made'))).toBe(false);
    // What is over when it does not answer is a remark.
    const commit = { used: () => 0, reserve: () => ({ commit: never, release: never }) };
    await using ran = await sandboxWith({ gate: { budget: commit }, policy });
    const { ok, warnings } = await ran.run('true', { approved: true });
    expect({ ok, warnings }).toEqual({ ok: true, warnings: [expect.stringContaining('did not answer')] });
  });

  it('gets a record of every decision, with who approved it and what it wrote', async () => {
    const records: AuditRecord[] = [];
    const audit = {
      append: async (record: AuditRecord) => {
        records.push(record);
      },
    };
    const budget: ActionBudget = {
      used: () => 0,
      reserve: () => {
        throw new Error('broken');
      },
    };
    {
      await using sandbox = await sandboxWith({ gate: { audit } });
      await sandbox.run('mkdir made', { approved: true });
      await sandbox.run(['head', '-c', '1000', '/dev/urandom']);
      const child = sandbox.spawn(['true']);
      child.stdout.resume();
      child.stderr.resume();
      await child.result;
      await sandbox.run('touch /etc/shadow');
      await using counted = await sandboxWith({
        gate: { audit, budget },
        policy: { security: { max_actions_per_hour: 5 } },
      });
      await counted.run('true');
    }
    expect(records).toMatchObject([
      { type: 'decision', outcome: 'launch', approval: { approved: true, scope: 'once', by: 'the caller' } },
      { type: 'result', status: 'exited', outputBytes: { stdout: 0, stderr: 0 } },
      { type: 'decision', outcome: 'launch', approval: undefined },
      { type: 'result', outputBytes: { stdout: 1000, stderr: 0 } },
      { type: 'decision', outcome: 'launch' },
      { type: 'result', outputBytes: { stdout: undefined, stderr: undefined } },
      { type: 'decision', outcome: 'command.denied' },
      { type: 'decision', outcome: 'command.denied' },
    ]);
  });

  it('is counted for who it belongs to, judged or not', async () => {
    const session = await openSession({ principal: 'bob' });
    const policy = { security: { max_actions_per_hour: 2 } };
    await using one = await sandboxWith({ session, policy });
    await using other = await sandboxWith({ principal: 'bob', policy });
    await using unjudged = await createSandbox({
      workspace: place.workspace,
      principal: 'bob',
      policy: { ...policy, unsafe: { unjudged_commands: true } },
    });
    const statuses = [];
    for (const sandbox of [one, other, unjudged, one]) statuses.push((await sandbox.run('true')).status);
    expect(statuses).toEqual(['exited', 'exited', 'denied', 'denied']);
    await expect(sandboxWith({ session, principal: 'eve' })).rejects.toMatchObject({
      code: 'session.invalid',
    });
  });

  it('does not give the key of the reviewer to commands', async () => {
    process.env.MY_REVIEW = 'the-key';
    try {
      await using sandbox = await sandboxWith({
        policy: { environment: { pass: ['MY_*'] }, reviewer: { model: 'm', key_variable: 'MY_REVIEW' } },
      });
      expect((await sandbox.run('printenv MY_REVIEW')).stdout).toBe('');
    } finally {
      delete process.env.MY_REVIEW;
    }
  });

  it('is no reviewer where commands can write', async () => {
    write('tool', '#!/bin/sh\n');
    const policy = { reviewer: { command: [join(place.workspace, 'tool')] } };
    await expect(sandboxWith({ policy })).rejects.toMatchObject({ code: 'hook.unusable' });
  });
});

describe('the git guard of the policy', () => {
  it('refuses a push that nothing else would refuse, and what amounts to one', async () => {
    await using sandbox = await sandboxWith({
      autonomy: 'autonomous',
      policy: { hooks: { git_guard: true } },
    });
    for (const command of [
      'git push',
      'git -C . pull',
      ['git', 'rebase', 'main'],
      'git fetch && git merge FETCH_HEAD',
    ])
      expect((await sandbox.run(command as string)).decision).toMatchObject({ verdict: 'deny' });
    for (const command of ['git log --grep=push', 'git status'])
      expect((await sandbox.run(command)).decision?.verdict).toBe('allow');
  });
});
