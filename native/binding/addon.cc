// The Node-API surface. Decodes plain objects into specs, encodes outcomes; no decision is taken
// here.

#include <arpa/inet.h>
#include <linux/seccomp.h>
#include <napi.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "binding/decode.h"
#include "binding/encode.h"
#include "binding/host_functions.h"
#include "binding/running_commands.h"
#include "core/cgroup_parent.h"
#include "core/cgroup_removal.h"
#include "core/command.h"
#include "core/command_threads.h"
#include "core/confinement.h"
#include "core/process_list.h"
#include "core/ruleset.h"
#include "core/tree_kill.h"
#include "publish/publications.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

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

// cgroupParent(): where groups for commands can be made, {path, cloneInto}, or why nowhere.
Napi::Value ProbeCgroupParent(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Result<CgroupParent> found = FindCgroupParent();
  if (!found.ok()) return EncodeFailure(env, found.failure());
  Napi::Object object = Napi::Object::New(env);
  object["path"] = Napi::String::New(env, found.value().path);
  object["cloneInto"] = Napi::Boolean::New(env, found.value().clone_into);
  return object;
}

// signalScope(): whether whole process trees can be ended, or why that cannot be tried now; tries
// it once.
Napi::Value ProbeSignalScope(const Napi::CallbackInfo& info) {
  const Result<bool> proven = ProveSignalScope();
  if (!proven.ok()) return EncodeFailure(info.Env(), proven.failure());
  return Napi::Boolean::New(info.Env(), proven.value());
}

// processListErrno(): why what runs cannot be looked at in /proc; 0: it can.
Napi::Value ProbeProcessList(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), ProcessListError());
}

// createConfinement(spec): an opaque handle.
Napi::Value CreateConfinement(const Napi::CallbackInfo& info) {
  ConfinementSpec spec = DecodeConfinement(info[0].As<Napi::Object>());
  if (info.Env().IsExceptionPending()) return info.Env().Undefined();
  const auto guests = std::make_shared<const GuestSpec>(DecodeGuests(info[0].As<Napi::Object>()));
  if (info.Env().IsExceptionPending()) return info.Env().Undefined();
  CommandGuests::AddTo(spec, guests);
  auto* handle = new ConfinementRef{std::make_shared<CommandThreads>(std::move(spec)), guests};
  info.Env().GetInstanceData<RunningCommands>()->Track(*handle);
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

class CloseWorker : public Napi::AsyncWorker {
 public:
  CloseWorker(const Napi::Function& callback, ConfinementRef confinement)
      : Napi::AsyncWorker(callback), confinement_(std::move(confinement)) {}

  void Execute() override { confinement_->Close(); }
  void OnOK() override { Callback().Call({}); }

 private:
  ConfinementRef confinement_;
};

// closeConfinement(confinement, callback): drops what is idle; running commands go on. On a thread
// where there is a callback: to give up namespaces takes the kernel milliseconds. Without one,
// control groups whose last process ended late go, too: no other command may follow.
Napi::Value CloseConfinement(const Napi::CallbackInfo& info) {
  if (info[1].IsFunction()) {
    (new CloseWorker(info[1].As<Napi::Function>(), AsConfinement(info[0])))->Queue();
    return info.Env().Undefined();
  }
  AsConfinement(info[0])->Close();
  RemoveLeftGroups();
  return info.Env().Undefined();
}

using IndexRef = std::shared_ptr<TreeIndex>;

// createIndex(spec, saved | undefined): an opaque handle.
Napi::Value CreateIndex(const Napi::CallbackInfo& info) {
  IndexSpec spec = DecodeIndex(info[0].As<Napi::Object>());
  if (info.Env().IsExceptionPending()) return info.Env().Undefined();
  auto index = std::make_unique<IndexRef>(std::make_shared<TreeIndex>(std::move(spec)));
  if (info[1].IsBuffer()) {
    const auto saved = info[1].As<Napi::Buffer<char>>();
    (*index)->Recall({saved.Data(), saved.Length()});
  }
  return Napi::External<IndexRef>::New(info.Env(), index.release(),
                                       [](Napi::Env, IndexRef* ref) { delete ref; });
}

// watchPaths(index, paths)
Napi::Value WatchPaths(const Napi::CallbackInfo& info) {
  const std::vector<std::string> paths = DecodePaths(info[1]);
  if (info.Env().IsExceptionPending()) return info.Env().Undefined();
  (*info[0].As<Napi::External<IndexRef>>().Data())->WatchPaths(paths);
  return info.Env().Undefined();
}

// closeIndex(index): gives back what it watches with.
Napi::Value CloseIndex(const Napi::CallbackInfo& info) {
  (*info[0].As<Napi::External<IndexRef>>().Data())->StopWatching();
  return info.Env().Undefined();
}

class ReadWorker : public Napi::AsyncWorker {
 public:
  ReadWorker(const Napi::Function& callback, IndexRef index)
      : Napi::AsyncWorker(callback), index_(std::move(index)) {}

  void Execute() override { read_ = index_->Read(); }
  void OnOK() override {
    if (read_->ok()) {
      Callback().Call({EncodeIndexed(Env(), read_->value()), Env().Undefined()});
    } else {
      Callback().Call({Env().Undefined(), EncodeFailure(Env(), read_->failure())});
    }
  }

 private:
  const IndexRef index_;
  std::optional<Result<Indexed>> read_;
};

// readIndex(index, callback): the first walk, or another look; callback(NativeIndexed | undefined,
// failure).
Napi::Value ReadIndex(const Napi::CallbackInfo& info) {
  (new ReadWorker(info[1].As<Napi::Function>(), *info[0].As<Napi::External<IndexRef>>().Data()))
      ->Queue();
  return info.Env().Undefined();
}

class SaveWorker : public Napi::AsyncWorker {
 public:
  SaveWorker(const Napi::Function& callback, IndexRef index)
      : Napi::AsyncWorker(callback), index_(std::move(index)) {}

  void Execute() override { saved_ = index_->Save(); }
  void OnOK() override {
    Callback().Call({Napi::Buffer<char>::Copy(Env(), saved_.data(), saved_.size())});
  }

 private:
  const IndexRef index_;
  std::string saved_;
};

// saveIndex(index, callback): callback(what is known, as bytes).
Napi::Value SaveIndex(const Napi::CallbackInfo& info) {
  (new SaveWorker(info[1].As<Napi::Function>(), *info[0].As<Napi::External<IndexRef>>().Data()))
      ->Queue();
  return info.Env().Undefined();
}

// launch(...): the id for the functions below. Arguments and events as in contract.ts.
Napi::Value Launch(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const ConfinementRef& confinement = AsConfinement(info[0]);
  bool is_shell = false;
  std::optional<CommandSpec> spec =
      DecodeCommand(info, confinement.guests->network != nullptr, is_shell);
  if (!spec) return env.Undefined();
  RunningCommands* commands = env.GetInstanceData<RunningCommands>();
  const uint32_t id = commands->NextId();
  std::unique_ptr<RunningCommands::Observer> observer = commands->MakeObserver(id);
  const auto guests = std::make_shared<CommandGuests>(
      confinement.guests, *observer, is_shell ? std::optional(spec->kill_grace) : std::nullopt);
  spec->guest = guests;
  Result<std::shared_ptr<Command>> command =
      confinement->Launch(std::move(*spec), std::move(observer));
  if (!command.ok()) {
    commands->ThreadEnded();
    ThrowFailure(env, command.failure());
    return env.Undefined();
  }
  commands->Add(
      env, id,
      {std::move(command.value()), guests, Napi::Persistent(info[1].As<Napi::Function>()), {}});
  return Napi::Number::New(env, id);
}

template <typename Act>
Napi::Value WithCommand(const Napi::CallbackInfo& info, Act act) {
  Running* running =
      info.Env().GetInstanceData<RunningCommands>()->Find(info[0].As<Napi::Number>().Uint32Value());
  if (running != nullptr) act(*running);
  return Napi::Boolean::New(info.Env(), running != nullptr);
}

// signal(id, number), cancel(id, now), acknowledge(id, bytes), stream(id, on): false if the command
// has ended.
Napi::Value Signal(const Napi::CallbackInfo& info) {
  return WithCommand(info, [&](Running& running) {
    running.command->Signal(info[1].As<Napi::Number>().Int32Value());
  });
}
Napi::Value Cancel(const Napi::CallbackInfo& info) {
  return WithCommand(info, [&](Running& running) { running.command->Cancel(info[1].ToBoolean()); });
}
Napi::Value Acknowledge(const Napi::CallbackInfo& info) {
  return WithCommand(info,
                     [&](Running& running) { running.command->Acknowledge(Unsigned(info[1])); });
}

// resize(id, columns, rows): of the command's terminal; false if it has ended.
Napi::Value Resize(const Napi::CallbackInfo& info) {
  const TerminalSize size = DecodeTerminalSize(info[1], info[2]);
  return WithCommand(info, [&](Running& running) { running.command->Resize(size); });
}

Napi::Value Stream(const Napi::CallbackInfo& info) {
  return WithCommand(info, [&](Running& running) { running.command->Stream(info[1].ToBoolean()); });
}

// outputSoFar(id): NativeCapture in contract.ts; undefined if the command has ended.
Napi::Value OutputSoFar(const Napi::CallbackInfo& info) {
  Napi::Value capture = info.Env().Undefined();
  WithCommand(info, [&](Running& running) {
    capture =
        EncodeCapture(info.Env(), running.command->OutputSoFar(0), running.command->OutputSoFar(1));
  });
  return capture;
}

// treeOf(id, callback): callback(pids) of the processes of the command's tree that are alive.
Napi::Value TreeOf(const Napi::CallbackInfo& info) {
  Running* running =
      info.Env().GetInstanceData<RunningCommands>()->Find(info[0].As<Napi::Number>().Uint32Value());
  if (running != nullptr) {
    running->asked.push_back(Napi::Persistent(info[1].As<Napi::Function>()));
    running->command->AskMembers();
  }
  return Napi::Boolean::New(info.Env(), running != nullptr);
}

// turn(id, turn, text, assignments, timeoutMs, streamOutput), interruptTurn(id, turn): of a shell;
// false if it has ended.
Napi::Value Turn(const Napi::CallbackInfo& info) {
  TurnSpec spec;
  spec.id = info[1].As<Napi::Number>().Uint32Value();
  spec.text = info[2].As<Napi::String>();
  spec.assignments = info[3].As<Napi::String>();
  spec.timeout = std::chrono::milliseconds(Unsigned(info[4]));
  spec.stream_output = info[5].ToBoolean();
  if (info.Env().IsExceptionPending()) return info.Env().Undefined();
  return WithCommand(info, [&](Running& running) {
    if (running.guests->turns() == nullptr) return;
    running.guests->turns()->Begin(std::move(spec));
    running.command->Wake();
  });
}
Napi::Value InterruptTurn(const Napi::CallbackInfo& info) {
  return WithCommand(info, [&](Running& running) {
    if (running.guests->turns() == nullptr) return;
    running.guests->turns()->Interrupt(info[1].As<Napi::Number>().Uint32Value());
    running.command->Wake();
  });
}

// answerName(id, query, message): false if the command has ended.
Napi::Value AnswerName(const Napi::CallbackInfo& info) {
  const auto bytes = info[2].As<Napi::Uint8Array>();
  const std::string message(reinterpret_cast<const char*>(bytes.Data()), bytes.ByteLength());
  return WithCommand(info, [&](Running& running) {
    running.guests->AnswerName(info[1].As<Napi::Number>().Uint32Value(), message);
  });
}

// answerConnection(id, number, address, errno, inside): false if the command has ended.
Napi::Value AnswerConnection(const Napi::CallbackInfo& info) {
  std::optional<Address> address;
  if (info[2].IsTypedArray()) address = DecodeAddress(info[2]);
  const int error = info[3].As<Napi::Number>().Int32Value();
  return WithCommand(info, [&](Running& running) {
    running.guests->AnswerConnection(info[1].As<Napi::Number>().Uint32Value(), address, error,
                                     DecodeInside(info[4]));
  });
}

// answerHost(id, question, allowed, rule): false if the command has ended.
Napi::Value AnswerHost(const Napi::CallbackInfo& info) {
  return WithCommand(info, [&](Running& running) {
    running.guests->AnswerHost(info[1].As<Napi::Number>().Uint32Value(), info[2].ToBoolean(),
                               info[3].As<Napi::String>());
  });
}

// allowAddresses(confinement, rows, lifetimeMs): of names that were looked up.
Napi::Value AllowAddresses(const Napi::CallbackInfo& info) {
  NetworkGate* network = AsConfinement(info[0]).guests->network.get();
  std::vector<AddressRow> rows = DecodeAddressRows(info[1]);
  if (info.Env().IsExceptionPending() || network == nullptr) return info.Env().Undefined();
  network->table.Add(std::move(rows), std::chrono::milliseconds(Unsigned(info[2])));
  return info.Env().Undefined();
}

// judgeAddress(confinement, address, port, udp): {allowed, rule}; undefined where nothing is
// listed.
Napi::Value JudgeAddress(const Napi::CallbackInfo& info) {
  const NetworkGate* network = AsConfinement(info[0]).guests->network.get();
  if (network == nullptr) return info.Env().Undefined();
  Endpoint endpoint;
  endpoint.address = DecodeAddress(info[1]);
  endpoint.port = static_cast<uint16_t>(Unsigned(info[2]));
  const Protocol protocol = info[3].ToBoolean().Value() ? Protocol::kUdp : Protocol::kTcp;
  const NetworkTable::Verdict verdict = network->table.Judge(endpoint, protocol);
  Napi::Object object = Napi::Object::New(info.Env());
  object["allowed"] = Napi::Boolean::New(info.Env(), verdict.allowed);
  object["rule"] = Napi::String::New(info.Env(), verdict.rule);
  return object;
}

std::string TextOf(const Address& address) {
  Endpoint endpoint;
  endpoint.address = address;
  char text[INET6_ADDRSTRLEN] = "";
  if (endpoint.IsV4()) {
    inet_ntop(AF_INET, address.data() + 12, text, sizeof(text));
  } else {
    inet_ntop(AF_INET6, address.data(), text, sizeof(text));
  }
  return text;
}

// publish(confinement, address | path | undefined, port, orFree, inner): {id, port, addresses}, or
// {failure, free}: NativePublished in native-publish.ts.
Napi::Value Publish(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const ConfinementRef& confinement = AsConfinement(info[0]);
  PublicationWish wish;
  if (info[1].IsTypedArray()) wish.addresses.push_back(DecodeAddress(info[1]));
  if (info[1].IsString()) wish.socket = info[1].As<Napi::String>();
  wish.port = static_cast<uint16_t>(Unsigned(info[2]));
  wish.or_free = info[3].ToBoolean();
  wish.inner = static_cast<uint16_t>(Unsigned(info[4]));
  if (env.IsExceptionPending()) return env.Undefined();
  PublicationTarget target = {{LoopbackAddress(0, 0, 1), kLoopbackV6}, false};
  // Where the network is listed, sockets of commands are the host's.
  if (NetworkGate* network = confinement.guests->network.get()) {
    const auto own = network->own->loopback.addresses();
    target = {{own.begin(), own.end()}, true};
  }
  const Result<HeldPublication> held =
      Publications::OfProcess().Hold(confinement->machine(), wish, std::move(target));
  Napi::Object object = Napi::Object::New(env);
  if (!held.ok()) {
    object["failure"] = EncodeFailure(env, held.failure());
    if (held.failure().error == EADDRINUSE && wish.socket.empty())
      object["free"] = Number(env, Publications::FreePort(wish.addresses, wish.port + 1u));
    return object;
  }
  std::vector<std::string> addresses;
  for (const Address& address : held.value().addresses) addresses.push_back(TextOf(address));
  object["id"] = Number(env, held.value().id);
  object["port"] = Number(env, held.value().port);
  object["addresses"] = EncodePaths(env, addresses);
  return object;
}

// unpublish(id): false if the relay had ended before.
Napi::Value Unpublish(const Napi::CallbackInfo& info) {
  const uint32_t id = info[0].As<Napi::Number>().Uint32Value();
  return Napi::Boolean::New(info.Env(), Publications::OfProcess().Release(id));
}

// endAll(): ends every command and removes the private directories; for the exit of the process,
// where Node runs no clean-up of addons.
Napi::Value EndAll(const Napi::CallbackInfo& info) {
  info.Env().GetInstanceData<RunningCommands>()->EndAll();
  return info.Env().Undefined();
}

Napi::Object Initialize(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new RunningCommands(env));
  exports["probe"] = Napi::Function::New(env, Probe);
  exports["signalScope"] = Napi::Function::New(env, ProbeSignalScope);
  exports["cgroupParent"] = Napi::Function::New(env, ProbeCgroupParent);
  exports["processListErrno"] = Napi::Function::New(env, ProbeProcessList);
  exports["createIndex"] = Napi::Function::New(env, CreateIndex);
  exports["watchPaths"] = Napi::Function::New(env, WatchPaths);
  exports["closeIndex"] = Napi::Function::New(env, CloseIndex);
  exports["readIndex"] = Napi::Function::New(env, ReadIndex);
  exports["saveIndex"] = Napi::Function::New(env, SaveIndex);
  exports["createConfinement"] = Napi::Function::New(env, CreateConfinement);
  exports["prepare"] = Napi::Function::New(env, Prepare);
  exports["closeConfinement"] = Napi::Function::New(env, CloseConfinement);
  exports["launch"] = Napi::Function::New(env, Launch);
  exports["signal"] = Napi::Function::New(env, Signal);
  exports["cancel"] = Napi::Function::New(env, Cancel);
  exports["acknowledge"] = Napi::Function::New(env, Acknowledge);
  exports["resize"] = Napi::Function::New(env, Resize);
  exports["stream"] = Napi::Function::New(env, Stream);
  exports["outputSoFar"] = Napi::Function::New(env, OutputSoFar);
  exports["treeOf"] = Napi::Function::New(env, TreeOf);
  exports["turn"] = Napi::Function::New(env, Turn);
  exports["interruptTurn"] = Napi::Function::New(env, InterruptTurn);
  exports["answerName"] = Napi::Function::New(env, AnswerName);
  exports["answerConnection"] = Napi::Function::New(env, AnswerConnection);
  exports["answerHost"] = Napi::Function::New(env, AnswerHost);
  exports["allowAddresses"] = Napi::Function::New(env, AllowAddresses);
  exports["judgeAddress"] = Napi::Function::New(env, JudgeAddress);
  exports["publish"] = Napi::Function::New(env, Publish);
  exports["unpublish"] = Napi::Function::New(env, Unpublish);
  exports["endAll"] = Napi::Function::New(env, EndAll);
  exports["makePipe"] = Napi::Function::New(env, MakePipe);
  exports["tryLock"] = Napi::Function::New(env, TryLock);
  exports["unlock"] = Napi::Function::New(env, Unlock);
  exports["removeLayerMarks"] = Napi::Function::New(env, RemoveLayerMarksOf);
  exports["renameVacant"] = Napi::Function::New(env, RenameVacant);
  exports["exchangeNames"] = Napi::Function::New(env, ExchangeNames);
  exports["hasWriter"] = Napi::Function::New(env, HasWriter);
  exports["measure"] = Napi::Function::New(env, Measure);
  exports["emptyDirectory"] = Napi::Function::New(env, EmptyDirectory);
  exports["walkTree"] = Napi::Function::New(env, WalkTreeOf);
  exports["findShut"] = Napi::Function::New(env, FindShutOf);
  exports["copyContent"] = Napi::Function::New(env, CopyContentOf);
  exports["peerCredentials"] = Napi::Function::New(env, PeerCredentials);
  exports["controlGroups"] = Napi::Function::New(env, ControlGroups);
  exports["receiveCall"] = Napi::Function::New(env, ReceiveCall);
  exports["terminalSize"] = Napi::Function::New(env, TerminalSizeOf);
  exports["enterRawMode"] = Napi::Function::New(env, EnterRaw);
  exports["leaveRawMode"] = Napi::Function::New(env, LeaveRaw);
  return exports;
}

NODE_API_MODULE(sandbox_run, Initialize)

}  // namespace
}  // namespace sandbox_run
