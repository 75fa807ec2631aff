#include "binding/encode.h"

#include <cstdlib>
#include <string_view>
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

// The length of the UTF-8 character that begins there; 0: none does.
size_t CharacterAt(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() - at < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  // Longer than it need be, half of a pair, or beyond the last character (RFC 3629).
  const unsigned char second = byte(at + 1);
  const bool is_none = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                       (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return is_none ? 0 : length;
}

}  // namespace

Napi::Value EncodePath(Napi::Env env, const std::string& path) {
  size_t at = 0;
  while (at < path.size()) {
    const size_t length = CharacterAt(path, at);
    if (length == 0) break;
    at += length;
  }
  if (at == path.size()) return Napi::String::New(env, path);
  std::u16string text;
  for (at = 0; at < path.size();) {
    const size_t length = CharacterAt(path, at);
    if (length == 0) {
      text.push_back(static_cast<char16_t>(0xDC00 + static_cast<unsigned char>(path[at])));
      ++at;
      continue;
    }
    const auto bits = [&](size_t i, unsigned mask) {
      return static_cast<unsigned char>(path[at + i]) & mask;
    };
    constexpr unsigned kMasks[] = {0x7F, 0x1F, 0x0F, 0x07};
    uint32_t character = bits(0, kMasks[length - 1]);
    for (size_t i = 1; i < length; ++i) character = character << 6 | bits(i, 0x3F);
    if (character >= 0x10000) {
      text.push_back(static_cast<char16_t>(0xD7C0 + (character >> 10)));
      text.push_back(static_cast<char16_t>(0xDC00 + (character & 0x3FF)));
    } else {
      text.push_back(static_cast<char16_t>(character));
    }
    at += length;
  }
  return Napi::String::New(env, text);
}

Napi::Object EncodeEntry(Napi::Env env, const IndexEntry& entry) {
  Napi::Object object = Napi::Object::New(env);
  object["path"] = EncodePath(env, entry.path);
  object["kind"] = Napi::String::New(env, NameOf(entry.kind));
  return object;
}

Napi::Array EncodePaths(Napi::Env env, const std::vector<std::string>& paths) {
  Napi::Array array = Napi::Array::New(env, paths.size());
  for (uint32_t i = 0; i < paths.size(); ++i) array.Set(i, EncodePath(env, paths[i]));
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
  object["read"] = Number(env, indexed.read);
  object["spent"] = Napi::Boolean::New(env, indexed.spent);
  object["spentBeside"] = Napi::Boolean::New(env, indexed.spent_beside);
  object["unreadable"] = EncodePaths(env, indexed.unreadable);
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
