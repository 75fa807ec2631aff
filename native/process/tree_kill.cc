#include "process/tree_kill.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <thread>

#include "base/unique_fd.h"
#include "landlock/ruleset.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

constexpr int kFirstAbiWithSignalScope = 6;

// Waits for a byte or for the end of the pipe; shares memory, so raw calls only.
int RunWitness(void* read_end) {
  char byte = 0;
  while (RawSyscall(SYS_read, *static_cast<int*>(read_end), Arg(&byte), 1) == -EINTR) {
  }
  return 0;
}

// Once in a process.
bool ProveOnThisThread() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);

  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // Not on the stack of this thread, which ends: where waitpid() is refused the witness may still
  // run then.
  alignas(16) static char stack[16384];
  static int read_fd;
  read_fd = read_end.get();
  // The witness is outside the scope, as this thread enters only afterwards, and of the same user,
  // so EPERM can come from the scope alone.
  const pid_t witness = clone(RunWitness, stack + sizeof(stack), CLONE_VM | SIGCHLD, &read_fd);
  bool proven = false;
  if (witness > 0) {
    const bool reachable_before = kill(witness, 0) == 0;
    const bool entered = EnterSignalScope(-1).ok();
    proven = reachable_before && entered && kill(witness, 0) == -1 && errno == EPERM;
    const char byte = 0;
    while (write(write_end.get(), &byte, 1) == -1 && errno == EINTR) {
    }
    while (waitpid(witness, nullptr, 0) == -1 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return proven;
}

// EPERM, or it is this very process (exempt from its own scope), or there is no such process.
bool OutOfReach(pid_t pid) {
  if (pid <= 0 || pid == getpid()) return true;
  return kill(pid, 0) == -1 && (errno == EPERM || errno == ESRCH);
}

}  // namespace

bool SignalScopeIsProven() {
  static std::once_flag once;
  static bool proven = false;
  std::call_once(once, [] {
    if (LandlockAbi() < kFirstAbiWithSignalScope) return;
    std::thread([] { proven = ProveOnThisThread(); }).join();
  });
  return proven;
}

Status SignalScope::Enter(int view_root_fd) {
  if (tried_ || !SignalScopeIsProven()) return Status();
  tried_ = true;
  if (!EnterSignalScope(view_root_fd).ok()) return Status();
  // Before anything is started, so that there is no moment without it.
  if (Status status = warden_.KeepScope(); !status.ok()) return status;
  entered_ = EnterSignalScope(view_root_fd).ok();
  return Status();
}

bool SignalScope::KillAll(int signal) const {
  if (!entered_) return false;
  // The last check before the call that must not go wrong: processes known to be outside must be
  // out of reach right now, on this thread.
  if (!OutOfReach(1) || !OutOfReach(getppid())) return false;
  kill(-1, signal);
  return true;
}

}  // namespace sandbox_run
