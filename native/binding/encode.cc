#include "binding/encode.h"

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
constexpr int kTurnStream = 3;

// What is seldom there: NativeOutcomeDetails in contract.ts, or undefined.
Napi::Value EncodeDetails(Napi::Env env, const Outcome&) { return env.Undefined(); }

Napi::Value EncodePaths(Napi::Env env, const std::vector<std::string>& paths) {
  if (paths.empty()) return env.Undefined();
  Napi::Array array = Napi::Array::New(env, paths.size());
  for (uint32_t i = 0; i < paths.size(); ++i) array.Set(i, Napi::String::New(env, paths[i]));
  return array;
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
          EncodePaths(env, outcome.changed_paths),
          EncodeDetails(env, outcome)};
}

std::vector<napi_value> EncodeTurn(Napi::Env env, TurnEnd& turn) {
  const auto number = [env](auto value) {
    return Napi::Number::New(env, static_cast<double>(value));
  };
  const int ended = (turn.timed_out ? kEndedByTimeout : 0) |
                    (turn.interrupted ? kEndedByCancel : 0) | (turn.broken ? kShellBroken : 0);
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
          EncodePaths(env, turn.changed_paths),
          env.Undefined()};
}

}  // namespace sandbox_run
