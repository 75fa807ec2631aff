#ifndef SANDBOX_RUN_GUESTS_CALL_ANSWERS_H_
#define SANDBOX_RUN_GUESTS_CALL_ANSWERS_H_

#include <memory>
#include <vector>

#include "core/confinement.h"
#include "core/guest.h"
#include "guests/guest_spec.h"
#include "notify/exit_tracing.h"
#include "notify/network_supervisor.h"

namespace sandbox_run {

class CommandGuests;

// Answers the calls of all commands of a thread. The kernel allows one listener per thread, so one
// filter asks for all guests that answer or observe calls.
class CallAnswers : public ThreadGuest {
 public:
  // Sets the thread guest of a confinement, if one of its guests answers or observes calls.
  static void AddTo(ConfinementSpec& confinement, std::shared_ptr<const GuestSpec> spec);

  Result<std::vector<sock_filter>> Filter() override;
  Status Serve(UniqueFd listener) override;
  void Begin(Guest* guest) override;
  void End() override;

  // Adds what the calls did since the last time to `effects`. On the command's thread.
  void Take(GuestEffects& effects);
  // Where there is no supervisor, the command's thread answers for ExitTracing: readable if a
  // process asks.
  int exits_fd() const { return exits_.fd(); }
  void AnswerExit() { exits_.Answer(); }

 private:
  CallAnswers(std::shared_ptr<const GuestSpec> spec, const Confinement& confinement,
              const Slot& slot, bool scopes_signals);
  bool AnswerOther(int listener, const abi::SeccompNotification& call);

  const std::shared_ptr<const GuestSpec> spec_;
  const bool asks_of_signals_;                   // the command's domain scopes signals
  const bool scopes_signals_;                    // the thread's domain scopes signals
  const std::shared_ptr<const HeldBy> held_by_;  // nullptr: calls are not observed
  CommandGuests* command_ = nullptr;             // while one runs
  ExitTracing exits_;
  CallObserver calls_;
  // Declared last, so destroyed first: its thread uses the members above.
  std::unique_ptr<NetworkSupervisor> network_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_GUESTS_CALL_ANSWERS_H_
