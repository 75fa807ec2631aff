import { chmodSync, mkdirSync, readdirSync, rmdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type AuditRecord,
  createSandbox,
  type SandboxOptions,
  type ShellSession,
  type TurnResult,
} from '../../src/index.ts';
import { expectNothingLeft } from '../support/leftovers.ts';
import { makePlace } from './support.ts';

const place = makePlace();
// The built-in policy, and not the one that lets other tests run everything.
process.env.XDG_CONFIG_HOME = join(place.root, 'no-config');
afterAll(async () => {
  await expectNothingLeft(place);
  place.dispose();
});

const sandboxes: AsyncDisposable[] = [];
afterEach(async () => {
  for (const sandbox of sandboxes.splice(0)) await sandbox[Symbol.asyncDispose]();
});
async function sessionWith(options: SandboxOptions = {}): Promise<ShellSession> {
  const sandbox = await createSandbox({ workspace: place.workspace, policyFiles: false, ...options });
  sandboxes.push(sandbox);
  return sandbox.session();
}
const codes = ({ decision }: TurnResult, verdict: string) =>
  (decision?.reasons ?? [])
    .filter((reason) => reason.verdict === verdict)
    .map(({ check, code }) => `${check}.${code}`);

beforeEach(() => {
  mkdirSync(join(place.workspace, 'evil'), { recursive: true });
  writeFileSync(join(place.workspace, 'evil/ls'), '#!/bin/sh\necho evil\n');
  chmodSync(join(place.workspace, 'evil/ls'), 0o755);
});

describe('under supervision, what an earlier command did to the shell', () => {
  /** Approved by a person who did not see what it is for; then a word that is harmless in a new shell. */
  const attacks: readonly (readonly [name: string, before: string, then: string, asked: string])[] = [
    ['a function under a name of its own', 'helper() { echo evil; }', 'helper', 'session.own_name'],
    ['an alias', "shopt -s expand_aliases; alias ls='echo evil'", 'ls', 'session.own_name'],
    ['a function in place of a program', 'ls() { echo evil; }', 'ls', 'session.own_name'],
    ['a function that is exported', 'ls() { echo evil; }; export -f ls', "bash -c 'ls'", 'session.own_name'],
    [
      'a function under a name that a pipeline uses',
      'head() { echo evil; }',
      'echo a | head',
      'session.own_name',
    ],
    ['PATH', 'export PATH=$PWD/evil:$PATH', 'ls', 'autonomy.needs_approval'],
    ['PATH that is not exported', 'export -n PATH; PATH=$PWD/evil:$PATH', 'ls', 'autonomy.needs_approval'],
    ['PATH that is relative', 'PATH=./evil:$PATH', 'ls', 'autonomy.needs_approval'],
    ['a path that the shell remembers for a name', 'hash -p ./evil/ls ls', 'ls', 'session.unclear_shell'],
    ['a builtin that is turned off', 'enable -n pwd', 'pwd', 'session.unclear_shell'],
    ['a trap of each command', "trap 'echo evil' DEBUG", 'ls', 'session.unclear_shell'],
    ['a trap of failures', "trap 'echo evil' ERR", 'false', 'session.unclear_shell'],
    ['code before each prompt', "PROMPT_COMMAND='echo evil'", 'ls', 'session.unclear_shell'],
    ['IFS', 'IFS=x', 'ls', 'session.unclear_shell'],
    ['IFS with the name of nothing', 'IFS=unset', 'ls', 'session.unclear_shell'],
    ['code that tells of mail', "MAILCHECK=0 MAILPATH='f?$(echo evil)'", 'ls', 'session.unclear_shell'],
    ['code of a prompt', "PS1='$(echo evil)'", 'ls', 'session.unclear_shell'],
    ['code of a trace', "PS4='$(echo evil)'", 'ls', 'session.unclear_shell'],
    ['programs that are not found', "EXECIGNORE='/usr/bin/ls:/bin/ls'", 'ls', 'session.unclear_shell'],
    ['an older bash', 'BASH_COMPAT=4.2', 'ls', 'session.unclear_shell'],
    ['a variable that cannot be assigned', "readonly x='a[$(echo evil)]'", 'ls', 'session.unclear_shell'],
    ['words without patterns', 'set -f', 'ls', 'session.unclear_shell'],
    ['hidden files in patterns', 'shopt -s dotglob', 'ls', 'session.unclear_shell'],
    ['words without braces', 'set +B', 'ls', 'session.unclear_shell'],
    ['a file by another builtin', 'builtin . ./code.sh', 'ls', 'session.unclear_shell'],
    ['a file by a word that runs others', 'command . ./code.sh', 'ls', 'session.unclear_shell'],
    ['a text within the text', "eval 'x=1'", 'ls', 'session.unclear_shell'],
    ['an option', 'set -a', 'ls', 'session.unclear_shell'],
    ['another option', 'shopt -s expand_aliases', 'ls', 'session.unclear_shell'],
    ['a file of code', '. ./code.sh', 'ls', 'session.unclear_shell'],
    ['text that was not understood', 'x=1; let x=2', 'ls', 'session.unclear_shell'],
    ['another home', 'HOME=/tmp', 'echo ~', 'session.unclear_place'],
    ['PWD', 'PWD=/etc', 'ls $PWD', 'session.unclear_place'],
    ['PWD that is not exported', 'export -n PWD', 'ls $PWD', 'session.unclear_place'],
    ['CDPATH', 'CDPATH=/etc', 'cd ssl && ls', 'session.unclear_directory'],
    ['a link', 'cd link', 'cd evil/.. && ls', 'session.unclear_directory'],
  ];
  it.each(attacks)('%s is asked about later', async (_name, before, then, asked) => {
    writeFileSync(join(place.workspace, 'code.sh'), 'unalias -a; ls() { echo evil; }\n');
    if (!readdirSync(place.workspace).includes('link')) symlinkSync('evil', join(place.workspace, 'link'));
    const shell = await sessionWith({ autonomy: 'supervised' });
    // In a new shell it is allowed, but for names that are nowhere.
    const fresh = await shell.run(then);
    if (then !== 'helper') expect(fresh.decision?.verdict).toBe('allow');
    const done = await shell.run(before, { approved: true });
    if (done.status === 'denied') {
      // What is not understood is refused, whatever anybody says. In a file that somebody approved it comes in anyway.
      writeFileSync(join(place.workspace, 'code.sh'), `${before}\n`);
      expect(await shell.run('. ./code.sh', { approved: true })).toMatchObject({
        status: 'exited',
        exitCode: 0,
      });
    }
    const result = await shell.run(then);
    expect(codes(result, 'ask')).toContain(asked);
    expect(result).toMatchObject({ status: 'denied', error: { code: 'command.needs_approval' } });
  });

  it('PATH of a snapshot, of the options or from before a restart is looked at as any other', async () => {
    const path = `${place.workspace}/evil:/usr/bin:/bin`;
    const sandbox = await createSandbox({
      workspace: place.workspace,
      policyFiles: false,
      autonomy: 'supervised',
    });
    sandboxes.push(sandbox);
    for (const options of [
      { restore: { cwd: place.workspace, env: { PATH: path } } },
      { env: { PATH: path } },
    ]) {
      const shell = await sandbox.session(options);
      expect(codes(await shell.run('ls'), 'ask')).toContain('autonomy.needs_approval');
      expect((await shell.run('exit 1')).restarted).toBe(true);
      expect(codes(await shell.run('ls'), 'ask')).toContain('autonomy.needs_approval');
    }
  });

  it('a directory that is gone is no way around', async () => {
    mkdirSync(join(place.workspace, 'gone'), { recursive: true });
    const shell = await sessionWith({ autonomy: 'supervised' });
    await shell.run('cd gone');
    rmdirSync(join(place.workspace, 'gone'));
    await shell.run('true');
    expect(shell.cwd).toBe(join(place.workspace, 'gone'));
    expect((await shell.run('cd .. && ls')).stdout).toContain('evil');
  });

  it('a variable of the shell is no number that was read before', async () => {
    const shell = await sessionWith({ autonomy: 'supervised' });
    await shell.run("x='a[$(echo evil >&2)]'");
    expect((await shell.run('echo $((x))')).status).toBe('denied');
    expect((await shell.run('( x=5 ); echo $((x))')).status).toBe('denied');
    expect((await shell.run('echo $((SECONDS))')).status).toBe('denied');
    expect((await shell.run("RANDOM='a[$(echo evil >&2)]'")).status).toBe('denied');
    expect((await shell.run('x=5; echo $((x))')).stdout).toBe('5\n');
  });

  it('what usual commands leave behind is no doubt', async () => {
    const shell = await sessionWith({ autonomy: 'supervised' });
    for (const command of [
      'export A=1; x=2',
      'set -o pipefail',
      'cd evil && cd ..',
      'for i in 1 2; do echo $i; done',
    ])
      expect((await shell.run(command)).decision).toMatchObject({ verdict: 'allow' });
    expect((await shell.run('ls')).decision).toMatchObject({ verdict: 'allow' });
  });

  it('a directory: relative paths are judged from where the shell is', async () => {
    const shell = await sessionWith({ autonomy: 'supervised' });
    const inside = await shell.run('cat evil/ls');
    expect(inside.status).toBe('exited');
    expect((await shell.run('cd /usr')).cwdAfter).toBe('/usr');
    const outside = await shell.run('rm -rf lib');
    expect(outside).toMatchObject({ status: 'denied', cwd: '/usr', cwdAfter: '/usr' });
    expect(codes(outside, 'deny').length).toBeGreaterThan(0);
  });

  it.each([
    'echo x >&10',
    'echo x >&14',
    'echo x 10>&1',
    'echo x >/dev/fd/12',
    'read -u 14 x',
    'read -ru14 x',
    'f=14; echo x >&$f',
  ])('a descriptor that only the shell itself uses: %s', async (command) => {
    const shell = await sessionWith({ autonomy: 'autonomous' });
    const result = await shell.run(command);
    expect(result.status).toBe('denied');
    expect(await shell.run('echo 1 >&2 2>/dev/null 3>&1 9>&1; read x <&0; ls')).toMatchObject({
      status: 'exited',
    });
  });
});

describe('where the agent is autonomous', () => {
  it('functions, directories and environments are used without questions', async () => {
    const shell = await sessionWith({ autonomy: 'autonomous' });
    writeFileSync(join(place.workspace, 'code.sh'), 'export FROM=code; helper() { echo helped; }\n');
    expect(await shell.run('. ./code.sh')).toMatchObject({ status: 'exited', exitCode: 0 });
    expect(await shell.run('helper; echo $FROM; cd evil; pwd')).toMatchObject({
      stdout: `helped\ncode\n${place.workspace}/evil\n`,
    });
  });

  it.each([
    ['PWD=/etc', 'rm -rf "$PWD/ssl"'],
    ['PWD=/etc', 'ls ~+'],
    ['HOME=/etc', 'cat <~/x'],
    ['CDPATH=/etc', 'cd ssl && ls'],
  ])('places are still those that words name: %s', async (before, then) => {
    const shell = await sessionWith({ autonomy: 'autonomous' });
    expect((await shell.run(before, { approved: true })).status).toBe('exited');
    expect((await shell.run(then)).status).toBe('denied');
  });

  it('a list of programs admits none whose name means something else now', async () => {
    const shell = await sessionWith({
      autonomy: 'autonomous',
      policy: { commands: { allow: ['ls', 'echo', '.', 'cd'] } },
    });
    writeFileSync(join(place.workspace, 'code.sh'), 'ls() { echo evil; }\n');
    expect((await shell.run('ls')).status).toBe('exited');
    expect(await shell.run('mine() { echo x; }; mine')).toMatchObject({ stdout: 'x\n' });
    expect(codes(await shell.run('mine'), 'deny')).toContain('session.own_name');
    expect((await shell.run('. ./code.sh')).status).toBe('exited');
    expect(codes(await shell.run('ls'), 'deny')).toContain('session.unclear_shell');
    expect(codes(await shell.run('ls'), 'deny')).toContain('session.own_name');
  });
});

describe('each command of a session', () => {
  it('is counted by the budget and recorded', async () => {
    const records: AuditRecord[] = [];
    const shell = await sessionWith({
      autonomy: 'autonomous',
      policy: { security: { max_actions_per_hour: 2 } },
      principal: `test-${process.pid}`,
      gate: { audit: { append: async (record: AuditRecord) => void records.push(record) } as never },
    });
    expect((await shell.run('echo 1')).status).toBe('exited');
    expect((await shell.run('echo 2')).status).toBe('exited');
    expect(await shell.run('echo 3')).toMatchObject({ status: 'denied' });
    expect(records.filter(({ type }) => type === 'decision')).toHaveLength(3);
    expect(records.filter(({ type }) => type === 'result')).toHaveLength(2);
  });

  it('is asked about with what the session changed, and an answer is void if the shell changes', async () => {
    const asked: { readonly cwd: string; readonly environment: readonly string[] }[] = [];
    const fingerprints: string[] = [];
    const shell = await sessionWith({
      autonomy: 'supervised',
      gate: {
        approver: {
          ask: async (request) => {
            asked.push(request);
            fingerprints.push(request.fingerprint);
            return { approved: true, scope: 'once', by: 'a test' };
          },
        },
      },
    });
    await shell.run('cd evil; export COLOR=red');
    expect(await shell.run('touch made')).toMatchObject({ status: 'exited', exitCode: 0 });
    await shell.run('helper() { :; }');
    await shell.run('touch made');
    expect(asked.map(({ cwd }) => cwd)).toEqual(Array.from(asked, () => join(place.workspace, 'evil')));
    expect(asked[0]?.environment).toContain('COLOR=red');
    expect(new Set(fingerprints).size).toBe(fingerprints.length);
  });

  it('that is denied leaves the shell as it was', async () => {
    const shell = await sessionWith({ autonomy: 'supervised' });
    await shell.run('x=1');
    expect(await shell.run('x=2; rm -rf /')).toMatchObject({ status: 'denied', restarted: false });
    expect((await shell.run('echo $x')).stdout).toBe('1\n');
  });
});
