#include "core/warden_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include <cerrno>

#include "core/keep_watch.h"
#include "sys/kernel_abi.h"
#include "sys/own_call.h"
#include "sys/raw_syscall.h"

// Shares memory with the launcher like child.cc, and keeps the same rules.

namespace sandbox_run {
namespace {

constexpr int kNotStarted = 127;
constexpr long kSignalSetSize = 8;

pid_t StartCommand(WardenPlan* plan) {
  ChildPlan* command = plan->command;
  if (command->program == nullptr && !RehearseWarden(command, WardenTier::kCommand)) return -1;
  // Orphans of the command become children of this process, not of another.
  const long result = RawSyscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (result < 0) {
    command->failed_errno = static_cast<int>(-result);
    command->failed_stage = "subreaper";
    return -1;
  }
  // Its parent-death signal hangs on this process.
  command->parent_pid = static_cast<pid_t>(RawSyscall(SYS_getpid));
  const pid_t pid = clone(RunChild, plan->command_stack, CLONE_VM | SIGCHLD, command);
  if (pid < 0) {
    // errno is the launcher's thread's, which runs on: what is there may be something else.
    command->failed_errno = EAGAIN;
    command->failed_stage = "clone";
    return -1;
  }
  WardenMessage started;
  started.pid = pid;
  const long told =
      RawSyscall(SYS_sendto, plan->channel, Arg(&started), sizeof(started), MSG_NOSIGNAL, 0, 0);
  if (told < 0) {
    OwnCall(SYS_kill, pid, SIGKILL);
    command->failed_errno = static_cast<int>(-told);
    command->failed_stage = "warden";
    return -1;
  }
  return pid;
}

// Writes the digits of a number before `end`, and returns where they begin.
char* Text(pid_t number, char* end) {
  *--end = 0;
  do {
    *--end = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  return end;
}

// "sandbox-warden LAUNCHER [COMMAND]" (0: a command that has been released); only comes back if the
// program cannot be executed.
constexpr pid_t kNoCommand = -1;
void Execute(int program, pid_t launcher, pid_t command) {
  char name[] = "sandbox-warden";
  char numbers[2][16];
  char* const argv[] = {
      name, Text(launcher, numbers[0] + sizeof(numbers[0])),
      command == kNoCommand ? nullptr : Text(command, numbers[1] + sizeof(numbers[1])), nullptr};
  char* const envp[] = {nullptr};
  OwnCall(SYS_execveat, program, Arg(""), Arg(argv), Arg(envp), AT_EMPTY_PATH);
}

// Most commands take no longer than this. Executing a program meanwhile would slow down the start
// of the command, and be useless.
constexpr long kBriefMilliseconds = 25;

// False: something has happened that must be handled first.
bool NothingHappens(int channel) {
  const uint64_t children = 1ull << (SIGCHLD - 1);
  const long ended =
      RawSyscall(SYS_signalfd4, -1, Arg(&children), kSignalSetSize, O_CLOEXEC | O_NONBLOCK);
  pollfd watched[] = {{channel, POLLIN, 0}, {static_cast<int>(ended), POLLIN, 0}};
  const timespec brief = {0, kBriefMilliseconds * 1'000'000};
  const long ready = RawSyscall(SYS_ppoll, Arg(watched), 2, Arg(&brief), 0, kSignalSetSize);
  RawSyscall(SYS_close, ended);
  return ready == 0;
}

}  // namespace

int RunWarden(void* argument) {
  auto* plan = static_cast<WardenPlan*>(argument);
  const uint64_t all = ~0ull;
  RawSyscall(SYS_rt_sigprocmask, SIG_SETMASK, Arg(&all), 0, kSignalSetSize);
  if (ResetSignalHandlers() < 0) return kNotStarted;
  // Not of the launcher's terminal and group: Ctrl-C and the end of a session are not its business,
  // and a signal to the group would end both at once.
  if (RawSyscall(SYS_setsid) < 0) return kNotStarted;
  pid_t command = kNoCommand;
  if (plan->command != nullptr) {
    command = StartCommand(plan);
    if (command < 0) return kNotStarted;
  }
  // Nothing of the launcher's is held: no directory, no lock, no end of a pipe.
  OwnCall(SYS_chdir, Arg("/"));
  constexpr int kChannel = 0, kProgram = 1;
  // Without it the warden would watch a descriptor of the launcher's.
  if (RawSyscall(SYS_dup3, plan->channel, kChannel, 0) < 0) return kNotStarted;
  const bool has_program =
      plan->program >= 0 && RawSyscall(SYS_dup3, plan->program, kProgram, O_CLOEXEC) >= 0;
  if (CloseFrom(has_program ? kProgram + 1 : kProgram, Closing::kNow) < 0) return kNotStarted;

  // A program of its own has memory of its own: who ends everybody that shares the launcher's (the
  // kernel, out of memory) does not end it, and it keeps nothing of the launcher's from being
  // freed. If it cannot be executed, the code here does the same without that protection.
  if (has_program && NothingHappens(kChannel)) Execute(kProgram, plan->launcher, command);
  if (command == kNoCommand) return KeepScope(kChannel, plan->launcher);
  const pid_t launcher = plan->launcher;
  const bool released = KeepTree(kChannel, launcher, command, has_program) == TreeEnd::kReleased;
  if (!released) return 0;
  // Background processes of the command may live for long.
  Execute(kProgram, launcher, 0);
  KeepTree(kChannel, launcher, 0, false);
  return 0;
}

}  // namespace sandbox_run
