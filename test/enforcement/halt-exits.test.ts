import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Sandbox } from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { patience } from '../support/slow-host.ts';
import { HOST, OLDEST_TIERS, SUBREAPER_TIERS, TIERS } from '../support/tiers.ts';
import { untilTimeOut } from '../support/time-out.ts';
import { makeUnjudgedConfiguration } from '../support/unjudged-policy.ts';

/**
 * Asks to halt processes as they exit. Two processes that halt each other cannot be ended any more, so no move closes a
 * circle unless the same move, by the same process at a third one, has been refused before; and should one be closed all
 * the same, the first tracer lets go of the second before either ends.
 */
const halter = compile(
  'halter',
  `
  #include <poll.h>
  #include <pthread.h>
  #include <sys/ptrace.h>
  enum { EXIT = PTRACE_O_TRACEEXIT };
  static pid_t idle(void) {
    pid_t parent = getpid(), child = fork();
    if (child == 0) { prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); while (getppid() == parent) pause(); _exit(0); }
    return child;
  }
  static void done(pid_t child) {
    int status;
    kill(child, SIGKILL);
    while (waitpid(child, &status, __WALL) == child && WIFSTOPPED(status)) ptrace(PTRACE_CONT, child, 0, 0);
  }
  static int failed(long result) { return result < 0 ? errno : 0; }

  // The ways to ask; each returns an errno, and leaves the process running or traced without a halt.
  static int by_seize(pid_t pid) { return failed(ptrace(PTRACE_SEIZE, pid, 0, EXIT | PTRACE_O_TRACECLONE)); }
  static int stopped(pid_t pid) {
    int e = failed(ptrace(PTRACE_SEIZE, pid, 0, 0));
    if (e) return 1000 + e;
    ptrace(PTRACE_INTERRUPT, pid, 0, 0);
    return waitpid(pid, 0, __WALL) == pid ? 0 : 1000;
  }
  static int by_options(pid_t pid) {
    int e = stopped(pid);
    if (e) return e;
    e = failed(ptrace(PTRACE_SETOPTIONS, pid, 0, EXIT));
    ptrace(e ? PTRACE_DETACH : PTRACE_CONT, pid, 0, 0);
    return e;
  }
  static int by_old_number(pid_t pid) {
    int e = stopped(pid);
    if (e) return e;
    e = failed(syscall(SYS_ptrace, 21L, (long)pid, 0L, (long)EXIT));
    ptrace(e ? PTRACE_DETACH : PTRACE_CONT, pid, 0, 0);
    return e;
  }
  static int by_long_request(pid_t pid) {
    // The kernel looks at all of the request and so knows none like it, for which one has to be traced.
    return failed(syscall(SYS_ptrace, 0x100004206L, (long)pid, 0L, (long)EXIT));
  }
  static void *seize_there(void *pid) { return (void *)(long)by_seize(*(pid_t *)pid); }
  static int by_thread(pid_t pid) {
    pthread_t thread;
    void *result;
    if (pthread_create(&thread, 0, seize_there, &pid)) return 1001;
    pthread_join(thread, &result);
    return (long)result;
  }
  static const struct { const char *name; int (*ask)(pid_t); } ways[] = {
    {"seize", by_seize}, {"options", by_options}, {"old-number", by_old_number}, {"thread", by_thread}};

  // Runs a body in a child; returns what it exits with, also if this process halts it on its way out.
  #define CHILD(body) ({ fflush(stdout); pid_t c_ = fork(); if (c_ == 0) { _exit(body); } c_; })
  static int result_of(pid_t child) {
    int status;
    while (waitpid(child, &status, __WALL) == child && WIFSTOPPED(status)) ptrace(PTRACE_CONT, child, 0, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
  }
  // 255: told by something else than an errno.
  static long told(int e) { errno = e; return e ? -1 : 0; }
  static int at_idle(int (*ask)(pid_t)) { pid_t victim = idle(); int e = ask(victim); done(victim); return e > 254 ? 254 : e; }

  // The parent halts its child, which asks for the other direction; over an intermediate one if there is one.
  static int circle(int (*ask)(pid_t), int how) {
    int go[2], answer[2];
    pid_t first = getpid();
    // Who is traced stops for each of its signals, and the tracer may be stopped itself just then.
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, 0);
    pipe(go); pipe(answer);
    pid_t second = CHILD(({
      char byte;
      if (how == 1) ptrace(PTRACE_TRACEME, 0, 0, 0), raise(SIGSTOP);
      read(go[0], &byte, 1);
      // At somebody who halts nobody: if it is refused, then this is not the moment for a circle.
      unsigned char e = at_idle(ask);
      pid_t last;
      if (e == EINVAL && how == 2) {
        int inner[2];
        pipe(inner);
        last = CHILD(({ char b; read(inner[0], &b, 1); unsigned char i = ask(first); write(answer[1], &i, 1); for (;;) pause(); 0; }));
        e = by_seize(last);
        if (e == EINVAL) { write(inner[1], "x", 1); for (;;) pause(); }
      } else if (e == EINVAL) {
        e = ask(first);
      }
      write(answer[1], &e, 1);
      for (;;) pause();
      0;
    }));
    int status, e;
    if (how == 1) {
      waitpid(second, &status, WUNTRACED);
      e = failed(ptrace(PTRACE_SETOPTIONS, second, 0, EXIT));
      ptrace(PTRACE_CONT, second, 0, 0);
    } else {
      e = by_seize(second);
    }
    if (e) { write(go[1], "x", 1); kill(second, SIGKILL); waitpid(second, 0, __WALL); return 1000 + e; }
    unsigned char said = 255;
    write(go[1], "x", 1);
    struct pollfd answered = {answer[0], POLLIN, 0};
    while (poll(&answered, 1, 5) == 0) {
      // It, and threads that it makes.
      pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
      if (pid > 0 && WIFSTOPPED(status)) ptrace(PTRACE_CONT, pid, 0, 0);
    }
    read(answer[0], &said, 1);
    // Whatever was said, it is let go before anybody ends. What is not seized has no other way to stop.
    if (how == 1) kill(second, SIGSTOP); else ptrace(PTRACE_INTERRUPT, second, 0, 0);
    waitpid(second, &status, __WALL);
    ptrace(PTRACE_DETACH, second, 0, 0);
    kill(second, SIGKILL);
    // Its threads that have ended are this one's to wait for, too.
    pid_t pid;
    while ((pid = waitpid(-1, &status, __WALL)) > 0) if (WIFSTOPPED(status)) ptrace(PTRACE_CONT, pid, 0, 0);
    return said;
  }

  int main(int argc, char **argv) {
    const char *what = argv[1];
    char name[64];
    pid_t child;
    int status;
    #define NAME(prefix, i) (sprintf(name, "%s:%s", prefix, ways[i].name), name)
    if (!strcmp(what, "alone")) {
      for (int i = 0; i < 3; i++) TRY(NAME("alone", i), told(at_idle(ways[i].ask)));
      // It is not just a word.
      child = CHILD(({ raise(SIGSTOP); 5; }));
      waitpid(child, &status, WUNTRACED);
      TRY("alone:child", told(by_seize(child)));
      kill(child, SIGCONT);
      int halted = 0;
      while (waitpid(child, &status, __WALL) == child && WIFSTOPPED(status)) {
        unsigned long code = 0;
        if (status >> 16 == PTRACE_EVENT_EXIT) { ptrace(PTRACE_GETEVENTMSG, child, 0, &code); halted = WEXITSTATUS(code) == 5; }
        ptrace(PTRACE_CONT, child, 0, 0);
      }
      SAY("halted", halted && WIFEXITED(status) ? "ok" : "no");
    } else if (!strcmp(what, "second")) {
      // This one halts somebody, and so nobody else may, wherever it stands in the tree.
      pid_t victim = idle();
      TRY("first", told(by_seize(victim)));
      for (int i = 0; i < 4; i++) TRY(NAME("child", i), told(result_of(CHILD(at_idle(ways[i].ask)))));
      TRY("own-thread", told(({ child = idle(); int e = by_thread(child); done(child); e; })));
      TRY("long-request", told(({ child = idle(); int e = by_long_request(child); done(child); e; })));
      TRY("grandchild", told(result_of(CHILD(result_of(CHILD(at_idle(by_seize)))))));
      // Halted itself from its first moment, as its parent is.
      pid_t spare = idle();
      child = CHILD(({ raise(SIGSTOP); result_of(CHILD(by_seize(spare))); }));
      waitpid(child, &status, WUNTRACED);
      ptrace(PTRACE_SEIZE, child, 0, EXIT | PTRACE_O_TRACEFORK);
      kill(child, SIGCONT);
      int last = 255;
      pid_t pid;
      while ((pid = waitpid(-1, &status, __WALL)) > 0) {
        if (!WIFSTOPPED(status)) { if (pid == child) { last = WIFEXITED(status) ? WEXITSTATUS(status) : 255; break; } continue; }
        int number = status >> 16 ? 0 : WSTOPSIG(status);
        ptrace(PTRACE_CONT, pid, 0, number == SIGSTOP || number == SIGTRAP ? 0 : number);
      }
      TRY("traced", told(last));
      TRY("still-first", told(at_idle(by_options)));
      // A program of another name is the same process.
      fflush(stdout);
      execl(argv[0], argv[0], "after-exec", (char *)0);
    } else if (!strcmp(what, "after-exec")) {
      TRY("exec:child", told(result_of(CHILD(at_idle(by_seize)))));
      TRY("exec:itself", told(at_idle(by_seize)));
    } else if (!strcmp(what, "circle")) {
      static const char *hows[] = {"up", "trace-me", "third"};
      for (int how = 0; how < 3; how++)
        for (int i = 0; i < 4; i++) {
          char prefix[32];
          strcpy(prefix, hows[how]);
          int e = circle(ways[i].ask, how);
          sprintf(name, "%s:%s", prefix, ways[i].name);
          TRY(name, told(e));
        }
    } else if (!strcmp(what, "turns")) {
      // Who ends gives the right back: as a zombie, reaped, killed while it asks or holds.
      TRY("one", told(result_of(CHILD(at_idle(by_seize)))));
      child = CHILD(({ at_idle(by_seize); 0; }));
      waitid(P_PID, child, 0, WEXITED | WNOWAIT);
      TRY("beside-its-corpse", told(result_of(CHILD(at_idle(by_seize)))));
      waitpid(child, 0, 0);
      int ready[2];
      char byte;
      pipe(ready);
      child = CHILD(({ pid_t victim = idle(); by_seize(victim); write(ready[1], "x", 1); for (;;) pause(); 0; }));
      read(ready[0], &byte, 1);
      TRY("while-it-lives", told(result_of(CHILD(at_idle(by_seize)))));
      kill(child, SIGKILL);
      waitpid(child, 0, 0);
      TRY("after-it", told(result_of(CHILD(at_idle(by_seize)))));
    } else if (!strcmp(what, "crowd")) {
      // Many at once, again and again, some of which are killed while they ask.
      enum { rounds = 40, many = 8 };
      int most = 0, least = many;
      for (int round = 0; round < rounds; round++) {
        int go[2], answer[2], hold[2];
        pipe(go); pipe(answer); pipe(hold);
        pid_t all[many];
        for (int i = 0; i < many; i++)
          all[i] = CHILD(({
            char b;
            close(go[1]); close(hold[1]);
            pid_t mine = idle();
            read(go[0], &b, 1);
            int e = by_seize(mine);
            b = e == 0 ? 'y' : e == EINVAL ? 'n' : '?';
            write(answer[1], &b, 1);
            read(hold[0], &b, 1);
            done(mine);
            0;
          }));
        close(go[1]);
        if (round % 4 == 3) { kill(all[round % many], SIGKILL); }
        close(answer[1]);
        int yes = 0, other = 0, got = 0;
        char b;
        for (int i = 0; i < many - (round % 4 == 3); i++) if (read(answer[0], &b, 1) == 1) { got++; yes += b == 'y'; other += b == '?'; }
        // After one that is killed there may be another one.
        if (round % 4 == 3 && yes == 2) yes = 1;
        if (other) yes = 99;
        if (yes > most) most = yes;
        if (round % 4 != 3 && yes < least) least = yes;
        close(hold[1]);
        for (int i = 0; i < many; i++) waitpid(all[i], 0, 0);
        close(go[0]); close(answer[0]); close(hold[0]);
      }
      char text[32];
      sprintf(text, "%d-%d", least, most);
      SAY("admitted", text);
    } else if (!strcmp(what, "hold")) {
      // Somebody further down halts the first process, and never lets go.
      int ready[2];
      char byte;
      pipe(ready);
      CHILD(({ setsid(); int e = by_seize(getppid()); SAY("halts-first", e ? "no" : "ok"); close(1); close(2); write(ready[1], "x", 1); for (;;) pause(); 0; }));
      read(ready[0], &byte, 1);
      return 5;
    }
    return 0;
  }`,
  ['-pthread'],
);

/** Has a seccomp listener, of which there can be only one, around the program that it executes. */
const listener = compile(
  'listener',
  `
  #include <linux/filter.h>
  #include <linux/seccomp.h>
  int main(int argc, char **argv) {
    struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    // It is one for as long as somebody has it open.
    if (fd < 0 || fcntl(fd, F_SETFD, 0)) return 99;
    execvp(argv[1], argv + 1);
    return 98;
  }`,
);

const WAYS = ['seize', 'options', 'old-number', 'thread'];
const CLI = fileURLToPath(new URL('../../dist/cli.cjs', import.meta.url));
const STRACE = ['/usr/bin/strace', '/usr/local/bin/strace'].find((path) => existsSync(path));
const TRACING = [...TIERS, ...OLDEST_TIERS, ...SUBREAPER_TIERS].filter(({ landlockAbi }) => landlockAbi > 0);
const inspection = ({ plan }: Sandbox): string =>
  plan.report.controls.find(({ id }) => id === 'process-inspection')?.reason ?? '';

describe('halting processes as they exit', () => {
  const arena = makeArena();

  it('is open to everybody without a sandbox', async () => {
    const { results } = await unconfined([halter, 'second']);
    expect(Object.entries(results).filter(([, result]) => result !== 'ok')).toEqual([
      ['long-request', 'ESRCH'],
    ]);
    expect((await unconfined([halter, 'crowd'])).results.admitted).toBe('8-8');
  });

  describe.each(TRACING)('$name', (tier) => {
    it('works for one process, and really halts', async () => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [halter, 'alone']);
      expect([...worked(trace)].sort()).toEqual([
        'alone:child',
        'alone:old-number',
        'alone:options',
        'alone:seize',
        'halted',
      ]);
      expect(inspection(sandbox)).toContain('one tracer at a time');
    });

    it('is refused to every other process and thread while that one lives', async () => {
      const { results, stdout } = await confined(await arena.sandbox(tier), [halter, 'second']);
      expect(results, stdout).toEqual({
        first: 'ok',
        ...Object.fromEntries(WAYS.map((way) => [`child:${way}`, 'EINVAL'])),
        'own-thread': 'EINVAL',
        'long-request': 'ESRCH',
        grandchild: 'EINVAL',
        traced: 'EINVAL',
        'still-first': 'ok',
        'exec:child': 'EINVAL',
        'exec:itself': 'ok',
      });
    });

    it('is refused in the other direction, whatever the way round', async () => {
      const { results } = await confined(await arena.sandbox(tier), [halter, 'circle']);
      const tried = ['up', 'trace-me', 'third'].flatMap((how) => WAYS.map((way) => `${how}:${way}`));
      expect(results).toEqual(Object.fromEntries(tried.map((name) => [name, 'EINVAL'])));
    });

    it('goes to the next one when the tracer has ended, however it did', async () => {
      const { results } = await confined(await arena.sandbox(tier), [halter, 'turns']);
      expect(results).toEqual({
        one: 'ok',
        'beside-its-corpse': 'ok',
        'while-it-lives': 'EINVAL',
        'after-it': 'ok',
      });
    });

    it('is for one of many that ask at once', async () => {
      const { results } = await confined(await arena.sandbox(tier), [halter, 'crowd']);
      expect(results.admitted).toBe('1-1');
    });

    it('keeps no command from ending: not the one that is halted, nor its sandbox', async () => {
      const sandbox = await arena.sandbox(tier, { policy: { limits: { kill_grace_seconds: 0.2 } } });
      const result = await untilTimeOut(
        1500,
        (timeout) => sandbox.run([halter, 'hold'], { timeout }),
        ({ stdout }) => stdout !== '',
      );
      expect([result.status, result.stdout, result.treeEnded]).toEqual([
        'timed-out',
        'halts-first=ok\n',
        true,
      ]);
      expect((await confined(sandbox, [halter, 'alone'])).results.halted).toBe('ok');
    });

    it('is for one process of each command, of the same sandbox too', async () => {
      const sandbox = await arena.sandbox(tier);
      const both = await Promise.all([1, 2].map(() => confined(sandbox, [halter, 'second'])));
      expect(both.map(({ results }) => [results.first, results['child:seize']])).toEqual([
        ['ok', 'EINVAL'],
        ['ok', 'EINVAL'],
      ]);
    });

    it.runIf(STRACE !== undefined)('strace runs', async () => {
      const sandbox = await arena.sandbox(tier);
      const plain = await sandbox.run(
        'strace -f -o out.txt sh -c "true; exit 3"; echo $?; tail -n 1 out.txt',
      );
      expect(plain.stdout, plain.stderr).toMatch(/^3\n\d+ +\+\+\+ exited with 3 \+\+\+\n$/);
      const counted = await sandbox.run('strace -c ls');
      expect([counted.exitCode, counted.stderr]).toEqual([0, expect.stringContaining('execve')]);
      const attached = await sandbox.run('sleep 1 & strace -o attached.txt -p $!; tail -n 1 attached.txt');
      expect(attached.stdout).toBe('+++ exited with 0 +++\n');
    });

    it('is refused beneath somebody else’s seccomp listener, and the report says so', async () => {
      const sandbox = await arena.sandbox({
        ...tier,
        asIf: (host) => ({ ...tier.asIf(host), seccompListener: false }),
      });
      const { results } = await confined(sandbox, [halter, 'second']);
      expect([results.first, results['child:seize'], results['exec:itself']]).toEqual(
        Array(3).fill('EINVAL'),
      );
      expect(inspection(sandbox)).toContain('a seccomp listener was refused');
    });
  });

  // Below, nothing is traced anyway: trace-processes.test.ts.
  it.runIf(HOST.landlockAbi > 0)(
    'a launcher that runs beneath such a listener does without by itself (from ABI 1)',
    async () => {
      const program = join(arena.workspace, 'halter');
      copyFileSync(halter, program);
      const env = { ...process.env, XDG_CONFIG_HOME: makeUnjudgedConfiguration(arena.root) };
      const tell = (...around: readonly string[]): { readonly reason: string; readonly stdout: string } => {
        const [first = '', ...args] = [
          ...around,
          process.execPath,
          CLI,
          '--json=full',
          '--',
          program,
          'alone',
        ];
        const said = execFileSync(first, args, {
          cwd: arena.workspace,
          env,
          encoding: 'utf8',
          timeout: patience(60_000),
        });
        const { report, stdout } = JSON.parse(said);
        const { reason } = report.controls.find(({ id }: { id: string }) => id === 'process-inspection');
        return { reason, stdout };
      };
      expect(tell().reason).toContain('one tracer at a time');
      expect(tell().stdout).toContain('halted=ok');
      const beneath = tell(listener);
      expect(beneath.reason).toContain('a seccomp listener was refused');
      expect(beneath.stdout).toContain('alone:seize=22');
    },
  );
});
