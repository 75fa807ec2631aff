#include "core/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "sys/files.h"

namespace sandbox_run {
namespace {

constexpr size_t kReadSize = 64 * 1024;
// For a pipe that was found full: the command and this thread wait for each other less often, which
// is worth 10 % of the throughput (1 MiB is worth no more). Few, because they count against what
// one user may have in all pipes.
constexpr int kLargePipe = 256 * 1024;
// Streamed output that the consumer has not taken yet; beyond it the pipe is left full.
constexpr size_t kMaxUnacknowledged = 1024 * 1024;

HeadTail EmptyCapture(const StreamsSpec& spec) {
  const size_t half = spec.output_limit - spec.output_limit / 2;
  const size_t head = std::min(spec.head_limit.value_or(half), spec.output_limit);
  return HeadTail(head, spec.output_limit - head);
}

}  // namespace

StandardStreams::StandardStreams(StreamsSpec spec, OutputSink sink)
    : spec_(std::move(spec)),
      sink_(std::move(sink)),
      terminal_(spec_.terminal ? std::make_unique<CommandTerminal>(*spec_.terminal) : nullptr),
      captured_{EmptyCapture(spec_), EmptyCapture(spec_)},
      stream_requested_(spec_.stream_output) {
  for (int i = 0; i < 2; ++i) {
    if (spec_.spill[i].valid()) spilled_[i].emplace();
  }
}

Status StandardStreams::Open(int child_stdio[3], std::optional<int> view_root, bool shields_input) {
  if (terminal_ != nullptr) {
    if (Status status = OpenOnTerminal(view_root); !status.ok()) return status;
  }
  for (int i = 0; i < 3; ++i) {
    if (terminal_ == nullptr) {
      if (Status status = OpenOne(i, shields_input); !status.ok()) return status;
    }
    child_stdio[i] = child_[i].get();
  }
  return Status();
}

Status StandardStreams::OpenOnTerminal(std::optional<int> view_root) {
  StdioSpec& stdin_spec = spec_.stdio[0];
  if (stdin_spec.mode == StdioSpec::Mode::kFd) {
    // Read on the command's thread, which must never wait for it.
    struct stat info;
    if (fstat(stdin_spec.fd.get(), &info) != 0) return Failure{"stdio", errno, ""};
    if (!S_ISFIFO(info.st_mode)) return Failure{"stdio", EINVAL, ""};
    if (fcntl(stdin_spec.fd.get(), F_SETFL, O_NONBLOCK) != 0) return Failure{"stdio", errno, ""};
  }
  TerminalInput input(std::move(spec_.input), std::move(stdin_spec.fd));
  if (Status status = terminal_->Open(view_root, std::move(input)); !status.ok()) return status;
  Result<UniqueFd> output = terminal_->Output();
  if (!output.ok()) return output.failure();
  output_[0] = std::move(output.value());
  for (UniqueFd& end : child_) {
    Result<UniqueFd> copy = AboveStdio(terminal_->slave(), "stdio");
    if (!copy.ok()) return copy.failure();
    end = std::move(copy.value());
  }
  return Status();
}

Status StandardStreams::OpenOne(int index, bool shields_input) {
  StdioSpec& stdio = spec_.stdio[index];
  if (stdio.mode == StdioSpec::Mode::kNull) {
    const int flags = (index == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC;
    const UniqueFd null(open("/dev/null", flags));
    if (!null.valid()) return Failure{"stdio", errno, "/dev/null"};
    Result<UniqueFd> raised = AboveStdio(null.get(), "stdio");
    if (!raised.ok()) return raised.failure();
    child_[index] = std::move(raised.value());
  } else if (stdio.mode == StdioSpec::Mode::kFd) {
    // A directory of the host's would be a way around the mounts of the view.
    struct stat info;
    if (fstat(stdio.fd.get(), &info) != 0) return Failure{"stdio", errno, ""};
    if (S_ISDIR(info.st_mode)) return Failure{"stdio", EISDIR, ""};
    if (shields_input && index == 0 && (S_ISREG(info.st_mode) || S_ISBLK(info.st_mode))) {
      input_source_ = std::move(stdio.fd);
      return OpenPipe(index);
    }
    child_[index] = std::move(stdio.fd);
  } else if (index == 2 && spec_.combined && output_[0].valid()) {
    // One pipe for both: what arrives in it is in the order in which it was written.
    Result<UniqueFd> copy = AboveStdio(child_[1].get(), "stdio");
    if (!copy.ok()) return copy.failure();
    child_[2] = std::move(copy.value());
  } else {
    return OpenPipe(index);
  }
  return Status();
}

Status StandardStreams::OpenPipe(int index) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Failure{"stdio", errno, "pipe"};
  UniqueFd mine(ends[index == 0 ? 1 : 0]);
  const UniqueFd theirs(ends[index == 0 ? 0 : 1]);
  if (fcntl(mine.get(), F_SETFL, O_NONBLOCK) != 0) return Failure{"stdio", errno, "pipe"};
  Result<UniqueFd> raised = AboveStdio(theirs.get(), "stdio");
  if (!raised.ok()) return raised.failure();
  child_[index] = std::move(raised.value());
  (index == 0 ? input_ : output_[index - 1]) = std::move(mine);
  return Status();
}

void StandardStreams::ChildHasThem() {
  for (UniqueFd& fd : child_) fd.reset();
  if (input_.valid()) FeedInput();
  if (terminal_ != nullptr) terminal_->Feed();
}

void StandardStreams::Resize(TerminalSize size) {
  if (terminal_ != nullptr) terminal_->Resize(size);
}

void StandardStreams::CloseInput() {
  CloseSource();
  if (terminal_ != nullptr) terminal_->CommandIsOver();
}

void StandardStreams::Close() {
  if (terminal_ != nullptr) terminal_->Close();
}

void StandardStreams::Acknowledge(size_t bytes) {
  const std::lock_guard lock(mutex_);
  unacknowledged_ -= std::min(bytes, unacknowledged_);
}

void StandardStreams::Stream(bool on) {
  const std::lock_guard lock(mutex_);
  stream_requested_ = on;
  // What was reported before is not acknowledged any more.
  if (!on) unacknowledged_ = 0;
}

CapturedStream StandardStreams::SoFar(int index) {
  const std::lock_guard lock(mutex_);
  return captured_[index].Copy();
}

CapturedStream StandardStreams::TakeCapture(int index) {
  const std::lock_guard lock(mutex_);
  return captured_[index].Take();
}

std::optional<SpilledStream> StandardStreams::EndSpill(int index) {
  spec_.spill[index].reset();
  return spilled_[index];
}

void StandardStreams::AddTo(Watch& watch) {
  bool begin;
  {
    const std::lock_guard lock(mutex_);
    begin = stream_requested_ && !streaming_;
    streaming_ = stream_requested_;
    paused_ = streaming_ && !is_finite_ && unacknowledged_ >= kMaxUnacknowledged;
  }
  if (begin) BeginStreaming();
  input_at_ = watch.Add(input_.get(), POLLOUT);
  if (terminal_ != nullptr) terminal_->AddTo(watch);
  for (int i = 0; i < 2; ++i) {
    // The end of all writers is always seen: the rest of the output is finite then, and leaving it
    // there holds no process back.
    output_at_[i] = watch.Add(output_[i].get(), paused_ ? 0 : POLLIN);
  }
}

// Reports what was captured before streaming began.
void StandardStreams::BeginStreaming() {
  for (int i = 0; i < 2; ++i) {
    const CapturedStream before = SoFar(i);
    if (before.total == 0) continue;
    const std::string_view kept = before.kept.view();
    const auto report = [&](std::string_view part) {
      if (part.empty()) return;
      {
        const std::lock_guard lock(mutex_);
        unacknowledged_ += part.size();
      }
      sink_.on_chunk(i + 1, std::string(part));
    };
    report(kept.substr(0, before.head_size));
    if (before.total > kept.size()) sink_.on_gap(i + 1, before.total - kept.size());
    report(kept.substr(before.head_size));
  }
}

StandardStreams::Progress StandardStreams::Handle(const Watch& watch) {
  Progress progress = Progress::kNothing;
  if (watch.Ready(input_at_)) FeedInput();
  if (terminal_ != nullptr) terminal_->Handle(watch);
  for (int i = 0; i < 2; ++i) {
    if (watch.Ready(output_at_[i]) && Drain(i)) progress = Progress::kRead;
  }
  return progress;
}

void StandardStreams::DrainNow() {
  for (int i = 0; i < 2; ++i) {
    // As much as a pipe may hold; a process that goes on writing is not waited for.
    pollfd one = {output_[i].get(), POLLIN, 0};
    for (int round = 0; round < 16 && output_[i].valid(); ++round) {
      if (poll(&one, 1, 0) <= 0 || !Drain(i)) break;
    }
  }
}

bool StandardStreams::output_held() const {
  for (const UniqueFd& fd : output_) {
    // poll() without requested events still reports that the last writer is gone.
    pollfd one = {fd.get(), 0, 0};
    if (fd.valid() && poll(&one, 1, 0) == 0) return true;
  }
  return false;
}

uint64_t StandardStreams::Pending() const {
  uint64_t bytes = 0;
  for (const UniqueFd& fd : output_) {
    int there = 0;
    if (fd.valid() && ioctl(fd.get(), FIONREAD, &there) == 0) bytes += static_cast<uint64_t>(there);
  }
  return bytes;
}

// False: the stream has ended.
bool StandardStreams::Drain(int index) {
  UniqueFd& fd = output_[index];
  // On the stack: only what is read is ever touched.
  char scratch[kReadSize];
  // Bounded, so that one stream that never pauses cannot keep the clock from being read.
  for (int round = 0; round < 16; ++round) {
    std::unique_lock lock(mutex_);
    std::span<char> room = captured_[index].Room(scratch);
    // A chunk for the consumer, not more than it has room for.
    if (streaming_) room = room.first(std::min(room.size(), kReadSize));
    const ssize_t count = read(fd.get(), room.data(), room.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return true;
      fd.reset();
      return false;
    }
    if (count == 0) {
      fd.reset();
      return false;
    }
    const std::string_view bytes(room.data(), static_cast<size_t>(count));
    captured_[index].Append(bytes);
    output_bytes_ += bytes.size();
    // Tried once; where it is refused, the pipe stays as it is.
    if (!streaming_ && bytes.size() >= kReadSize && !std::exchange(is_large_[index], true)) {
      fcntl(fd.get(), F_SETPIPE_SZ, kLargePipe);
    }
    if (streaming_) unacknowledged_ += bytes.size();
    lock.unlock();
    // Only this thread writes to the memory that the bytes are in.
    if (spilled_[index]) Spill(index, bytes);
    if (streaming_) sink_.on_chunk(index + 1, std::string(bytes));
    // The clock is read in between: a disk may be slow, and a consumer may have enough.
    if (streaming_ || spilled_[index]) return true;
  }
  return true;
}

// The command goes on whatever becomes of its file.
void StandardStreams::Spill(int index, std::string_view bytes) {
  SpilledStream& spilled = *spilled_[index];
  UniqueFd& fd = spec_.spill[index];
  while (!bytes.empty() && fd.valid()) {
    const uint64_t left = spec_.spill_limit - spilled.written;
    const ssize_t count = write(fd.get(), bytes.data(), std::min<uint64_t>(bytes.size(), left));
    if (count > 0) {
      spilled.written += static_cast<uint64_t>(count);
      bytes.remove_prefix(static_cast<size_t>(count));
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) spilled.error = errno;
    spilled.is_whole = false;
    fd.reset();
  }
}

void StandardStreams::FeedInput() {
  // Bounded as Drain() is: a command that reads a large file must not delay the time limit.
  for (int round = 0; round < 16; ++round) {
    while (input_written_ < spec_.input.size()) {
      // The thread has every signal blocked, so a closed pipe is EPIPE here and no SIGPIPE.
      const ssize_t count = write(input_.get(), spec_.input.data() + input_written_,
                                  spec_.input.size() - input_written_);
      if (count < 0) {
        if (errno == EINTR) continue;
        if (errno == EAGAIN) return;
        return CloseSource();
      }
      input_written_ += static_cast<size_t>(count);
    }
    if (!TakeMoreInput()) return CloseSource();
  }
}

// False: that was all.
bool StandardStreams::TakeMoreInput() {
  if (!input_source_.valid()) return false;
  spec_.input.resize(kReadSize);
  ssize_t count;
  do {
    count = read(input_source_.get(), spec_.input.data(), spec_.input.size());
  } while (count < 0 && errno == EINTR);
  spec_.input.resize(count > 0 ? static_cast<size_t>(count) : 0);
  input_written_ = 0;
  return count > 0;
}

void StandardStreams::CloseSource() {
  input_.reset();
  input_source_.reset();
}

}  // namespace sandbox_run
