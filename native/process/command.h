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
#include "process/tree_kill.h"

namespace sandbox_run {

// Where one of the command's standard descriptors leads.
struct StdioSpec {
  enum class Mode {
    kNull,     // /dev/null
    kFd,       // the given descriptor, handed over as it is
    kCapture,  // output: kept up to the limit and counted, or streamed; input: `input` is written
  };
  Mode mode = Mode::kNull;
  UniqueFd fd;  // kFd: a duplicate that the command owns
};

struct CommandSpec {
  std::string program;  // absolute
  std::vector<std::string> argv;
  std::string env;  // NAME=VALUE, each ended by NUL
  std::string cwd;
  StdioSpec stdio[3];
  std::string input;
  bool stream_output = false;            // report chunks instead of keeping them
  size_t output_limit = 0;               // bytes kept of each stream
  std::chrono::milliseconds timeout{0};  // 0: none
  std::chrono::milliseconds kill_grace{0};
};

struct CapturedStream {
  std::string kept;
  uint64_t total = 0;  // bytes written by the command
};

// How a command ended.
struct Outcome {
  std::optional<Failure> failure;  // set: the command did not start
  int exit_code = 0;               // if it exited
  int signal = 0;                  // if a signal ended it
  bool timed_out = false;
  bool canceled = false;
  bool tree_ended = false;  // every process that it started is provably gone
  double duration_ms = 0;
  CapturedStream output[2];  // stdout, stderr
  rusage usage = {};
  long launcher_max_rss_kib = 0;           // this process's own, at the launch
  std::vector<std::string> changed_paths;  // of those that the confinement watches
};

// Receives events on the command's own thread.
class CommandObserver {
 public:
  virtual ~CommandObserver() = default;
  virtual void OnOutput(int stream, std::string chunk) = 0;  // stream: 1 or 2
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

 private:
  Command(std::shared_ptr<Confinement> confinement, CommandSpec spec,
          std::unique_ptr<CommandObserver> observer);
  Outcome RunIn(CommandPlace& place);
  Status Launch(CommandPlace& place);
  std::optional<Failure> StartFailure(const ChildPlan& plan) const;
  Status OpenStdio(int child_stdio[3], UniqueFd owned[3]);
  void Supervise(const SignalScope& scope, Outcome& outcome);
  bool DrainInto(int index, Outcome& outcome);
  void FeedInput();
  void SignalGroup(int number);
  void EndTree(const SignalScope& scope, Outcome& outcome);
  void Wake();

  const std::shared_ptr<Confinement> confinement_;
  CommandSpec spec_;
  const std::unique_ptr<CommandObserver> observer_;
  UniqueFd wake_;  // eventfd: something below changed

  // Used by the command's thread only.
  pid_t pid_ = -1;
  UniqueFd pidfd_;
  UniqueFd output_[2];
  UniqueFd input_;
  size_t input_written_ = 0;

  std::mutex mutex_;      // guards what follows
  bool running_ = false;  // the process exists and has not been reaped
  bool cancel_requested_ = false;
  bool kill_requested_ = false;
  std::vector<int> pending_signals_;
  size_t unacknowledged_ = 0;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PROCESS_COMMAND_H_
