#include "binding/running_commands.h"

#include <string>
#include <utility>

#include "binding/encode.h"
#include "sys/removal.h"

namespace sandbox_run {
namespace {

Napi::Value EncodeMembers(Napi::Env env, const std::vector<pid_t>& members) {
  Napi::Array pids = Napi::Array::New(env, members.size());
  for (uint32_t i = 0; i < members.size(); ++i) pids.Set(i, Napi::Number::New(env, members[i]));
  return pids;
}

}  // namespace

RunningCommands::RunningCommands(Napi::Env env) {
  queue_ = EventQueue::New(env, "sandbox-run", 0, 1);
  queue_.Unref(env);
  // Registered after the queue's own, so it runs before it: a command thread always finds an open
  // queue, and none is left when the environment is gone.
  env.AddCleanupHook([this] { EndAll(); });
}

std::unique_ptr<RunningCommands::Observer> RunningCommands::MakeObserver(uint32_t id) {
  return std::make_unique<Observer>(this, id);
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
  confinements_.push_back(confinement.threads);
}

void RunningCommands::EndAll() {
  for (auto& [id, running] : running_) running.command->Cancel(true);
  std::unique_lock lock(mutex_);
  all_ended_.wait(lock, [this] { return threads_ == 0; });
  for (const auto& known : confinements_) {
    if (const auto threads = known.lock()) threads->Close();
  }
  RetryRemovals(Retry::kAll);
}

void RunningCommands::ThreadStarted() {
  const std::lock_guard lock(mutex_);
  ++threads_;
}

void RunningCommands::Post(Message message) {
  auto posted = std::make_unique<Message>(std::move(message));
  if (queue_.BlockingCall(posted.get()) == napi_ok) posted.release();
}

void RunningCommands::ThreadEnded() {
  const std::lock_guard lock(mutex_);
  if (--threads_ == 0) all_ended_.notify_all();
}

void DeliverMessage(Napi::Env env, Napi::Function, std::nullptr_t*, Message* raw) {
  const std::unique_ptr<Message> message(raw);
  if (env == nullptr) return;  // the environment is being torn down
  RunningCommands* commands = env.GetInstanceData<RunningCommands>();
  Running* running = commands->Find(message->id);
  if (running == nullptr) return;
  const Napi::HandleScope scope(env);
  if (const auto* members = std::get_if<std::vector<pid_t>>(&message->content)) {
    const Napi::FunctionReference asked = std::move(running->asked.front());
    running->asked.pop_front();
    asked.Call({EncodeMembers(env, *members)});
    return;
  }
  Event& event = std::get<Event>(message->content);
  if (!std::holds_alternative<Ended>(event)) {
    running->on_event.Call({EncodeEvent(env, event)});
    return;
  }
  const Napi::FunctionReference on_event = std::move(running->on_event);
  const std::deque<Napi::FunctionReference> asked = std::move(running->asked);
  commands->Remove(env, message->id);
  // No process is left, and no answer will come.
  for (const Napi::FunctionReference& callback : asked) callback.Call({EncodeMembers(env, {})});
  on_event.Call({EncodeEvent(env, event)});
}

}  // namespace sandbox_run
