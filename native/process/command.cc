#include "process/command.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace sandbox_run {
namespace {

using std::chrono::milliseconds;

// How long somebody who outlived the command may hold its pipes open: first what it left behind,
// which is ended then; after that a process outside that was handed a pipe.
constexpr milliseconds kDrainGrace{250};
// How often it is looked whether anything is left of a background command.
constexpr milliseconds kLookInterval{250};
// Between two attempts to end what has been killed already.
constexpr milliseconds kKillAgain{10};

}  // namespace

// What the child reads until it executes the program; it shares this memory.
struct CommandPlace::ChildMemory {
  ChildPlan plan;
  std::vector<char*> argv, envp;
  std::vector<NamespaceEntry> namespaces;
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
           [this](int stream, uint64_t missing) { observer_->OnGap(stream, missing); }}),
      turns_(spec_.shell ? std::make_unique<ShellTurns>(spec_.kill_grace) : nullptr) {}

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

void Command::Signal(int number) { tree_.Signal(number); }

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

void Command::BeginTurn(TurnSpec spec) {
  if (turns_ == nullptr) return;
  turns_->Begin(std::move(spec));
  Wake();
}

void Command::InterruptTurn(uint32_t id) {
  if (turns_ == nullptr) return;
  turns_->Interrupt(id);
  Wake();
}

void Command::Wake() {
  const uint64_t one = 1;
  // Only fails when the counter is at its maximum, and then the thread wakes up anyway.
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

Command::Requests Command::TakeRequests() {
  const std::lock_guard lock(mutex_);
  Requests taken = requests_;
  requests_.members = 0;
  return taken;
}

bool Command::IsCanceled() {
  const std::lock_guard lock(mutex_);
  return requests_.cancel;
}

Command::Afterwards Command::Run(CommandPlace& place, const std::function<bool()>& offer) {
  if (place.slot != nullptr && !confinement_->Refresh(*place.slot)) {
    // This thread's scope knows the root of the old view, and there is no way out of it.
    place.slot.reset();
    return Afterwards::kNeedsNewThread;
  }
  Outcome outcome = RunIn(place);
  const bool reusable = place.slot != nullptr && outcome.tree_ended && place.scope.guarded() &&
                        !place.slot->HasMoved();
  const bool kept = reusable && offer();
  observer_->OnEnd(std::move(outcome));
  // What follows costs the command's owner no time.
  tree_.Finish();
  if (kept) {
    confinement_->Clean(*place.slot);
  } else {
    place.slot.reset();
  }
  limits_.Release();
  observer_->OnFinished();
  return kept ? Afterwards::kPlaceIsKept : Afterwards::kPlaceIsGone;
}

Outcome Command::RunIn(CommandPlace& place) {
  begin_ = Clock::now();
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
  if (outcome.failure || IsCanceled()) {
    outcome.canceled = !outcome.failure;
    outcome.tree_ended = true;
  } else if (Status launched = Launch(place); !launched.ok()) {
    outcome.failure = std::move(launched.failure());
    outcome.tree_ended = outcome.failure->stage != std::string_view(kWardenLost);
  } else {
    outcome.tree_tier = tree_.tier();
    Supervise(place, outcome);
    if (std::optional<Failure> failure = StartFailure(place.child->plan)) {
      outcome.failure = std::move(failure);
      outcome.tree_ended = true;  // there never was one
    }
  }
  streams_.Close();
  for (int i = 0; i < 2; ++i) {
    outcome.output[i] = streams_.TakeCapture(i);
    outcome.spilled[i] = streams_.EndSpill(i);
  }
  outcome.tree_usage = limits_.Usage();
  if (!outcome.tree_usage.read_bytes &&
      (outcome.usage.ru_inblock | outcome.usage.ru_oublock) != 0) {
    // Of what the command waited for, in sectors.
    outcome.tree_usage.read_bytes = static_cast<uint64_t>(outcome.usage.ru_inblock) * 512;
    outcome.tree_usage.written_bytes = static_cast<uint64_t>(outcome.usage.ru_oublock) * 512;
  }
  if (place.slot != nullptr) {
    outcome.changed_paths = place.slot->ChangedPaths(Slot::Paths::kEssential);
  }
  outcome.duration_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin_).count();
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
  if (slot.ruleset_fd() >= 0 && !shared.without_scope) {
    if (Status status = place.scope.Enter(slot.view_root_fd()); !status.ok()) return status;
  }
  if (Status status = streams_.Open(plan.stdio, slot.view_root_fd()); !status.ok()) return status;
  if (turns_ != nullptr) {
    Result<int> channel = turns_->Open();
    if (!channel.ok()) return channel.failure();
    plan.stdio[0] = channel.value();
  }
  if (Status status = limits_.Prepare(
          shared.tree_limits, shared.cgroup_parent,
          spec_.idle_timeout.value_or(shared.idle_timeout),
          shared.tree_limits.any() ? slot.PrivateDirectories() : std::vector<std::string>());
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

  plan.program = spec_.program.c_str();
  plan.argv = child.argv.data();
  plan.envp = child.envp.data();
  plan.cwd = spec_.cwd.c_str();
  plan.namespaces = child.namespaces.data();
  plan.namespace_count = child.namespaces.size();
  plan.ruleset_fd = slot.ruleset_fd();
  plan.filter = confinement_->filter();
  plan.limits = shared.limits.data();
  plan.limit_count = shared.limits.size();
  plan.umask = shared.umask;
  plan.controlling_terminal = streams_.has_terminal();

  int group_directory = -1;
  if (const Cgroup* group = limits_.group()) {
    // Only a child of this thread's own can be started in the group; any other has to move there.
    const bool starts_in_it = shared.cgroup_clone && place.scope.entered();
    (starts_in_it ? group_directory : plan.cgroup_procs_fd) =
        starts_in_it ? group->directory_fd() : group->procs_fd();
  }

#if defined(__SANITIZE_ADDRESS__)
  // The last child left its frames by execve, with the marks around their variables.
  __asan_unpoison_memory_region(child.stack, sizeof(child.stack));
#endif

  Status started = tree_.Start(plan, child.stack, place.scope, group_directory);
  if (!started.ok()) return StartFailure(plan).value_or(std::move(started.failure()));
  streams_.ChildHasThem();
  if (turns_ != nullptr) turns_->Started(tree_.pid());
  return Status();
}

// Valid once the child is gone.
std::optional<Failure> Command::StartFailure(const ChildPlan& plan) const {
  if (plan.failed_stage == nullptr) return std::nullopt;
  const std::string_view stage = plan.failed_stage;
  return Failure{plan.failed_stage, plan.failed_errno,
                 stage == "exec"  ? spec_.program
                 : stage == "cwd" ? spec_.cwd
                                  : ""};
}

void Command::Supervise(const CommandPlace& place, Outcome& outcome) {
  const SignalScope& scope = place.scope;
  Times times;
  const auto start = Clock::now();
  if (spec_.timeout.count() > 0) times.deadline = start + spec_.timeout;
  limits_.Started(start);

  Stage stage = Stage::kRunning;
  for (;;) {
    const Requests requests = TakeRequests();
    for (int i = 0; i < requests.members; ++i) observer_->OnMembers(tree_.Members(scope));
    Watch watch;
    const int wake_at = watch.Add(wake_.get(), POLLIN);
    const int exit_at = stage == Stage::kRunning ? watch.Add(tree_.exit_fd(), POLLIN) : -1;
    streams_.AddTo(watch);
    // Until nothing is left that could use anything, which may be later than the exit.
    if (stage != Stage::kEnded) limits_.AddTo(watch);
    if (stage == Stage::kRunning) {
      if (turns_ != nullptr) turns_->AddTo(watch);
      KeepTime(requests, scope, times, outcome);
      if (times.kill_at) {
        watch.Until(std::max(*times.kill_at, Clock::now() + kKillAgain));
      } else if (times.deadline) {
        watch.Until(*times.deadline);
      }
    } else if (stage == Stage::kExited) {
      if (!MayStay(requests, scope, times, outcome)) {
        EndTree(scope, outcome);
        times.drain_until = Clock::now() + kDrainGrace;
        stage = Stage::kEnded;
        continue;
      }
      for (const auto& time : {times.kill_at, times.deadline, times.look_at, times.drain_until}) {
        if (time) watch.Until(*time);
      }
    } else {
      if (!streams_.output_open() || !MayDrain(requests, times)) break;
      watch.Until(*times.drain_until);
    }

    // Without poll() the clock and the limits are lost: the command is ended, whatever it was
    // doing.
    const bool lost = !watch.Wait();
    if (lost && stage == Stage::kEnded) break;
    if (watch.Ready(wake_at)) {
      uint64_t drained;
      [[maybe_unused]] const ssize_t ignored = read(wake_.get(), &drained, sizeof(drained));
    }

    // What the ended tree left in the pipe is finite; a survivor may write for ever.
    if (streams_.Handle(watch) == StandardStreams::Progress::kRead && stage == Stage::kEnded &&
        outcome.tree_ended) {
      times.drain_until = Clock::now() + kDrainGrace;
    }
    if (stage != Stage::kEnded) KeepLimits(watch, scope, stage, times, outcome);
    if (stage == Stage::kRunning && turns_ != nullptr) HandleTurns(watch, place, times, outcome);
    if (lost) {
      EndTree(scope, outcome);
      times.drain_until = Clock::now() + kDrainGrace;
      stage = Stage::kEnded;
    } else if (watch.Ready(exit_at)) {
      stage = HandleExit(scope, times, outcome);
    }
  }
}

void Command::KeepLimits(const Watch& watch, const SignalScope& scope, Stage stage, Times& times,
                         Outcome& outcome) {
  const std::optional<LimitExcess> excess = limits_.Handle(
      watch, streams_.output_bytes(), streams_.paused(),
      {[&] { return tree_.Members(scope); },
       [&](pid_t newest, size_t enough) { return tree_.CountNewest(scope, newest, enough); }});
  // Somebody else was first to end it, or it ended by itself and only holds its pipes open.
  if (!excess || times.kill_at) return;
  if (excess->name == LimitName::kIdle && stage != Stage::kRunning && !spec_.background) return;
  outcome.limit = excess;
  times.kill_at = Clock::now();
  if (excess->name == LimitName::kIdle) {
    // As for a time-out: nothing is lost by letting it end in good order.
    AskToEnd(scope);
    *times.kill_at += spec_.kill_grace;
  } else {
    outcome.tree_ended = KillTree(scope);
  }
}

void Command::AskToEnd(const SignalScope& scope) {
  // A stopped process acts on SIGTERM only once it goes on.
  for (const int number : {SIGTERM, SIGCONT}) {
    if (reaped_) {
      tree_.SignalAll(number, scope);
    } else {
      tree_.Signal(number);
    }
  }
}

void Command::KeepTime(const Requests& requests, const SignalScope& scope, Times& times,
                       Outcome& outcome) {
  const auto now = Clock::now();
  const bool timed_out = times.deadline && now >= *times.deadline;
  if ((requests.cancel || timed_out) && !times.kill_at) {
    outcome.canceled = requests.cancel;
    outcome.timed_out = timed_out && !requests.cancel;
    AskToEnd(scope);
    times.kill_at = now + spec_.kill_grace;
  }
  if (times.kill_at && (requests.kill || now >= *times.kill_at)) {
    outcome.tree_ended = KillTree(scope);
  }
}

void Command::HandleTurns(const Watch& watch, const CommandPlace& place, Times& times,
                          Outcome& outcome) {
  ShellTurns::Step step = turns_->Handle(watch, [&] { return tree_.Members(place.scope); });
  if (step.end) {
    // All that the turn wrote before its report is in the pipes by now.
    streams_.DrainNow();
    for (int i = 0; i < 2; ++i) step.end->output[i] = streams_.TakeCapture(i);
    step.end->changed_paths = place.slot->ChangedPaths(Slot::Paths::kEssential);
    // What jobs in the background write from now on is kept for the next turn.
    streams_.Stream(false);
    observer_->OnTurn(std::move(*step.end));
  }
  if (step.begun) streams_.Stream(step.streams);
  if (step.give_up) {
    outcome.timed_out = step.timed_out;
    outcome.canceled = step.interrupted;
    times.kill_at = Clock::now();
    outcome.tree_ended = KillTree(place.scope);
  }
}

bool Command::MayDrain(const Requests& requests, Times& times) const {
  if (requests.kill) return false;
  const auto now = Clock::now();
  // A consumer that takes its time loses nothing.
  if (streams_.paused()) times.drain_until = now + kDrainGrace;
  return now < *times.drain_until;
}

Command::Stage Command::HandleExit(const SignalScope& scope, Times& times, Outcome& outcome) {
  streams_.CloseInput();
  const auto now = Clock::now();
  const bool ended_by_us = times.kill_at.has_value();
  times.drain_until = now + kDrainGrace;
  if (spec_.background && !ended_by_us) {
    Reap(outcome);
    if (!outcome.failure) {
      ProcessEnd end{outcome.exit_code, outcome.signal, outcome.usage};
      observer_->OnExit(end, std::chrono::duration<double, std::milli>(now - begin_).count());
      times.drain_until.reset();
      times.look_at = now;
      return Stage::kExited;
    }
  } else if (!ended_by_us && streams_.output_open()) {
    // The process is not reaped yet: its number, and with it that of its group, stays its own.
    times.deadline.reset();
    return Stage::kExited;
  }
  EndTree(scope, outcome);
  return Stage::kEnded;
}

bool Command::MayStay(const Requests& requests, const SignalScope& scope, Times& times,
                      Outcome& outcome) {
  if (!spec_.background) {
    if (!streams_.output_open() || times.kill_at) return false;
    if (!requests.cancel && MayDrain(requests, times)) return true;
    outcome.output_held = true;
    return false;
  }
  KeepTime(requests, scope, times, outcome);
  const auto now = Clock::now();
  if (times.kill_at && now >= *times.kill_at) return false;
  if (requests.kill) return false;
  // From here on the end is near, and is only waited for.
  if (times.kill_at) times.deadline.reset();
  if (now < *times.look_at) return true;
  times.look_at = now + kLookInterval;
  return !tree_.Members(scope).empty();
}

bool Command::KillTree(const SignalScope& scope) {
  const bool ended = tree_.End(scope);
  return limits_.End() || ended;
}

void Command::EndTree(const SignalScope& scope, Outcome& outcome) {
  // What the command left behind ends with it, before its number is given back by the reaping.
  outcome.tree_ended = KillTree(scope);
  // The kernel may have been first.
  if (!outcome.limit && !outcome.canceled && !outcome.timed_out) outcome.limit = limits_.AtEnd();
  if (!reaped_) Reap(outcome);
}

void Command::Reap(Outcome& outcome) {
  reaped_ = true;
  Result<ProcessEnd> end = tree_.Reap();
  if (!end.ok()) {
    outcome.failure = std::move(end.failure());
    return;
  }
  outcome.exit_code = end.value().exit_code;
  outcome.signal = end.value().signal;
  outcome.usage = end.value().usage;
}

}  // namespace sandbox_run
