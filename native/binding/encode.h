#ifndef SANDBOX_RUN_BINDING_ENCODE_H_
#define SANDBOX_RUN_BINDING_ENCODE_H_

#include <napi.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "core/command.h"
#include "core/head_tail.h"
#include "index/tree_index.h"

namespace sandbox_run {

Napi::Number Number(Napi::Env env, auto value) {
  return Napi::Number::New(env, static_cast<double>(value));
}

// Text for a path, of which textOfPath() in src/base/path-text.ts says the same: a byte that is not
// UTF-8 is half of a surrogate pair, U+DC80 to U+DCFF. Not a Napi::String: set as a property, that
// goes through UTF-8 once more.
Napi::Value EncodePath(Napi::Env env, const std::string& path);

// {stage, errno, path}
Napi::Value EncodeFailure(Napi::Env env, const Failure& failure);

// An error with the failure as its property of that name, for the caller of the addon.
void ThrowFailure(Napi::Env env, const Failure& failure);

// A Buffer, without a copy where it is long; undefined for nothing.
Napi::Value EncodeBytes(Napi::Env env, std::string bytes);
Napi::Value EncodeBytes(Napi::Env env, Bytes bytes);

// {stdout, stderr: Buffers or undefined; stdoutBytes, stderrBytes}
Napi::Value EncodeCapture(Napi::Env env, CapturedStream output, CapturedStream errors);

Napi::Array EncodePaths(Napi::Env env, const std::vector<std::string>& paths);

// NativeIndexEntry in contract.ts.
Napi::Object EncodeEntry(Napi::Env env, const IndexEntry& entry);

// NativeIndexed in contract.ts.
Napi::Value EncodeIndexed(Napi::Env env, const Indexed& indexed);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_BINDING_ENCODE_H_
