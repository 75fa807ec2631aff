#include "core/cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/cgroup_files.h"
#include "core/cgroup_removal.h"

namespace sandbox_run {
namespace {

// No kernel has more process numbers (PID_MAX_LIMIT), and pids.max takes no higher value.
constexpr uint64_t kMostProcesses = 4'194'304;

std::optional<uint64_t> Number(const std::string& text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  return strtoull(text.c_str(), nullptr, 10);
}

// The text of an open file, from its beginning; for event files this is what re-arms poll().
std::string ReadAgain(int fd) {
  char buffer[1024];
  const ssize_t count = fd < 0 ? 0 : pread(fd, buffer, sizeof(buffer), 0);
  return count <= 0 ? std::string() : std::string(buffer, static_cast<size_t>(count));
}

}  // namespace

uint64_t CountForPidsMax(uint64_t processes) { return std::min(processes, kMostProcesses); }

Result<std::unique_ptr<Cgroup>> Cgroup::Make(const std::string& parent, const TreeLimits& limits) {
  RemoveLeftGroups();
  const std::string path = parent + "/" + NewGroupName();
  if (mkdir(path.c_str(), 0755) != 0) return Failure{"cgroup.create", errno, parent};
  std::unique_ptr<Cgroup> group(new Cgroup(path, limits));
  group->directory_.reset(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const int directory = group->directory_.get();
  const auto limit = [&](const char* name, uint64_t value) {
    return WriteText(directory, name, value == 0 ? "max" : std::to_string(value));
  };
  if (!limit("memory.max", limits.memory) ||
      !limit("pids.max", CountForPidsMax(limits.processes))) {
    return Failure{"cgroup.limit", errno, parent};
  }
  if (limits.memory != 0) {
    // Absent where the kernel does not count swap; else what is swapped out would come on top. One
    // process that is ended for the memory of all helps no other.
    const bool counts_swap = faccessat(directory, "memory.swap.max", F_OK, 0) == 0;
    if ((counts_swap && !WriteText(directory, "memory.swap.max", "0")) ||
        !WriteText(directory, "memory.oom.group", "1")) {
      return Failure{"cgroup.limit", errno, parent};
    }
  }
  group->procs_.reset(openat(directory, "cgroup.procs", O_WRONLY | O_CLOEXEC));
  if (!group->procs_.valid()) return Failure{"cgroup.enter", errno, parent};
  group->process_events_.reset(openat(directory, "pids.events", O_RDONLY | O_CLOEXEC));
  group->memory_events_.reset(openat(directory, "memory.events", O_RDONLY | O_CLOEXEC));
  if (!group->process_events_.valid() || !group->memory_events_.valid()) {
    return Failure{"cgroup.limit", errno, parent};
  }
  return group;
}

// Descriptors of its files do not keep it.
Cgroup::~Cgroup() { RemoveGroup(directory_.get(), path_); }

Result<std::optional<LimitExcess>> Cgroup::Excess() const {
  const std::optional<uint64_t> refused = Field(ReadAgain(process_events_.get()), "max");
  // "oom" is about this group's own limit; "oom_kill" alone may be the host's need.
  const std::string memory = ReadAgain(memory_events_.get());
  const std::optional<uint64_t> met = Field(memory, "oom"), ended = Field(memory, "oom_kill");
  // Both files are there as long as the group is.
  if (!refused || !met || !ended) return Failure{kCgroupLost, 0, path_};
  if (limits_.processes != 0 && *refused > 0) {
    return std::optional(
        LimitExcess{LimitName::kProcesses, LimitMeans::kCgroup, limits_.processes, std::nullopt});
  }
  if (limits_.memory != 0 && *met > 0 && *ended > 0) {
    return std::optional(
        LimitExcess{LimitName::kMemory, LimitMeans::kCgroup, limits_.memory, std::nullopt});
  }
  return std::optional<LimitExcess>();
}

Result<uint64_t> Cgroup::CpuMs() const {
  const std::optional<uint64_t> used = Field(ReadAll(directory_.get(), "cpu.stat"), "usage_usec");
  if (!used) return Failure{kCgroupLost, 0, path_};
  return *used / 1000;
}

TreeUsage Cgroup::Usage() const {
  const int directory = directory_.get();
  TreeUsage usage;
  usage.means = LimitMeans::kCgroup;
  usage.peak_memory = Number(ReadAll(directory, "memory.peak"));   // since 5.19
  usage.peak_processes = Number(ReadAll(directory, "pids.peak"));  // since 6.1
  const std::string cpu = ReadAll(directory, "cpu.stat");
  usage.user_cpu_us = Field(cpu, "user_usec");
  usage.system_cpu_us = Field(cpu, "system_usec");
  if (faccessat(directory, "io.stat", R_OK, 0) == 0) {
    // "8:0 rbytes=1 wbytes=2 rios=3 ...", one line per device.
    const std::string io = ReadAll(directory, "io.stat");
    const auto sum = [&io](const char* key) {
      uint64_t total = 0;
      for (size_t at = io.find(key); at != std::string::npos; at = io.find(key, at + 1)) {
        total += strtoull(io.c_str() + at + strlen(key), nullptr, 10);
      }
      return total;
    };
    usage.read_bytes = sum(" rbytes=");
    usage.written_bytes = sum(" wbytes=");
  }
  return usage;
}

bool Cgroup::Kill() const { return KillMembers(directory_.get()); }

bool Cgroup::Populated() const {
  return Field(ReadAll(directory_.get(), "cgroup.events"), "populated").value_or(1) != 0;
}

}  // namespace sandbox_run
