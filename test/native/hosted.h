#ifndef SANDBOX_RUN_TEST_HOSTED_H_
#define SANDBOX_RUN_TEST_HOSTED_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "guests/command_guests.h"
#include "support.h"

namespace sandbox_run::test {

// Command threads of a confinement whose commands have guests.
class Hosted {
 public:
  Hosted(ConfinementSpec confinement, GuestSpec guests)
      : guests_(std::make_shared<const GuestSpec>(std::move(guests))) {
    CommandGuests::AddTo(confinement, guests_);
    threads_.emplace(std::move(confinement));
  }
  const Threads& threads() const { return *threads_; }
  CommandSpec With(CommandSpec command, GuestObserver& observer) const {
    command.guest = std::make_shared<CommandGuests>(guests_, observer);
    return command;
  }
  // Start and wait; what the guests saw goes into `seen`.
  Outcome Run(CommandSpec command, GuestEffects* seen = nullptr) const {
    Seen observer;
    Outcome outcome = RunToEnd(*threads_, With(std::move(command), observer));
    if (seen != nullptr) *seen = std::move(observer.effects);
    return outcome;
  }
  Outcome Run(const std::string& script) const { return Run(ShellCommand(script)); }

 private:
  struct Seen : GuestObserver {
    void OnEffects(GuestEffects told) override { effects = std::move(told); }
    GuestEffects effects;
  };
  const std::shared_ptr<const GuestSpec> guests_;
  std::optional<Threads> threads_;
};

}  // namespace sandbox_run::test

#endif  // SANDBOX_RUN_TEST_HOSTED_H_
