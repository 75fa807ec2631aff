#ifndef SANDBOX_RUN_CORE_SUPERVISION_H_
#define SANDBOX_RUN_CORE_SUPERVISION_H_

#include <functional>
#include <optional>

#include "core/command_spec.h"
#include "core/confinement.h"
#include "core/guest.h"
#include "core/limit_keeper.h"
#include "core/process_tree.h"
#include "core/standard_streams.h"
#include "core/tree_kill.h"
#include "core/watch.h"

namespace sandbox_run {

// Looks after a command that was started, on its own thread: feeds and drains its pipes, keeps the
// clock and the limits, lets the guest do its part, and ends the tree.
class Supervision {
 public:
  // What others ask for; cancel and kill stay.
  struct Requests {
    bool cancel = false;
    bool kill = false;
    int members = 0;  // how often they were asked for
  };
  struct Parts {
    const CommandSpec& spec;
    CommandObserver& observer;
    StandardStreams& streams;
    ProcessTree& tree;
    LimitKeeper& limits;
    Slot& slot;
    const ConfinementSpec& confinement;
    const SignalScope& scope;
    int wake_fd;  // eventfd: there may be requests
    std::function<Requests()> take_requests;
    Clock::time_point begin;
  };

  // What is to be said of the end goes into `outcome`.
  Supervision(Parts parts, Outcome& outcome) : parts_(std::move(parts)), outcome_(outcome) {}

  // Returns once the tree has ended and its output was read.
  void Run();

 private:
  // A time that is not set does not count.
  struct Times {
    std::optional<Clock::time_point> deadline;     // of the command
    std::optional<Clock::time_point> kill_at;      // set once SIGTERM was sent
    std::optional<Clock::time_point> look_at;      // is a process left of a background command?
    std::optional<Clock::time_point> drain_until;  // set once the command has exited
  };
  using Stage = Guest::Stage;

  // Ends the command if it has used too much.
  void KeepLimits(const Watch& watch);
  // Ends the command, or its processes in the background, if it is time to.
  void KeepTime(const Requests& requests);
  void AskToEnd();
  // False: the processes that still hold the pipes have had their time.
  bool MayDrain(const Requests& requests);
  // The command has ended; says what is next.
  Stage HandleExit();
  // Whether what the command left behind has more time.
  bool MayStay(const Requests& requests);
  // Notes processes that the command left; call it before they are ended. Does nothing unless they
  // are to be reported.
  void NoteLeftRunning();
  // Kills every process of the tree; true if it is provably gone.
  bool KillTree();
  // Kills the tree, and notes in the outcome what only its end shows.
  void EndTree();
  void Reap();
  void HandleGuest(const Watch& watch);
  // The warden has ended: so does everything else. `exited`: the command had ended by itself.
  void LoseWarden(bool exited);

  const Parts parts_;
  Outcome& outcome_;
  Times times_;
  Stage stage_ = Stage::kRunning;
  bool reaped_ = false;
  uint64_t output_at_most_ = 0;  // that the tree can have written; known once it was ended
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_SUPERVISION_H_
