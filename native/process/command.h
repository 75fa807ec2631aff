#ifndef SANDBOX_RUN_PROCESS_COMMAND_H_
#define SANDBOX_RUN_PROCESS_COMMAND_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "notify/call_observer.h"
#include "notify/network_supervisor.h"
#include "process/command_spec.h"
#include "process/confinement.h"
#include "process/exit_tracing.h"
#include "process/supervision.h"
#include "process/tree_kill.h"

namespace sandbox_run {

// What a thread keeps from one command to the next.
struct CommandPlace {
  CommandPlace();
  ~CommandPlace();
  // Who answers the calls of the thread goes last: what is below makes some as it goes, and without
  // an answer a directory would stay, or a warden.
  ExitTracing exits;
  CallObserver calls;
  std::unique_ptr<NetworkSupervisor> network;  // where the network is listed or calls are looked at
  std::unique_ptr<Slot> slot;                  // clean, or none yet
  SignalScope scope;                           // knows the slot's view
  struct ChildMemory;
  std::unique_ptr<ChildMemory> child;
};

// One running command: starts it, feeds and drains its pipes, watches the clock and ends its
// process tree, all on one thread. The other public functions may be called from any thread.
class Command {
 public:
  ~Command();
  static Result<std::shared_ptr<Command>> Make(std::shared_ptr<Confinement> confinement,
                                               CommandSpec spec,
                                               std::unique_ptr<CommandObserver> observer);

  // What became of the place after a run.
  enum class Afterwards {
    kPlaceIsKept,     // clean, for the next command
    kPlaceIsGone,     // given back
    kNeedsNewThread,  // it is out of date; nothing was run, and the command is still to be run
  };
  // Runs the command and reports to the observer. `offer` is called once it is certain that the
  // place can be used again, so that the next command may be handed over while this function still
  // cleans up; it returns false if no command wants the place.
  Afterwards Run(CommandPlace& place, const std::function<bool()>& offer);
  // Reports that there was no way to run it.
  void GiveUp(Failure failure);

  // Sends a signal to the command's process group, once it exists.
  void Signal(int number);
  // Ends the command: SIGTERM, then SIGKILL after the grace period. `now`: SIGKILL at once.
  void Cancel(bool now);
  // Says that `bytes` of streamed output were consumed.
  void Acknowledge(size_t bytes);
  // Gives the command's terminal, if it has one, another size.
  void Resize(TerminalSize size);
  // Begins to report output, first of all what was kept so far, or ends that.
  void Stream(bool on);
  // What was captured so far. index: 0 is standard output, 1 standard error.
  CapturedStream OutputSoFar(int index) { return streams_.SoFar(index); }
  // Answers the question about a name that the observer was told.
  void AnswerName(uint32_t query, const std::string& message);
  void AnswerConnection(uint32_t number, const std::optional<Address>& address, int error,
                        Inside inside);
  // The same for the question about a host. `rule`: the entry that decided; empty: none.
  void AnswerHost(uint32_t question, bool allowed, std::string rule);
  // Asks for the processes of the tree that are alive. No answer comes once the tree has ended.
  void AskMembers();
  // Of a shell: has it run a text, one after the other; interrupts the turn with this id.
  void BeginTurn(TurnSpec spec);
  void InterruptTurn(uint32_t id);

 private:
  Command(std::shared_ptr<Confinement> confinement, CommandSpec spec,
          std::unique_ptr<CommandObserver> observer);
  Outcome RunIn(CommandPlace& place);
  Status EnterListeners(CommandPlace& place);
  Status EnterSupervision(CommandPlace& place);
  Status Launch(CommandPlace& place);
  std::optional<Failure> StartFailure(const ChildPlan& plan) const;
  // What a launcher's end means for the command.
  void TellEnd(Outcome& outcome);
  // What there is to be done; a question is answered once.
  Supervision::Requests TakeRequests();
  bool IsCanceled();
  void Wake();

  const std::shared_ptr<Confinement> confinement_;
  CommandSpec spec_;
  const std::unique_ptr<CommandObserver> observer_;
  UniqueFd wake_;  // eventfd: something below changed
  StandardStreams streams_;
  ProcessTree tree_;
  LimitKeeper limits_;
  // The child reads them until it executes the launcher.
  std::vector<std::string> launcher_arguments_;
  std::string launcher_env_;
  sock_fprog added_filter_ = {};             // of spec_.added_filter
  std::optional<LauncherLink> link_;         // to the command of a launcher
  const std::unique_ptr<ShellTurns> turns_;  // of a shell only

  std::atomic<bool> signaled_ = false;  // Signal() was called

  std::mutex mutex_;  // guards what follows
  Supervision::Requests requests_;
  NetworkSupervisor* network_ = nullptr;  // while the command runs
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PROCESS_COMMAND_H_
