#ifndef SANDBOX_RUN_PROCESS_STANDARD_STREAMS_H_
#define SANDBOX_RUN_PROCESS_STANDARD_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"
#include "process/watch.h"

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

struct StreamsSpec {
  StdioSpec stdio[3];
  std::string input;
  bool stream_output = false;  // report chunks instead of keeping them
  size_t output_limit = 0;     // bytes kept of each stream
};

struct CapturedStream {
  std::string kept;
  uint64_t total = 0;  // bytes written by the command
};

// The descriptors 0 to 2 of one command: its ends while it is launched, and the launcher's ends,
// which are fed and drained on the command's thread. Only Acknowledge() may be called from others.
class StandardStreams {
 public:
  // `on_chunk` receives streamed output; stream: 1 or 2.
  StandardStreams(StreamsSpec spec, std::function<void(int stream, std::string chunk)> on_chunk);

  // Opens everything. `child_stdio`: the command's ends, all above 2, valid until ChildHasThem().
  Status Open(int child_stdio[3]);
  // The command has copies of its ends, or was not started.
  void ChildHasThem();

  // Says that `bytes` of streamed output were consumed.
  void Acknowledge(size_t bytes);

  // One round of the command's thread: what to wait for, and what to do with it.
  void AddTo(Watch& watch);
  enum class Progress {
    kNothing,
    kRead,  // output was read, and more may come
  };
  Progress Handle(const Watch& watch);
  // The consumer of streamed output is too far behind: the pipes are left full. As of AddTo().
  bool paused() const { return paused_; }
  // Somebody may still write output.
  bool output_open() const { return output_[0].valid() || output_[1].valid(); }
  // The command reads no more.
  void CloseInput() { input_.reset(); }

  CapturedStream Take(int index) { return std::move(captured_[index]); }

  // For commands with turns: reads what is there at this moment, takes what was captured and begins
  // anew, and says whether output from now on is streamed.
  void DrainNow();
  CapturedStream TakeCapture(int index) { return std::exchange(captured_[index], {}); }
  void StreamOutput(bool stream) {
    spec_.stream_output = stream;
    // Nobody has to take what is kept.
    if (!stream) paused_ = false;
  }

 private:
  Status OpenOne(int index);
  bool Drain(int index);
  void FeedInput();

  StreamsSpec spec_;
  const std::function<void(int, std::string)> on_chunk_;
  UniqueFd child_[3];
  UniqueFd output_[2];
  UniqueFd input_;
  size_t input_written_ = 0;
  CapturedStream captured_[2];
  bool paused_ = false;
  int input_at_ = -1, output_at_[2] = {-1, -1};  // in the current round

  std::mutex mutex_;  // guards what follows
  size_t unacknowledged_ = 0;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PROCESS_STANDARD_STREAMS_H_
