import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { startBystander, until } from '../support/bystander.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { OLDER_TIERS, stateOf, TIERS } from '../support/tiers.ts';

/** Counts SIGURG, which does nothing to a process that does not ask for it, and SIGWINCH, which the kernel gives it later. */
const listener = compile(
  'signal-listener',
  `
  int main() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGURG);
    sigaddset(&set, SIGWINCH);
    sigprocmask(SIG_BLOCK, &set, 0);
    printf("ready\\n");
    for (;;) {
      fflush(stdout);
      siginfo_t info;
      if (sigwaitinfo(&set, &info) > 0) printf("got %d\\n", info.si_signo);
    }
  }`,
);

const sender = compile(
  'signal-sender',
  `
  #include <dirent.h>
  int main(int argc, char **argv) {
    // Everybody, in front of the numbers: where nothing holds signals, that would reach the commands of other tests.
    int everybody = argc > 1 && strcmp(argv[1], "everybody") == 0;
    for (int i = 1 + everybody; i < argc; i++) {
      char name[64];
      int pid = atoi(argv[i]), fd, pipes[2];
      siginfo_t info = {0};
      info.si_code = SI_QUEUE;
      #define NAME(what) (sprintf(name, what ":%d", pid), name)
      TRY(NAME("probe"), kill(pid, 0));
      TRY(NAME("kill"), kill(pid, SIGURG));
      if (pid != 1) TRY(NAME("group"), kill(-pid, SIGURG));
      TRY(NAME("tkill"), syscall(SYS_tkill, pid, SIGURG));
      TRY(NAME("tgkill"), syscall(SYS_tgkill, pid, pid, SIGURG));
      TRY(NAME("sigqueue"), syscall(SYS_rt_sigqueueinfo, pid, SIGURG, &info));
      TRY(NAME("tgsigqueue"), syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGURG, &info));
      TRY(NAME("pidfd"), (fd = syscall(SYS_pidfd_open, pid, 0)) < 0 ? -1 : syscall(SYS_pidfd_send_signal, fd, SIGURG, 0, 0));
      char path[64];
      sprintf(path, "/proc/%d", pid);
      TRY(NAME("proc-fd"), (fd = open(path, O_RDONLY | O_DIRECTORY)) < 0 ? -1 : syscall(SYS_pidfd_send_signal, fd, SIGURG, 0, 0));
      // Every thread: one of them belongs to the command itself.
      sprintf(path, "/proc/%d/task", pid);
      DIR *tasks = opendir(path);
      struct dirent *entry;
      int reached = 0;
      while (tasks && (entry = readdir(tasks))) {
        if (atoi(entry->d_name) > 0 && syscall(SYS_tgkill, pid, atoi(entry->d_name), SIGURG) == 0) reached++;
      }
      errno = EPERM;
      TRY(NAME("threads"), reached ? 0 : -1);
      // The kernel sends these on its own, when the pipe gets data.
      pipe(pipes);
      fcntl(pipes[0], F_SETSIG, SIGURG);
      fcntl(pipes[0], F_SETOWN, pid);
      fcntl(pipes[0], F_SETFL, O_ASYNC | O_NONBLOCK);
      write(pipes[1], "x", 1);
      struct { int type, pid; } owner = {1, pid};
      pipe(pipes);
      fcntl(pipes[0], F_SETSIG, SIGURG);
      fcntl(pipes[0], 15 /* F_SETOWN_EX */, &owner);
      fcntl(pipes[0], F_SETFL, O_ASYNC | O_NONBLOCK);
      write(pipes[1], "x", 1);
    }
    if (everybody) kill(-1, SIGURG);
    return 0;
  }`,
);

const DIRECT = 10;
const LAST = `got ${constants.signals.SIGWINCH}`;

describe('signaling processes outside', () => {
  const arena = makeArena();

  it('works without a sandbox', async () => {
    const bystander = await startBystander([listener]);
    // Not kill(-1): it would reach everything of this user.
    const trace = await unconfined(['/bin/sh', '-c', `"$0" "$1" & wait`, sender, String(bystander.pid)]);
    expect(worked(trace)).toHaveLength(DIRECT);
    expect(await until(() => bystander.lines().length > 0)).toBe(true);
  });

  describe.each([...TIERS, ...OLDER_TIERS])('$name', (tier) => {
    it('reaches nobody: bystander, launcher, its threads, its parent, pid 1; or the report says so', async () => {
      const bystander = await startBystander([listener]);
      let received = 0;
      let isOver = false;
      const count = () => {
        received++;
      };
      const end = () => {
        isOver = true;
      };
      process.on('SIGURG', count);
      process.on('SIGWINCH', end);
      const sandbox = await arena.sandbox(tier);
      const state = stateOf(sandbox, 'signals');
      const trace = await confined(sandbox, [
        sender,
        ...(state === 'enforced' ? ['everybody'] : []),
        ...[bystander.pid, process.pid, process.ppid, 1].map(String),
      ]);
      // Whatever was sent before has a lower number, and so is taken first.
      for (const pid of [bystander.pid, process.pid]) process.kill(pid, 'SIGWINCH');
      expect(await until(() => isOver && bystander.lines().includes(LAST))).toBe(true);
      process.off('SIGURG', count);
      process.off('SIGWINCH', end);
      expect(state).toBe(tier.landlockAbi >= 6 ? 'enforced' : 'unsupported');
      if (state !== 'enforced') return;
      expect(worked(trace)).toEqual([]);
      expect(Object.keys(trace.results)).toHaveLength(4 * DIRECT - 1);
      expect([received, bystander.lines()]).toEqual([0, [LAST]]);
    });
  });
});
