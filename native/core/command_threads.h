#ifndef SANDBOX_RUN_CORE_COMMAND_THREADS_H_
#define SANDBOX_RUN_CORE_COMMAND_THREADS_H_

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "core/command.h"
#include "core/confinement.h"

namespace sandbox_run {

// The threads that run the commands of one confinement: one per running command, kept for the next
// one, few of them for long. A thread keeps its slot and its signal scope, which cost more than the
// thread itself. The public functions may be called from any thread but these.
class CommandThreads : public std::enable_shared_from_this<CommandThreads> {
 public:
  // `max_idle`: after that an idle thread ends, unless only few are left.
  explicit CommandThreads(ConfinementSpec spec,
                          std::chrono::milliseconds max_idle = std::chrono::seconds(10));

  // Hands a command to an idle thread or to a new one; everything else is reported to the observer.
  Result<std::shared_ptr<Command>> Launch(CommandSpec spec,
                                          std::unique_ptr<CommandObserver> observer);

  // Makes the kernel objects of the first command now, and rehearses it: returns why they cannot be
  // made, or why a command could not be started. A momentary shortage is no reason.
  Status Prepare();

  // For another confinement of the same sandbox.
  const std::shared_ptr<Machine>& machine() const { return confinement_->machine(); }

  // Ends the idle threads and drops what they hold before it returns. Running commands go on; their
  // threads end with them.
  void Close();

 private:
  struct Thread {
    std::shared_ptr<Command> command;  // the next one
    bool stop = false;
    std::condition_variable given;  // either of them
  };
  struct Start;

  static void* Main(void* start);
  Status StartThread(std::shared_ptr<Command> command);
  void StartThreadFromOutside(std::shared_ptr<Command> command);
  void Work(std::shared_ptr<Command> command);
  bool Offer(const std::shared_ptr<Thread>& thread);
  std::shared_ptr<Command> Next(const std::shared_ptr<Thread>& thread);

  const std::chrono::milliseconds max_idle_;
  const std::shared_ptr<Confinement> confinement_;
  std::mutex mutex_;  // guards what follows
  bool closed_ = false;
  std::vector<std::shared_ptr<Thread>> idle_;
  int stopping_ = 0;  // threads that were told to stop and have not given everything back yet
  std::condition_variable stopped_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_COMMAND_THREADS_H_
