#ifndef SANDBOX_RUN_PUBLISH_RELAY_CHILD_H_
#define SANDBOX_RUN_PUBLISH_RELAY_CHILD_H_

#include <cstddef>

namespace sandbox_run {

// The input of the child process that becomes a relay. Plain data, because the child shares the
// launcher's memory.
struct RelayPlan {
  int program = -1;  // descriptor of the relay's executable
  // The relay gets these as descriptors 0, 1, …; here all their numbers are higher than that.
  const int* fds = nullptr;
  size_t fd_count = 0;
  int error = 0;  // result: the errno of a failure
};

// Runs in the child: executes the relay with these descriptors and nothing else of the launcher's.
// `plan` is a RelayPlan. Returns only after a failure, with `error` set.
int RunRelay(void* plan);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PUBLISH_RELAY_CHILD_H_
