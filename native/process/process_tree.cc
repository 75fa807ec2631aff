#include "process/process_tree.h"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <utility>

namespace sandbox_run {

void ProcessTree::Started(pid_t pid, UniqueFd pidfd) {
  pidfd_ = std::move(pidfd);
  const std::lock_guard lock(mutex_);
  pid_ = pid;
  running_ = true;
  for (const int number : pending_signals_) SignalGroup(number);
  pending_signals_.clear();
}

void ProcessTree::Signal(int number) {
  const std::lock_guard lock(mutex_);
  if (running_) {
    SignalGroup(number);
  } else if (pid_ < 0) {
    pending_signals_.push_back(number);
  }
}

void ProcessTree::SignalGroup(int number) {
  // The process is a session and group leader from its first moment that matters; it is not reaped
  // while running_ is set, so the number cannot name another group.
  if (kill(-pid_, number) != 0) kill(pid_, number);
}

bool ProcessTree::End(const SignalScope& scope) {
  if (scope.KillAll(SIGKILL)) return true;
  Signal(SIGKILL);
  return false;
}

Result<ProcessEnd> ProcessTree::Reap() {
  ProcessEnd end;
  int status = 0;
  pid_t reaped;
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
    do {
      reaped = wait4(pid_, &status, 0, &end.usage);
    } while (reaped < 0 && errno == EINTR);
  }
  pidfd_.reset();
  // Somebody in this process waits for every child; the status is lost.
  if (reaped < 0) return Failure{"wait", errno, ""};
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  return end;
}

}  // namespace sandbox_run
