#ifndef SANDBOX_RUN_CORE_COMMAND_H_
#define SANDBOX_RUN_CORE_COMMAND_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "core/command_spec.h"
#include "core/confinement.h"
#include "core/guest.h"
#include "core/supervision.h"
#include "core/tree_kill.h"

namespace sandbox_run {

// What a thread keeps from one command to the next.
struct CommandPlace {
  CommandPlace();
  ~CommandPlace();
  // Destroyed last, because it answers the thread's calls: the members below make some when they
  // are destroyed, and without an answer a directory or a warden would be left.
  std::unique_ptr<ThreadGuest> guest;
  std::unique_ptr<Slot> slot;  // clean, or none yet
  SignalScope scope;           // knows the slot's view
  struct ChildMemory;
  std::unique_ptr<ChildMemory> child;
};

// One running command, whose life is drawn in README.md beside this file: starts it, feeds and
// drains its pipes, watches the clock and ends its process tree, all on one thread. The other
// public functions may be called from any thread.
class Command {
 public:
  ~Command();
  static Result<std::shared_ptr<Command>> Make(std::shared_ptr<Confinement> confinement,
                                               CommandSpec spec,
                                               std::unique_ptr<CommandObserver> observer);

  // The state of the CommandPlace after a run.
  enum class Afterwards {
    kPlaceIsKept,     // clean, for the next command
    kPlaceIsGone,     // given back
    kNeedsNewThread,  // it is out of date; nothing was run, and the command is still to be run
  };
  // Runs the command and reports to the observer. `offer` is called once it is certain that the
  // place can be used again, so that the next command may be handed over while this function still
  // cleans up; it returns false if no command wants the place.
  Afterwards Run(CommandPlace& place, const std::function<bool()>& offer);
  // Reports that there was no way to run it.
  void GiveUp(Failure failure);

  // Sends a signal to the command's process group, once it exists.
  void Signal(int number);
  // Ends the command: SIGTERM, then SIGKILL after the grace period. `now`: SIGKILL at once.
  void Cancel(bool now);
  // Says that `bytes` of streamed output were consumed.
  void Acknowledge(size_t bytes);
  // Gives the command's terminal, if it has one, another size.
  void Resize(TerminalSize size);
  // Begins to report output, first of all what was kept so far, or ends that.
  void Stream(bool on);
  // What was captured so far. index: 0 is standard output, 1 standard error.
  CapturedStream OutputSoFar(int index) { return streams_.SoFar(index); }
  // Asks for the processes of the tree that are alive. No answer comes once the tree has ended.
  void AskMembers();
  // Wakes the command's thread, so that it looks for requests; its guest may have some.
  void Wake();

 private:
  Command(std::shared_ptr<Confinement> confinement, CommandSpec spec,
          std::unique_ptr<CommandObserver> observer);
  Outcome RunIn(CommandPlace& place);
  Status MeetThreadGuest(CommandPlace& place);
  Status Launch(CommandPlace& place);
  std::optional<Failure> StartFailure(const ChildPlan& plan) const;
  // What there is to be done; a question is answered once.
  Supervision::Requests TakeRequests();
  bool IsCanceled();

  const std::shared_ptr<Confinement> confinement_;
  CommandSpec spec_;
  const std::unique_ptr<CommandObserver> observer_;
  UniqueFd wake_;  // eventfd: something below changed
  StandardStreams streams_;
  ProcessTree tree_;
  LimitKeeper limits_;
  sock_fprog added_filter_ = {};  // of spec_.added_filter

  std::atomic<bool> signaled_ = false;  // Signal() was called

  std::mutex mutex_;  // guards what follows
  Supervision::Requests requests_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_COMMAND_H_
