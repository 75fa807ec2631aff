#ifndef SANDBOX_RUN_CORE_LIMIT_KEEPER_H_
#define SANDBOX_RUN_CORE_LIMIT_KEEPER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/cgroup.h"
#include "core/limits.h"
#include "core/tree_sampler.h"
#include "core/watch.h"

namespace sandbox_run {

// Holds the limits of one running command: by a control group of its own where it may have one,
// else by looking at the tree now and then. Costs nothing where there is no limit.
class LimitKeeper {
 public:
  // Makes the group. `cgroup_parent`: "" for none. `directories` and `session`:
  // as for TreeSampler.
  Status Prepare(const TreeLimits& limits, const std::string& cgroup_parent,
                 std::chrono::milliseconds idle, std::vector<std::string> directories,
                 std::shared_ptr<SessionDirectories> session = nullptr);
  // The command's group; nullptr: none.
  const Cgroup* group() const { return group_.get(); }

  void Started(Clock::time_point now);
  // One round of the command's thread. `output_bytes`: written by the command so far; `paused`:
  // its output is not taken.
  void AddTo(Watch& watch);
  // A failure: what holds the limits is gone.
  Result<std::optional<LimitExcess>> Handle(const Watch& watch, uint64_t output_bytes, bool paused,
                                            const TreeSampler::Members& members);

  // Ends everything in the group, if there is one. True: nothing of it is alive.
  bool End();
  // To be asked once after the end: a limit at which the kernel acted by itself.
  std::optional<LimitExcess> AtEnd() const;
  // What was used, as far as that is known.
  TreeUsage Usage() const;
  // Removes the group; may take a while.
  void Release() { group_.reset(); }

 private:
  std::unique_ptr<Cgroup> group_;
  TreeLimits limits_;
  std::optional<TreeSampler> sampler_;
  std::chrono::milliseconds idle_{0};
  Clock::time_point last_output_;
  uint64_t output_bytes_ = 0;
  int processes_at_ = -1, memory_at_ = -1;  // in the current round
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_LIMIT_KEEPER_H_
