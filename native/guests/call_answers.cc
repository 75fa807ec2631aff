#include "guests/call_answers.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <set>
#include <string>
#include <utility>

#include "core/listen.h"
#include "guests/command_guests.h"
#include "notify/group_modes.h"
#include "notify/listener.h"
#include "notify/network_filter.h"
#include "notify/own_processes.h"

namespace sandbox_run {
namespace {

bool AreSignalsScoped(const ConfinementSpec& confinement) {
  return (confinement.landlock.scoped & abi::kLandlockScopeSignal) != 0;
}

// Exit tracing alone does not: the command's own thread answers.
bool NeedsSupervisor(const GuestSpec& spec) {
  return spec.network != nullptr || spec.observed != Observed::kNothing || spec.own_processes ||
         spec.group_modes || spec.refused_sockets.any();
}

// Returns nullptr if calls are not observed.
std::shared_ptr<const HeldBy> WhatHolds(const GuestSpec& spec, const Confinement& confinement,
                                        const Slot& slot) {
  if (spec.observed == Observed::kNothing) return nullptr;
  const ConfinementSpec& shared = confinement.spec();
  HeldBy held_by;
  held_by.handled_fs = shared.landlock.handled_fs;
  held_by.has_view = shared.namespaces.has_value();
  held_by.scopes_signals = AreSignalsScoped(shared);
  held_by.tells_uses = spec.observed == Observed::kUses;
  held_by.has_own_network = shared.namespaces && shared.namespaces->network;
  if (held_by.has_own_network && confinement.machine()->sockets() != nullptr) {
    held_by.own_sockets = std::make_shared<SocketTable>(confinement.machine()->sockets());
  }
  if (spec.index != nullptr) {
    const IndexSpec& looked_for = spec.index->spec();
    held_by.names = {looked_for.names.begin(), looked_for.names.end()};
    held_by.directories = {looked_for.git_names.begin(), looked_for.git_names.end()};
    held_by.names.merge(std::set(held_by.directories));
    held_by.suffixes = looked_for.suffixes;
  }
  if (held_by.has_view) {
    for (const ViewStepSpec& step : shared.namespaces->view)
      held_by.around_mounts.insert(step.target.substr(0, step.target.find_last_of('/')));
  }
  for (const PathRuleSpec& rule : shared.rules) {
    // As the command sees it: what is private to the slot is mounted elsewhere in a view.
    std::string path = slot.HostPath(rule.path);
    struct stat about;
    const bool is_there = stat(path.c_str(), &about) == 0;
    const bool is_directory = is_there ? S_ISDIR(about.st_mode) : rule.in_view;
    if (held_by.has_view) {
      for (const ViewStepSpec& step : shared.namespaces->view)
        if (step.kind == ViewStepKind::kBind && step.source == rule.path) path = step.target;
    }
    held_by.rights[path] |= is_directory ? rule.directory_access : rule.file_access;
  }
  return std::make_shared<const HeldBy>(std::move(held_by));
}

}  // namespace

void CallAnswers::AddTo(ConfinementSpec& confinement, std::shared_ptr<const GuestSpec> spec) {
  if (!spec->exit_tracing && !NeedsSupervisor(*spec)) return;
  const auto mark = [&confinement](bool is_there, char letter) {
    confinement.thread_guest_name += is_there ? letter : '-';
  };
  mark(spec->exit_tracing, 'x');
  mark(spec->group_modes, 'g');
  mark(spec->own_processes, 'p');
  mark(spec->refused_sockets.inet, 'i');
  mark(spec->refused_sockets.local, 'u');
  mark(spec->network != nullptr, 'w');
  mark(true, static_cast<char>('0' + static_cast<int>(spec->observed)));
  confinement.make_thread_guest = [spec = std::move(spec)](const Confinement& of, const Slot& slot,
                                                           bool scopes_signals) {
    return std::unique_ptr<ThreadGuest>(new CallAnswers(spec, of, slot, scopes_signals));
  };
}

CallAnswers::CallAnswers(std::shared_ptr<const GuestSpec> spec, const Confinement& confinement,
                         const Slot& slot, bool scopes_signals)
    : spec_(std::move(spec)),
      asks_of_signals_(AreSignalsScoped(confinement.spec())),
      scopes_signals_(scopes_signals),
      held_by_(WhatHolds(*spec_, confinement, slot)) {}

Result<std::vector<sock_filter>> CallAnswers::Filter() {
  if (spec_->exit_tracing) {
    if (Status able = ExitTracing::CheckHost(); !able.ok()) return able.failure();
  }
  if (!NeedsSupervisor(*spec_)) return ExitTracing::Filter();
  // What the answers rely on, before there is no way back.
  if (poll(nullptr, 0, 0) < 0) return Failure{kListenerStage, errno, ""};
  std::vector<sock_filter> program;
  std::shared_ptr<NetworkGate> gate = spec_->network;
  if (gate != nullptr) {
    program = NetworkFilter();
  } else {
    // No call of the network is asked about.
    Result<std::shared_ptr<OwnNetwork>> own = OwnNetwork::Make("");
    if (!own.ok()) return own.failure();
    gate = std::make_shared<NetworkGate>(std::vector<AddressRow>(), std::vector<AddressRange>(),
                                         std::move(own.value()));
  }
  const auto add = [&program](const std::vector<sock_filter>& part) {
    program.insert(program.end(), part.begin(), part.end());
  };
  if (spec_->group_modes) add(GroupModes::Filter());
  if (spec_->own_processes) add(OwnProcesses::Filter());
  add(RefusedSockets::Filter(spec_->refused_sockets));
  add(CallObserver::Filter(spec_->observed, asks_of_signals_));
  if (spec_->exit_tracing) {
    add(ExitTracing::Filter());
  } else {
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  // Its thread first: one that is made under the filter would be under it, too.
  Result<std::unique_ptr<NetworkSupervisor>> supervisor = NetworkSupervisor::Start(gate);
  if (!supervisor.ok()) return supervisor.failure();
  network_ = std::move(supervisor.value());
  return program;
}

Status CallAnswers::Serve(UniqueFd listener) {
  if (network_ == nullptr) {
    exits_.Serve(std::move(listener));
    return Status();
  }
  if (spec_->network != nullptr && !CanHandOver(listener.get()))
    return Failure{kListenerStage, EOPNOTSUPP, ""};
  network_->Serve(std::move(listener), [this](int fd, const abi::SeccompNotification& call) {
    return AnswerOther(fd, call);
  });
  return Status();
}

bool CallAnswers::AnswerOther(int fd, const abi::SeccompNotification& call) {
  // The observer lets every call continue, so those that may refuse one are asked first.
  const bool looks = spec_->observed != Observed::kNothing;
  const auto may_change = [this, looks](int directory) {
    return !looks || calls_.MayMakeIn(directory);
  };
  if (spec_->group_modes && GroupModes::Answer(fd, call, may_change)) return true;
  if (spec_->refused_sockets.any() && RefusedSockets::Answer(fd, call, calls_)) return true;
  if (spec_->own_processes && OwnProcesses::Answer(fd, call, scopes_signals_)) return true;
  // The observer must not continue a connect(): the network supervisor decides about it.
  const bool is_of_network = spec_->network != nullptr && NumberOf(call) == SYS_connect;
  if (looks && !is_of_network && calls_.Observe(fd, call)) return true;
  if (!spec_->exit_tracing || NumberOf(call) != SYS_ptrace) return false;
  exits_.Answer(fd, call);
  return true;
}

void CallAnswers::Begin(Guest* guest) {
  // CommandGuests::AddTo() set this thread guest, so every command of the thread has that class.
  command_ = static_cast<CommandGuests*>(guest);
  if (command_ == nullptr) return;
  if (network_ != nullptr) {
    calls_.Begin(held_by_);
    GuestObserver& observer = command_->observer();
    network_->Begin(
        [&observer](uint32_t query, std::string message) {
          observer.OnQuery(query, std::move(message));
        },
        [&observer](uint32_t number, Connection connection) {
          observer.OnConnectionAsked(number, std::move(connection));
        },
        [&observer](uint32_t question, const std::string& host, uint16_t port) {
          observer.OnHost(question, host, port);
        });
  }
  command_->Meet(this, network_.get());
}

void CallAnswers::End() {
  if (network_ != nullptr) {
    network_->End();
    calls_.End();
  }
  if (command_ == nullptr) return;
  command_->Part();
  command_ = nullptr;
}

void CallAnswers::Take(GuestEffects& effects) {
  if (network_ == nullptr) return;
  effects.connections = network_->Take();
  effects.denials = calls_.Take();
  effects.makings = calls_.TakeMakings();
}

}  // namespace sandbox_run
