#include "binding/encode.h"

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

// What is seldom there: NativeOutcomeDetails in contract.ts, or undefined.
Napi::Value EncodeDetails(Napi::Env env, const Outcome& outcome) {
  if (!outcome.limit && outcome.tree_usage.empty()) return env.Undefined();
  Napi::Object details = Napi::Object::New(env);
  if (outcome.limit) details["limit"] = EncodeLimit(env, *outcome.limit);
  if (!outcome.tree_usage.empty()) details["usage"] = EncodeUsage(env, outcome.tree_usage);
  return details;
}

}  // namespace

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
          changed,
          EncodeDetails(env, outcome)};
}

}  // namespace sandbox_run
