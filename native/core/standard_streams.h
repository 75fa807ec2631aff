#ifndef SANDBOX_RUN_CORE_STANDARD_STREAMS_H_
#define SANDBOX_RUN_CORE_STANDARD_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "core/head_tail.h"
#include "core/terminal.h"
#include "core/watch.h"

namespace sandbox_run {

// Where one of the command's standard descriptors leads.
struct StdioSpec {
  enum class Mode {
    kNull,     // /dev/null
    kFd,       // the given descriptor, handed over as it is, but for what Open() says
    kCapture,  // output: kept up to the limit and counted; input: `input` is written
  };
  Mode mode = Mode::kNull;
  UniqueFd fd;  // kFd: a duplicate that the command owns
};

struct StreamsSpec {
  StdioSpec stdio[3];
  std::string input;
  bool stream_output = false;  // report chunks, besides keeping what is kept
  size_t output_limit = 0;     // bytes kept of each stream
  // A terminal of this size takes the place of all three: what is written to it is standard output.
  // stdio[0] says what is typed: nothing, `input`, or what comes from a pipe (kFd) that has no
  // other reader.
  std::optional<TerminalSize> terminal;
  // How many of these bytes are the first of the stream; the others are its last. Not set: half of
  // them, and the odd byte.
  std::optional<size_t> head_limit;
  bool combined = false;     // standard error goes where standard output goes, if that is captured
  UniqueFd spill[2];         // everything that is captured is also written to these, where given
  uint64_t spill_limit = 0;  // bytes of each; what comes after is not written
};

// What became of a file that all output was to be written to.
struct SpilledStream {
  uint64_t written = 0;
  int error = 0;  // why it ends before the output, if not because of the limit
  bool is_whole = true;
};

// Receives output on the command's thread. stream: 1 or 2.
struct OutputSink {
  std::function<void(int stream, std::string chunk)> on_chunk;
  // The consumer came late: so many bytes are not kept any more.
  std::function<void(int stream, uint64_t missing)> on_gap;
};

// The descriptors 0 to 2 of one command: its ends while it is launched, and the launcher's ends,
// which are fed and drained on the command's thread.
class StandardStreams {
 public:
  StandardStreams(StreamsSpec spec, OutputSink sink);

  // Opens everything. `child_stdio`: the command's ends, all above 2, valid until ChildHasThem().
  // `view_root`: where the command's terminals are, none: the host's. `shields_input`: a file or a
  // disk that is standard input is read here and arrives through a pipe, as /proc/self/fd would
  // lead to itself, to be opened for writing, where no Landlock looks at that.
  Status Open(int child_stdio[3], std::optional<int> view_root, bool shields_input);
  bool has_terminal() const { return terminal_ != nullptr; }
  // The command has copies of its ends, or was not started.
  void ChildHasThem();

  // The following four may be called from any thread.
  // Says that `bytes` of streamed output were consumed.
  void Acknowledge(size_t bytes);
  // Gives the terminal, if there is one, another size.
  void Resize(TerminalSize size);
  // Begins to report chunks, first of all what was kept so far, or ends that.
  void Stream(bool on);
  // What was captured so far. index: 0 is standard output, 1 standard error.
  CapturedStream SoFar(int index);

  // One round of the command's thread: what to wait for, and what to do with it.
  void AddTo(Watch& watch);
  enum class Progress {
    kNothing,
    kRead,  // output was read, and more may come
  };
  Progress Handle(const Watch& watch);
  // The consumer of streamed output is too far behind: the pipes are left full. As of AddTo().
  bool paused() const { return paused_; }
  // A process may still write output.
  bool output_open() const { return output_[0].valid() || output_[1].valid(); }
  // Another process has it open for writing, whatever is still to be read.
  bool output_held() const;
  // Bytes of output that are there to be read.
  uint64_t Pending() const;
  // The command reads no more.
  void CloseInput();
  // All writers have ended: reads the rest without waiting for the consumer.
  void TakeTheRest() { is_finite_ = true; }
  // Nothing is read any more either: lets go of the terminal.
  void Close();

  // What was captured since the last call, if there was one. On the command's thread.
  CapturedStream TakeCapture(int index);
  // What became of the spill file, which is closed; nothing: none was asked for.
  std::optional<SpilledStream> EndSpill(int index);
  // Bytes that the command wrote so far, kept or not. On the command's thread.
  uint64_t output_bytes() const { return output_bytes_; }

  // Reads what is there at this moment. On the command's thread.
  void DrainNow();

 private:
  Status OpenOne(int index, bool shields_input);
  Status OpenPipe(int index);
  Status OpenOnTerminal(std::optional<int> view_root);
  bool Drain(int index);
  void Spill(int index, std::string_view bytes);
  void BeginStreaming();
  void FeedInput();
  bool TakeMoreInput();
  void CloseSource();

  StreamsSpec spec_;
  const std::unique_ptr<CommandTerminal> terminal_;
  const OutputSink sink_;
  UniqueFd child_[3];
  UniqueFd output_[2];
  UniqueFd input_;
  UniqueFd input_source_;  // a file that is copied into `input_`
  size_t input_written_ = 0;
  std::optional<SpilledStream> spilled_[2];
  uint64_t output_bytes_ = 0;
  bool is_large_[2] = {false, false};  // the pipe; or it was tried
  bool streaming_ = false;
  bool paused_ = false;
  bool is_finite_ = false;
  int input_at_ = -1, output_at_[2] = {-1, -1};  // in the current round

  std::mutex mutex_;  // guards what follows
  HeadTail captured_[2];
  bool stream_requested_ = false;
  size_t unacknowledged_ = 0;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_STANDARD_STREAMS_H_
