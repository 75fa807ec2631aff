#include "process/warden_child.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <cerrno>

#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"
#include "warden/keep_watch.h"

// Shares memory with the launcher like child.cc, and keeps the same rules.

namespace sandbox_run {
namespace {

constexpr int kNotStarted = 127;
constexpr long kSignalSetSize = 8;

pid_t StartCommand(WardenPlan* plan) {
  ChildPlan* command = plan->command;
  // What it leaves behind comes to this process, and to no other.
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
  RawSyscall(SYS_sendto, plan->channel, Arg(&started), sizeof(started), MSG_NOSIGNAL, 0, 0);
  return pid;
}

// "sandbox-warden [PID]"; only comes back if the program cannot be executed.
void Execute(int program, pid_t command) {
  char number[16];
  char* at = number + sizeof(number);
  *--at = 0;
  for (pid_t rest = command; rest > 0; rest /= 10) *--at = static_cast<char>('0' + rest % 10);
  char name[] = "sandbox-warden";
  char* const argv[] = {name, command > 0 ? at : nullptr, nullptr};
  char* const envp[] = {nullptr};
  RawSyscall(SYS_execveat, program, Arg(""), Arg(argv), Arg(envp), AT_EMPTY_PATH);
}

}  // namespace

int RunWarden(void* argument) {
  auto* plan = static_cast<WardenPlan*>(argument);
  const uint64_t all = ~0ull;
  RawSyscall(SYS_rt_sigprocmask, SIG_SETMASK, Arg(&all), 0, kSignalSetSize);
  ResetSignalHandlers();
  // Not of the launcher's terminal and group: Ctrl-C and the end of a session are not its business.
  RawSyscall(SYS_setsid);
  const pid_t command = plan->command == nullptr ? 0 : StartCommand(plan);
  if (command < 0) return kNotStarted;
  // Nothing of the launcher's is held: no directory, no lock, no end of anybody's pipe.
  RawSyscall(SYS_chdir, Arg("/"));
  constexpr int kChannel = 0, kProgram = 1;
  RawSyscall(SYS_dup3, plan->channel, kChannel, 0);
  const long program =
      plan->program < 0 ? -1 : RawSyscall(SYS_dup3, plan->program, kProgram, O_CLOEXEC);
  CloseFrom(program < 0 ? kProgram : kProgram + 1, Closing::kNow);
  if (program >= 0) {
    Execute(kProgram, command);
    RawSyscall(SYS_close, kProgram);
  }
  // As good, but for what the memory of the launcher is: it stays as long as this process, and
  // whoever ends all that share it (the kernel, out of memory) ends this process too.
  return command > 0 ? KeepTree(kChannel, command) : KeepScope(kChannel);
}

}  // namespace sandbox_run
