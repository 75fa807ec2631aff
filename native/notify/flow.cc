#include "notify/flow.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace sandbox_run {
namespace {

constexpr int kPipeBytes = 256 * 1024;
// Then others have their turn.
constexpr int kMostSteps = 16;

}  // namespace

bool Flow::MakePipe() {
  if (out_.valid()) return true;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  out_.reset(ends[0]);
  in_.reset(ends[1]);
  // It works with less, where the user has as many pages in pipes as there may be.
  [[maybe_unused]] const int size = fcntl(in_.get(), F_SETPIPE_SZ, kPipeBytes);
  return true;
}

Flow::Moved Flow::Move(int from, int to) {
  if (over_) return Moved::kAll;
  if (!MakePipe()) return Moved::kBroken;
  Moved moved = Moved::kSome;
  for (int step = 0; step < kMostSteps; ++step) {
    if (held_ == 0 && !ended_) {
      const ssize_t got =
          splice(from, nullptr, in_.get(), nullptr, kPipeBytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno != EAGAIN) return Moved::kBroken;
      if (got < 0) {
        moved = Moved::kAll;
        break;
      }
      ended_ = got == 0;
      held_ = static_cast<size_t>(got);
    }
    if (held_ > 0) {
      const ssize_t put =
          splice(out_.get(), nullptr, to, nullptr, held_, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0 && errno != EAGAIN) return Moved::kBroken;
      if (put < 0) return Moved::kAll;
      held_ -= static_cast<size_t>(put);
      continue;
    }
    over_ = ended_;
    // ENOTCONN: the connection was reset, which the other direction reports.
    if (over_ && shutdown(to, SHUT_WR) != 0 && errno != ENOTCONN) return Moved::kBroken;
    if (over_) moved = Moved::kAll;
    if (over_) break;
  }
  // A connection that is quiet has no pipe.
  if (held_ == 0 && moved == Moved::kAll) {
    in_.reset();
    out_.reset();
  }
  return moved;
}

}  // namespace sandbox_run
