import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeArena, SECRET, snapshot } from '../support/arena.ts';
import { bundleLauncher } from '../support/launcher.ts';
import { compile, confined, PROGRAMS, unconfined, worked } from '../support/sandboxee.ts';
import { stateOf, TIERS } from '../support/tiers.ts';

const user = compile(
  'use-descriptors',
  `
  #include <dirent.h>
  int main(int argc, char **argv) {
    int max = 3;
    char buffer[256], name[64];
    for (int fd = 3; fd < 70000; fd++) {
      if (fcntl(fd, F_GETFD) < 0) continue;
      sprintf(name, "open:%d", fd);
      SAY(name, "ok");
      sprintf(name, "openat:%d", fd);
      TRY(name, openat(fd, "secret.txt", O_RDONLY));
      ssize_t n = pread(fd, buffer, 255, 0);
      if (n > 0) fprintf(stderr, "%.*s", (int)n, buffer);
      sprintf(name, "write:%d", fd);
      TRY(name, write(fd, "x", 1));
    }
    DIR *d = opendir("/proc/self/fd");
    int count = 0;
    while (d && readdir(d)) count++;
    // ".", "..", 0, 1, 2 and the directory itself.
    SAY("only-standard", count == 6 ? "yes" : "no");
    return 0;
  }`,
);

const reopener = compile(
  'reopen-standard',
  `
  int main() {
    TRY("reopen-input", open("/proc/self/fd/0", O_RDONLY));
    TRY("reopen-input-writing", open("/proc/self/fd/0", O_RDWR));
    TRY("reopen-input-dev", open("/dev/stdin", O_WRONLY));
    // What can be opened is also written, for who looks at the file.
    write(open("/proc/self/fd/0", O_RDWR), "evil", 4);
    TRY("write-input", write(0, "x", 1));
    TRY("truncate-input", ftruncate(0, 0));
    return 0;
  }`,
);

const tamperer = compile(
  'tamper-through-input',
  `
  int main() {
    TRY("chmod", fchmodat(0, "secret.txt", 0777, 0));
    return 0;
  }`,
);

describe('using descriptors that the launcher has open', () => {
  const arena = makeArena();
  let launcher = '';
  beforeAll(async () => {
    launcher = await bundleLauncher();
  });
  /** Descriptors without close-on-exec: a file to read, one to write, a directory, a socket, and a high number. */
  const leaky = (command: string) =>
    [
      '/usr/bin/perl',
      '-MPOSIX',
      '-MSocket',
      '-e',
      `my ($secret, $outside) = splice @ARGV, 0, 2;
# Writing to the socket, which is not connected, is to fail and not to end the attacker.
$SIG{PIPE} = 'IGNORE';
socket my $server, PF_INET, SOCK_STREAM, 0; bind $server, sockaddr_in 0, INADDR_LOOPBACK; listen $server, 1;
dup2 fileno $server, 13;
dup2 POSIX::open($secret, O_RDONLY), 9;
dup2 POSIX::open("$outside/log", O_RDWR | O_CREAT), 10;
dup2 POSIX::open($outside, O_RDONLY), 11;
dup2 9, 1000;
exec { $ARGV[0] } @ARGV`,
      arena.secret,
      arena.outside,
      ...command.split('\0'),
    ] as const;

  it('works without a sandbox', async () => {
    const [program, ...rest] = leaky(user);
    const trace = await unconfined([program, ...rest]);
    expect(worked(trace)).toEqual(
      expect.arrayContaining(['open:9', 'open:10', 'write:10', 'openat:11', 'open:13', 'open:1000']),
    );
    expect(trace.stderr).toContain(SECRET);
  });

  it.each(TIERS)('fails: $name', async (tier) => {
    const task = {
      tier: tier.name,
      options: { workspace: arena.workspace, readable: [PROGRAMS] },
      argv: [user],
    };
    const before = snapshot(arena.outside);
    const [program, ...rest] = leaky([process.execPath, launcher, JSON.stringify(task)].join('\0'));
    const trace = await unconfined([program, ...rest]);
    const result: unknown = JSON.parse(trace.stdout);
    expect(result).toMatchObject({
      status: 'exited',
      exitCode: 0,
      stdout: 'only-standard=yes\n',
      stderr: '',
    });
    expect(snapshot(arena.outside)).toEqual(before);
  });

  it.each(TIERS)('finds none of the library: $name', async (tier) => {
    const sandbox = await arena.sandbox(tier);
    expect(stateOf(sandbox, 'descriptors')).toBe('enforced');
    const [one, two] = await Promise.all([confined(sandbox, [user]), confined(sandbox, [user])]);
    expect([one.stdout, two.stdout]).toEqual(['only-standard=yes\n', 'only-standard=yes\n']);
  });

  it.each(TIERS)('a file given as standard input cannot be opened anew or written: $name', async (tier) => {
    const task = {
      tier: tier.name,
      options: { workspace: arena.workspace, readable: [PROGRAMS] },
      argv: [reopener],
      run: { stdin: 'inherit' },
    };
    const trace = await unconfined([
      '/bin/sh',
      '-c',
      `exec "$0" "$1" "$2" < "${arena.secret}"`,
      process.execPath,
      launcher,
      JSON.stringify(task),
    ]);
    const { stdout } = JSON.parse(trace.stdout) as { stdout: string };
    expect(stdout.split('\n')).toHaveLength(6);
    // Without Landlock it is a pipe of the command's own, through which the launcher sends the file.
    const ofItsOwn = /reopen-input(-writing|-dev)?=ok/g;
    expect(tier.landlockAbi > 0 ? stdout : stdout.replaceAll(ofItsOwn, '')).not.toContain('=ok');
    expect(readFileSync(arena.secret, 'utf8')).toBe(SECRET);
  });

  it.each(TIERS)(
    'a file given as output cannot be read, or the report says that it can: $name',
    async (tier) => {
      const log = join(arena.outside, 'log');
      writeFileSync(log, SECRET);
      const task = {
        tier: tier.name,
        options: { workspace: arena.workspace },
        argv: ['/bin/cat', '/proc/self/fd/2'],
        run: { stdio: 'inherit' },
      };
      const trace = await unconfined([
        '/bin/sh',
        '-c',
        `exec "$0" "$1" "$2" 2>> "${log}"`,
        process.execPath,
        launcher,
        JSON.stringify(task),
      ]);
      expect(trace.stdout).toContain('"status":"exited"');
      const read = trace.stdout.includes(SECRET);
      const sandbox = await arena.sandbox(tier);
      const control = sandbox.plan.report.controls.find(({ id }) => id === 'descriptors');
      expect(read).toBe(control?.reason.includes('can be opened anew'));
    },
  );

  it('a directory outside is a standard input without a sandbox', async () => {
    const free = join(arena.root, 'free');
    mkdirSync(free);
    writeFileSync(join(free, 'secret.txt'), '');
    const trace = await unconfined(['/bin/sh', '-c', `exec "$0" < "${free}"`, tamperer]);
    expect(worked(trace)).toEqual(['chmod']);
  });

  it.each(TIERS)('a directory outside is no standard input: $name', async (tier) => {
    const task = {
      tier: tier.name,
      options: { workspace: arena.workspace, readable: [PROGRAMS] },
      argv: [tamperer],
      run: { stdin: 'inherit' },
    };
    const before = snapshot(arena.outside);
    const trace = await unconfined([
      '/bin/sh',
      '-c',
      `exec "$0" "$1" "$2" < "${arena.outside}"`,
      process.execPath,
      launcher,
      JSON.stringify(task),
    ]);
    expect(trace.stdout).toContain('"status":');
    expect(trace.stdout).not.toContain('chmod=ok');
    expect(snapshot(arena.outside)).toEqual(before);
  });
});
