#include "binding/encode.h"

#include <cstdlib>
#include <utility>

namespace sandbox_run {
namespace {

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

}  // namespace

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

}  // namespace sandbox_run
