#ifndef SANDBOX_RUN_CORE_COMMAND_SPEC_H_
#define SANDBOX_RUN_CORE_COMMAND_SPEC_H_

#include <linux/filter.h>
#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/descriptor_room.h"
#include "core/effects.h"
#include "core/guest.h"
#include "core/limits.h"
#include "core/process_tree.h"
#include "core/standard_streams.h"

namespace sandbox_run {

// What one command is.
struct CommandSpec {
  std::string program;  // absolute
  std::vector<std::string> argv;
  std::string env;  // NAME=VALUE, each ended by NUL
  std::string cwd;
  StreamsSpec streams;
  std::chrono::milliseconds timeout{0};  // 0: none
  std::chrono::milliseconds kill_grace{0};
  bool background = false;  // what the command leaves behind is kept when it ends
  bool tells_left_running = false;
  std::optional<std::chrono::milliseconds> idle_timeout;  // 0: none; unset: the confinement's
  std::vector<sock_filter> added_filter;                  // beside the confinement's
  std::shared_ptr<Guest> guest;                           // nullptr: none
  // Given back with the command, whose descriptors its holder may hold, too.
  std::optional<DescriptorRoom> room;
  bool rehearsal = false;  // goes through every step but the last: no program is executed
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
  bool left_running = false;         // it ended, and what it left behind was ended with it
  TreeTier tree_tier = TreeTier::kSignalScope;
  double duration_ms = 0;
  CapturedStream output[2];  // stdout, stderr
  std::optional<SpilledStream> spilled[2];
  rusage usage = {};
  TreeUsage tree_usage;
  long launcher_max_rss_kib = 0;  // this process's own, at the launch
  Effects effects;

  // The launcher ended the command, for one of these reasons.
  bool was_ended() const { return timed_out || canceled || limit; }
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
  virtual void OnEnd(Outcome outcome) = 0;
  virtual void OnFinished() {}  // last call: everything was given back or is kept, clean
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_COMMAND_SPEC_H_
