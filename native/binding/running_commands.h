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
#include "core/command.h"
#include "core/command_threads.h"
#include "guests/command_guests.h"

namespace sandbox_run {

// What JavaScript has of a confinement.
struct ConfinementRef {
  std::shared_ptr<CommandThreads> threads;
  std::shared_ptr<const GuestSpec> guests;

  CommandThreads* operator->() const { return threads.get(); }
};

// What a command's thread sends to JavaScript: an event, or the answer to the oldest question of
// treeOf().
struct Message {
  uint32_t id;
  std::variant<Event, std::vector<pid_t>> content;
};

void DeliverMessage(Napi::Env env, Napi::Function, std::nullptr_t*, Message* message);

struct Running {
  std::shared_ptr<Command> command;
  std::shared_ptr<CommandGuests> guests;
  Napi::FunctionReference on_event;
  std::deque<Napi::FunctionReference> asked;  // callbacks of treeOf() without an answer yet
};

// What one JavaScript environment (the main thread or one worker) has running.
class RunningCommands {
 public:
  explicit RunningCommands(Napi::Env env);

  uint32_t NextId() { return ++last_id_; }
  // Reports to the handler of the command with this id, and so do its guests.
  class Observer;
  std::unique_ptr<Observer> MakeObserver(uint32_t id);

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

class RunningCommands::Observer : public CommandObserver, public GuestObserver {
 public:
  Observer(RunningCommands* commands, uint32_t id) : commands_(commands), id_(id) {
    commands_->ThreadStarted();
  }
  void OnOutput(int stream, std::string chunk) override { Tell(Chunk{stream, std::move(chunk)}); }
  void OnGap(int stream, uint64_t missing) override { Tell(Gap{stream, missing}); }
  void OnExit(const ProcessEnd& end, double duration_ms) override { Tell(Exit{end, duration_ms}); }
  void OnMembers(std::vector<pid_t> members) override {
    commands_->Post({id_, std::move(members)});
  }
  void OnQuery(uint32_t query, std::string message) override {
    Tell(Query{query, std::move(message)});
  }
  void OnConnectionAsked(uint32_t number, Connection connection) override {
    Tell(AskedConnection{number, std::move(connection)});
  }
  void OnHost(uint32_t question, const std::string& host, uint16_t port) override {
    Tell(HostQuestion{question, host, port});
  }
  void OnTurn(TurnEnd turn, GuestEffects effects) override {
    Tell(EndedTurn{std::move(turn), std::move(effects)});
  }
  void OnEffects(GuestEffects effects) override { effects_ = std::move(effects); }
  void OnEnd(Outcome outcome) override { Tell(Ended{std::move(outcome), std::move(effects_)}); }
  void OnFinished() override { commands_->ThreadEnded(); }

 private:
  void Tell(Event event) { commands_->Post({id_, std::move(event)}); }

  RunningCommands* const commands_;
  const uint32_t id_;
  GuestEffects effects_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_BINDING_RUNNING_COMMANDS_H_
