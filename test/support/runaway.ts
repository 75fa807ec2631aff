import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive, until } from './bystander.ts';
import { compile } from './sandboxee.ts';

/** What the descendants do to outlive the command that started them. */
export const TRICKS = [
  ...['adopted', 'adopter', 'blocked', 'child', 'daemon', 'deaf', 'group', 'moving', 'session', 'silent'],
  ...['stopped', 'vforked'],
];

/** Starts descendants that try to outlive the command; each writes its pid to a file named after its trick. */
export const compileRunaway = (): string =>
  compile(
    'run-away',
    `
  void record(const char *name) {
    char text[32], tmp[64];
    sprintf(tmp, ".%s", name);
    int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    write(fd, text, sprintf(text, "%d", getpid()));
    close(fd);
    rename(tmp, name);
  }
  void stay(const char *name) {
    record(name);
    for (;;) pause();
  }
  int main(int argc, char **argv) {
    int ready[2];
    char byte;
    pipe(ready);
    if (fork() == 0) stay("child");
    if (fork() == 0) { setsid(); stay("session"); }
    if (fork() == 0) { setpgid(0, 0); stay("group"); }
    if (fork() == 0) {
      setsid();
      if (fork()) _exit(0);
      setsid(); chdir(".");
      stay("daemon");
    }
    if (fork() == 0) { for (int i = 1; i < 65; i++) signal(i, SIG_IGN); setsid(); stay("deaf"); }
    if (fork() == 0) { sigset_t all; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, 0); setsid(); stay("blocked"); }
    if (fork() == 0) { setsid(); record("stopped"); raise(SIGSTOP); for (;;) pause(); }
    if (fork() == 0) { close(0); close(1); close(2); setsid(); if (fork()) _exit(0); stay("silent"); }
    if (fork() == 0) { prctl(PR_SET_PDEATHSIG, 0); prctl(PR_SET_CHILD_SUBREAPER, 1); setsid(); if (fork() == 0) { setsid(); stay("adopted"); } stay("adopter"); }
    if (fork() == 0) { setsid(); vfork() == 0 ? stay("vforked") : _exit(0); }
    if (fork() == 0) {
      // Always on the move: a new process before the old one goes. It stops when its directory has gone, which it asks
      // by a call that no observer looks at: with the launcher dead, one that is looked at would fail.
      char here[4096];
      setsid();
      for (int i = 0; syscall(SYS_getcwd, here, sizeof(here)) > 0; i++) {
        if (i % 50 == 0) record("moving");
        if (fork()) _exit(0);
        setsid();
        usleep(1000);
      }
      _exit(0);
    }
    for (;;) {
      int missing = 0;
      char *names[] = {"child", "session", "group", "daemon", "deaf", "blocked", "stopped", "silent", "adopted", "adopter", "vforked", "moving"};
      for (int i = 0; i < 12; i++) missing += access(names[i], F_OK) != 0;
      if (!missing) break;
      usleep(2000);
    }
    SAY("ready", "yes");
    if (argc > 1) { if (argc > 2) signal(SIGTERM, SIG_IGN); for (;;) pause(); }
    return 0;
  }`,
  );

/** The processes that recorded themselves there, by trick. */
export function pidsIn(directory: string): Readonly<Record<string, number>> {
  return Object.fromEntries(
    readdirSync(directory)
      // One that begins with a dot is being written, and gets its name in a moment; a listing that meets the renaming
      // may show it instead of the name that it replaces.
      .map((name) => name.replace(/^\./, ''))
      .filter((name, at, all) => all.indexOf(name) === at)
      .sort()
      .flatMap((name) => {
        const pid = readPid(join(directory, name));
        return pid === undefined ? [] : [[name, pid] as const];
      }),
  );
}

function readPid(path: string): number | undefined {
  try {
    return Number(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Ends what a test let survive, the one that is always on the move too, which nobody catches by its number. */
export async function endRunaways(marker: string, directory: string): Promise<boolean> {
  rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
  return until(() => {
    for (const pid of survivors(marker)) endIfThere(pid);
    return survivors(marker).length === 0;
  });
}

export function endIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

/** Everything whose program is the one above, in whatever process it is now. */
export const survivors = (marker: string): readonly number[] =>
  processes().filter((pid) => readProc(pid, 'cmdline').includes(marker) && isAlive(pid));

/** The wardens of a launcher. */
export const wardensOf = (launcher: number): readonly number[] =>
  processes().filter((pid) => {
    const status = readProc(pid, 'status');
    return status.startsWith('Name:\tsandbox-warden') && status.includes(`\nPPid:\t${launcher}\n`);
  });

const processes = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

/** Nothing of a process that has gone. */
function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}
