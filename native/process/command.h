#ifndef SANDBOX_RUN_PROCESS_COMMAND_H_
#define SANDBOX_RUN_PROCESS_COMMAND_H_

#include <sys/resource.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "process/confinement.h"
#include "process/limit_keeper.h"
#include "process/process_tree.h"
#include "process/shell_turns.h"
#include "process/standard_streams.h"
#include "process/tree_kill.h"
#include "process/watch.h"

namespace sandbox_run {

struct CommandSpec {
  std::string program;  // absolute
  std::vector<std::string> argv;
  std::string env;  // NAME=VALUE, each ended by NUL
  std::string cwd;
  StreamsSpec streams;
  std::chrono::milliseconds timeout{0};  // 0: none
  std::chrono::milliseconds kill_grace{0};
  bool background = false;  // what the command leaves behind is kept when it ends
  std::optional<std::chrono::milliseconds> idle_timeout;  // 0: none; unset: the confinement's
  bool shell = false;  // a bash that lives on: its standard input is a channel for turns
};

// How a command ended.
struct Outcome {
  std::optional<Failure> failure;  // set: the command did not start
  int exit_code = 0;               // if it exited
  int signal = 0;                  // if a signal ended it
  bool timed_out = false;
  bool canceled = false;
  std::optional<LimitExcess> limit;  // for which it was ended
  bool tree_ended = false;           // every process that it started is provably gone
  bool output_held = false;          // it ended, but what it left behind kept its output open
  TreeTier tree_tier = TreeTier::kSignalScope;
  double duration_ms = 0;
  CapturedStream output[2];  // stdout, stderr
  std::optional<SpilledStream> spilled[2];
  rusage usage = {};
  TreeUsage tree_usage;
  long launcher_max_rss_kib = 0;           // this process's own, at the launch
  std::vector<std::string> changed_paths;  // of those that the confinement watches
};

// Receives events on the command's own thread.
class CommandObserver {
 public:
  virtual ~CommandObserver() = default;
  virtual void OnOutput(int stream, std::string chunk) = 0;  // stream: 1 or 2
  // Before the next chunk of the stream, so many bytes are missing.
  virtual void OnGap(int /*stream*/, uint64_t /*missing*/) {}
  // The command has ended, and what it left behind is kept. Only for commands in the background.
  virtual void OnExit(const ProcessEnd&, double /*duration_ms*/) {}
  // Answers AskMembers(), in the order of asking.
  virtual void OnMembers(std::vector<pid_t>) {}
  virtual void OnTurn(TurnEnd) {}  // of a shell
  virtual void OnEnd(Outcome outcome) = 0;
  virtual void OnFinished() {}  // last call: everything was given back or is kept, clean
};

// What a thread keeps from one command to the next.
struct CommandPlace {
  CommandPlace();
  ~CommandPlace();
  std::unique_ptr<Slot> slot;  // clean, or none yet
  SignalScope scope;           // knows the slot's view
  struct ChildMemory;
  std::unique_ptr<ChildMemory> child;
};

// One running command: starts it, feeds and drains its pipes, watches the clock and ends its
// process tree, all on one thread. The other public functions may be called from any thread.
class Command {
 public:
  ~Command();
  static Result<std::shared_ptr<Command>> Make(std::shared_ptr<Confinement> confinement,
                                               CommandSpec spec,
                                               std::unique_ptr<CommandObserver> observer);

  // What became of the place after a run.
  enum class Afterwards {
    kPlaceIsKept,     // clean, for the next command
    kPlaceIsGone,     // given back
    kNeedsNewThread,  // it is out of date; nothing was run, and the command is still to be run
  };
  // Runs the command and reports to the observer. `offer` is called once it is certain that the
  // place can be used again, so that the next command may be handed over while this function still
  // cleans up; it returns false if nobody wants the place.
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
  // Of a shell: has it run a text, one after the other; interrupts the turn with this id.
  void BeginTurn(TurnSpec spec);
  void InterruptTurn(uint32_t id);

 private:
  Command(std::shared_ptr<Confinement> confinement, CommandSpec spec,
          std::unique_ptr<CommandObserver> observer);
  struct Requests {
    bool cancel = false;
    bool kill = false;
    int members = 0;  // how often they were asked for
  };
  // The clock of one run; a time that is not set does not count.
  struct Times {
    std::optional<Clock::time_point> deadline;     // of the command
    std::optional<Clock::time_point> kill_at;      // set once SIGTERM was sent
    std::optional<Clock::time_point> look_at;      // is anybody left of a background command?
    std::optional<Clock::time_point> drain_until;  // set once the command has exited
  };
  enum class Stage {
    kRunning,
    kExited,  // the command has ended, the rest of its tree has time left
    kEnded,   // so has the rest
  };
  Outcome RunIn(CommandPlace& place);
  Status Launch(CommandPlace& place);
  std::optional<Failure> StartFailure(const ChildPlan& plan) const;
  void Supervise(const CommandPlace& place, Outcome& outcome);
  // Ends the command if it has used too much.
  void KeepLimits(const Watch& watch, const SignalScope& scope, Stage stage, Times& times,
                  Outcome& outcome);
  // Ends the command, or what is left of it in the background, if it is time to.
  void KeepTime(const Requests& requests, const SignalScope& scope, Times& times, Outcome& outcome);
  void AskToEnd(const SignalScope& scope);
  // False: whoever still holds the pipes has had its time.
  bool MayDrain(const Requests& requests, Times& times) const;
  // The command has ended; says what is next.
  Stage HandleExit(const SignalScope& scope, Times& times, Outcome& outcome);
  // Whether what the command left behind has more time.
  bool MayStay(const Requests& requests, const SignalScope& scope, Times& times, Outcome& outcome);
  // Sends everything of the tree its end; true if it is provably gone.
  bool KillTree(const SignalScope& scope);
  // The same, and takes notice of the command's own end.
  void EndTree(const SignalScope& scope, Outcome& outcome);
  void Reap(Outcome& outcome);
  void HandleTurns(const Watch& watch, const CommandPlace& place, Times& times, Outcome& outcome);
  // What there is to be done; a question is answered once.
  Requests TakeRequests();
  bool IsCanceled();
  void Wake();

  const std::shared_ptr<Confinement> confinement_;
  CommandSpec spec_;
  const std::unique_ptr<CommandObserver> observer_;
  UniqueFd wake_;  // eventfd: something below changed
  StandardStreams streams_;
  ProcessTree tree_;
  Clock::time_point begin_;
  bool reaped_ = false;
  LimitKeeper limits_;
  const std::unique_ptr<ShellTurns> turns_;  // of a shell only

  std::mutex mutex_;  // guards what follows
  Requests requests_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PROCESS_COMMAND_H_
