#include "process/command.h"

#include <poll.h>
#include <sched.h>
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

// How long somebody who outlived the command may hold its pipes open: a background process where
// the tree cannot be ended as a whole, or a process outside that was handed a pipe.
constexpr milliseconds kDrainGrace{250};
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
          [this](int stream, std::string chunk) { observer_->OnOutput(stream, std::move(chunk)); }),
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
  return requests_;
}

Command::Afterwards Command::Run(CommandPlace& place, const std::function<bool()>& offer) {
  if (place.slot != nullptr && !confinement_->Refresh(*place.slot)) {
    // This thread's scope knows the root of the old view, and there is no way out of it.
    place.slot.reset();
    return Afterwards::kNeedsNewThread;
  }
  Outcome outcome = RunIn(place);
  const bool reusable = place.slot != nullptr && outcome.tree_ended && !place.slot->HasMoved();
  const bool kept = reusable && offer();
  observer_->OnEnd(std::move(outcome));
  // What follows costs the command's owner no time.
  if (kept) {
    confinement_->Clean(*place.slot);
  } else {
    place.slot.reset();
  }
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
  if (outcome.failure || TakeRequests().cancel) {
    outcome.canceled = !outcome.failure;
    outcome.tree_ended = true;
  } else if (Status launched = Launch(place); !launched.ok()) {
    outcome.failure = std::move(launched.failure());
    outcome.tree_ended = true;
  } else {
    Supervise(place, outcome);
    if (std::optional<Failure> failure = StartFailure(place.child->plan)) {
      outcome.failure = std::move(failure);
      outcome.tree_ended = true;  // there never was one
    }
  }
  for (int i = 0; i < 2; ++i) outcome.output[i] = streams_.Take(i);
  if (place.slot != nullptr) {
    outcome.changed_paths = place.slot->ChangedPaths(Slot::Paths::kEssential);
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
  if (Status status = streams_.Open(plan.stdio); !status.ok()) return status;
  if (turns_ != nullptr) {
    Result<int> channel = turns_->Open();
    if (!channel.ok()) return channel.failure();
    plan.stdio[0] = channel.value();
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

  const ConfinementSpec& shared = confinement_->spec();
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
  plan.parent_pid = getpid();

  // Before the clone, so that the child's domain is nested in this thread's scope. Without a domain
  // for the child, the child would share this thread's scope and could signal the launcher.
  if (plan.ruleset_fd >= 0) place.scope.Enter(slot.view_root_fd());

#if defined(__SANITIZE_ADDRESS__)
  // The last child left its frames by execve, with the marks around their variables.
  __asan_unpoison_memory_region(child.stack, sizeof(child.stack));
#endif

  // Not CLONE_VFORK: the thread goes straight to waiting for the end, is not woken for the execve
  // in between, and keeps its clock even if the child hangs before it (a dead file server under
  // cwd).
  int pidfd = -1;
  const pid_t pid = clone(RunChild, child.stack + sizeof(child.stack),
                          CLONE_VM | CLONE_PIDFD | SIGCHLD, &plan, &pidfd);
  if (pid < 0) return Failure{"clone", errno, ""};
  tree_.Started(pid, UniqueFd(pidfd));
  streams_.ChildHasThem();
  if (turns_ != nullptr) turns_->Started(pid);
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
  if (spec_.timeout.count() > 0) times.deadline = Clock::now() + spec_.timeout;

  bool exited = false;
  while (!exited || streams_.output_open()) {
    const Requests requests = TakeRequests();
    Watch watch;
    const int wake_at = watch.Add(wake_.get(), POLLIN);
    const int exit_at = watch.Add(tree_.exit_fd(), POLLIN);
    streams_.AddTo(watch);
    if (!exited) {
      if (turns_ != nullptr) turns_->AddTo(watch);
      KeepTime(requests, scope, times, outcome);
      if (times.kill_at) {
        watch.Until(std::max(*times.kill_at, Clock::now() + kKillAgain));
      } else if (times.deadline) {
        watch.Until(*times.deadline);
      }
    } else {
      if (!MayDrain(requests, times)) break;
      watch.Until(*times.drain_until);
    }

    // Without poll() the clock and the limits are lost: the command is ended, whatever it was
    // doing.
    const bool lost = !watch.Wait();
    if (lost && exited) break;
    if (watch.Ready(wake_at)) {
      uint64_t drained;
      [[maybe_unused]] const ssize_t ignored = read(wake_.get(), &drained, sizeof(drained));
    }

    // What the ended tree left in the pipe is finite; a survivor may write for ever.
    if (streams_.Handle(watch) == StandardStreams::Progress::kRead && outcome.tree_ended) {
      times.drain_until = Clock::now() + kDrainGrace;
    }
    if (!exited && turns_ != nullptr) HandleTurns(watch, place, times, outcome);
    if (!exited && (lost || watch.Ready(exit_at))) {
      exited = true;
      HandleExit(scope, outcome);
      times.drain_until = Clock::now() + kDrainGrace;
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
    tree_.Signal(SIGTERM);
    // A stopped process acts on SIGTERM only once it goes on.
    tree_.Signal(SIGCONT);
    times.kill_at = now + spec_.kill_grace;
  }
  if (times.kill_at && (requests.kill || now >= *times.kill_at)) {
    outcome.tree_ended = tree_.End(scope);
  }
}

void Command::HandleTurns(const Watch& watch, const CommandPlace& place, Times& times,
                          Outcome& outcome) {
  ShellTurns::Step step = turns_->Handle(watch);
  if (step.end) {
    // All that the turn wrote before its report is in the pipes by now.
    streams_.DrainNow();
    for (int i = 0; i < 2; ++i) step.end->output[i] = streams_.TakeCapture(i);
    // What jobs in the background write from now on is kept for the next turn.
    streams_.StreamOutput(false);
    step.end->changed_paths = place.slot->ChangedPaths(Slot::Paths::kEssential);
    observer_->OnTurn(std::move(*step.end));
  }
  if (step.begun) streams_.StreamOutput(step.streams);
  if (step.give_up) {
    outcome.timed_out = step.timed_out;
    outcome.canceled = step.interrupted;
    times.kill_at = Clock::now();
    outcome.tree_ended = tree_.End(place.scope);
  }
}

bool Command::MayDrain(const Requests& requests, Times& times) const {
  if (requests.kill) return false;
  const auto now = Clock::now();
  // A consumer that takes its time loses nothing.
  if (streams_.paused()) times.drain_until = now + kDrainGrace;
  return now < *times.drain_until;
}

void Command::HandleExit(const SignalScope& scope, Outcome& outcome) {
  streams_.CloseInput();
  // What the command left behind ends with it, before the number is given back by the reaping.
  outcome.tree_ended = tree_.End(scope);
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
