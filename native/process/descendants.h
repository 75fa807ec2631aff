#ifndef SANDBOX_RUN_PROCESS_DESCENDANTS_H_
#define SANDBOX_RUN_PROCESS_DESCENDANTS_H_

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace sandbox_run {

// Now, on the clock that processes are dated with: ticks since the boot.
uint64_t ProcessClockNow();

// The processes beneath `ancestor`, by their parents, that were started at `since` or later.
// Orphans are not among them.
std::vector<pid_t> DescendantsOf(pid_t ancestor, uint64_t since);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PROCESS_DESCENDANTS_H_
