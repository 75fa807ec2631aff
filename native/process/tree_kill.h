#ifndef SANDBOX_RUN_PROCESS_TREE_KILL_H_
#define SANDBOX_RUN_PROCESS_TREE_KILL_H_

namespace sandbox_run {

// Ends whole process trees through a Landlock signal scope (ABI 6): a thread that is in a domain
// which scopes signals, and whose child is in a domain nested in it, can signal exactly the tree
// that the child started. kill(-1) from that thread then reaches every process of the tree at once,
// set-sid daemons and fork storms included, and nothing else (KERNEL.md section 3).
//
// A mistake here would end every process of the machine, so KillAll() asks for proof each time.

// True if a thread in a signal-scope domain provably cannot signal a process of the same user
// outside it. Tried once per process, on a thread and a witness process of its own.
bool SignalScopeIsProven();

// Membership of the calling thread in a signal scope. Enter at most once per thread.
class SignalScope {
 public:
  // Enters where that is proven to work; otherwise entered() stays false and nothing changed.
  // `view_root_fd`: as for EnterSignalScope().
  void Enter(int view_root_fd);
  bool entered() const { return entered_; }

  // Sends `signal` to every process of this thread's scope. False: not entered, or the last check
  // failed, and nothing was sent.
  bool KillAll(int signal) const;

 private:
  bool entered_ = false;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PROCESS_TREE_KILL_H_
