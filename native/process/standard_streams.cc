#include "process/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace sandbox_run {
namespace {

constexpr size_t kReadSize = 64 * 1024;
// Streamed output that the consumer has not taken yet; beyond it the pipe is left full.
constexpr size_t kMaxUnacknowledged = 1024 * 1024;

Result<UniqueFd> AboveStdio(int fd) {
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return Failure{"stdio", errno, ""};
  return UniqueFd(copy);
}

}  // namespace

StandardStreams::StandardStreams(StreamsSpec spec,
                                 std::function<void(int stream, std::string chunk)> on_chunk)
    : spec_(std::move(spec)), on_chunk_(std::move(on_chunk)) {}

Status StandardStreams::Open(int child_stdio[3]) {
  for (int i = 0; i < 3; ++i) {
    if (Status status = OpenOne(i); !status.ok()) return status;
    child_stdio[i] = child_[i].get();
  }
  return Status();
}

Status StandardStreams::OpenOne(int index) {
  StdioSpec& stdio = spec_.stdio[index];
  if (stdio.mode == StdioSpec::Mode::kNull) {
    const int flags = (index == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC;
    const UniqueFd null(open("/dev/null", flags));
    if (!null.valid()) return Failure{"stdio", errno, "/dev/null"};
    Result<UniqueFd> raised = AboveStdio(null.get());
    if (!raised.ok()) return raised.failure();
    child_[index] = std::move(raised.value());
  } else if (stdio.mode == StdioSpec::Mode::kFd) {
    // A directory of the host's would be a way around the mounts of the view.
    struct stat info;
    if (fstat(stdio.fd.get(), &info) != 0) return Failure{"stdio", errno, ""};
    if (S_ISDIR(info.st_mode)) return Failure{"stdio", EISDIR, ""};
    child_[index] = std::move(stdio.fd);
  } else {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return Failure{"stdio", errno, "pipe"};
    UniqueFd mine(ends[index == 0 ? 1 : 0]);
    const UniqueFd theirs(ends[index == 0 ? 0 : 1]);
    if (fcntl(mine.get(), F_SETFL, O_NONBLOCK) != 0) return Failure{"stdio", errno, "pipe"};
    Result<UniqueFd> raised = AboveStdio(theirs.get());
    if (!raised.ok()) return raised.failure();
    child_[index] = std::move(raised.value());
    (index == 0 ? input_ : output_[index - 1]) = std::move(mine);
  }
  return Status();
}

void StandardStreams::ChildHasThem() {
  for (UniqueFd& fd : child_) fd.reset();
  if (input_.valid()) FeedInput();
}

void StandardStreams::Acknowledge(size_t bytes) {
  const std::lock_guard lock(mutex_);
  unacknowledged_ -= std::min(bytes, unacknowledged_);
}

void StandardStreams::AddTo(Watch& watch) {
  if (spec_.stream_output) {
    const std::lock_guard lock(mutex_);
    paused_ = unacknowledged_ >= kMaxUnacknowledged;
  }
  input_at_ = watch.Add(input_.get(), POLLOUT);
  for (int i = 0; i < 2; ++i) {
    output_at_[i] = paused_ ? -1 : watch.Add(output_[i].get(), POLLIN);
  }
}

StandardStreams::Progress StandardStreams::Handle(const Watch& watch) {
  Progress progress = Progress::kNothing;
  if (watch.Ready(input_at_)) FeedInput();
  for (int i = 0; i < 2; ++i) {
    if (watch.Ready(output_at_[i]) && Drain(i)) progress = Progress::kRead;
  }
  return progress;
}

void StandardStreams::DrainNow() {
  for (int i = 0; i < 2; ++i) {
    // As much as a pipe may hold; whoever goes on writing is not waited for.
    pollfd one = {output_[i].get(), POLLIN, 0};
    for (int round = 0; round < 16 && output_[i].valid(); ++round) {
      if (poll(&one, 1, 0) <= 0 || !Drain(i)) break;
    }
  }
}

// False: the stream has ended.
bool StandardStreams::Drain(int index) {
  UniqueFd& fd = output_[index];
  CapturedStream& stream = captured_[index];
  // On the stack: only what is read is ever touched.
  char buffer[kReadSize];
  // Bounded, so that one stream that never pauses cannot keep the clock from being read.
  for (int round = 0; round < 16; ++round) {
    const ssize_t count = read(fd.get(), buffer, sizeof(buffer));
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
    const auto size = static_cast<size_t>(count);
    stream.total += size;
    if (spec_.stream_output) {
      {
        const std::lock_guard lock(mutex_);
        unacknowledged_ += size;
      }
      on_chunk_(index + 1, std::string(buffer, size));
      return true;
    }
    if (stream.kept.size() < spec_.output_limit) {
      stream.kept.append(buffer, std::min(size, spec_.output_limit - stream.kept.size()));
    }
  }
  return true;
}

void StandardStreams::FeedInput() {
  while (input_written_ < spec_.input.size()) {
    // The thread has every signal blocked, so a closed pipe is EPIPE here and no SIGPIPE.
    const ssize_t count = write(input_.get(), spec_.input.data() + input_written_,
                                spec_.input.size() - input_written_);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return;
      break;
    }
    input_written_ += static_cast<size_t>(count);
  }
  input_.reset();
}

}  // namespace sandbox_run
