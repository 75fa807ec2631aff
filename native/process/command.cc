#include "process/command.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/keep_for_good.h"
#include "notify/group_modes.h"
#include "notify/listener.h"
#include "notify/network_filter.h"
#include "process/clone_child.h"
#include "sys/removal.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace sandbox_run {
namespace {

// By us, for a reason that the outcome names.
bool WasEnded(const Outcome& outcome) {
  return outcome.timed_out || outcome.canceled || outcome.limit;
}

}  // namespace

// What the child reads until it executes the program; it shares this memory.
struct CommandPlace::ChildMemory {
  ChildPlan plan;
  std::vector<char*> argv, envp;
  std::vector<const char*> kept_open;
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
  // What follows costs the command's owner no time.
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
  std::unique_ptr<TreeIndex::Activity> activity;
  if (const auto& index = confinement_->spec().index; index != nullptr && !spec_.rehearsal) {
    // From before anything is started, so that nothing it does is taken for the user's.
    if (Status read = index->EnsureRead(); read.ok()) {
      activity = index->Begin();
    } else if (!outcome.failure) {
      outcome.failure = std::move(read.failure());
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
    if (spec_.room) spec_.room->Started();
    Supervision({spec_, *observer_, streams_, tree_, limits_, turns_.get(),
                 link_ ? &*link_ : nullptr, *place.slot, confinement_->spec(), place.scope,
                 place.exits, place.calls, place.network.get(), activity.get(), wake_.get(),
                 [this] { return TakeRequests(); }, begin},
                outcome)
        .Run();
    if (std::optional<Failure> failure = StartFailure(place.child->plan)) {
      outcome.failure = std::move(failure);
      outcome.tree_ended = true;  // there never was one
    } else if (!place.child->plan.confined && !outcome.failure && !WasEnded(outcome) &&
               !signaled_) {
      // It was killed on the way to its program: nothing was run.
      outcome.failure =
          Failure{"child.ended", 0, DescribeEnd(outcome.exit_code << 8 | outcome.signal)};
    } else if (link_) {
      TellEnd(outcome);
    }
    if (activity != nullptr) outcome.effects.left_behind = activity->Look();
    outcome.effects.copies = place.slot->TakeChangedCopies();
    outcome.effects.changed_directories = place.slot->TakeChangedDirectories();
    outcome.effects.made = place.slot->TakeMade(confinement_->spec());
    // A child that cannot be waited for may not be done yet with the memory that it shares: that
    // stays.
    if (outcome.failure && outcome.failure->stage == std::string_view("wait")) {
      KeepForGood(std::move(place.child));
    }
  }
  if (place.network != nullptr) {
    place.network->End();
    {
      const std::lock_guard lock(mutex_);
      network_ = nullptr;
    }
    outcome.effects.connections = place.network->Take();
    place.calls.End();
    outcome.effects.denials = place.calls.Take();
    outcome.effects.makings = place.calls.TakeMakings();
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
  if (Status status = EnterListeners(place); !status.ok()) return status;
  if (Status status = streams_.Open(plan.stdio, view_root, /*shields_input=*/!has_domain);
      !status.ok()) {
    return status;
  }
  if (turns_ != nullptr) {
    Result<int> channel = turns_->Open();
    if (!channel.ok()) return channel.failure();
    plan.stdio[0] = channel.value();
  }
  if (Status status = limits_.Prepare(
          shared.tree_limits, shared.cgroup_parent,
          spec_.idle_timeout.value_or(shared.idle_timeout),
          shared.tree_limits.any() ? slot.PrivateDirectories() : std::vector<std::string>(),
          slot.session());
      !status.ok()) {
    return status;
  }

  const std::optional<LauncherSpec>& launcher = shared.launcher;
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
  if (launcher) {
    Result<LauncherLink> link = LauncherLink::Make(
        {plan.program, plan.argv, plan.envp, plan.cwd, shared.limits, shared.filter, shared.umask,
         plan.controlling_terminal, launcher->alone, launcher->checks_root,
         LauncherSettings(*launcher, slot.directory(), spec_.background)});
    if (!link.ok()) return link.failure();
    link_ = std::move(link.value());
    launcher_arguments_ = LauncherArguments(
        *launcher, spec_.timeout.count() > 0 && !spec_.background ? spec_.timeout + spec_.kill_grace
                                                                  : std::chrono::milliseconds(0));
    launcher_env_ = launcher->env;
    child.argv.clear();
    for (std::string& argument : launcher_arguments_) child.argv.push_back(argument.data());
    child.argv.push_back(nullptr);
    child.envp.clear();
    for (size_t at = 0; at < launcher_env_.size(); at += strlen(&launcher_env_[at]) + 1) {
      child.envp.push_back(&launcher_env_[at]);
    }
    child.envp.push_back(nullptr);
    plan.program = launcher->program.c_str();
    plan.argv = child.argv.data();
    plan.envp = child.envp.data();
    plan.gains_privileges = true;
    if (launcher->kept_open) {
      child.kept_open.clear();
      for (const std::string& path : *launcher->kept_open) child.kept_open.push_back(path.c_str());
      plan.shuts_root = true;
      plan.kept_open = child.kept_open.data();
      plan.kept_open_count = child.kept_open.size();
    }
    link_->GiveTo(plan.launcher_fds);
    tree_.ExpectCommand();
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
  if (link_) link_->ChildHasThem();
  if (turns_ != nullptr) turns_->Started(link_ ? -1 : tree_.pid());
  return Status();
}

Status Command::EnterListeners(CommandPlace& place) {
  const ConfinementSpec& shared = confinement_->spec();
  if (shared.network == nullptr && shared.observed == Observed::kNothing)
    return shared.exit_tracing ? place.exits.Enter() : Status();
  if (place.network == nullptr) {
    if (Status entered = EnterSupervision(place); !entered.ok()) return entered;
  }
  if (!spec_.rehearsal) place.calls.Begin(place.slot->held_by());
  place.network->Begin(
      [this](uint32_t query, std::string message) {
        observer_->OnQuery(query, std::move(message));
      },
      [this](uint32_t number, Connection connection) {
        observer_->OnConnectionAsked(number, std::move(connection));
      },
      [this](uint32_t question, const std::string& host, uint16_t port) {
        observer_->OnHost(question, host, port);
      });
  const std::lock_guard lock(mutex_);
  network_ = place.network.get();
  return Status();
}

// There can be but one listener, so one filter asks for all who look at calls.
Status Command::EnterSupervision(CommandPlace& place) {
  const ConfinementSpec& shared = confinement_->spec();
  if (shared.exit_tracing) {
    if (Status able = ExitTracing::CheckHost(); !able.ok()) return able;
  }
  // What the answers rely on, before there is no way back.
  if (poll(nullptr, 0, 0) < 0) return Failure{kListenerStage, errno, ""};
  std::vector<sock_filter> program;
  std::shared_ptr<NetworkGate> gate = shared.network;
  if (gate != nullptr) {
    program = NetworkFilter();
  } else {
    // No call of the network is asked about.
    const Result<OwnLoopback> loopback = OwnLoopback::Draw();
    if (!loopback.ok()) return loopback.failure();
    gate = std::make_shared<NetworkGate>(std::vector<AddressRow>(), std::vector<AddressRange>(),
                                         loopback.value());
  }
  const auto add = [&program](const std::vector<sock_filter>& part) {
    program.insert(program.end(), part.begin(), part.end());
  };
  if (shared.group_modes) add(GroupModes::Filter());
  const bool scopes_signals = (shared.landlock.scoped & abi::kLandlockScopeSignal) != 0;
  add(CallObserver::Filter(shared.observed, scopes_signals));
  if (shared.exit_tracing) {
    add(ExitTracing::Filter());
  } else {
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  // Its thread first: one that is made under the filter would be under it, too.
  Result<std::unique_ptr<NetworkSupervisor>> supervisor = NetworkSupervisor::Start(gate);
  if (!supervisor.ok()) return supervisor.failure();
  Result<UniqueFd> listener = Listen(program);
  if (!listener.ok()) return listener.failure();
  if (shared.network != nullptr && !CanHandOver(listener.value().get()))
    return Failure{kListenerStage, EOPNOTSUPP, ""};
  place.network = std::move(supervisor.value());
  // A connection that is listed or not is never let go on by who only looks.
  const bool looks = shared.observed != Observed::kNothing;
  const bool connects = shared.network != nullptr;
  place.network->Serve(
      std::move(listener.value()),
      [&place, looks, connects, traces = shared.exit_tracing, changes_modes = shared.group_modes](
          int fd, const abi::SeccompNotification& call) {
        // Who only looks lets every call go on.
        if (changes_modes && GroupModes::Answer(fd, call)) return true;
        const bool is_of_network = connects && NumberOf(call) == SYS_connect;
        if (looks && !is_of_network && place.calls.Observe(fd, call)) return true;
        if (!traces || NumberOf(call) != SYS_ptrace) return false;
        place.exits.Answer(fd, call);
        return true;
      });
  return Status();
}

void Command::AnswerName(uint32_t query, const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (network_ != nullptr) network_->Answer(query, message);
}

void Command::AnswerConnection(uint32_t number, const std::optional<Address>& address, int error,
                               Inside inside) {
  const std::lock_guard lock(mutex_);
  if (network_ != nullptr) network_->AnswerConnection(number, address, error, inside);
}

void Command::AnswerHost(uint32_t question, bool allowed, std::string rule) {
  const std::lock_guard lock(mutex_);
  if (network_ != nullptr) network_->AnswerHost(question, allowed, std::move(rule));
}

void Command::TellEnd(Outcome& outcome) {
  link_->Take();
  if (link_->failure()) {
    outcome.failure = *link_->failure();
    if (outcome.failure->stage == std::string_view("exec")) outcome.failure->path = spec_.program;
    if (outcome.failure->stage == std::string_view("cwd")) outcome.failure->path = spec_.cwd;
  } else if (link_->command() < 0 && !WasEnded(outcome) && !outcome.failure) {
    // Whatever the launcher says its end was, the command never began.
    const int status = outcome.signal != 0 ? 128 + outcome.signal : outcome.exit_code;
    outcome.failure = Failure{"launcher", 0, std::to_string(status)};
  } else if (link_->end()) {
    outcome.exit_code = link_->end()->exit_code;
    outcome.signal = link_->end()->signal;
  } else if (!WasEnded(outcome) && !outcome.failure) {
    // What waits for the command was ended, and so was the command: what the launcher says is not
    // how that ended.
    outcome.failure = Failure{"launcher.lost", 0, ""};
  }
}

// Valid once the child is gone.
std::optional<Failure> Command::StartFailure(const ChildPlan& plan) const {
  if (plan.failed_stage == nullptr) return std::nullopt;
  const std::string_view stage = plan.failed_stage;
  if (stage == "exec" && plan.gains_privileges) {
    return Failure{"launcher.exec", plan.failed_errno, confinement_->spec().launcher->program};
  }
  return Failure{plan.failed_stage, plan.failed_errno,
                 stage == "exec"  ? spec_.program
                 : stage == "cwd" ? spec_.cwd
                                  : ""};
}

}  // namespace sandbox_run
