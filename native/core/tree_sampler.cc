#include "core/tree_sampler.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/process_usage.h"

namespace sandbox_run {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kInterval{100};
// While nothing grows, looking takes no more than this part of a processor, if the next look is no
// later than that.
constexpr int kCalmShare = 300;
constexpr milliseconds kPatience{500};
// The next look is due when the host has less memory than at the last one, by this part of the
// limit or this much.
constexpr uint64_t kLimitShare = 16;
constexpr uint64_t kMaxGrowth = 256 << 20;
// A fork bomb has hundreds of processes after that, and thousands after the interval, which would
// keep this thread from running: the host's count, which costs next to nothing, is asked for more
// often.
constexpr milliseconds kPulse{25};
// Processes that are read about before the host's count is asked for again.
constexpr size_t kBatch = 16;
// What others start does not count; a tree beyond its limit is more than half of it anyway.
constexpr uint64_t kMinGrowth = 64;
// Reading about thousands of processes takes longer than the interval: no more than a tenth of one
// processor is spent on it. They are counted each time.
constexpr int kDetailShare = 10;
// For adding up directories, per look.
constexpr std::chrono::microseconds kDirectoryBudget{4000};

void Raise(std::optional<uint64_t>& peak, uint64_t value) {
  peak = std::max(peak.value_or(0), value);
}

}  // namespace

void TreeSampler::Begin(Clock::time_point now, uint64_t group_cpu_ms) {
  group_cpu_ms_ = group_cpu_ms;
  next_in_detail_ = now;
  if (!limits_.any() && group_cpu_ms == 0) return;
  // However short each of them is, commands of a session are looked at before they end.
  next_full_ = session_ != nullptr ? now : now + kInterval;
  next_glance_ = next_full_;
  next_ = limits_.processes != 0 ? std::min(next_full_, now + kPulse) : next_full_;
}

std::optional<pid_t> TreeSampler::HostGrows() {
  if (!load_.valid()) load_.reset(open("/proc/loadavg", O_RDONLY | O_CLOEXEC));
  char text[128];
  const ssize_t count = pread(load_.get(), text, sizeof(text) - 1, 0);
  if (count <= 0) return std::nullopt;
  text[count] = '\0';
  // "0.20 0.18 0.12 1/80 11206": of 80 processes and threads one runs.
  const char* slash = strchr(text, '/');
  if (slash == nullptr) return std::nullopt;
  char* rest = nullptr;
  const uint64_t now = strtoull(slash + 1, &rest, 10);
  const auto newest = static_cast<pid_t>(strtol(rest, nullptr, 10));
  const bool grows =
      host_processes_ != 0 && now > host_processes_ + std::max(kMinGrowth, limits_.processes / 2);
  if (grows || host_processes_ == 0 || now < host_processes_) host_processes_ = now;
  if (!grows) return std::nullopt;
  return newest;
}

std::optional<uint64_t> TreeSampler::AvailableMemory() {
  // Not kept open: a thread would hold one descriptor more for the rest of its life.
  const UniqueFd memory(open("/proc/meminfo", O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t count = read(memory.get(), text, sizeof(text) - 1);
  if (count <= 0) return std::nullopt;
  text[count] = '\0';
  // "MemAvailable:   12345 kB": caches that would make room for others are in it.
  constexpr char kName[] = "MemAvailable:";
  const char* found = strstr(text, kName);
  if (found == nullptr) return std::nullopt;
  return strtoull(found + strlen(kName), nullptr, 10) * 1024;
}

milliseconds TreeSampler::Patience(Clock::duration cost) {
  available_ = limits_.memory != 0 ? AvailableMemory() : std::nullopt;
  // There is no cheap sign that processor time or private files grow.
  if (limits_.cpu_ms != 0 || group_cpu_ms_ != 0 || limits_.tmp_bytes != 0) return kInterval;
  if (limits_.memory != 0 && !available_) return kInterval;
  const auto wanted = std::chrono::duration_cast<milliseconds>(kCalmShare * cost);
  return std::clamp(wanted, kInterval, kPatience);
}

bool TreeSampler::MemoryShrinks() {
  if (!available_) return false;
  const std::optional<uint64_t> now = AvailableMemory();
  return !now || *now + std::min(limits_.memory / kLimitShare, kMaxGrowth) < *available_;
}

std::optional<LimitExcess> TreeSampler::Pulse(const Members& members) {
  if (limits_.processes == 0) return std::nullopt;
  const std::optional<pid_t> newest = HostGrows();
  if (!newest) return std::nullopt;
  const uint64_t count = members.count_newest(*newest, limits_.processes);
  if (count <= limits_.processes) return std::nullopt;
  Raise(usage_.peak_processes, count);
  return LimitExcess{LimitName::kProcesses, LimitMeans::kSampling, limits_.processes, count};
}

Result<std::optional<LimitExcess>> TreeSampler::Look(const Members& members, const Cgroup* group) {
  Result<std::optional<LimitExcess>> excess = Pulse(members);
  const auto begin = Clock::now();
  bool is_due = begin >= next_full_;
  if (!is_due && begin >= next_glance_) {
    is_due = MemoryShrinks();
    next_glance_ = begin + kInterval;
  }
  if (!excess.value() && is_due) {
    excess = LookAtAll(members, group);
    const auto end = Clock::now();
    next_full_ = end + Patience(end - begin);
    next_glance_ = end + kInterval;
  }
  next_ = std::min(next_full_, next_glance_);
  if (limits_.processes != 0) {
    next_ = std::min(*next_, Clock::now() + kPulse);
  }
  return excess;
}

Result<std::optional<LimitExcess>> TreeSampler::LookAtAll(const Members& members,
                                                          const Cgroup* group) {
  const auto begin = Clock::now();
  std::optional<LimitExcess> excess;
  const bool directories = limits_.tmp_bytes != 0 || limits_.memory != 0;
  if (directories) excess = LookAtDirectories();
  if (limits_.processes != 0 || limits_.memory != 0 || limits_.cpu_ms != 0) {
    const std::vector<pid_t> found = members.list();
    if (!excess && limits_.processes != 0 && found.size() > limits_.processes) {
      Raise(usage_.peak_processes, found.size());
      excess = {LimitName::kProcesses, LimitMeans::kSampling, limits_.processes, found.size()};
    }
    if (!excess && begin >= next_in_detail_) {
      excess = LookAtProcesses(found, members);
      if (!excess && limits_.memory != 0) excess = LookAtMemory(found, members);
      const auto now = Clock::now();
      next_in_detail_ = now + kDetailShare * (now - begin);
    }
  }
  if (!excess && group != nullptr && group_cpu_ms_ != 0) {
    const Result<uint64_t> used = group->CpuMs();
    if (!used.ok()) return used.failure();
    if (used.value() > group_cpu_ms_) {
      excess = {LimitName::kCpu, LimitMeans::kCgroup, group_cpu_ms_, used.value()};
    }
  }
  return excess;
}

std::optional<LimitExcess> TreeSampler::LookAtProcesses(const std::vector<pid_t>& found,
                                                        const Members& members) {
  uint64_t threads = 0;
  // Two sums, both too low rather than too high. By what lives, with what it reaped: misses what
  // was orphaned and is gone. By what was ever seen: misses what came and went unseen.
  uint64_t with_reaped_ms = 0;
  uint64_t own_ms = 0;
  for (auto& [pid, known] : known_) known.seen = false;
  for (size_t i = 0; i < found.size(); ++i) {
    if (i % kBatch == kBatch - 1) {
      if (const std::optional<LimitExcess> excess = Pulse(members)) return excess;
    }
    const pid_t pid = found[i];
    const std::optional<ProcessCounts> counts = ReadProcessCounts(pid);
    if (!counts) continue;
    threads += counts->threads;
    with_reaped_ms += counts->own_cpu_ms + counts->reaped_cpu_ms;
    own_ms += counts->own_cpu_ms;
    Known& known = known_[pid];
    if (known.start_time != counts->start_time) gone_cpu_ms_ += known.own_cpu_ms;
    known = {counts->start_time, counts->own_cpu_ms, true};
  }
  for (auto at = known_.begin(); at != known_.end();) {
    if (at->second.seen) {
      ++at;
    } else {
      gone_cpu_ms_ += at->second.own_cpu_ms;
      at = known_.erase(at);
    }
  }
  Raise(usage_.peak_processes, threads);
  if (limits_.processes != 0 && threads > limits_.processes) {
    return LimitExcess{LimitName::kProcesses, LimitMeans::kSampling, limits_.processes, threads};
  }
  const uint64_t cpu_ms = std::max(with_reaped_ms, own_ms + gone_cpu_ms_);
  if (limits_.cpu_ms != 0 && cpu_ms > limits_.cpu_ms) {
    return LimitExcess{LimitName::kCpu, LimitMeans::kSampling, limits_.cpu_ms, cpu_ms};
  }
  return std::nullopt;
}

std::optional<LimitExcess> TreeSampler::LookAtMemory(const std::vector<pid_t>& found,
                                                     const Members& members) {
  const uint64_t in_files = directories_.memory_bytes() + shared_.memory_bytes;
  uint64_t at_most = in_files;
  for (size_t i = 0; i < found.size(); ++i) {
    if (i % kBatch == kBatch - 1) {
      if (const std::optional<LimitExcess> excess = Pulse(members)) return excess;
    }
    at_most += ReadMemoryAtMost(found[i]).value_or(0);
  }
  uint64_t used = at_most;
  if (at_most > limits_.memory) {
    // Forks share most of what they have: look closely before anything is ended for it.
    used = in_files;
    for (const pid_t pid : found) {
      // One that does not let itself be looked at counts in full.
      const std::optional<uint64_t> share = ReadMemoryShare(pid);
      used += share ? *share : ReadMemoryAtMost(pid).value_or(0);
    }
  }
  Raise(usage_.peak_memory, used);
  if (used <= limits_.memory) return std::nullopt;
  // The next command would be ended for them, too.
  if (session_ != nullptr && shared_.memory_bytes > limits_.memory / 2) session_->GiveUp();
  return LimitExcess{LimitName::kMemory, LimitMeans::kSampling, limits_.memory, used};
}

std::optional<LimitExcess> TreeSampler::LookAtDirectories() {
  directories_.Advance(kDirectoryBudget);
  if (session_ != nullptr) shared_ = session_->Measure(kDirectoryBudget);
  if (limits_.tmp_bytes == 0) return std::nullopt;
  const uint64_t used = directories_.bytes() + shared_.bytes;
  const bool unmeasurable = directories_.unmeasurable() || shared_.unmeasurable;
  if (used <= limits_.tmp_bytes && !unmeasurable) return std::nullopt;
  // A next command that only wants to remove something would be ended, too.
  if (session_ != nullptr) session_->GiveUp();
  LimitExcess excess{LimitName::kTmp, LimitMeans::kSampling, limits_.tmp_bytes, std::nullopt};
  if (!unmeasurable) excess.used = used;
  return excess;
}

}  // namespace sandbox_run
