#include "guests/command_guests.h"

#include <poll.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "core/child.h"
#include "core/standard_streams.h"
#include "sys/file_stamp.h"

namespace sandbox_run {
namespace {

// Memory that the child reads until it executes the launcher.
struct LauncherMemory {
  std::shared_ptr<const GuestSpec> spec;
  std::vector<std::string> arguments;
  std::string env;
  std::vector<char*> argv, envp;
  std::vector<const char*> kept_open;
  LauncherPlan plan;
};

}  // namespace

void CommandGuests::AddTo(ConfinementSpec& confinement,
                          const std::shared_ptr<const GuestSpec>& spec) {
  CallAnswers::AddTo(confinement, spec);
  if (!spec->launcher) return;
  // A launcher is tried by the backend that uses it, with what it really starts.
  confinement.rehearses = false;
  for (const LauncherSpec::Conditional& one : spec->launcher->conditional)
    confinement.watched_paths.push_back(one.path);
}

CommandGuests::CommandGuests(std::shared_ptr<const GuestSpec> spec, GuestObserver& observer,
                             std::optional<std::chrono::milliseconds> shell_grace)
    : spec_(std::move(spec)), observer_(observer) {
  if (shell_grace) turns_.emplace(*shell_grace);
}

void CommandGuests::AnswerName(uint32_t query, const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (network_ != nullptr) network_->Answer(query, message);
}

void CommandGuests::AnswerConnection(uint32_t number, const std::optional<Address>& address,
                                     int error, Inside inside) {
  const std::lock_guard lock(mutex_);
  if (network_ != nullptr) network_->AnswerConnection(number, address, error, inside);
}

void CommandGuests::AnswerHost(uint32_t question, bool allowed, std::string rule) {
  const std::lock_guard lock(mutex_);
  if (network_ != nullptr) network_->AnswerHost(question, allowed, std::move(rule));
}

void CommandGuests::Meet(CallAnswers* calls, NetworkSupervisor* network) {
  calls_ = calls;
  const std::lock_guard lock(mutex_);
  network_ = network;
}

void CommandGuests::Part() {
  {
    const std::lock_guard lock(mutex_);
    network_ = nullptr;
  }
  calls_->Take(effects_);
  calls_ = nullptr;
}

Status CommandGuests::Arrive() {
  if (spec_->index == nullptr) return Status();
  // From before anything is started, so that nothing it does is taken for the user's.
  if (Status read = spec_->index->EnsureRead(); !read.ok()) return read;
  activity_ = spec_->index->Begin();
  return Status();
}

Result<Guest::Outfit> CommandGuests::Equip(const CommandSpec& command,
                                           const ConfinementSpec& confinement, const Slot& slot,
                                           const ChildPlan& plan) {
  Outfit outfit;
  if (turns_) {
    Result<int> channel = turns_->Open();
    if (!channel.ok()) return channel.failure();
    outfit.standard_input = channel.value();
  }
  if (spec_->launcher) {
    Result<std::shared_ptr<const LauncherPlan>> planned =
        PlanLauncher(command, confinement, slot, plan);
    if (!planned.ok()) return planned.failure();
    outfit.launcher = std::move(planned.value());
  }
  return outfit;
}

Result<std::shared_ptr<const LauncherPlan>> CommandGuests::PlanLauncher(
    const CommandSpec& command, const ConfinementSpec& confinement, const Slot& slot,
    const ChildPlan& plan) {
  const LauncherSpec& launcher = *spec_->launcher;
  program_ = command.program;
  cwd_ = command.cwd;
  Result<LauncherLink> link = LauncherLink::Make(
      {plan.program, plan.argv, plan.envp, plan.cwd, confinement.limits, confinement.filter,
       confinement.umask, plan.controlling_terminal, launcher.alone, launcher.checks_root,
       LauncherSettings(launcher, slot.directory(), command.background)});
  if (!link.ok()) return link.failure();
  link_ = std::move(link.value());
  const auto memory = std::make_shared<LauncherMemory>();
  memory->spec = spec_;
  memory->arguments = LauncherArguments(launcher, command.timeout.count() > 0 && !command.background
                                                      ? command.timeout + command.kill_grace
                                                      : std::chrono::milliseconds(0));
  for (std::string& argument : memory->arguments) memory->argv.push_back(argument.data());
  memory->argv.push_back(nullptr);
  std::string& env = memory->env = launcher.env;
  for (size_t at = 0; at < env.size(); at += strlen(&env[at]) + 1) memory->envp.push_back(&env[at]);
  memory->envp.push_back(nullptr);
  memory->plan.program = launcher.program.c_str();
  memory->plan.argv = memory->argv.data();
  memory->plan.envp = memory->envp.data();
  if (launcher.kept_open) {
    memory->plan.kept_open_count = launcher.kept_open->size();
    for (const std::string& path : *launcher.kept_open) memory->kept_open.push_back(path.c_str());
    memory->kept_open.push_back(nullptr);
    memory->plan.kept_open = memory->kept_open.data();
  }
  link_->GiveTo(memory->plan.fds);
  return std::shared_ptr<const LauncherPlan>(memory, &memory->plan);
}

void CommandGuests::Started(pid_t command) {
  if (link_) link_->ChildHasThem();
  if (turns_) turns_->Started(command);
}

void CommandGuests::AddTo(Watch& watch, Stage stage) {
  exits_at_ =
      stage != Stage::kEnded && calls_ != nullptr ? watch.Add(calls_->exits_fd(), POLLIN) : -1;
  link_at_ = link_ ? watch.Add(link_->fd(), POLLIN) : -1;
  if (turns_ && stage == Stage::kRunning) turns_->AddTo(watch);
}

void CommandGuests::Handle(Round& round) {
  if (round.watch.Ready(exits_at_)) calls_->AnswerExit();
  if (round.watch.Ready(link_at_)) HandleLink(round);
  if (turns_ && round.stage == Stage::kRunning) HandleTurns(round);
}

void CommandGuests::HandleLink(Round& round) {
  const bool known = link_->command() > 0;
  link_->Take();
  round.ended = link_->end().has_value();
  if (round.ended || known || link_->command() <= 0) return;
  round.began = link_->command();
  if (turns_) turns_->Started(round.began);
}

void CommandGuests::HandleTurns(Round& round) {
  // A turn that begins may do something before it is known here that it has begun.
  const int64_t before_ns = FileClockNow();
  ShellTurns::Step step = turns_->Handle(round.watch, round.members);
  if (step.end) {
    // All that the turn wrote before its report is in the pipes by now.
    round.streams.DrainNow();
    for (int i = 0; i < 2; ++i) step.end->output[i] = round.streams.TakeCapture(i);
    GuestEffects effects;
    if (activity_ != nullptr) effects.left_behind = activity_->Look();
    step.end->effects = round.slot.TakeEffects(round.confinement);
    if (calls_ != nullptr) calls_->Take(effects);
    // Output of background jobs from now on is buffered for the next turn.
    round.streams.Stream(false);
    observer_.OnTurn(std::move(*step.end), std::move(effects));
  }
  if (step.begun) {
    if (activity_ != nullptr) activity_->BeginTurn(before_ns);
    round.streams.Stream(step.streams);
  }
  if (!round.is_ending) {
    // The turn was asked to end, so the shell's end counts as the turn's, whatever the shell
    // reports.
    round.outcome.timed_out = step.timed_out;
    round.outcome.canceled = step.interrupted;
  }
  round.gives_up = step.give_up;
}

void CommandGuests::Ended(Outcome& outcome, bool was_executed) {
  if (was_executed && link_) TellEnd(outcome);
  if (activity_ != nullptr) effects_.left_behind = activity_->Look();
}

void CommandGuests::TellEnd(Outcome& outcome) {
  link_->Take();
  if (link_->failure()) {
    outcome.failure = *link_->failure();
    if (outcome.failure->stage == std::string_view("exec")) outcome.failure->path = program_;
    if (outcome.failure->stage == std::string_view("cwd")) outcome.failure->path = cwd_;
  } else if (link_->command() < 0 && !outcome.was_ended() && !outcome.failure) {
    // Whatever exit status the launcher reports, the command never began.
    const int status = outcome.signal != 0 ? 128 + outcome.signal : outcome.exit_code;
    outcome.failure = Failure{"launcher", 0, std::to_string(status)};
  } else if (link_->end()) {
    outcome.exit_code = link_->end()->exit_code;
    outcome.signal = link_->end()->signal;
  } else if (!outcome.was_ended() && !outcome.failure) {
    // What waits for the command was ended, and so was the command: what the launcher says is not
    // how that ended.
    outcome.failure = Failure{"launcher.lost", 0, ""};
  }
}

void CommandGuests::Leave() {
  activity_.reset();
  observer_.OnEffects(std::move(effects_));
}

}  // namespace sandbox_run
