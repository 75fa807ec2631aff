#ifndef SANDBOX_RUN_PROCESS_PROCESS_TREE_H_
#define SANDBOX_RUN_PROCESS_PROCESS_TREE_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <mutex>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "process/tree_kill.h"

namespace sandbox_run {

// How the first process of a tree ended.
struct ProcessEnd {
  int exit_code = 0;  // if it exited
  int signal = 0;     // if a signal ended it
  rusage usage = {};
};

// A command's first process and everything that it starts. Signal() may be called from any thread,
// the rest from the command's own.
class ProcessTree {
 public:
  // The process exists. Signals that were sent before are delivered now.
  void Started(pid_t pid, UniqueFd pidfd);

  // Readable once the first process has ended; -1 when it has been reaped, or before the start.
  int exit_fd() const { return pidfd_.get(); }

  // The first process; its number is its own until it is reaped.
  pid_t pid() const { return pid_; }

  // Sends a signal to the first process's group.
  void Signal(int number);

  // Ends every process of the tree at once; true if they are provably gone. Without a scope the
  // first process's group at least is ended.
  bool End(const SignalScope& scope);

  // To be called once exit_fd() is readable; gives the process's number back.
  Result<ProcessEnd> Reap();

 private:
  void SignalGroup(int number);

  UniqueFd pidfd_;

  std::mutex mutex_;  // guards what follows
  pid_t pid_ = -1;
  bool running_ = false;  // the process exists and has not been reaped
  std::vector<int> pending_signals_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PROCESS_PROCESS_TREE_H_
