#ifndef SANDBOX_RUN_CORE_TREE_KILL_H_
#define SANDBOX_RUN_CORE_TREE_KILL_H_

#include <sys/types.h>

#include "base/result.h"
#include "core/warden.h"

namespace sandbox_run {

// Ends whole process trees through a Landlock signal scope (ABI 6): a thread that is in a domain
// which scopes signals, and whose child is in a domain nested in it, can signal exactly the tree
// that the child started. kill(-1) from that thread then reaches every process of the tree at once,
// set-sid daemons and fork storms included, and nothing else.
//
// A mistake here would end every process of the machine, so KillAll() asks for proof each time.

// Stage of a failure: the tree cannot be held by a signal scope.
inline constexpr char kScopeStage[] = "signal_scope";

// True if a thread in a signal-scope domain provably cannot signal a process of the same user
// outside it. Tried once per process, on a thread and a witness process of its own; a failure: it
// could not be tried now, for want of something that others use up.
Result<bool> ProveSignalScope();
// The answer of ProveSignalScope(); false if it failed.
bool SignalScopeIsProven();

// Membership of the calling thread in a signal scope, and the warden that ends what is in it should
// the launcher not live to do so. Enter at most once per thread.
//
// There are two scopes, one in the other: the warden is in the outer one alone, where neither this
// thread nor the tree can reach it.
class SignalScope {
 public:
  // Enters, and starts the warden. A failure: this is not proven to work here, or does not, and
  // nothing may be started on this thread. `view_root`: as for EnterSignalScope().
  Status Enter(std::optional<int> view_root);
  bool entered() const { return entered_; }
  // False: the warden was ended from outside, or never was; this thread makes no second attempt.
  bool guarded() const { return !tried_ || (entered_ && warden_.alive()); }
  // Readable once the warden has ended without being told to; -1: there is none to wait for.
  int lost_fd() const { return entered_ ? warden_.lost_fd() : -1; }

  // Sends `signal` to every process of this thread's scope. False: not entered, or the last check
  // failed, and nothing was sent.
  bool KillAll(int signal) const;

 private:
  Warden warden_;
  bool tried_ = false;
  bool entered_ = false;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_TREE_KILL_H_
