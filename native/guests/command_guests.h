#ifndef SANDBOX_RUN_GUESTS_COMMAND_GUESTS_H_
#define SANDBOX_RUN_GUESTS_COMMAND_GUESTS_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/child.h"
#include "core/command_spec.h"
#include "core/confinement.h"
#include "core/guest.h"
#include "guests/call_answers.h"
#include "guests/guest_spec.h"

namespace sandbox_run {

// All guests of one command.
class CommandGuests : public Guest {
 public:
  // Tells a confinement what it has to know of the guests before its first command.
  static void AddTo(ConfinementSpec& confinement, const std::shared_ptr<const GuestSpec>& spec);

  // `observer` must live as long as the command. `shell_grace`: set for a bash that lives on, whose
  // standard input is a channel for turns: the time between the steps that end a turn.
  CommandGuests(std::shared_ptr<const GuestSpec> spec, GuestObserver& observer,
                std::optional<std::chrono::milliseconds> shell_grace = std::nullopt);

  // The Answer functions answer questions of GuestObserver, from any thread. This one: OnQuery().
  void AnswerName(uint32_t query, const std::string& message);
  // Answers OnConnectionAsked().
  void AnswerConnection(uint32_t number, const std::optional<Address>& address, int error,
                        Inside inside);
  // Answers OnHost(). `rule`: the policy entry that decided; empty: none.
  void AnswerHost(uint32_t question, bool allowed, std::string rule);
  // nullptr unless the command is a shell. Call Command::Wake() after a change.
  ShellTurns* turns() { return turns_ ? &*turns_ : nullptr; }

  Status Arrive() override;
  Result<Outfit> Equip(const CommandSpec& command, const ConfinementSpec& confinement,
                       const Slot& slot, const ChildPlan& plan) override;
  void Started(pid_t command) override;
  void AddTo(Watch& watch, Stage stage) override;
  void Handle(Round& round) override;
  void Ended(Outcome& outcome, bool was_executed) override;
  void Leave() override;

  // For CallAnswers: it serves this command from Meet() to Part().
  GuestObserver& observer() { return observer_; }
  void Meet(CallAnswers* calls, NetworkSupervisor* network);
  void Part();

 private:
  void HandleLink(Round& round);
  void HandleTurns(Round& round);
  Result<std::shared_ptr<const LauncherPlan>> PlanLauncher(const CommandSpec& command,
                                                           const ConfinementSpec& confinement,
                                                           const Slot& slot, const ChildPlan& plan);
  // Replaces the launcher's end by that of the command.
  void TellEnd(Outcome& outcome);

  const std::shared_ptr<const GuestSpec> spec_;
  GuestObserver& observer_;
  GuestEffects effects_;  // not reported yet
  std::unique_ptr<TreeIndex::Activity> activity_;
  std::optional<ShellTurns> turns_;
  CallAnswers* calls_ = nullptr;      // from Meet() to Part()
  std::optional<LauncherLink> link_;  // to the command behind a launcher
  std::string program_, cwd_;         // of that command
  int exits_at_ = -1, link_at_ = -1;  // in the current round

  std::mutex mutex_;                      // guards what follows
  NetworkSupervisor* network_ = nullptr;  // from Meet() to Part()
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_GUESTS_COMMAND_GUESTS_H_
