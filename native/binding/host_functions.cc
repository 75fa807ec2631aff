#include "binding/host_functions.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "binding/encode.h"
#include "sys/raw_terminal.h"

namespace sandbox_run {
namespace {

Napi::Value Throw(const Napi::Env& env, const char* call) {
  Napi::Error::New(env, std::string(call) + ": " + strerror(errno)).ThrowAsJavaScriptException();
  return env.Undefined();
}

int Descriptor(const Napi::CallbackInfo& info) { return info[0].As<Napi::Number>().Int32Value(); }

}  // namespace

Napi::Value MakePipe(const Napi::CallbackInfo& info) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    ThrowFailure(info.Env(), {"stdio", errno, "pipe"});
    return info.Env().Undefined();
  }
  Napi::Array result = Napi::Array::New(info.Env(), 2);
  result.Set(0u, Napi::Number::New(info.Env(), ends[0]));
  result.Set(1u, Napi::Number::New(info.Env(), ends[1]));
  return result;
}

Napi::Value TryLock(const Napi::CallbackInfo& info) {
  const int fd = Descriptor(info);
  int locked;
  // Without waiting, which a signal could still interrupt before anything happened.
  do locked = flock(fd, LOCK_EX | LOCK_NB);
  while (locked != 0 && errno == EINTR);
  if (locked != 0 && errno != EWOULDBLOCK) return Throw(info.Env(), "flock");
  return Napi::Boolean::New(info.Env(), locked == 0);
}

Napi::Value Unlock(const Napi::CallbackInfo& info) {
  if (flock(Descriptor(info), LOCK_UN) != 0) return Throw(info.Env(), "flock");
  return info.Env().Undefined();
}

Napi::Value PeerCredentials(const Napi::CallbackInfo& info) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(Descriptor(info), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return Throw(info.Env(), "SO_PEERCRED");
  Napi::Object result = Napi::Object::New(info.Env());
  result["pid"] = Napi::Number::New(info.Env(), peer.pid);
  result["uid"] = Napi::Number::New(info.Env(), peer.uid);
  result["gid"] = Napi::Number::New(info.Env(), peer.gid);
  return result;
}

Napi::Value TerminalSizeOf(const Napi::CallbackInfo& info) {
  winsize size;
  if (ioctl(Descriptor(info), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return info.Env().Undefined();
  }
  Napi::Array result = Napi::Array::New(info.Env(), 2);
  result.Set(0u, Napi::Number::New(info.Env(), size.ws_col));
  result.Set(1u, Napi::Number::New(info.Env(), size.ws_row));
  return result;
}

Napi::Value EnterRaw(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), EnterRawMode(Descriptor(info)));
}

Napi::Value LeaveRaw(const Napi::CallbackInfo& info) {
  LeaveRawMode();
  return info.Env().Undefined();
}

}  // namespace sandbox_run
