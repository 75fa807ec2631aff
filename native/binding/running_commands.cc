#include "binding/running_commands.h"

#include <string>
#include <utility>

#include "binding/encode.h"
#include "sys/removal.h"

namespace sandbox_run {
namespace {

struct ChunkEvent : Event {
  ChunkEvent(uint32_t of, int of_stream, std::string bytes)
      : Event(of), stream(of_stream), chunk(std::move(bytes)) {}
  std::vector<napi_value> Arguments(Napi::Env env) override {
    return {Napi::Number::New(env, stream), EncodeBytes(env, std::move(chunk))};
  }
  int stream;
  std::string chunk;
};

// A chunk of nothing, and how much is missing before the next.
struct GapEvent : Event {
  GapEvent(uint32_t of, int of_stream, uint64_t bytes)
      : Event(of), stream(of_stream), missing(bytes) {}
  std::vector<napi_value> Arguments(Napi::Env env) override {
    return {Napi::Number::New(env, stream), Napi::Buffer<char>::New(env, 0),
            Napi::Number::New(env, static_cast<double>(missing))};
  }
  int stream;
  uint64_t missing;
};

struct TurnEvent : Event {
  TurnEvent(uint32_t of, TurnEnd how) : Event(of), turn(std::move(how)) {}
  std::vector<napi_value> Arguments(Napi::Env env) override { return EncodeTurn(env, turn); }
  TurnEnd turn;
};

struct EndEvent : Event {
  EndEvent(uint32_t of, Outcome how) : Event(of), outcome(std::move(how)) {}
  std::vector<napi_value> Arguments(Napi::Env env) override { return EncodeOutcome(env, outcome); }
  bool last() const override { return true; }
  Outcome outcome;
};

// The command has ended, and what it left behind is kept.
struct ExitEvent : Event {
  ExitEvent(uint32_t of, ProcessEnd how, double after_ms)
      : Event(of), end(how), duration_ms(after_ms) {}
  std::vector<napi_value> Arguments(Napi::Env env) override {
    constexpr int kStream = 3;
    return {Napi::Number::New(env, kStream),
            env.Undefined(),
            Napi::Number::New(env, end.exit_code),
            Napi::Number::New(env, end.signal),
            Napi::Number::New(env, 0),
            Napi::Number::New(env, duration_ms)};
  }
  ProcessEnd end;
  double duration_ms;
};

Napi::Value EncodeMembers(Napi::Env env, const std::vector<pid_t>& members) {
  Napi::Array pids = Napi::Array::New(env, members.size());
  for (uint32_t i = 0; i < members.size(); ++i) pids.Set(i, Napi::Number::New(env, members[i]));
  return pids;
}

struct MembersEvent : Event {
  MembersEvent(uint32_t of, std::vector<pid_t> pids) : Event(of), members(std::move(pids)) {}
  std::vector<napi_value> Arguments(Napi::Env env) override {
    return {EncodeMembers(env, members)};
  }
  bool answers() const override { return true; }
  std::vector<pid_t> members;
};

class QueueObserver : public CommandObserver {
 public:
  QueueObserver(RunningCommands* commands, uint32_t id) : commands_(commands), id_(id) {
    commands_->ThreadStarted();
  }
  void OnOutput(int stream, std::string chunk) override {
    commands_->Post(std::make_unique<ChunkEvent>(id_, stream, std::move(chunk)));
  }
  void OnGap(int stream, uint64_t missing) override {
    commands_->Post(std::make_unique<GapEvent>(id_, stream, missing));
  }
  void OnExit(const ProcessEnd& end, double duration_ms) override {
    commands_->Post(std::make_unique<ExitEvent>(id_, end, duration_ms));
  }
  void OnMembers(std::vector<pid_t> members) override {
    commands_->Post(std::make_unique<MembersEvent>(id_, std::move(members)));
  }
  void OnTurn(TurnEnd turn) override {
    commands_->Post(std::make_unique<TurnEvent>(id_, std::move(turn)));
  }
  void OnEnd(Outcome outcome) override {
    commands_->Post(std::make_unique<EndEvent>(id_, std::move(outcome)));
  }
  void OnFinished() override { commands_->ThreadEnded(); }

 private:
  RunningCommands* const commands_;
  const uint32_t id_;
};

}  // namespace

RunningCommands::RunningCommands(Napi::Env env) {
  queue_ = EventQueue::New(env, "sandbox-run", 0, 1);
  queue_.Unref(env);
  // Registered after the queue's own, so it runs before it: a command thread always finds an open
  // queue, and none is left when the environment is gone.
  env.AddCleanupHook([this] { EndAll(); });
}

std::unique_ptr<CommandObserver> RunningCommands::MakeObserver(uint32_t id) {
  return std::make_unique<QueueObserver>(this, id);
}

void RunningCommands::Add(Napi::Env env, uint32_t id, Running running) {
  if (running_.empty()) queue_.Ref(env);
  running_.emplace(id, std::move(running));
}

Running* RunningCommands::Find(uint32_t id) {
  const auto found = running_.find(id);
  return found == running_.end() ? nullptr : &found->second;
}

void RunningCommands::Remove(Napi::Env env, uint32_t id) {
  running_.erase(id);
  if (running_.empty()) queue_.Unref(env);
}

void RunningCommands::Track(const ConfinementRef& confinement) {
  std::erase_if(confinements_, [](const auto& known) { return known.expired(); });
  confinements_.push_back(confinement);
}

void RunningCommands::EndAll() {
  for (auto& [id, running] : running_) running.command->Cancel(true);
  std::unique_lock lock(mutex_);
  all_ended_.wait(lock, [this] { return threads_ == 0; });
  for (const auto& known : confinements_) {
    if (const ConfinementRef confinement = known.lock()) confinement->Close();
  }
  RetryRemovals(Retry::kAll);
}

void RunningCommands::ThreadStarted() {
  const std::lock_guard lock(mutex_);
  ++threads_;
}

void RunningCommands::Post(std::unique_ptr<Event> event) {
  if (queue_.BlockingCall(event.get()) == napi_ok) event.release();
}

void RunningCommands::ThreadEnded() {
  const std::lock_guard lock(mutex_);
  if (--threads_ == 0) all_ended_.notify_all();
}

void DeliverEvent(Napi::Env env, Napi::Function, std::nullptr_t*, Event* raw) {
  const std::unique_ptr<Event> event(raw);
  if (env == nullptr) return;  // the environment is being torn down
  RunningCommands* commands = env.GetInstanceData<RunningCommands>();
  Running* running = commands->Find(event->id);
  if (running == nullptr) return;
  const Napi::HandleScope scope(env);
  if (event->answers()) {
    const Napi::FunctionReference asked = std::move(running->asked.front());
    running->asked.pop_front();
    asked.Call(event->Arguments(env));
    return;
  }
  if (!event->last()) {
    running->on_event.Call(event->Arguments(env));
    return;
  }
  const Napi::FunctionReference on_event = std::move(running->on_event);
  const std::deque<Napi::FunctionReference> asked = std::move(running->asked);
  commands->Remove(env, event->id);
  // No process is left, and no answer will come.
  for (const Napi::FunctionReference& callback : asked) callback.Call({EncodeMembers(env, {})});
  on_event.Call(event->Arguments(env));
}

}  // namespace sandbox_run
