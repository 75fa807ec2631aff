#ifndef SANDBOX_RUN_CORE_CGROUP_H_
#define SANDBOX_RUN_CORE_CGROUP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "core/limits.h"

namespace sandbox_run {

// Stage of a failure: the group of a command was removed from outside.
inline constexpr char kCgroupLost[] = "cgroup.lost";

// A limit of processes as pids.max takes it: more than a kernel can have, which is no limit, would
// be refused. 0: none.
uint64_t CountForPidsMax(uint64_t processes);

// One group for one command. The kernel counts what is in it and holds its limits.
class Cgroup {
 public:
  static Result<std::unique_ptr<Cgroup>> Make(const std::string& parent, const TreeLimits& limits);
  // Ends what is left in it and removes it; may take a while.
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  int directory_fd() const { return directory_.get(); }
  // cgroup.procs, for writing: "0" moves the writer.
  int procs_fd() const { return procs_.get(); }
  // poll(2) says POLLPRI on them once a limit was met.
  int process_events_fd() const { return process_events_.get(); }
  int memory_events_fd() const { return memory_events_.get(); }

  // The limit that was reached, if any; also clears POLLPRI. A failure (kCgroupLost): the group was
  // removed, and its limits with it.
  Result<std::optional<LimitExcess>> Excess() const;
  // The processor time that was used. A failure (kCgroupLost): as for Excess().
  Result<uint64_t> CpuMs() const;
  TreeUsage Usage() const;

  // SIGKILL for everything in it at once, forks on the way too. False: the kernel is too old.
  bool Kill() const;
  // Whether anything lives in it.
  bool Populated() const;

 private:
  Cgroup(std::string path, const TreeLimits& limits) : path_(std::move(path)), limits_(limits) {}

  const std::string path_;
  const TreeLimits limits_;
  UniqueFd directory_, procs_, process_events_, memory_events_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_CGROUP_H_
