#ifndef SANDBOX_RUN_SYS_DIAG_SOCKET_H_
#define SANDBOX_RUN_SYS_DIAG_SOCKET_H_

#include <cstdint>
#include <mutex>
#include <utility>

#include "base/unique_fd.h"

namespace sandbox_run {

// A shared netlink socket (NETLINK_SOCK_DIAG). It answers for the network namespace in which it was
// made.
struct DiagSocket {
  explicit DiagSocket(UniqueFd made) : fd(std::move(made)) {}
  std::mutex mutex;  // hold it from the question to the answer
  const UniqueFd fd;
  uint32_t last_question = 0;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_SYS_DIAG_SOCKET_H_
