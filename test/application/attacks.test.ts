import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createChecker } from '../../src/run/index.ts';
import { OF_THIS_PROCESS } from '../../src/workspace/index.ts';
import { makeStage, SECRET } from './support.ts';

const stage = await makeStage();
const { sandbox, workspace, outside, secret } = stage;

/** Refused whatever somebody approves, and nothing happened. */
async function expectRefused(command: string | readonly [string, ...string[]]): Promise<string> {
  const before = readdirSync(workspace).join();
  const result = await sandbox.run(command as string, { approved: true });
  expect(result.status, JSON.stringify(result)).toBe('denied');
  expect(result.error?.code).toBe('command.denied');
  expect(readdirSync(workspace).join()).toBe(before);
  expect(readdirSync(outside)).toEqual(['secret.txt']);
  expect(readFileSync(secret, 'utf8')).toBe(`${SECRET}\n`);
  return result.error?.message ?? '';
}

describe('variables of the request, which a program may obey', () => {
  it.each([
    ['LD_PRELOAD', 'sub/x.so'],
    ['LD_LIBRARY_PATH', 'sub'],
    ['LD_AUDIT', 'sub/x.so'],
    ['GCONV_PATH', 'sub'],
    ['LOCPATH', 'sub'],
    ['PATH', '/usr/bin'],
    ['MAGIC', 'sub/inner.txt'],
    ['RIPGREP_CONFIG_PATH', 'sub/inner.txt'],
    ['TZ', '../outside/secret.txt'],
    ['TZ', ':/etc/passwd'],
    ['TZ', '/etc/passwd'],
    ['TZ', 'Europe/../../x'],
    ['LC_ALL', '../sub'],
    ['LANG', '/etc'],
  ])('%s=%s is refused', async (name, value) => {
    for (const command of ['cat a.txt', ['cat', 'a.txt']] as const) {
      const result = await sandbox.run(command as string, { approved: true, env: { [name]: value } });
      expect(result.status).toBe('denied');
      expect(result.error?.message).toContain(name);
    }
  });

  it('are let through if they only say how to write, or take something away', async () => {
    const env = { LC_ALL: 'C.UTF-8', TZ: 'Europe/Rome', NO_COLOR: '1', CI: undefined };
    expect((await sandbox.run('date +%Z', { env: { TZ: 'UTC' } })).stdout).toBe('UTC\n');
    expect(await sandbox.run('cat a.txt', { env })).toMatchObject({ status: 'exited', exitCode: 0 });
  });
});

describe('without a kernel that holds it', () => {
  it.each([
    // Paths in operands, and in every place where an option hides one.
    'cat /etc/passwd',
    'cat OUT/secret.txt',
    'cat ../outside/secret.txt',
    'cat sub/../../outside/secret.txt',
    'cat -- ../outside/secret.txt',
    'cat links/file',
    'cat links/directory/secret.txt',
    'cat links/root/etc/passwd',
    'cat links/../links/file',
    'cat /proc/self/root/etc/passwd',
    'cat /proc/self/cwd/../outside/secret.txt',
    'cat /dev/fd/0',
    'find . -newermt \'TZ="../outside/secret.txt" 2020-01-01\' -name a.txt',
    'find . -newerat \'TZ="/etc/passwd" 2020-01-01\'',
    'ls /',
    'ls ..',
    'ls -L links',
    'ls -H links/directory',
    'head -n1 ../outside/secret.txt',
    'tail -n1 -f ../outside/secret.txt',
    'tail --pid=1 a.txt',
    'grep -f /etc/shadow a.txt',
    'grep -f/etc/shadow a.txt',
    'grep --file=/etc/shadow a.txt',
    'grep --fil=/etc/shadow a.txt',
    'grep x a.txt -f /etc/shadow',
    'grep -rnf /etc/shadow .',
    'grep -R foo .',
    'grep --dereference-recursive foo .',
    'grep foo -r /etc',
    'grep --exclude-from=/etc/shadow foo a.txt',
    'rg --pre cat foo',
    'rg --pre=cat foo',
    'rg -z foo',
    'rg -L foo',
    'rg --follow foo',
    'rg foo /etc',
    'rg --ignore-file /etc/shadow foo',
    'rg --hostname-bin id foo',
    'sort -o /etc/x a.txt',
    'sort -o/etc/x a.txt',
    'sort --output=/etc/x a.txt',
    'sort --outp=/etc/x a.txt',
    'sort a.txt -o ../outside/new',
    'sort -T /tmp a.txt',
    'sort --compress-program=sh a.txt',
    'sort --files0-from=a.txt',
    'sort --random-source=/etc/shadow a.txt',
    'sort -no/etc/x a.txt',
    'wc --files0-from=a.txt',
    'du --files0-from=a.txt',
    'du -L .',
    'uniq a.txt /etc/x',
    'uniq a.txt ../outside/new',
    'uniq a.txt links/dangling',
    'shuf -o ../outside/new a.txt',
    'tee ../outside/new',
    'tee links/dangling',
    'tee -a /etc/x',
    'cp /etc/passwd here',
    'cp a.txt ../outside/new',
    'cp a.txt links/dangling',
    'cp a.txt links/directory',
    'cp -t ../outside a.txt',
    'cp -t../outside a.txt',
    'cp --target-directory=../outside a.txt',
    'cp -rL sub copy',
    'cp -r sub links',
    'cp -s a.txt link',
    'cp -l a.txt link',
    'cp --parents sub/inner.txt links',
    'mv a.txt ../outside/new',
    'mv a.txt links/directory',
    'mv links/file here',
    'mkdir ../outside/new',
    'mkdir -p links/directory/new',
    'touch ../outside/new',
    'touch links/dangling',
    'touch -r /etc/shadow a.txt',
    'rm ../outside/secret.txt',
    'rm -rf links/directory/secret.txt',
    'rm -rf /',
    'rmdir ../outside',
    'diff a.txt /etc/passwd',
    'diff -r sub links',
    'diff sub links',
    'diff -l a.txt a.txt',
    'cmp a.txt ../outside/secret.txt',
    'stat ../outside/secret.txt',
    'test -f /etc/shadow',
    '[ -e ../outside/secret.txt ]',
    '[ a.txt -nt /etc/shadow ]',
    'test ! -d links/directory',
    'realpath links/file',
    'readlink links/file',
    'file -f a.txt',
    'file -m /etc/shadow a.txt',
    'file -z a.txt',
    'md5sum -c a.txt',
    'date -f /etc/passwd',
    'date -r /etc/shadow',
    'date -s 2020-01-01',
    'find /etc',
    'find . -L',
    'find -L .',
    'find . -follow',
    'find . -exec cat {} +',
    "find . -exec cat {} ';'",
    'find . -execdir id +',
    'find . -ok id +',
    'find . -delete',
    'find . -fprint /etc/x',
    'find . -fprintf ../outside/new %p',
    'find . -fls ../outside/new',
    'find . -newer /etc/shadow',
    'find -files0-from a.txt',
    'find links/directory',
    "sed -n 'w /etc/x' a.txt",
    "sed 's/a/b/w ../outside/new' a.txt",
    "sed '1r /etc/passwd' a.txt",
    "sed '1e id' a.txt",
    "sed 's/foo/id/e' a.txt",
    'sed -f a.txt a.txt',
    'sed -n p /etc/passwd',
    "sed -i 's/a/b/' links/file",
    'sed -i/tmp/x* s/a/b/ a.txt',
    'sed --in-place=../outside/* s/a/b/ a.txt',
    "sed -i --follow-symlinks 's/a/b/' a.txt",
    "sed -e p -e 'w x' a.txt",
    'awk \'BEGIN{system("id")}\'',
    'awk \'{print > "/etc/x"}\' a.txt',
    'awk \'BEGIN{while((getline l < "/etc/passwd")>0)print l}\'',
    'awk -f a.txt',
    'awk 1 /etc/passwd',
    'awk -v x=1 \'{print | "sh"}\' a.txt',
    'awk \'BEGIN{ARGV[1]="/etc/passwd";ARGC=2} 1\' a.txt',
    'jq \'import "/etc/x" as $x; .\' a.txt',
    'jq --rawfile x /etc/passwd -n 1',
    'jq -f a.txt',
    'jq -L / -n 1',
    'printenv AWS_SECRET_ACCESS_KEY',
    // Redirects.
    'echo x > /etc/x',
    'echo x > ../outside/new',
    'echo x >> links/file',
    'echo x > links/file',
    'echo x > links/dangling',
    'echo x > links/directory/new',
    'echo x > links/inside',
    'cat < /etc/passwd',
    'cat < links/file',
    'cat <> links/file',
    'echo x &> links/file',
    'echo x 2> /tmp/x',
    'echo x > /dev/tcp/127.0.0.1/1',
    'echo x > /proc/self/mem',
    'echo x > /dev/stdout',
    'cd .. && ls',
    'cd links/directory && ls',
    'cd / && ls',
    'cd sub && cat ../../outside/secret.txt',
    'cd sub; cat ../a.txt; cat ../../outside/secret.txt',
    'cd nowhere || cat ../outside/secret.txt',
    // What runs other programs.
    'bash -c id',
    'sh a.txt',
    'python3 -c 1',
    'node -e 1',
    'perl -e 1',
    'env id',
    'env X=1 cat a.txt',
    'xargs cat',
    'echo a | xargs cat',
    'timeout 1 cat a.txt',
    'nice cat a.txt',
    'nohup cat a.txt',
    'busybox cat a.txt',
    'make',
    'npm test',
    'git status',
    'git log',
    'git -c core.pager=sh log',
    'git --exec-path=/tmp status',
    'git -c alias.x=!id x',
    'tar -C / -xf a.txt',
    'tar cf ../outside/new a.txt',
    'ln -s / link',
    'ln ../outside/secret.txt link',
    'chmod 777 a.txt',
    'dd if=/etc/passwd',
    'less a.txt',
    'vi a.txt',
    'ssh host',
    'curl http://127.0.0.1',
    'kill -9 1',
    'ps',
    './a.txt',
    'sub/inner.txt',
    'links/root/usr/bin/id',
    '/usr/bin/env id',
    'WORK/a.txt',
    // A link that has another name only once something before it has run.
    'mv links other && cat other/file',
    'cp -r sub copy && cat copy/inner.txt',
    'mv sub other | cat a.txt',
    'cat a.txt | mv sub other',
    'cp -P a.txt b && cat b',
    // Paths that mean something else once the line has run in part.
    'rm links/deep; mkdir links/deep; cat links/deep/../../../outside/secret.txt',
    'rm links/deep; mkdir links/deep; cp a.txt links/deep/../../../outside/written',
    'rm links/chain; mkdir links/chain; cat links/behind',
    'rm links/deep; cat links/deep/file',
    'cat links/deep/../x',
    'mkdir new; cat new/../links/file',
    'mkdir new && cd new && cat ../links/file',
    'mkdir -p new new/../links/directory/made',
    'mkdir new; cp a.txt new/../links/dangling',
    'mv sub/one/up copy/up/secret.txt copy',
    'cp -r sub links copy',
    // Names that programs make of others.
    'rmdir -p sub/x',
    'rmdir -vp ../outside',
    'rmdir --parents sub',
    'rmdir --par sub',
    'sed -ifig p .git/con',
    'sed -irc p .env',
    "sed -i'*x' p a.txt",
    'sed --in-place=fig p a.txt',
    'sed --in-place= p a.txt',
    'sed -nibak p a.txt',
    'cp -Sfig a.txt .git/con',
    'cp --suffix=fig a.txt .git/con',
    'cp --backup=simple a.txt b',
    'cp -b a.txt b',
    'mv -S fig a.txt .git/con',
    'mv --suffix fig a.txt .git/con',
    'mv --backup a.txt b',
    'split a.txt .git/',
    'cp sub/.envrc .',
    'mv sub/.envrc ./',
    'which ../outside/secret.txt',
    'csplit a.txt 1',
    // Files that programs read unasked.
    'rg --debug hi',
    'rg --no-config --no-ignore --ignore --trace hi',
    `date -d 'TZ="../../outside/secret.txt" now'`,
    `touch -d 'TZ="/etc/x" now' a.txt`,
    'realpath --relative-to=../outside a.txt',
    'realpath --relative-to ../outside a.txt',
    'realpath --relative-base=/etc a.txt',
    'find . -neweraa /etc/shadow',
    'find . -newermB ../outside/secret.txt',
    // Options that are operands to some: behind the program of awk, and everywhere with POSIXLY_CORRECT.
    'awk 1 -v ../outside/secret.txt',
    'awk 1 -F ../outside/secret.txt',
    'awk --assign \'BEGIN{system("id")}\' a.txt',
    'sort a.txt -k ../outside/secret.txt',
    'grep foo a.txt -m /etc/passwd',
    // Awk's other ways to its own variables.
    'awk \'BEGIN{SYMTAB["AR" "GV"][1]="/etc/shadow"} {print}\' a.txt',
    'awk \'function f(a){a[1]="/etc/shadow"} BEGIN{f(SYMTAB["AR" "GV"])} 1\' a.txt',
    "awk 'BEGIN{for(k in SYMTAB) if (k ~ /^ARG.$/) print k} 1' a.txt",
    'awk \'BEGIN{ENVIRON["x"]="y"} 1\' a.txt',
    'awk \'BEGIN{PROCINFO["sorted_in"]="x"} 1\' a.txt',
    'awk \'BEGIN{bindtextdomain("/etc")} 1\' a.txt',
    'awk 1 ARGC=9 a.txt',
    // Words.
    `cat ${'../'.repeat(40)}etc/passwd`,
    'cat "../outside/\nsecret.txt"',
    "cat $'../outside/secret.txt'",
    '"cat" \'../outside/secret.txt\'',
    'c\\at ..\\/outside/secret.txt',
    ':(){ :|:& };:',
    'yes | sh',
  ])('refuses: %s', async (command) => {
    await expectRefused(command.replaceAll('OUT', outside).replaceAll('WORK', workspace));
  });

  it.each([
    [['bash', '-c', 'id']],
    [['sh', '-c', 'cat a.txt']],
    [['python3', '-c', '1']],
    [['env', 'cat', 'a.txt']],
    [['cat', '/etc/passwd']],
    [['cat', '../outside/secret.txt']],
    [['cat', 'links/file']],
    [['cd', '/']],
    [['./a.txt']],
    [['git', 'status']],
    [['nosuch']],
    [['find', '.', '-exec', 'id', ';']],
    [['sed', '-n', 'w x', 'a.txt']],
  ] as const)('refuses as an argument vector: %j', async (command) => {
    await expectRefused(command as unknown as [string, ...string[]]);
  });

  it('refuses a working directory outside, and one behind a link', async () => {
    for (const cwd of ['..', '/', 'links/directory', 'links/root/etc']) {
      const result = await sandbox.run('ls', { cwd, approved: true });
      expect(result.status).toBe('denied');
    }
  });

  it('refuses what holds a NUL and does not mind what holds anything else', async () => {
    expect((await sandbox.run('cat a\0b')).exitCode).not.toBe(0);
    expect((await sandbox.run(['echo', 'a\0b'])).exitCode).not.toBe(0);
    const words = ['', 'a\nb', '*', '$HOME', '`id`', '; id', '\u{1f600}', 'x'.repeat(100_000)] as const;
    const result = await sandbox.run(['printf', '<%s>', ...words]);
    expect(result.stdout).toBe(words.map((word) => `<${word}>`).join(''));
  });

  it('refuses sessions, and says why', async () => {
    await expect(sandbox.session()).rejects.toMatchObject({ code: 'backend.unavailable' });
  });

  it('refuses thousands of commands at once', async () => {
    await expectRefused('true;'.repeat(10_000));
  });

  it('judges also where the policy says that commands are not judged, and says so', async () => {
    const unjudged = await makeStage({ policy: { unsafe: { unjudged_commands: true } } });
    expect((await unjudged.sandbox.run('cat /etc/passwd')).status).toBe('denied');
    const allowed = await unjudged.sandbox.run('cat a.txt');
    expect(allowed.exitCode).toBe(0);
    expect(allowed.warnings.join()).toContain('unjudged_commands');
  });

  it('admits of the validated programs only those that a policy lists', async () => {
    const listed = await makeStage({ profile: 'strict-nine' });
    expect((await listed.sandbox.run('cat a.txt')).exitCode).toBe(0);
    expect((await listed.sandbox.run('sort a.txt')).status).toBe('denied');
    const more = await makeStage({ policy: { commands: { allow: ['sort', 'git'] } } });
    expect((await more.sandbox.run('sort a.txt')).exitCode).toBe(0);
    expect((await more.sandbox.run('cat a.txt')).status).toBe('denied');
    expect((await more.sandbox.run('git status')).status).toBe('denied');
  });

  it('decides the same where a command is only checked', async () => {
    const options = { workspace, policyFiles: false, autonomy: 'autonomous' } as const;
    const checker = await createChecker({ ...options, backend: 'application' }, OF_THIS_PROCESS);
    expect((await checker.judge({ command: 'cat a.txt | sort' }).decision).verdict).toBe('allow');
    for (const command of ['cat /etc/passwd', 'for i in a; do ls; done', 'git status'])
      expect((await checker.judge({ command, approved: true }).decision).verdict).toBe('deny');
    await checker.close();
  });

  it('never claims to hold files or the network', async () => {
    const { report } = sandbox.plan;
    const state = (id: string) => report.controls.find((control) => control.id === id)?.state;
    expect(report.backend).toBe('application');
    expect(state('filesystem')).toBe('unsupported');
    expect(state('network')).not.toBe('enforced');
    expect(state('protected-paths')).toBe('unsupported');
  });
});
