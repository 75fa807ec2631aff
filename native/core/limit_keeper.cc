#include "core/limit_keeper.h"

#include <unistd.h>

#include <utility>

namespace sandbox_run {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

// How long what was killed may take to be gone; it is on its way out, in the kernel.
constexpr int kEndAttempts = 100;
constexpr useconds_t kEndPauseUs = 500;

}  // namespace

Status LimitKeeper::Prepare(const TreeLimits& limits, const std::string& cgroup_parent,
                            milliseconds idle, std::vector<std::string> directories,
                            std::shared_ptr<SessionDirectories> session) {
  limits_ = limits;
  idle_ = idle;
  if (!limits.any()) return Status();
  TreeLimits sampled = limits;
  if (!cgroup_parent.empty()) {
    Result<std::unique_ptr<Cgroup>> made = Cgroup::Make(cgroup_parent, limits);
    if (!made.ok()) return made.failure();
    group_ = std::move(made.value());
    // These the kernel holds. Of processor time it keeps count only.
    sampled.memory = 0;
    sampled.processes = 0;
    sampled.cpu_ms = 0;
  }
  sampler_.emplace(sampled, std::move(directories), std::move(session));
  return Status();
}

void LimitKeeper::Started(Clock::time_point now) {
  last_output_ = now;
  if (sampler_) sampler_->Begin(now, group_ != nullptr ? limits_.cpu_ms : 0);
}

void LimitKeeper::AddTo(Watch& watch) {
  if (group_ != nullptr) {
    processes_at_ = watch.Add(group_->process_events_fd(), POLLPRI);
    memory_at_ = watch.Add(group_->memory_events_fd(), POLLPRI);
  }
  if (sampler_ && sampler_->next()) watch.Until(*sampler_->next());
  if (idle_.count() > 0) watch.Until(last_output_ + idle_);
}

Result<std::optional<LimitExcess>> LimitKeeper::Handle(const Watch& watch, uint64_t output_bytes,
                                                       bool paused,
                                                       const TreeSampler::Members& members) {
  const std::optional<LimitExcess> none;
  if (watch.Ready(processes_at_) || watch.Ready(memory_at_)) {
    Result<std::optional<LimitExcess>> excess = group_->Excess();
    if (!excess.ok() || excess.value()) return excess;
  }
  if (!sampler_ && idle_.count() == 0) return none;
  const auto now = Clock::now();
  if (sampler_ && sampler_->next() && now >= *sampler_->next()) {
    Result<std::optional<LimitExcess>> excess = sampler_->Look(members, group_.get());
    if (!excess.ok() || excess.value()) return excess;
  }
  if (idle_.count() == 0) return none;
  // A command whose output is not taken cannot help being idle.
  if (paused || output_bytes != output_bytes_) {
    output_bytes_ = output_bytes;
    last_output_ = now;
  }
  const auto silent = duration_cast<milliseconds>(now - last_output_);
  if (silent < idle_) return none;
  return std::optional(LimitExcess{LimitName::kIdle, LimitMeans::kClock,
                                   static_cast<uint64_t>(idle_.count()),
                                   static_cast<uint64_t>(silent.count())});
}

bool LimitKeeper::End() {
  if (group_ == nullptr || !group_->Kill()) return false;
  for (int i = 0; i < kEndAttempts; ++i) {
    if (!group_->Populated()) return true;
    usleep(kEndPauseUs);
  }
  return false;
}

std::optional<LimitExcess> LimitKeeper::AtEnd() const {
  if (group_ == nullptr) return std::nullopt;
  const Result<std::optional<LimitExcess>> excess = group_->Excess();
  return excess.ok() ? excess.value() : std::nullopt;
}

TreeUsage LimitKeeper::Usage() const {
  if (group_ != nullptr) return group_->Usage();
  if (sampler_) return sampler_->usage();
  return {};
}

}  // namespace sandbox_run
