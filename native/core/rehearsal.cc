#include "core/rehearsal.h"

#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace sandbox_run {
namespace {

// Only to not wait for ever.
constexpr std::chrono::seconds kPatience{20};

class Audience : public CommandObserver {
 public:
  explicit Audience(std::shared_ptr<std::promise<Outcome>> outcome)
      : outcome_(std::move(outcome)) {}
  void OnOutput(int, std::string) override {}
  void OnEnd(Outcome outcome) override { ended_ = std::move(outcome); }
  // Not before: the waiting code may close the confinement next.
  void OnFinished() override { outcome_->set_value(std::move(ended_)); }

 private:
  const std::shared_ptr<std::promise<Outcome>> outcome_;
  Outcome ended_;
};

// The kernel features of a confinement as a key: two confinements with one key need one rehearsal.
std::string KeyOf(const ConfinementSpec& spec) {
  std::string key = spec.landlock.empty() ? "-" : "l" + std::to_string(spec.landlock.scoped);
  key += spec.filter.empty() ? '-' : 's';
  key += spec.without_scope ? '-' : 't';
  key += "(" + spec.thread_guest_name + ")";
  if (spec.namespaces) {
    key += 'n';
    key += spec.namespaces->user ? 'u' : '-';
    key += spec.namespaces->network ? 'n' : '-';
    key += spec.namespaces->ipc ? 'i' : '-';
  }
  key += spec.tree_limits.any() ? 'g' + spec.cgroup_parent + (spec.cgroup_clone ? "+" : "") : "";
  for (const ResourceLimit& limit : spec.limits) key += '/' + std::to_string(limit.resource);
  return key;
}

Status Verdict(const Outcome& outcome, const ConfinementSpec& spec) {
  if (outcome.failure) {
    // With these two stages the command did run.
    const std::string_view stage = outcome.failure->stage;
    if (stage != "wait" && stage != kWardenLost) return *outcome.failure;
    return Failure{kRehearsalStage, outcome.failure->error, ""};
  }
  if (outcome.timed_out) return Failure{kRehearsalStage, ETIMEDOUT, ""};
  if (outcome.exit_code != 0 || outcome.signal != 0) return Failure{kRehearsalStage, 0, ""};
  const bool scoped = !spec.landlock.empty() && !spec.without_scope;
  if (scoped && outcome.tree_tier != TreeTier::kSignalScope) return Failure{kScopeStage, 0, ""};
  return Status();
}

}  // namespace

Status Rehearse(CommandThreads& threads, const ConfinementSpec& spec) {
  static std::mutex mutex;
  static std::set<std::string> done;
  const std::string key = KeyOf(spec);
  {
    const std::lock_guard lock(mutex);
    if (done.contains(key)) return Status();
  }
  CommandSpec rehearsal;
  rehearsal.rehearsal = true;
  rehearsal.cwd = "/";
  rehearsal.timeout = kPatience;
  const auto outcome = std::make_shared<std::promise<Outcome>>();
  std::future<Outcome> ended = outcome->get_future();
  const Result<std::shared_ptr<Command>> started =
      threads.Launch(std::move(rehearsal), std::make_unique<Audience>(outcome));
  Status verdict = started.ok() ? Verdict(ended.get(), spec) : Status(started.failure());
  if (!verdict.ok()) return IsMomentary(verdict.failure().error) ? Status() : verdict;
  const std::lock_guard lock(mutex);
  done.insert(key);
  return Status();
}

}  // namespace sandbox_run
