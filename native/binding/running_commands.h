#ifndef SANDBOX_RUN_BINDING_RUNNING_COMMANDS_H_
#define SANDBOX_RUN_BINDING_RUNNING_COMMANDS_H_

#include <napi.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <variant>
#include <vector>

#include "binding/events.h"
#include "process/command.h"
#include "process/command_threads.h"

namespace sandbox_run {

using ConfinementRef = std::shared_ptr<CommandThreads>;

// What a command's thread sends to JavaScript: an event, or the answer to the oldest question of
// treeOf().
struct Message {
  uint32_t id;
  std::variant<Event, std::vector<pid_t>> content;
};

void DeliverMessage(Napi::Env env, Napi::Function, std::nullptr_t*, Message* message);

struct Running {
  std::shared_ptr<Command> command;
  Napi::FunctionReference on_event;
  std::deque<Napi::FunctionReference> asked;  // callbacks of treeOf() without an answer yet
};

// What one JavaScript environment (the main thread or one worker) has running.
class RunningCommands {
 public:
  explicit RunningCommands(Napi::Env env);

  uint32_t NextId() { return ++last_id_; }
  // Reports to the handler of the command with this id.
  std::unique_ptr<CommandObserver> MakeObserver(uint32_t id);

  void Add(Napi::Env env, uint32_t id, Running running);
  Running* Find(uint32_t id);
  void Remove(Napi::Env env, uint32_t id);
  void Track(const ConfinementRef& confinement);

  // Ends every command at once, waits for their threads and removes the private directories.
  void EndAll();

  // Called on command threads.
  void ThreadStarted();
  void Post(Message message);
  void ThreadEnded();

 private:
  using EventQueue = Napi::TypedThreadSafeFunction<std::nullptr_t, Message, DeliverMessage>;

  EventQueue queue_;
  uint32_t last_id_ = 0;
  std::unordered_map<uint32_t, Running> running_;
  std::vector<std::weak_ptr<CommandThreads>> confinements_;
  std::mutex mutex_;
  std::condition_variable all_ended_;
  int threads_ = 0;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_BINDING_RUNNING_COMMANDS_H_
