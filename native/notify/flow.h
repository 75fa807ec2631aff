#ifndef SANDBOX_RUN_NOTIFY_FLOW_H_
#define SANDBOX_RUN_NOTIFY_FLOW_H_

#include <cstddef>

#include "base/unique_fd.h"

namespace sandbox_run {

// One direction of a connection that is carried: bytes go from socket to socket inside the kernel.
// A reader that is slow holds up its writer, and nobody else.
class Flow {
 public:
  enum class Moved {
    kAll,     // as far as it goes for now
    kSome,    // there may be more at once
    kBroken,  // one of the two is
  };
  // Moves bytes between two non-blocking sockets. At the end of `from`, shuts `to` for writing.
  Moved Move(int from, int to);
  bool is_over() const { return over_; }

 private:
  bool MakePipe();

  UniqueFd in_, out_;  // of a pipe, while something is in it
  size_t held_ = 0;
  bool ended_ = false;
  bool over_ = false;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_FLOW_H_
