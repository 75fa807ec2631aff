#include "binding/encode.h"

#include <cstdlib>
#include <optional>
#include <utility>

namespace sandbox_run {
namespace {

double Milliseconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
}

constexpr int kEndedByTimeout = 1;
constexpr int kEndedByCancel = 2;
constexpr int kTreeEnded = 4;
constexpr int kShellBroken = 8;
// In place of a stream's number.
constexpr int kTurnStream = 4;

Napi::Number Number(Napi::Env env, auto value) {
  return Napi::Number::New(env, static_cast<double>(value));
}

Napi::Value EncodeSpilled(Napi::Env env, const std::optional<SpilledStream> (&spilled)[2]) {
  Napi::Array files = Napi::Array::New(env, 2);
  for (uint32_t i = 0; i < 2; ++i) {
    if (!spilled[i]) continue;
    Napi::Object file = Napi::Object::New(env);
    file["written"] = Number(env, spilled[i]->written);
    file["errno"] = Number(env, spilled[i]->error);
    file["isWhole"] = Napi::Boolean::New(env, spilled[i]->is_whole);
    files.Set(i, file);
  }
  return files;
}

const char* NameOf(LimitName name) {
  switch (name) {
    case LimitName::kMemory:
      return "memory";
    case LimitName::kProcesses:
      return "processes";
    case LimitName::kCpu:
      return "cpu";
    case LimitName::kTmp:
      return "tmp";
    case LimitName::kIdle:
      return "idle";
  }
  return "";
}

const char* NameOf(LimitMeans means) {
  switch (means) {
    case LimitMeans::kCgroup:
      return "cgroup";
    case LimitMeans::kSampling:
      return "sampling";
    case LimitMeans::kClock:
      return "clock";
  }
  return "";
}

// Leaves out what is unknown.
void Put(Napi::Object& object, const char* name, const std::optional<uint64_t>& value) {
  if (value) object[name] = Napi::Number::New(object.Env(), static_cast<double>(*value));
}

Napi::Value EncodeLimit(Napi::Env env, const LimitExcess& limit) {
  Napi::Object object = Napi::Object::New(env);
  object["name"] = Napi::String::New(env, NameOf(limit.name));
  object["by"] = Napi::String::New(env, NameOf(limit.means));
  Put(object, "value", limit.value);
  Put(object, "used", limit.used);
  return object;
}

Napi::Value EncodeUsage(Napi::Env env, const TreeUsage& usage) {
  Napi::Object object = Napi::Object::New(env);
  object["by"] = Napi::String::New(env, NameOf(usage.means));
  Put(object, "peakMemoryBytes", usage.peak_memory);
  Put(object, "peakProcesses", usage.peak_processes);
  Put(object, "userCpuUs", usage.user_cpu_us);
  Put(object, "systemCpuUs", usage.system_cpu_us);
  Put(object, "readBytes", usage.read_bytes);
  Put(object, "writtenBytes", usage.written_bytes);
  return object;
}

const char* NameOf(EntryKind kind) {
  switch (kind) {
    case EntryKind::kFile:
      return "file";
    case EntryKind::kDirectory:
      return "directory";
    case EntryKind::kLink:
      return "link";
    case EntryKind::kOther:
      return "other";
  }
  return "";
}

const char* NameOf(EntryChange change) {
  switch (change) {
    case EntryChange::kAppeared:
      return "appeared";
    case EntryChange::kChanged:
      return "changed";
    case EntryChange::kVanished:
      return "vanished";
  }
  return "";
}

Napi::Object EncodeEntry(Napi::Env env, const IndexEntry& entry) {
  Napi::Object object = Napi::Object::New(env);
  object["path"] = Napi::String::New(env, entry.path);
  object["kind"] = Napi::String::New(env, NameOf(entry.kind));
  return object;
}

Napi::Array EncodeTexts(Napi::Env env, const std::vector<std::string>& texts) {
  Napi::Array array = Napi::Array::New(env, texts.size());
  for (uint32_t i = 0; i < texts.size(); ++i) array.Set(i, Napi::String::New(env, texts[i]));
  return array;
}

Napi::Value EncodeLeftBehind(Napi::Env env, const LeftBehind& left) {
  Napi::Array entries = Napi::Array::New(env, left.entries.size());
  for (uint32_t i = 0; i < left.entries.size(); ++i) {
    const ChangedEntry& changed = left.entries[i];
    Napi::Object object = EncodeEntry(env, changed.entry);
    object["change"] = Napi::String::New(env, NameOf(changed.change));
    if (changed.earlier) object["earlier"] = Napi::Boolean::New(env, true);
    entries.Set(i, object);
  }
  Napi::Object object = Napi::Object::New(env);
  object["entries"] = entries;
  object["spent"] = Napi::Boolean::New(env, left.spent);
  object["unreadable"] = EncodeTexts(env, left.unreadable);
  return object;
}

Napi::Value EncodeCopies(Napi::Env env, std::vector<ChangedCopy>& copies) {
  Napi::Array array = Napi::Array::New(env, copies.size());
  const auto bytes = [env](const std::string& text) {
    return Napi::Buffer<char>::Copy(env, text.data(), text.size());
  };
  for (uint32_t i = 0; i < copies.size(); ++i) {
    Napi::Object object = Napi::Object::New(env);
    object["source"] = Napi::String::New(env, copies[i].source);
    object["before"] = bytes(copies[i].before);
    if (copies[i].after) object["after"] = bytes(*copies[i].after);
    array.Set(i, object);
  }
  return array;
}

// Properties that are seldom there, in an object that there is only if one of them is.
class Seldom {
 public:
  explicit Seldom(Napi::Env env) : env_(env) {}
  void Add(const char* name, Napi::Value value) {
    if (object_.IsEmpty()) object_ = Napi::Object::New(env_);
    object_[name] = value;
  }
  // NativeEffects in contract.ts.
  void AddEffects(Effects& effects) {
    if (!effects.left_behind.empty())
      Add("leftBehind", EncodeLeftBehind(env_, effects.left_behind));
    if (!effects.copies.empty()) Add("copies", EncodeCopies(env_, effects.copies));
  }
  Napi::Value Take() const {
    if (object_.IsEmpty()) return env_.Undefined();
    return object_;
  }

 private:
  Napi::Env env_;
  Napi::Object object_;
};

// What is seldom there: NativeOutcomeDetails in contract.ts, or undefined.
Napi::Value EncodeDetails(Napi::Env env, Outcome& outcome) {
  Seldom details(env);
  const auto add = [&details](const char* name, Napi::Value value) { details.Add(name, value); };
  if (outcome.spilled[0] || outcome.spilled[1]) add("spilled", EncodeSpilled(env, outcome.spilled));
  if (outcome.output[0].is_short || outcome.output[1].is_short) {
    Napi::Array heads = Napi::Array::New(env, 2);
    for (uint32_t i = 0; i < 2; ++i) heads.Set(i, Number(env, outcome.output[i].head_size));
    add("headBytes", heads);
  }
  if (outcome.tree_tier == TreeTier::kSubreaper) {
    add("processTree", Napi::String::New(env, "subreaper"));
  }
  if (outcome.output_held) add("outputHeld", Napi::Boolean::New(env, true));
  if (outcome.limit) add("limit", EncodeLimit(env, *outcome.limit));
  if (!outcome.tree_usage.empty()) add("usage", EncodeUsage(env, outcome.tree_usage));
  details.AddEffects(outcome.effects);
  return details.Take();
}

}  // namespace

Napi::Value EncodeIndexed(Napi::Env env, const Indexed& indexed) {
  Napi::Array entries = Napi::Array::New(env, indexed.entries.size());
  for (uint32_t i = 0; i < indexed.entries.size(); ++i) {
    const Napi::HandleScope scope(env);
    entries.Set(i, EncodeEntry(env, indexed.entries[i]));
  }
  Napi::Object object = Napi::Object::New(env);
  object["entries"] = entries;
  object["directories"] = Number(env, indexed.directories);
  object["spent"] = Napi::Boolean::New(env, indexed.spent);
  object["unreadable"] = EncodeTexts(env, indexed.unreadable);
  return object;
}

Napi::Value EncodeFailure(Napi::Env env, const Failure& failure) {
  Napi::Object object = Napi::Object::New(env);
  object["stage"] = Napi::String::New(env, failure.stage);
  object["errno"] = Napi::Number::New(env, failure.error);
  object["path"] = Napi::String::New(env, failure.path);
  return object;
}

void ThrowFailure(Napi::Env env, const Failure& failure) {
  Napi::Error error = Napi::Error::New(env, failure.stage);
  error.Set("failure", EncodeFailure(env, failure));
  error.ThrowAsJavaScriptException();
}

Napi::Value EncodeBytes(Napi::Env env, std::string bytes) {
  if (bytes.empty()) return env.Undefined();
  if (bytes.size() < 4096) return Napi::Buffer<char>::Copy(env, bytes.data(), bytes.size());
  auto* kept = new std::string(std::move(bytes));
  return Napi::Buffer<char>::NewOrCopy(
      env, kept->data(), kept->size(), [](Napi::Env, char*, std::string* hint) { delete hint; },
      kept);
}

Napi::Value EncodeBytes(Napi::Env env, Bytes bytes) {
  if (bytes.empty()) return env.Undefined();
  if (bytes.size() < 4096) return Napi::Buffer<char>::Copy(env, bytes.data(), bytes.size());
  const size_t size = bytes.size();
  return Napi::Buffer<char>::NewOrCopy(env, bytes.Release(), size,
                                       [](Napi::Env, char* memory) { free(memory); });
}

Napi::Value EncodeCapture(Napi::Env env, CapturedStream output, CapturedStream errors) {
  Napi::Object capture = Napi::Object::New(env);
  capture["stdoutBytes"] = Number(env, output.total);
  capture["stderrBytes"] = Number(env, errors.total);
  capture["stdout"] = EncodeBytes(env, std::move(output.kept));
  capture["stderr"] = EncodeBytes(env, std::move(errors.kept));
  return capture;
}

std::vector<napi_value> EncodeOutcome(Napi::Env env, Outcome& outcome) {
  const auto number = [env](auto value) { return Number(env, value); };
  const int ended = (outcome.timed_out ? kEndedByTimeout : 0) |
                    (outcome.canceled ? kEndedByCancel : 0) | (outcome.tree_ended ? kTreeEnded : 0);
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
          EncodeDetails(env, outcome)};
}

std::vector<napi_value> EncodeTurn(Napi::Env env, TurnEnd& turn) {
  const auto number = [env](auto value) {
    return Napi::Number::New(env, static_cast<double>(value));
  };
  const int ended = (turn.timed_out ? kEndedByTimeout : 0) |
                    (turn.interrupted ? kEndedByCancel : 0) | (turn.broken ? kShellBroken : 0);
  Seldom details(env);
  details.AddEffects(turn.effects);
  return {number(kTurnStream),
          EncodeBytes(env, std::move(turn.state)),
          number(turn.status),
          number(turn.id),
          number(ended),
          number(turn.duration_ms),
          number(turn.output[0].total),
          number(turn.output[1].total),
          number(0),
          number(0),
          number(0),
          number(0),
          EncodeBytes(env, std::move(turn.output[0].kept)),
          EncodeBytes(env, std::move(turn.output[1].kept)),
          env.Undefined(),
          details.Take()};
}

}  // namespace sandbox_run
