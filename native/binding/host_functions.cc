#include "binding/host_functions.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "binding/decode.h"
#include "binding/encode.h"
#include "core/directory_usage.h"
#include "sys/control_group.h"
#include "sys/kernel_abi.h"
#include "sys/raw_terminal.h"
#include "sys/removal.h"
#include "sys/tree_walk.h"

namespace sandbox_run {
namespace {

std::string PathIn(const Napi::Value& path) {
  const Napi::Buffer<char> bytes = path.As<Napi::Buffer<char>>();
  return std::string(bytes.Data(), bytes.Length());
}

// By number: musl has no renameat2().
Napi::Value Rename(const Napi::CallbackInfo& info, unsigned flags) {
  const std::string from = PathIn(info[0]);
  const std::string to = PathIn(info[1]);
  if (syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0)
    return info.Env().Undefined();
  return EncodeFailure(info.Env(), {"rename", errno, ""});
}

Napi::Value Throw(const Napi::Env& env, const char* call) {
  Napi::Error::New(env, std::string(call) + ": " + strerror(errno)).ThrowAsJavaScriptException();
  return env.Undefined();
}

int Descriptor(const Napi::CallbackInfo& info) { return info[0].As<Napi::Number>().Int32Value(); }

class MeasureWorker : public Napi::AsyncWorker {
 public:
  MeasureWorker(const Napi::Function& callback, std::vector<std::string> paths,
                std::chrono::milliseconds budget)
      : Napi::AsyncWorker(callback), usage_(std::move(paths)), budget_(budget) {}

  void Execute() override { usage_.Advance(budget_); }
  void OnOK() override {
    const bool complete = usage_.complete() && !usage_.unmeasurable() && !usage_.has_shut();
    Callback().Call({Napi::Number::New(Env(), static_cast<double>(usage_.bytes())),
                     Napi::Boolean::New(Env(), complete)});
  }

 private:
  DirectoryUsage usage_;
  const std::chrono::milliseconds budget_;
};

class EmptyWorker : public Napi::AsyncWorker {
 public:
  EmptyWorker(const Napi::Function& callback, std::string path)
      : Napi::AsyncWorker(callback), path_(std::move(path)) {}

  void Execute() override { is_empty_ = RemoveContents(path_); }
  void OnOK() override { Callback().Call({Napi::Boolean::New(Env(), is_empty_)}); }

 private:
  const std::string path_;
  bool is_empty_ = false;
};

class WalkWorker : public Napi::AsyncWorker {
 public:
  using Walk = std::function<Result<std::vector<TreeEntry>>()>;
  WalkWorker(const Napi::Function& callback, Walk walk)
      : Napi::AsyncWorker(callback), walk_(std::move(walk)) {}

  void Execute() override { walked_ = walk_(); }
  void OnOK() override {
    if (!walked_.ok()) {
      Callback().Call({Env().Undefined(), EncodeFailure(Env(), walked_.failure())});
      return;
    }
    const std::vector<TreeEntry>& entries = walked_.value();
    std::string names;
    Napi::Float64Array numbers = Napi::Float64Array::New(Env(), entries.size() * kPerEntry);
    double* next = numbers.Data();
    for (const TreeEntry& entry : entries) {
      names.append(entry.path).push_back('\0');
      const struct stat& is = entry.info;
      const bool whiteout = S_ISCHR(is.st_mode) && is.st_rdev == 0;
      const int marks = (entry.opaque ? 1 : 0) | (entry.attributes ? 2 : 0) |
                        (entry.unreadable ? 4 : 0) | (whiteout ? 8 : 0) | (entry.copied ? 16 : 0);
      for (const double number :
           {double(is.st_mode), double(is.st_size), double(is.st_ino), double(is.st_nlink),
            double(is.st_mtim.tv_sec), double(is.st_mtim.tv_nsec), double(is.st_ctim.tv_sec),
            double(is.st_ctim.tv_nsec), double(marks)}) {
        *next++ = number;
      }
    }
    Napi::Object result = Napi::Object::New(Env());
    result["names"] = Napi::Buffer<char>::Copy(Env(), names.data(), names.size());
    result["numbers"] = numbers;
    Callback().Call({result, Env().Undefined()});
  }

 private:
  static constexpr size_t kPerEntry = 9;
  const Walk walk_;
  Result<std::vector<TreeEntry>> walked_ = std::vector<TreeEntry>();
};

class CopyWorker : public Napi::AsyncWorker {
 public:
  CopyWorker(const Napi::Function& callback, int from, int to)
      : Napi::AsyncWorker(callback), from_(from), to_(to) {}

  void Execute() override { copied_ = CopyContent(from_, to_); }
  void OnOK() override {
    Callback().Call({copied_.ok() ? Env().Undefined() : EncodeFailure(Env(), copied_.failure())});
  }

 private:
  const int from_, to_;
  Status copied_;
};

}  // namespace

Napi::Value WalkTreeOf(const Napi::CallbackInfo& info) {
  const WalkKind kind = info[1].ToBoolean().Value() ? WalkKind::kLayer : WalkKind::kPlain;
  const auto walk = [path = std::string(info[0].As<Napi::String>()), kind,
                     most = Unsigned(info[2])] { return WalkTree(path, kind, most); };
  (new WalkWorker(info[3].As<Napi::Function>(), walk))->Queue();
  return info.Env().Undefined();
}

Napi::Value FindShutOf(const Napi::CallbackInfo& info) {
  std::set<std::string> named;
  const Napi::Array names = info[1].As<Napi::Array>();
  for (uint32_t i = 0; i < names.Length(); ++i) named.insert(names.Get(i).As<Napi::String>());
  const auto walk = [path = std::string(info[0].As<Napi::String>()), named = std::move(named),
                     most = Unsigned(info[2])] { return FindShut(path, named, most); };
  (new WalkWorker(info[3].As<Napi::Function>(), walk))->Queue();
  return info.Env().Undefined();
}

Napi::Value CopyContentOf(const Napi::CallbackInfo& info) {
  (new CopyWorker(info[2].As<Napi::Function>(), Descriptor(info),
                  info[1].As<Napi::Number>().Int32Value()))
      ->Queue();
  return info.Env().Undefined();
}

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
  const int kind = info[1].ToBoolean() ? LOCK_SH : LOCK_EX;
  int locked;
  // Without waiting, which a signal could still interrupt before anything happened.
  do locked = flock(fd, kind | LOCK_NB);
  while (locked != 0 && errno == EINTR);
  if (locked != 0 && errno != EWOULDBLOCK) return Throw(info.Env(), "flock");
  return Napi::Boolean::New(info.Env(), locked == 0);
}

Napi::Value Unlock(const Napi::CallbackInfo& info) {
  if (flock(Descriptor(info), LOCK_UN) != 0) return Throw(info.Env(), "flock");
  return info.Env().Undefined();
}

Napi::Value RemoveLayerMarksOf(const Napi::CallbackInfo& info) {
  Status removed = RemoveLayerMarks(PathIn(info[0]));
  if (!removed.ok()) ThrowFailure(info.Env(), removed.failure());
  return info.Env().Undefined();
}

Napi::Value RenameVacant(const Napi::CallbackInfo& info) {
  return Rename(info, abi::kRenameNoReplace);
}

Napi::Value ExchangeNames(const Napi::CallbackInfo& info) {
  return Rename(info, abi::kRenameExchange);
}

Napi::Value HasWriter(const Napi::CallbackInfo& info) {
  const int fd = Descriptor(info);
  // If a process opens the file now, the kernel signals the lease's holder; SIGURG is ignored by
  // default.
  if (fcntl(fd, F_SETSIG, SIGURG) != 0) return Throw(info.Env(), "fcntl");
  // A lease for readers is refused where there is a writer (fcntl(2)).
  const int leased = fcntl(fd, F_SETLEASE, F_RDLCK);
  if (leased != 0 && errno != EAGAIN) return Throw(info.Env(), "fcntl");
  if (leased == 0 && fcntl(fd, F_SETLEASE, F_UNLCK) != 0) return Throw(info.Env(), "fcntl");
  return Napi::Boolean::New(info.Env(), leased != 0);
}

Napi::Value Measure(const Napi::CallbackInfo& info) {
  (new MeasureWorker(info[2].As<Napi::Function>(), Texts(info[0]),
                     std::chrono::milliseconds(Unsigned(info[1]))))
      ->Queue();
  return info.Env().Undefined();
}

Napi::Value EmptyDirectory(const Napi::CallbackInfo& info) {
  (new EmptyWorker(info[1].As<Napi::Function>(), info[0].As<Napi::String>()))->Queue();
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

Napi::Value ReceiveCall(const Napi::CallbackInfo& info) {
  constexpr size_t kPassed = 4;
  char call = 0;
  iovec part{&call, 1};
  // Room for more than is taken: what does not fit would be dropped unseen.
  alignas(cmsghdr) char control[CMSG_SPACE(2 * kPassed * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t count = recvmsg(Descriptor(info), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return info.Env().Undefined();
  std::vector<UniqueFd> passed;
  if (count >= 0) {
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const size_t bytes = header->cmsg_len - CMSG_LEN(0);
      for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
        int fd = -1;
        memcpy(&fd, CMSG_DATA(header) + at, sizeof fd);
        passed.emplace_back(fd);
      }
    }
  }
  if (count != 1 || call != 'R' || passed.size() != kPassed ||
      (message.msg_flags & MSG_CTRUNC) != 0) {
    return info.Env().Null();
  }
  Napi::Array result = Napi::Array::New(info.Env(), kPassed);
  for (uint32_t i = 0; i < kPassed; ++i)
    result.Set(i, Napi::Number::New(info.Env(), passed[i].release()));
  return result;
}

Napi::Value ControlGroups(const Napi::CallbackInfo& info) {
  const auto theirs = std::make_unique<ControlGroup>();
  const auto ours = std::make_unique<ControlGroup>();
  const std::string process = std::to_string(info[0].As<Napi::Number>().Int32Value());
  if (!theirs->Read(process.c_str()) || !ours->Read("self"))
    return Throw(info.Env(), "/proc/PID/cgroup");
  if (theirs->text() != ours->text()) {
    theirs->OmitGroupsWithoutSettings();
    ours->OmitGroupsWithoutSettings();
  }
  Napi::Array result = Napi::Array::New(info.Env(), 2);
  uint32_t at = 0;
  for (const ControlGroup* group : {theirs.get(), ours.get()}) {
    napi_value text = nullptr;
    napi_create_string_latin1(info.Env(), group->text().data(), group->text().size(), &text);
    result.Set(at++, text);
  }
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
