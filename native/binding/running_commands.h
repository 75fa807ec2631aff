#ifndef SANDBOX_RUN_BINDING_RUNNING_COMMANDS_H_
#define SANDBOX_RUN_BINDING_RUNNING_COMMANDS_H_

#include <napi.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "process/command.h"
#include "process/command_threads.h"

namespace sandbox_run {

using ConfinementRef = std::shared_ptr<CommandThreads>;

// Something that a command's thread tells JavaScript.
struct Event {
  explicit Event(uint32_t of) : id(of) {}
  virtual ~Event() = default;
  // The arguments for the command's handler (NativeEventHandler in contract.ts).
  virtual std::vector<napi_value> Arguments(Napi::Env env) = 0;
  // Nothing comes after it.
  virtual bool last() const { return false; }
  // Answers the oldest question of treeOf() instead of going to the handler.
  virtual bool answers() const { return false; }

  const uint32_t id;
};

void DeliverEvent(Napi::Env env, Napi::Function, std::nullptr_t*, Event* event);

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
  void Post(std::unique_ptr<Event> event);
  void ThreadEnded();

 private:
  using EventQueue = Napi::TypedThreadSafeFunction<std::nullptr_t, Event, DeliverEvent>;

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
