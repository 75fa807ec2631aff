#ifndef SANDBOX_RUN_CORE_GUEST_H_
#define SANDBOX_RUN_CORE_GUEST_H_

#include <linux/filter.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "core/watch.h"

namespace sandbox_run {

struct ChildPlan;
struct CommandSpec;
struct ConfinementSpec;
struct LauncherPlan;
struct Outcome;
class Slot;
class StandardStreams;

// A guest is code that lives with commands and does not hold them: it answers calls, watches files,
// feeds a shell, or starts the command through a set-uid program. These two classes are all that
// the core knows of guests. A guest cannot widen what holds a command: filters only add up, and it
// sets nothing of the child's plan except what is in Guest::Outfit. With a launcher there, it is
// the launcher that confines the command.

class Guest;

// The guest of a thread, and so of every command that the thread starts: the kernel never removes a
// seccomp filter.
class ThreadGuest {
 public:
  virtual ~ThreadGuest() = default;
  // Prepares the guest and returns the filter that the core installs on the thread, once. All
  // commands of the thread inherit it. After a failure nothing is started.
  virtual Result<std::vector<sock_filter>> Filter() = 0;
  // Receives the listener of that filter. After a failure nothing is started.
  virtual Status Serve(UniqueFd listener) = 0;
  // A command begins. `guest`: the command's own; nullptr for a rehearsal.
  virtual void Begin(Guest* guest) = 0;
  // The command has ended.
  virtual void End() = 0;
};

// The guest of one command. The core calls the functions on the command's thread, in this order.
class Guest {
 public:
  enum class Stage {
    kRunning,
    kExited,  // the first process has ended, the rest of the tree has time left
    kEnded,   // the tree was ended
  };
  struct Outfit {
    std::optional<int> standard_input;             // in place of the stream's
    std::shared_ptr<const LauncherPlan> launcher;  // is executed in place of the program
  };
  // One round of the command's thread.
  struct Round {
    const Watch& watch;
    Stage stage;
    bool is_ending;  // the command was told to end
    StandardStreams& streams;
    Slot& slot;
    const ConfinementSpec& confinement;
    std::function<std::vector<pid_t>()> members;  // the living processes of the tree
    Outcome& outcome;

    // The guest's answers.
    pid_t began = -1;       // the first process has started the command, as this process
    bool ended = false;     // that process has ended
    bool gives_up = false;  // the core must end the tree
  };

  virtual ~Guest() = default;
  // Nothing of the command exists yet. After a failure nothing is started.
  virtual Status Arrive() = 0;
  // Returns what the child gets beside its plan.
  virtual Result<Outfit> Equip(const CommandSpec& command, const ConfinementSpec& confinement,
                               const Slot& slot, const ChildPlan& plan) = 0;
  // The child has its copies of the descriptors. `command`: its process; -1: it has not begun yet,
  // and Round::began will tell.
  virtual void Started(pid_t command) = 0;
  // In each round: adds the descriptors to wait for, then handles those that are ready.
  virtual void AddTo(Watch& watch, Stage stage) = 0;
  virtual void Handle(Round& round) = 0;
  // The tree was ended. May correct the outcome. `was_executed`: the child executed its program.
  virtual void Ended(Outcome& outcome, bool was_executed) = 0;
  // Always called last, even if nothing was started. Releases what the guest holds.
  virtual void Leave() = 0;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_GUEST_H_
