#ifndef SANDBOX_RUN_PROCESS_SUPERVISION_H_
#define SANDBOX_RUN_PROCESS_SUPERVISION_H_

#include <functional>
#include <optional>

#include "notify/call_observer.h"
#include "notify/network_supervisor.h"
#include "process/command_spec.h"
#include "process/confinement.h"
#include "process/exit_tracing.h"
#include "process/launcher_link.h"
#include "process/limit_keeper.h"
#include "process/process_tree.h"
#include "process/shell_turns.h"
#include "process/standard_streams.h"
#include "process/tree_kill.h"
#include "process/watch.h"

namespace sandbox_run {

// Looks after a command that was started, on its own thread: feeds and drains its pipes, keeps the
// clock and the limits, serves the turns of a shell, and ends the tree.
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
    ShellTurns* turns;   // nullptr: it is no shell
    LauncherLink* link;  // nullptr: no launcher
    Slot& slot;
    const ConfinementSpec& confinement;
    const SignalScope& scope;
    ExitTracing& exits;
    CallObserver& calls;
    NetworkSupervisor* network;     // nullptr: the network is not listed
    TreeIndex::Activity* activity;  // nullptr: what it leaves behind is not asked for
    int wake_fd;                    // eventfd: there may be requests
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
  enum class Stage {
    kRunning,
    kExited,  // the command has ended, the rest of its tree has time left
    kEnded,   // so has the rest
  };

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
  // To be called before what the command left behind is ended; does nothing unless that is told.
  void NoteLeftRunning();
  // Sends everything of the tree its end; true if it is provably gone.
  bool KillTree();
  // The same, and takes notice of the command's own end.
  void EndTree();
  void Reap();
  void HandleTurns(const Watch& watch);
  void HandleLink();
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

#endif  // SANDBOX_RUN_PROCESS_SUPERVISION_H_
