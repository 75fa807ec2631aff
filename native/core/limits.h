#ifndef SANDBOX_RUN_CORE_LIMITS_H_
#define SANDBOX_RUN_CORE_LIMITS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace sandbox_run {

// Limits of a whole process tree; 0: none.
struct TreeLimits {
  uint64_t memory = 0;     // bytes
  uint64_t processes = 0;  // processes and threads
  uint64_t cpu_ms = 0;
  uint64_t tmp_bytes = 0;  // of the private directories together

  bool any() const { return memory != 0 || processes != 0 || cpu_ms != 0 || tmp_bytes != 0; }
};

enum class LimitName { kMemory, kProcesses, kCpu, kTmp, kIdle };

// By what an excess was noticed.
enum class LimitMeans {
  kCgroup,    // the kernel counts, nothing is missed
  kSampling,  // looked at now and then
  kClock,
};

// A limit that was exceeded. `value` and `used` in bytes, a count or milliseconds.
struct LimitExcess {
  LimitName name = LimitName::kMemory;
  LimitMeans means = LimitMeans::kSampling;
  uint64_t value = 0;
  std::optional<uint64_t> used;  // as far as it was seen
};

// What a tree used at most or altogether; what is unknown is left out.
struct TreeUsage {
  LimitMeans means = LimitMeans::kSampling;
  std::optional<uint64_t> peak_memory;
  std::optional<uint64_t> peak_processes;
  std::optional<uint64_t> user_cpu_us;  // cgroup only
  std::optional<uint64_t> system_cpu_us;
  std::optional<uint64_t> read_bytes;  // of block devices
  std::optional<uint64_t> written_bytes;

  bool empty() const {
    return !peak_memory && !peak_processes && !user_cpu_us && !read_bytes && !written_bytes;
  }
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_LIMITS_H_
