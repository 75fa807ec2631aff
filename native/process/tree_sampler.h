#ifndef SANDBOX_RUN_PROCESS_TREE_SAMPLER_H_
#define SANDBOX_RUN_PROCESS_TREE_SAMPLER_H_

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "process/directory_usage.h"
#include "process/limits.h"

namespace sandbox_run {

// Holds the limits of a tree that nothing else holds, by looking at it now and then. What comes and
// goes between two looks, and what a burst takes before the next one, is not seen.
class TreeSampler {
 public:
  using Clock = std::chrono::steady_clock;
  // The processes of the tree, right now; nullopt: not to be found out.
  using Members = std::function<std::optional<std::vector<pid_t>>()>;

  // `directories`: the private ones of the command, on disk and in memory. Without a limit nothing
  // is ever looked at.
  TreeSampler(const TreeLimits& limits, std::vector<std::string> directories, Clock::time_point now);

  // When to look next; nullopt: never.
  std::optional<Clock::time_point> next() const { return next_; }

  // Looks, and returns the first limit that is exceeded.
  std::optional<LimitExcess> Look(const Members& members);

  const TreeUsage& usage() const { return usage_; }

 private:
  struct Known {
    uint64_t start_time = 0;
    uint64_t own_cpu_ms = 0;
    bool seen = false;
  };

  std::optional<LimitExcess> LookAtProcesses(const std::vector<pid_t>& members);
  std::optional<LimitExcess> LookAtMemory(const std::vector<pid_t>& members);
  std::optional<LimitExcess> LookAtDirectories();

  const TreeLimits limits_;
  std::optional<Clock::time_point> next_;
  Clock::time_point next_in_detail_;
  DirectoryUsage directories_;
  std::unordered_map<pid_t, Known> known_;
  uint64_t gone_cpu_ms_ = 0;  // of processes that were seen and are gone
  TreeUsage usage_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PROCESS_TREE_SAMPLER_H_
