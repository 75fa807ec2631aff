#include "core/tree_kill.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <optional>

#include "core/ruleset.h"

namespace sandbox_run {
namespace {

constexpr int kFirstAbiWithSignalScope = 6;

// All that is asked of the witness is to be another process, and one that has ended is one until it
// is waited for. So it holds nothing, waits for nothing and ends at once.
int EndAtOnce(void*) { return 0; }

// Whatever step it was. Of what does not pass nothing is said but that there is no scope here: the
// rest of Landlock may do.
Failure NotInScope(const Failure& why) {
  return {kScopeStage, IsMomentary(why.error) ? why.error : 0, ""};
}

Result<bool> ProveOnThisThread() {
  alignas(16) char stack[4096];
  // Without a signal at its end: neither an ignored one nor code that waits for every child
  // takes it away. It is outside the scope, as this thread enters only afterwards, and of the same
  // user, so EPERM can come from the scope alone.
  const pid_t witness = clone(EndAtOnce, stack + sizeof(stack), CLONE_VM | CLONE_VFORK, nullptr);
  if (witness < 0) return Failure{kScopeStage, errno, ""};
  const bool reachable_before = kill(witness, 0) == 0;
  Status entered = EnterSignalScope(std::nullopt);
  const bool proven = reachable_before && entered.ok() && kill(witness, 0) == -1 && errno == EPERM;
  while (waitpid(witness, nullptr, __WALL) == -1 && errno == EINTR) {
  }
  if (!entered.ok() && IsMomentary(entered.failure().error)) return NotInScope(entered.failure());
  return proven;
}

// On a thread of its own, as there is no way out of a scope.
Result<bool> Prove() {
  Result<bool> proven = false;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = pthread_create(
      &thread, nullptr,
      [](void* result) -> void* {
        *static_cast<Result<bool>*>(result) = ProveOnThisThread();
        return nullptr;
      },
      &proven);
  if (error == 0) pthread_join(thread, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return Failure{kScopeStage, error, ""};
  return proven;
}

// EPERM, or it is this very process (exempt from its own scope), or there is no such process.
bool OutOfReach(pid_t pid) {
  if (pid <= 0 || pid == getpid()) return true;
  return kill(pid, 0) == -1 && (errno == EPERM || errno == ESRCH);
}

}  // namespace

Result<bool> ProveSignalScope() {
  static std::mutex mutex;
  static std::optional<bool> known;
  const std::lock_guard lock(mutex);
  if (!known) {
    const int abi = LandlockAbi();
    if (abi < 0 && IsMomentary(-abi)) return Failure{kScopeStage, -abi, ""};
    if (abi < kFirstAbiWithSignalScope) known = false;
  }
  if (!known) {
    Result<bool> proven = Prove();
    if (!proven.ok()) return proven;
    known = proven.value();
  }
  return *known;
}

bool SignalScopeIsProven() {
  const Result<bool> proven = ProveSignalScope();
  return proven.ok() && proven.value();
}

Status SignalScope::Enter(std::optional<int> view_root) {
  if (tried_) return entered_ ? Status() : Failure{kScopeStage, 0, ""};
  Result<bool> proven = ProveSignalScope();
  if (!proven.ok()) return proven.failure();
  if (!proven.value()) return Failure{kScopeStage, 0, ""};
  tried_ = true;
  Status outer = EnterSignalScope(view_root);
  if (!outer.ok()) return NotInScope(outer.failure());
  // Before anything is started, so that there is no moment without it.
  if (Status status = warden_.KeepScope(); !status.ok()) return status;
  Status inner = EnterSignalScope(view_root);
  if (!inner.ok()) return NotInScope(inner.failure());
  entered_ = true;
  return Status();
}

bool SignalScope::KillAll(int signal) const {
  if (!entered_) return false;
  // The last check before the call that must not go wrong: processes known to be outside must be
  // out of reach right now, on this thread.
  if (!OutOfReach(1) || !OutOfReach(getppid())) return false;
  // ESRCH: there is no process in it.
  return kill(-1, signal) == 0 || errno == ESRCH;
}

}  // namespace sandbox_run
