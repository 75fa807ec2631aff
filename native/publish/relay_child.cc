#include "publish/relay_child.h"

#include <fcntl.h>
#include <signal.h>

#include <cstdint>

#include "core/child.h"
#include "sys/raw_syscall.h"

// This code runs in a child that shares the launcher's memory (CLONE_VM), like child.cc, and
// follows the same rules: no allocation, raw system calls only.

namespace sandbox_run {
namespace {

constexpr long kSignalSetSize = 8;
constexpr int kNotStarted = 127;

int Fail(RelayPlan* plan, long result) {
  plan->error = static_cast<int>(-result);
  return kNotStarted;
}

}  // namespace

int RunRelay(void* argument) {
  auto* plan = static_cast<RelayPlan*>(argument);
  long result = ResetSignalHandlers();
  if (result < 0) return Fail(plan, result);
  // In a session of its own the relay does not get the SIGINT of Ctrl-C in the launcher's terminal.
  result = RawSyscall(SYS_setsid);
  if (result < 0) return Fail(plan, result);
  RawSyscall(SYS_chdir, Arg("/"));
  const int count = static_cast<int>(plan->fd_count);
  for (int fd = 0; fd < count; ++fd) {
    result = RawSyscall(SYS_dup3, plan->fds[fd], fd, 0);
    if (result < 0) return Fail(plan, result);
  }
  // Close-on-exec: execve itself closes the executable's descriptor.
  result = RawSyscall(SYS_dup3, plan->program, count, O_CLOEXEC);
  if (result < 0) return Fail(plan, result);
  result = CloseFrom(count + 1, Closing::kNow);
  if (result < 0) return Fail(plan, result);
  const uint64_t none = 0;
  RawSyscall(SYS_rt_sigprocmask, SIG_SETMASK, Arg(&none), 0, kSignalSetSize);
  char name[] = "sandbox-run-relay";
  char* const argv[] = {name, nullptr};
  char* const envp[] = {nullptr};
  return Fail(plan, RawSyscall(SYS_execveat, count, Arg(""), Arg(argv), Arg(envp), AT_EMPTY_PATH));
}

}  // namespace sandbox_run
