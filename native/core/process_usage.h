#ifndef SANDBOX_RUN_CORE_PROCESS_USAGE_H_
#define SANDBOX_RUN_CORE_PROCESS_USAGE_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace sandbox_run {

// What /proc/PID/stat says of one process.
struct ProcessCounts {
  uint64_t threads = 0;
  uint64_t start_time = 0;  // tells two processes of one number apart
  uint64_t own_cpu_ms = 0;
  uint64_t reaped_cpu_ms = 0;  // of the children that it waited for
};

// nullopt: there is no such process any more.
std::optional<ProcessCounts> ReadProcessCounts(pid_t pid);

// Anonymous and shared memory of one process, in memory and in swap. What processes share counts
// for each of them, so that the sum over a tree is too high rather than too low. Cheap.
std::optional<uint64_t> ReadMemoryAtMost(pid_t pid);

// Like ReadMemoryAtMost(), with shared memory divided among the processes that share it: the kernel
// walks every page, which takes milliseconds. nullopt: it is gone, or cannot be inspected.
std::optional<uint64_t> ReadMemoryShare(pid_t pid);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_PROCESS_USAGE_H_
