#ifndef SANDBOX_RUN_CORE_WARDEN_H_
#define SANDBOX_RUN_CORE_WARDEN_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "core/child.h"
#include "core/keep_watch.h"

namespace sandbox_run {

// A program that is executed as it was when it was opened, or not at all: it may lie where a
// command can write.
class PinnedProgram {
 public:
  explicit PinnedProgram(const std::string& path);
  // A descriptor to execute it by; -1: it is not there, or has been written to since.
  int fd() const;

 private:
  UniqueFd fd_;
  struct stat info_ = {};
};

// The warden's program, which lies beside the addon; opened once per process. -1: wardens go
// without.
int WardenProgram();

// Like WardenProgram(), for the program that a set-uid launcher starts (begin/handover.h).
int BeginProgram();

// The same for the program that carries connections to published ports (publish/relay_protocol.h).
int RelayProgram();

// Stage of a failure: the warden of a command was ended from outside, so the command was ended. In
// tier "subreaper" processes that it started may be left.
inline constexpr char kWardenLost[] = "warden_lost";

// The launcher's side of a warden: starts it, and ends it with the object. All functions are to be
// called on one thread, with every signal blocked.
class Warden {
 public:
  Warden();
  ~Warden();
  Warden(const Warden&) = delete;
  Warden& operator=(const Warden&) = delete;

  // Tier "signal-scope": starts one in the scope in which the calling thread is. Does not wait for
  // it; it is there for everything that is started afterwards.
  Status KeepScope(int program = WardenProgram());
  // Tier "subreaper": starts one that starts the command; returns the command's pid.
  // `command_stack`: the upper end.
  Result<pid_t> KeepCommand(ChildPlan& command, char* command_stack, int program = WardenProgram());

  // It has not ended and need not be replaced.
  bool alive() const;
  // Readable once it has ended without being told to; -1: it was told to, or never was.
  int lost_fd() const { return ended_ ? -1 : pidfd_.get(); }
  pid_t pid() const { return pid_; }

  // The following are for the warden of a command.

  // How the command ended, once it has; nothing if the warden does not say so in time.
  std::optional<WardenMessage> TakeExit(std::chrono::milliseconds patience);
  // The command's number may be given back.
  void ReleaseCommand();
  // Sends a signal to every descendant.
  void SignalAll(int number);
  // Ends every descendant; true if none is left.
  bool EndAll();
  // It had ended before it could say whether a descendant is left.
  bool lost() const { return lost_; }

 private:
  struct Memory;
  Status Start(int program, ChildPlan* command, char* command_stack);
  void Stop();
  bool Ask(WardenRequest request);
  std::optional<WardenMessage> Receive(std::chrono::milliseconds patience);

  std::unique_ptr<Memory> memory_;  // what it shares before it executes its program
  UniqueFd channel_;
  UniqueFd pidfd_;
  pid_t pid_ = -1;
  std::optional<WardenMessage> exit_;
  std::optional<bool> ended_;
  bool lost_ = false;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_WARDEN_H_
