#include "core/command.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/keep_for_good.h"
#include "core/clone_child.h"
#include "core/listen.h"
#include "sys/removal.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace sandbox_run {

// What the child reads until it executes the program; it shares this memory.
struct CommandPlace::ChildMemory {
  ChildPlan plan;
  std::vector<char*> argv, envp;
  std::vector<NamespaceEntry> namespaces;
  std::shared_ptr<const LauncherPlan> launcher;
  alignas(16) char stack[32768];
};

CommandPlace::CommandPlace() = default;
CommandPlace::~CommandPlace() = default;

Command::Command(std::shared_ptr<Confinement> confinement, CommandSpec spec,
                 std::unique_ptr<CommandObserver> observer)
    : confinement_(std::move(confinement)),
      spec_(std::move(spec)),
      observer_(std::move(observer)),
      streams_(
          std::move(spec_.streams),
          {[this](int stream, std::string chunk) { observer_->OnOutput(stream, std::move(chunk)); },
           [this](int stream, uint64_t missing) { observer_->OnGap(stream, missing); }}) {}

Command::~Command() = default;

Result<std::shared_ptr<Command>> Command::Make(std::shared_ptr<Confinement> confinement,
                                               CommandSpec spec,
                                               std::unique_ptr<CommandObserver> observer) {
  std::shared_ptr<Command> command(
      new Command(std::move(confinement), std::move(spec), std::move(observer)));
  command->wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!command->wake_.valid()) return Failure{"event", errno, ""};
  return command;
}

void Command::Signal(int number) {
  signaled_ = true;
  tree_.Signal(number);
}

void Command::Cancel(bool now) {
  {
    const std::lock_guard lock(mutex_);
    requests_.cancel = true;
    requests_.kill = requests_.kill || now;
  }
  Wake();
}

void Command::Acknowledge(size_t bytes) {
  streams_.Acknowledge(bytes);
  Wake();
}

void Command::Resize(TerminalSize size) { streams_.Resize(size); }

void Command::Stream(bool on) {
  streams_.Stream(on);
  Wake();
}

void Command::AskMembers() {
  {
    const std::lock_guard lock(mutex_);
    ++requests_.members;
  }
  Wake();
}

void Command::Wake() {
  const uint64_t one = 1;
  // Only fails when the counter is at its maximum, and then the thread wakes up anyway.
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

Supervision::Requests Command::TakeRequests() {
  const std::lock_guard lock(mutex_);
  Supervision::Requests taken = requests_;
  requests_.members = 0;
  return taken;
}

bool Command::IsCanceled() {
  const std::lock_guard lock(mutex_);
  return requests_.cancel;
}

Command::Afterwards Command::Run(CommandPlace& place, const std::function<bool()>& offer) {
  if (place.slot != nullptr && (!place.scope.guarded() || !confinement_->Refresh(*place.slot))) {
    // This thread's scope knows the root of the old view or has lost its warden, and there is no
    // way out of it.
    place.slot.reset();
    return Afterwards::kNeedsNewThread;
  }
  Outcome outcome = RunIn(place);
  const bool reusable = place.slot != nullptr && outcome.tree_ended && place.scope.guarded() &&
                        !place.slot->HasMoved();
  const bool kept = reusable && offer();
  observer_->OnEnd(std::move(outcome));
  // The result has been delivered: the rest delays nobody.
  tree_.Finish();
  if (spec_.rehearsal) {
    // Nothing was run that could have left anything in it.
    if (kept) place.slot->LetGoOfShared();
    if (!kept && place.slot != nullptr) confinement_->Release(std::move(place.slot));
  } else if (kept) {
    confinement_->Clean(*place.slot);
  } else {
    place.slot.reset();
  }
  limits_.Release();
  RetryRemovals(Retry::kShortages);
  observer_->OnFinished();
  return kept ? Afterwards::kPlaceIsKept : Afterwards::kPlaceIsGone;
}

Outcome Command::RunIn(CommandPlace& place) {
  const auto begin = Clock::now();
  Outcome outcome;
  rusage own;
  if (getrusage(RUSAGE_SELF, &own) == 0) outcome.launcher_max_rss_kib = own.ru_maxrss;
  if (place.slot == nullptr) {
    Result<std::unique_ptr<Slot>> acquired = confinement_->Acquire();
    if (acquired.ok()) {
      place.slot = std::move(acquired.value());
    } else {
      outcome.failure = std::move(acquired.failure());
    }
  }
  if (spec_.guest != nullptr) {
    Status arrived = spec_.guest->Arrive();
    if (!arrived.ok() && !outcome.failure) outcome.failure = std::move(arrived.failure());
  }
  if (outcome.failure || IsCanceled()) {
    outcome.canceled = !outcome.failure;
    outcome.tree_ended = true;
  } else if (Status launched = Launch(place); !launched.ok()) {
    outcome.failure = std::move(launched.failure());
    outcome.tree_ended = outcome.failure->stage != std::string_view(kWardenLost);
  } else {
    outcome.tree_tier = tree_.tier();
    if (spec_.room) spec_.room->Started();
    Supervision({spec_, *observer_, streams_, tree_, limits_, *place.slot, confinement_->spec(),
                 place.scope, wake_.get(), [this] { return TakeRequests(); }, begin},
                outcome)
        .Run();
    bool was_executed = false;
    if (std::optional<Failure> failure = StartFailure(place.child->plan)) {
      outcome.failure = std::move(failure);
      outcome.tree_ended = true;  // there never was one
    } else if (!place.child->plan.confined && !outcome.failure && !outcome.was_ended() &&
               !signaled_) {
      // It was killed on the way to its program: nothing was run.
      outcome.failure =
          Failure{"child.ended", 0, DescribeEnd(outcome.exit_code << 8 | outcome.signal)};
    } else {
      was_executed = true;
    }
    if (spec_.guest != nullptr) spec_.guest->Ended(outcome, was_executed);
    outcome.effects = place.slot->TakeEffects(confinement_->spec());
    // A child that cannot be waited for may not be done yet with the memory that it shares: that
    // stays.
    if (outcome.failure && outcome.failure->stage == std::string_view("wait")) {
      KeepForGood(std::move(place.child));
    }
  }
  if (place.guest != nullptr) place.guest->End();
  if (spec_.guest != nullptr) spec_.guest->Leave();
  streams_.Close();
  for (int i = 0; i < 2; ++i) {
    outcome.output[i] = streams_.TakeCapture(i);
    outcome.spilled[i] = streams_.EndSpill(i);
  }
  outcome.tree_usage = limits_.Usage();
  if (!outcome.tree_usage.read_bytes &&
      (outcome.usage.ru_inblock | outcome.usage.ru_oublock) != 0) {
    // Without a control group: of the processes that the command waited for, in sectors.
    outcome.tree_usage.read_bytes = static_cast<uint64_t>(outcome.usage.ru_inblock) * 512;
    outcome.tree_usage.written_bytes = static_cast<uint64_t>(outcome.usage.ru_oublock) * 512;
  }
  outcome.duration_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  return outcome;
}

void Command::GiveUp(Failure failure) {
  Outcome outcome;
  outcome.failure = std::move(failure);
  outcome.tree_ended = true;
  observer_->OnEnd(std::move(outcome));
  observer_->OnFinished();
}

Status Command::Launch(CommandPlace& place) {
  const Slot& slot = *place.slot;
  if (place.child == nullptr) place.child = std::make_unique<CommandPlace::ChildMemory>();
  CommandPlace::ChildMemory& child = *place.child;
  child.plan = ChildPlan();
  ChildPlan& plan = child.plan;
  const ConfinementSpec& shared = confinement_->spec();
  // Before the clone, so that the child's domain is nested in this thread's scope. Without a domain
  // for the child, the child would share this thread's scope and could signal the launcher. Before
  // the pipes, so that the warden never holds their ends.
  const bool has_domain = !shared.landlock.empty();
  const std::optional<int> view_root = confinement_->ViewRootOf(slot);
  if (has_domain && !shared.without_scope) {
    if (Status status = place.scope.Enter(view_root); !status.ok()) return status;
  }
  // For the same reason, and after the scope, whose warden has no use for it. The filter of the
  // command relies on it.
  if (Status status = MeetThreadGuest(place); !status.ok()) return status;
  if (Status status = streams_.Open(plan.stdio, view_root, /*shields_input=*/!has_domain);
      !status.ok()) {
    return status;
  }
  if (Status status = limits_.Prepare(
          shared.tree_limits, shared.cgroup_parent,
          spec_.idle_timeout.value_or(shared.idle_timeout),
          shared.tree_limits.any() ? slot.PrivateDirectories() : std::vector<std::string>(),
          slot.session());
      !status.ok()) {
    return status;
  }

  child.argv.clear();
  for (std::string& argument : spec_.argv) child.argv.push_back(argument.data());
  child.argv.push_back(nullptr);
  if (!spec_.env.empty() && spec_.env.back() != '\0') spec_.env += '\0';
  for (const SlotVariable& variable : confinement_->spec().slot_variables) {
    spec_.env += variable.name + "=" + slot.HostPath(variable.path) + '\0';
  }
  child.envp.clear();
  for (size_t at = 0; at < spec_.env.size(); at += strlen(&spec_.env[at]) + 1) {
    child.envp.push_back(&spec_.env[at]);
  }
  child.envp.push_back(nullptr);
  child.namespaces = confinement_->NamespacesFor(slot);

  plan.program = spec_.rehearsal ? nullptr : spec_.program.c_str();
  plan.argv = child.argv.data();
  plan.envp = child.envp.data();
  plan.cwd = spec_.cwd.c_str();
  plan.namespaces = child.namespaces.data();
  plan.namespace_count = child.namespaces.size();
  plan.root = confinement_->RootFor(slot);
  if (has_domain) plan.ruleset_fd = slot.ruleset_fd();
  plan.filter = confinement_->filter();
  if (!spec_.added_filter.empty()) {
    added_filter_ = {static_cast<unsigned short>(spec_.added_filter.size()),
                     spec_.added_filter.data()};
    plan.added_filter = &added_filter_;
  }
  plan.limits = shared.limits.data();
  plan.limit_count = shared.limits.size();
  plan.umask = shared.umask;
  plan.controlling_terminal = streams_.has_terminal();
  if (spec_.guest != nullptr) {
    Result<Guest::Outfit> outfit = spec_.guest->Equip(spec_, shared, slot, plan);
    if (!outfit.ok()) return outfit.failure();
    if (outfit.value().standard_input) plan.stdio[0] = *outfit.value().standard_input;
    child.launcher = std::move(outfit.value().launcher);
    plan.launcher = child.launcher.get();
    if (plan.launcher != nullptr) tree_.ExpectCommand();
  }

  std::optional<int> group_directory;
  if (const Cgroup* group = limits_.group()) {
    // Only a child of this thread's own can be started in the group; any other has to move there.
    if (shared.cgroup_clone && place.scope.entered()) {
      group_directory = group->directory_fd();
    } else {
      plan.cgroup_procs_fd = group->procs_fd();
    }
  }

#if defined(__SANITIZE_ADDRESS__)
  // The last child left its frames by execve, with the marks around their variables.
  __asan_unpoison_memory_region(child.stack, sizeof(child.stack));
#endif

  Status started = tree_.Start(plan, child.stack, place.scope, group_directory);
  if (!started.ok()) {
    const bool lost = started.failure().stage == std::string_view(kWardenLost);
    Failure why = StartFailure(plan).value_or(std::move(started.failure()));
    // What the warden had started may still be in the memory that it shares: that stays.
    if (lost) KeepForGood(std::move(place.child));
    return why;
  }
  streams_.ChildHasThem();
  if (spec_.guest != nullptr) spec_.guest->Started(plan.launcher != nullptr ? -1 : tree_.pid());
  return Status();
}

Status Command::MeetThreadGuest(CommandPlace& place) {
  const ConfinementSpec& shared = confinement_->spec();
  if (place.guest == nullptr && shared.make_thread_guest) {
    std::unique_ptr<ThreadGuest> guest =
        shared.make_thread_guest(*confinement_, *place.slot, place.scope.entered());
    Result<std::vector<sock_filter>> filter = guest->Filter();
    if (!filter.ok()) return filter.failure();
    Result<UniqueFd> listener = Listen(filter.value());
    if (!listener.ok()) return listener.failure();
    if (Status serving = guest->Serve(std::move(listener.value())); !serving.ok()) return serving;
    place.guest = std::move(guest);
  }
  if (place.guest != nullptr) place.guest->Begin(spec_.guest.get());
  return Status();
}

// Valid once the child is gone.
std::optional<Failure> Command::StartFailure(const ChildPlan& plan) const {
  if (plan.failed_stage == nullptr) return std::nullopt;
  const std::string_view stage = plan.failed_stage;
  if (stage == "exec" && plan.launcher != nullptr)
    return Failure{"launcher.exec", plan.failed_errno, plan.launcher->program};
  return Failure{plan.failed_stage, plan.failed_errno,
                 stage == "exec"  ? spec_.program
                 : stage == "cwd" ? spec_.cwd
                                  : ""};
}

}  // namespace sandbox_run
