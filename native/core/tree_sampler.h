#ifndef SANDBOX_RUN_CORE_TREE_SAMPLER_H_
#define SANDBOX_RUN_CORE_TREE_SAMPLER_H_

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.h"
#include "core/cgroup.h"
#include "core/directory_usage.h"
#include "core/limits.h"
#include "core/session_directories.h"
#include "core/watch.h"

namespace sandbox_run {

// Enforces those limits of a process tree that nothing else enforces, by sampling it: every 100 ms
// while the host's processes or its use of memory grow, else at least twice a second. Processes
// that begin and end between two samples, and bursts before the next sample, are missed.
class TreeSampler {
 public:
  // Knows the tree, as it is right now.
  struct Members {
    std::function<std::vector<pid_t>()> list;
    // At least how many there are, of no use beyond `enough`; `newest`: the last number given to a
    // process.
    std::function<size_t(pid_t newest, size_t enough)> count_newest;
  };

  // `directories`: the private ones of the command, on disk and in memory; `session`: those that it
  // shares, which count as its own; nullptr for none. Without a limit nothing is ever looked at.
  TreeSampler(const TreeLimits& limits, std::vector<std::string> directories,
              std::shared_ptr<SessionDirectories> session = nullptr)
      : limits_(limits), directories_(std::move(directories)), session_(std::move(session)) {}

  // The command runs. `group_cpu_ms`: limit of the processor time that its group counts; 0: none.
  void Begin(Clock::time_point now, uint64_t group_cpu_ms);

  // When to look next; nullopt: never.
  std::optional<Clock::time_point> next() const { return next_; }

  // Looks, and returns the first limit that is exceeded. A failure: as of Cgroup.
  Result<std::optional<LimitExcess>> Look(const Members& members, const Cgroup* group);

  const TreeUsage& usage() const { return usage_; }

 private:
  struct Known {
    uint64_t start_time = 0;
    uint64_t own_cpu_ms = 0;
    bool seen = false;
  };

  // What the host could give to processes, in bytes.
  std::optional<uint64_t> AvailableMemory();
  // The time until the next full look if nothing grows; `cost`: how long the last one took.
  std::chrono::milliseconds Patience(Clock::duration cost);
  // Whether the host has much less available memory than at the last full look.
  bool MemoryShrinks();
  // The last number given to a process, if there are many more of them on the host than before.
  std::optional<pid_t> HostGrows();
  // Counts the tree's newest processes if there are many more on the host than before.
  std::optional<LimitExcess> Pulse(const Members& members);
  Result<std::optional<LimitExcess>> LookAtAll(const Members& members, const Cgroup* group);
  std::optional<LimitExcess> LookAtProcesses(const std::vector<pid_t>& found,
                                             const Members& members);
  std::optional<LimitExcess> LookAtMemory(const std::vector<pid_t>& found, const Members& members);
  std::optional<LimitExcess> LookAtDirectories();

  const TreeLimits limits_;
  uint64_t group_cpu_ms_ = 0;
  std::optional<Clock::time_point> next_;
  Clock::time_point next_full_;
  Clock::time_point next_in_detail_;
  Clock::time_point next_glance_;      // when to check whether a full look is due
  std::optional<uint64_t> available_;  // at the last full look
  UniqueFd load_;                      // /proc/loadavg
  uint64_t host_processes_ = 0;        // at the last full look
  DirectoryUsage directories_;
  const std::shared_ptr<SessionDirectories> session_;
  SessionDirectories::Usage shared_;  // of session_, at the last look
  std::unordered_map<pid_t, Known> known_;
  uint64_t gone_cpu_ms_ = 0;  // of processes that were seen and are gone
  TreeUsage usage_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_TREE_SAMPLER_H_
