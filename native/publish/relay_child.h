#ifndef SANDBOX_RUN_PUBLISH_RELAY_CHILD_H_
#define SANDBOX_RUN_PUBLISH_RELAY_CHILD_H_

#include <cstddef>

namespace sandbox_run {

// What the child needs that becomes a relay. Plain data: it shares the launcher's memory.
struct RelayPlan {
  int program = -1;  // the relay's
  // Its descriptors from 0 on, each above those.
  const int* fds = nullptr;
  size_t fd_count = 0;
  int error = 0;  // why it could not be executed
};

// Executes the relay's program, with these descriptors and nothing else of the launcher's. Only
// returns after a failure, which it leaves in the plan.
int RunRelay(void* plan);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PUBLISH_RELAY_CHILD_H_
