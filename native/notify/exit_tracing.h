#ifndef SANDBOX_RUN_NOTIFY_EXIT_TRACING_H_
#define SANDBOX_RUN_NOTIFY_EXIT_TRACING_H_

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "sys/kernel_abi.h"

namespace sandbox_run {

// Lets the commands of a thread halt the processes that they trace on their way out
// (PTRACE_O_TRACEEXIT, without which strace does not start), one process at a time.
//
// Of two that trace each other so, each would halt for the other, where not even SIGKILL reaches
// them (since Linux 6.5). So no process may be halted by one that it halts itself, however long the
// way round. That is certain if only one process ever halts others: a process cannot trace itself.
// It does not depend on whom it traces, which could be another one by the time of the call: the
// number of a process that has ended may become that of a thread of a process older than the
// tracer, so that to compare ages or ancestors first would prove nothing.
//
// What asks for it stops in a seccomp filter of this thread, which everything that it starts
// inherits, and is answered here: of the call itself no more is looked at than the filter did.
class ExitTracing {
 public:
  // What the host must be able to do for the answers, and the filter that asks, which can be the
  // end of a longer one.
  static Status CheckHost();
  static std::vector<sock_filter> Filter();
  // Answers a call that arrived on another listener.
  void Answer(int listener, const abi::SeccompNotification& call);
  // Takes the listener of a filter that asks for nothing else.
  void Serve(UniqueFd listener) { listener_ = std::move(listener); }
  // Readable if a process asks; -1: it serves none. If there is no answer, as it is not open any
  // more, calls fail with ENOSYS.
  int fd() const { return listener_.get(); }
  // Answers one waiting call, if there is any. Never blocks.
  void Answer();

 private:
  // Whether the process of this thread has the right, or gets it now.
  bool Admit(int listener, pid_t thread, uint64_t call);

  UniqueFd listener_;
  UniqueFd tracer_;  // the process that has the right, or had it last
  pid_t tracer_pid_ = -1;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_EXIT_TRACING_H_
