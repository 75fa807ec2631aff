#ifndef SANDBOX_RUN_CORE_WATCH_H_
#define SANDBOX_RUN_CORE_WATCH_H_

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>

namespace sandbox_run {

using Clock = std::chrono::steady_clock;

// One round of waiting of a command's thread: for descriptors, and until the earliest of some
// times.
class Watch {
 public:
  // Returns the index for Ready(); -1 for a descriptor that is not there.
  int Add(int fd, short events) {
    if (fd < 0 || count_ == watched_.size()) return -1;
    watched_[count_] = {fd, events, 0};
    return static_cast<int>(count_++);
  }

  // Waits no longer than this; of several times the earliest counts.
  void Until(Clock::time_point when) {
    if (!until_ || when < *until_) until_ = when;
  }

  // False: nothing can be waited for any more (an interruption is no failure).
  bool Wait() {
    int timeout = -1;
    if (until_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until_ - Clock::now());
      timeout = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30));
    }
    return poll(watched_.data(), count_, timeout) >= 0 || errno == EINTR;
  }

  // Whether something happened to the descriptor, an end or an error included.
  bool Ready(int index) const {
    return index >= 0 && watched_[static_cast<size_t>(index)].revents != 0;
  }

 private:
  std::array<pollfd, 16> watched_;
  nfds_t count_ = 0;
  std::optional<Clock::time_point> until_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_WATCH_H_
