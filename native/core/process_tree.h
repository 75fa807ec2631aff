#ifndef SANDBOX_RUN_CORE_PROCESS_TREE_H_
#define SANDBOX_RUN_CORE_PROCESS_TREE_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "core/child.h"
#include "core/tree_kill.h"
#include "core/warden.h"

namespace sandbox_run {

// By what a tree is held together. Both end everything that the command started, whatever became
// of it (sessions of its own, orphans, stopped processes), when the command ends, when it is ended,
// and when the launcher is gone for whatever reason.
//
// clang-format off
// | tier         | where                         | held by                              | what it does not guarantee           |
// |--------------|-------------------------------|--------------------------------------|--------------------------------------|
// | signal-scope | Landlock ABI 6 (Linux 6.12)   | the kernel: one signal reaches all   | nothing of it is missing: no member  |
// |              |                               | of the tree at once and no other     | can leave the scope or reach its     |
// |              |                               |                                      | warden                               |
// | subreaper    | every kernel, no privileges   | the warden: orphans come to it; it   | a command can kill its warden and    |
// |              |                               | looks for descendants, stops them,   | ends with it, what it started does   |
// |              |                               | then kills them                      | not; a storm of forks that is not    |
// |              |                               |                                      | found whole within 5 s               |
// clang-format on
enum class TreeTier { kSignalScope, kSubreaper };

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
  // Starts the command; signals that were sent before are delivered now. With an entered scope the
  // tier is kSignalScope, else kSubreaper. `group_directory`: the control group to start it in, for
  // kSignalScope only. After a failure nothing runs, except after kWardenLost.
  Status Start(ChildPlan& plan, std::span<char> stack, const SignalScope& scope,
               std::optional<int> group_directory);
  TreeTier tier() const { return warden_ ? TreeTier::kSubreaper : TreeTier::kSignalScope; }

  // The first process; its number is its own until it is reaped. On the command's thread.
  pid_t pid() const { return pid_; }

  // Readable once the first process has ended; -1 when it has been reaped, or before the start.
  int exit_fd() const { return pidfd_.get(); }

  // Readable once the warden has ended before its time: nothing holds the tree together any more
  // should the launcher end. -1: it has been told to end, or there is none.
  int warden_fd(const SignalScope& scope) const;

  // The warden has ended without ending its tree.
  bool warden_lost() const { return warden_ && warden_->lost(); }

  // Sends a signal to the first process's group. Nothing happens once that process is reaped.
  void Signal(int number);

  // The first process will be a launcher: signals wait for the command. Before Start().
  void ExpectCommand() { expects_command_ = true; }
  // This is it, with a group of its own: signals are for it from now on, and for none once it has
  // ended.
  void CommandBegan(pid_t command);
  void CommandEnded();

  // Sends a signal to every process of the tree.
  void SignalAll(int number, const SignalScope& scope);

  // Ends every process of the tree at once; true if they are provably gone. The place for further
  // means: a control group's cgroup.kill goes before the rest.
  bool End(const SignalScope& scope);

  // Whether Reap() would come back at once, to be asked once exit_fd() is readable: a process that
  // traces the first one can withhold its end for as long as it lives.
  bool IsReapable();

  // To be called once exit_fd() is readable; gives the process's number back.
  Result<ProcessEnd> Reap();

  // The processes of the tree that are alive. Looks through /proc.
  std::vector<pid_t> Members(const SignalScope& scope) const;

  // Counts processes and threads of a scope, the newest first, and stops beyond `enough`: a fork
  // bomb is recognised in the time that it takes to list a fraction of it. `newest`: the last
  // number that was given to a process. 0 without a scope.
  size_t CountNewest(const SignalScope& scope, pid_t newest, size_t enough) const;

  // Gives up what held the tree together. To be called when it has ended.
  void Finish();

 private:
  void Started(pid_t pid, UniqueFd pidfd);
  void SignalGroup(int number);
  void SignalCommand(int number);
  Result<ProcessEnd> ReapByWarden();

  UniqueFd pidfd_;
  std::unique_ptr<Warden> warden_;  // tier kSubreaper

  std::mutex mutex_;  // guards what follows
  pid_t pid_ = -1;
  bool expects_command_ = false;
  pid_t command_ = -1;  // of a launcher
  bool command_ended_ = false;
  bool running_ = false;  // the process exists and has not been reaped
  std::vector<int> pending_signals_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_PROCESS_TREE_H_
