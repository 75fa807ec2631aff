// The Node-API surface. Decodes plain objects into specs, encodes outcomes; no decision is taken
// here.

#include <fcntl.h>
#include <linux/seccomp.h>
#include <napi.h>
#include <signal.h>

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "binding/host_functions.h"
#include "landlock/ruleset.h"
#include "process/command.h"
#include "process/command_threads.h"
#include "process/confinement.h"
#include "process/tree_kill.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

using ConfinementRef = std::shared_ptr<CommandThreads>;

struct Event {
  uint32_t id = 0;
  int stream = 0;  // 1 or 2: a chunk; 0: the end
  std::string chunk;
  Outcome outcome;
};

class Addon;
void DeliverEvent(Napi::Env env, Napi::Function, std::nullptr_t*, Event* event);
using EventQueue = Napi::TypedThreadSafeFunction<std::nullptr_t, Event, DeliverEvent>;

struct Running {
  std::shared_ptr<Command> command;
  Napi::FunctionReference on_event;
};

// What one JavaScript environment (the main thread or one worker) has running.
class Addon {
 public:
  explicit Addon(Napi::Env env) {
    queue_ = EventQueue::New(env, "sandbox-run", 0, 1);
    queue_.Unref(env);
    // Registered after the queue's own, so it runs before it: a command thread always finds an open
    // queue, and none is left when the environment is gone.
    env.AddCleanupHook([this] { EndAll(); });
  }

  uint32_t NextId() { return ++last_id_; }

  void Add(Napi::Env env, uint32_t id, Running running) {
    if (running_.empty()) queue_.Ref(env);
    running_.emplace(id, std::move(running));
  }

  Running* Find(uint32_t id) {
    const auto found = running_.find(id);
    return found == running_.end() ? nullptr : &found->second;
  }

  void Remove(Napi::Env env, uint32_t id) {
    running_.erase(id);
    if (running_.empty()) queue_.Unref(env);
  }

  void Track(const ConfinementRef& confinement) {
    std::erase_if(confinements_, [](const auto& known) { return known.expired(); });
    confinements_.push_back(confinement);
  }

  // Ends every command at once, waits for their threads and removes the private directories.
  void EndAll() {
    for (auto& [id, running] : running_) running.command->Cancel(true);
    std::unique_lock lock(mutex_);
    all_ended_.wait(lock, [this] { return threads_ == 0; });
    for (const auto& known : confinements_) {
      if (const ConfinementRef confinement = known.lock()) confinement->Close();
    }
  }

  // Called on command threads.
  void ThreadStarted() {
    const std::lock_guard lock(mutex_);
    ++threads_;
  }
  void Post(std::unique_ptr<Event> event) {
    if (queue_.BlockingCall(event.get()) == napi_ok) event.release();
  }
  void ThreadEnded() {
    const std::lock_guard lock(mutex_);
    if (--threads_ == 0) all_ended_.notify_all();
  }

 private:
  EventQueue queue_;
  uint32_t last_id_ = 0;
  std::unordered_map<uint32_t, Running> running_;
  std::vector<std::weak_ptr<CommandThreads>> confinements_;
  std::mutex mutex_;
  std::condition_variable all_ended_;
  int threads_ = 0;
};

class QueueObserver : public CommandObserver {
 public:
  QueueObserver(Addon* addon, uint32_t id) : addon_(addon), id_(id) { addon_->ThreadStarted(); }
  void OnOutput(int stream, std::string chunk) override {
    addon_->Post(std::make_unique<Event>(Event{id_, stream, std::move(chunk), {}}));
  }
  void OnEnd(Outcome outcome) override {
    addon_->Post(std::make_unique<Event>(Event{id_, 0, "", std::move(outcome)}));
  }
  void OnFinished() override { addon_->ThreadEnded(); }

 private:
  Addon* const addon_;
  const uint32_t id_;
};

Napi::Value EncodeFailure(Napi::Env env, const Failure& failure) {
  Napi::Object object = Napi::Object::New(env);
  object["stage"] = Napi::String::New(env, failure.stage);
  object["errno"] = Napi::Number::New(env, failure.error);
  object["path"] = Napi::String::New(env, failure.path);
  return object;
}

Napi::Value EncodeBytes(Napi::Env env, std::string bytes) {
  if (bytes.empty()) return env.Undefined();
  if (bytes.size() < 4096) return Napi::Buffer<char>::Copy(env, bytes.data(), bytes.size());
  auto* kept = new std::string(std::move(bytes));
  return Napi::Buffer<char>::NewOrCopy(
      env, kept->data(), kept->size(), [](Napi::Env, char*, std::string* hint) { delete hint; },
      kept);
}

double Milliseconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
}

constexpr int kEndedByTimeout = 1;
constexpr int kEndedByCancel = 2;
constexpr int kTreeEnded = 4;

// The arguments of the last event, in the order of NativeEventHandler in contract.ts.
std::vector<napi_value> EncodeOutcome(Napi::Env env, Outcome& outcome) {
  const auto number = [env](auto value) {
    return Napi::Number::New(env, static_cast<double>(value));
  };
  const int ended = (outcome.timed_out ? kEndedByTimeout : 0) |
                    (outcome.canceled ? kEndedByCancel : 0) | (outcome.tree_ended ? kTreeEnded : 0);
  Napi::Value changed = env.Undefined();
  if (!outcome.changed_paths.empty()) {
    Napi::Array paths = Napi::Array::New(env, outcome.changed_paths.size());
    for (uint32_t i = 0; i < outcome.changed_paths.size(); ++i) {
      paths.Set(i, Napi::String::New(env, outcome.changed_paths[i]));
    }
    changed = paths;
  }
  return {number(0),
          env.Undefined(),
          number(outcome.exit_code),
          number(outcome.signal),
          number(ended),
          number(outcome.duration_ms),
          number(outcome.output[0].total),
          number(outcome.output[1].total),
          number(Milliseconds(outcome.usage.ru_utime)),
          number(Milliseconds(outcome.usage.ru_stime)),
          number(outcome.usage.ru_maxrss),
          number(outcome.launcher_max_rss_kib),
          EncodeBytes(env, std::move(outcome.output[0].kept)),
          EncodeBytes(env, std::move(outcome.output[1].kept)),
          outcome.failure ? EncodeFailure(env, *outcome.failure) : env.Undefined(),
          changed};
}

void DeliverEvent(Napi::Env env, Napi::Function, std::nullptr_t*, Event* raw) {
  const std::unique_ptr<Event> event(raw);
  if (env == nullptr) return;  // the environment is being torn down
  Addon* addon = env.GetInstanceData<Addon>();
  Running* running = addon->Find(event->id);
  if (running == nullptr) return;
  const Napi::HandleScope scope(env);
  if (event->stream != 0) {
    running->on_event.Call(
        {Napi::Number::New(env, event->stream), EncodeBytes(env, std::move(event->chunk))});
    return;
  }
  const Napi::FunctionReference on_event = std::move(running->on_event);
  addon->Remove(env, event->id);
  on_event.Call(EncodeOutcome(env, event->outcome));
}

// --- decoding
// -------------------------------------------------------------------------------------

std::string Text(const Napi::Object& object, const char* name) {
  return object.Get(name).As<Napi::String>().Utf8Value();
}
bool Flag(const Napi::Object& object, const char* name) {
  return object.Get(name).ToBoolean().Value();
}
uint64_t Unsigned(const Napi::Value& value) {
  if (value.IsBigInt()) {
    bool lossless = false;
    return value.As<Napi::BigInt>().Uint64Value(&lossless);
  }
  return static_cast<uint64_t>(value.As<Napi::Number>().Int64Value());
}
template <typename Each>
void ForEach(const Napi::Value& value, Each each) {
  const Napi::Array array = value.As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); ++i) each(array.Get(i));
}
std::vector<std::string> Texts(const Napi::Value& value) {
  std::vector<std::string> result;
  ForEach(value,
          [&](const Napi::Value& item) { result.push_back(item.As<Napi::String>().Utf8Value()); });
  return result;
}

ViewStepKind DecodeStepKind(const std::string& name) {
  if (name == "bind") return ViewStepKind::kBind;
  if (name == "devpts") return ViewStepKind::kDevpts;
  if (name == "symlink") return ViewStepKind::kSymlink;
  if (name == "masked-file") return ViewStepKind::kMaskedFile;
  return ViewStepKind::kDirectory;
}

ConfinementSpec DecodeConfinement(const Napi::Object& object) {
  ConfinementSpec spec;
  const Napi::Object landlock = object.Get("landlock").As<Napi::Object>();
  spec.landlock.handled_fs = Unsigned(landlock.Get("handledFs"));
  spec.landlock.handled_net = Unsigned(landlock.Get("handledNet"));
  spec.landlock.scoped = Unsigned(landlock.Get("scoped"));
  ForEach(object.Get("rules"), [&](const Napi::Value& value) {
    const Napi::Object rule = value.As<Napi::Object>();
    spec.rules.push_back({Text(rule, "path"), Unsigned(rule.Get("directoryAccess")),
                          Unsigned(rule.Get("fileAccess")), Flag(rule, "required"),
                          Flag(rule, "inView")});
  });
  const auto filter = object.Get("filter").As<Napi::Uint8Array>();
  spec.filter.resize(filter.ByteLength() / sizeof(sock_filter));
  memcpy(spec.filter.data(), filter.Data(), spec.filter.size() * sizeof(sock_filter));
  if (const Napi::Value value = object.Get("namespaces"); value.IsObject()) {
    const Napi::Object namespaces = value.As<Napi::Object>();
    NamespaceSpec decoded;
    decoded.user = Flag(namespaces, "user");
    decoded.network = Flag(namespaces, "network");
    decoded.ipc = Flag(namespaces, "ipc");
    ForEach(namespaces.Get("view"), [&](const Napi::Value& item) {
      const Napi::Object step = item.As<Napi::Object>();
      decoded.view.push_back({DecodeStepKind(Text(step, "kind")), Text(step, "source"),
                              Text(step, "target"), Flag(step, "readOnly"),
                              Flag(step, "allowDevices"), Flag(step, "required"),
                              Flag(step, "watched")});
    });
    spec.namespaces = std::move(decoded);
  }
  ForEach(object.Get("limits"), [&](const Napi::Value& value) {
    const Napi::Object limit = value.As<Napi::Object>();
    const uint64_t bound = Unsigned(limit.Get("value"));
    spec.limits.push_back({limit.Get("resource").As<Napi::Number>().Int32Value(), bound, bound});
  });
  spec.umask = object.Get("umask").As<Napi::Number>().Int32Value();
  spec.temporary_parent = Text(object, "temporaryParent");
  spec.memory_parent = Text(object, "memoryParent");
  spec.slot_directories = Texts(object.Get("slotDirectories"));
  ForEach(object.Get("seedFiles"), [&](const Napi::Value& value) {
    const Napi::Object seed = value.As<Napi::Object>();
    spec.seed_files.push_back({Text(seed, "path"), Text(seed, "content")});
  });
  ForEach(object.Get("slotVariables"), [&](const Napi::Value& value) {
    const Napi::Object variable = value.As<Napi::Object>();
    spec.slot_variables.push_back({Text(variable, "name"), Text(variable, "path")});
  });
  return spec;
}

constexpr int kStdioNull = -1;
constexpr int kStdioCapture = -2;

// --- exported functions
// ----------------------------------------------------------------------------

// probe(): { landlockAbi, landlockErrata, seccompErrno, signalScope }; negative = -errno.
Napi::Value Probe(const Napi::CallbackInfo& info) {
  Napi::Object result = Napi::Object::New(info.Env());
  const uint32_t action = SECCOMP_RET_ERRNO;
  const long seccomp = RawSyscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, Arg(&action));
  result["landlockAbi"] = Napi::Number::New(info.Env(), LandlockAbi());
  result["landlockErrata"] = Napi::Number::New(info.Env(), LandlockErrata());
  result["seccompErrno"] = Napi::Number::New(info.Env(), static_cast<double>(seccomp));
  return result;
}

// signalScope(): whether whole process trees can be ended; tries it once.
Napi::Value ProbeSignalScope(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), SignalScopeIsProven());
}

// createConfinement(spec): an opaque handle.
Napi::Value CreateConfinement(const Napi::CallbackInfo& info) {
  ConfinementSpec spec = DecodeConfinement(info[0].As<Napi::Object>());
  if (info.Env().IsExceptionPending()) return info.Env().Undefined();
  auto* handle = new ConfinementRef(std::make_shared<CommandThreads>(std::move(spec)));
  info.Env().GetInstanceData<Addon>()->Track(*handle);
  return Napi::External<ConfinementRef>::New(info.Env(), handle,
                                             [](Napi::Env, ConfinementRef* ref) {
                                               // Idle threads hold a reference of their own.
                                               (*ref)->Close();
                                               delete ref;
                                             });
}

ConfinementRef& AsConfinement(const Napi::Value& value) {
  return *value.As<Napi::External<ConfinementRef>>().Data();
}

class PrepareWorker : public Napi::AsyncWorker {
 public:
  PrepareWorker(const Napi::Function& callback, ConfinementRef confinement)
      : Napi::AsyncWorker(callback), confinement_(std::move(confinement)) {}

  void Execute() override {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (Status prepared = confinement_->Prepare(); !prepared.ok()) failure_ = prepared.failure();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  void OnOK() override {
    Callback().Call({failure_ ? EncodeFailure(Env(), *failure_) : Env().Undefined()});
  }

 private:
  ConfinementRef confinement_;
  std::optional<Failure> failure_;
};

// prepare(confinement, callback): builds the kernel objects now; callback(failure | undefined).
Napi::Value Prepare(const Napi::CallbackInfo& info) {
  (new PrepareWorker(info[1].As<Napi::Function>(), AsConfinement(info[0])))->Queue();
  return info.Env().Undefined();
}

// closeConfinement(confinement): drops what is idle; running commands go on.
Napi::Value CloseConfinement(const Napi::CallbackInfo& info) {
  AsConfinement(info[0])->Close();
  return info.Env().Undefined();
}

// launch(...): the id for the functions below. Arguments and events as in contract.ts; they are
// positional because properties cost more than the launch.
Napi::Value Launch(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  enum Argument : size_t {
    kConfinement,
    kOnEvent,
    kProgram,
    kArgv,
    kEnvironment,
    kCwd,
    kStdin,
    kStdout,
    kStderr,
    kOutputLimit,
    kTimeoutMs,
    kKillGraceMs,
    kStreamOutput,
    kInput,
  };
  CommandSpec spec;
  spec.program = info[kProgram].As<Napi::String>();
  spec.argv = Texts(info[kArgv]);
  const auto environment = info[kEnvironment].As<Napi::Uint8Array>();
  spec.env.assign(reinterpret_cast<const char*>(environment.Data()), environment.ByteLength());
  spec.cwd = info[kCwd].As<Napi::String>();
  for (size_t i = 0; i < 3; ++i) {
    const int value = info[kStdin + i].As<Napi::Number>().Int32Value();
    if (value == kStdioNull) continue;
    if (value == kStdioCapture) {
      spec.stdio[i].mode = StdioSpec::Mode::kCapture;
      continue;
    }
    spec.stdio[i].mode = StdioSpec::Mode::kFd;
    spec.stdio[i].fd.reset(fcntl(value, F_DUPFD_CLOEXEC, 3));
    if (!spec.stdio[i].fd.valid()) {
      Napi::Error::New(env, std::string("stdio ") + std::to_string(i) + ": " + strerror(errno))
          .ThrowAsJavaScriptException();
      return env.Undefined();
    }
  }
  if (info[kInput].IsTypedArray()) {
    const auto bytes = info[kInput].As<Napi::Uint8Array>();
    spec.input.assign(reinterpret_cast<const char*>(bytes.Data()), bytes.ByteLength());
  }
  spec.stream_output = info[kStreamOutput].ToBoolean();
  spec.output_limit = Unsigned(info[kOutputLimit]);
  spec.timeout = std::chrono::milliseconds(Unsigned(info[kTimeoutMs]));
  spec.kill_grace = std::chrono::milliseconds(Unsigned(info[kKillGraceMs]));
  // A value of the wrong type: what was decoded in its stead must not run.
  if (env.IsExceptionPending()) return env.Undefined();

  Addon* addon = env.GetInstanceData<Addon>();
  const uint32_t id = addon->NextId();
  Result<std::shared_ptr<Command>> command =
      AsConfinement(info[kConfinement])
          ->Launch(std::move(spec), std::make_unique<QueueObserver>(addon, id));
  if (!command.ok()) {
    addon->ThreadEnded();
    Napi::Error error = Napi::Error::New(env, command.failure().stage);
    error.Set("failure", EncodeFailure(env, command.failure()));
    error.ThrowAsJavaScriptException();
    return env.Undefined();
  }
  addon->Add(env, id,
             {std::move(command.value()), Napi::Persistent(info[kOnEvent].As<Napi::Function>())});
  return Napi::Number::New(env, id);
}

template <typename Act>
Napi::Value WithCommand(const Napi::CallbackInfo& info, Act act) {
  Running* running =
      info.Env().GetInstanceData<Addon>()->Find(info[0].As<Napi::Number>().Uint32Value());
  if (running != nullptr) act(*running->command);
  return Napi::Boolean::New(info.Env(), running != nullptr);
}

// signal(id, number), cancel(id, now), acknowledge(id, bytes): false if the command has ended.
Napi::Value Signal(const Napi::CallbackInfo& info) {
  return WithCommand(
      info, [&](Command& command) { command.Signal(info[1].As<Napi::Number>().Int32Value()); });
}
Napi::Value Cancel(const Napi::CallbackInfo& info) {
  return WithCommand(info, [&](Command& command) { command.Cancel(info[1].ToBoolean()); });
}
Napi::Value Acknowledge(const Napi::CallbackInfo& info) {
  return WithCommand(info, [&](Command& command) { command.Acknowledge(Unsigned(info[1])); });
}

// endAll(): ends every command and removes the private directories; for the exit of the process,
// where Node runs no clean-up of addons.
Napi::Value EndAll(const Napi::CallbackInfo& info) {
  info.Env().GetInstanceData<Addon>()->EndAll();
  return info.Env().Undefined();
}

Napi::Object Initialize(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new Addon(env));
  exports["probe"] = Napi::Function::New(env, Probe);
  exports["signalScope"] = Napi::Function::New(env, ProbeSignalScope);
  exports["createConfinement"] = Napi::Function::New(env, CreateConfinement);
  exports["prepare"] = Napi::Function::New(env, Prepare);
  exports["closeConfinement"] = Napi::Function::New(env, CloseConfinement);
  exports["launch"] = Napi::Function::New(env, Launch);
  exports["signal"] = Napi::Function::New(env, Signal);
  exports["cancel"] = Napi::Function::New(env, Cancel);
  exports["acknowledge"] = Napi::Function::New(env, Acknowledge);
  exports["endAll"] = Napi::Function::New(env, EndAll);
  exports["makePipe"] = Napi::Function::New(env, MakePipe);
  exports["tryLock"] = Napi::Function::New(env, TryLock);
  exports["unlock"] = Napi::Function::New(env, Unlock);
  exports["peerCredentials"] = Napi::Function::New(env, PeerCredentials);
  return exports;
}

NODE_API_MODULE(sandbox_run, Initialize)

}  // namespace
}  // namespace sandbox_run
