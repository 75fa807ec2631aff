#include "core/warden.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/keep_for_good.h"
#include "core/outside.h"
#include "core/warden_child.h"
#include "sys/files.h"
#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

using std::chrono::milliseconds;

// Only to not wait for ever: it answers at once, or ends.
constexpr milliseconds kStartPatience{30'000};
// A little more than the warden itself takes to end a tree.
constexpr milliseconds kEndPatience{5'500};
constexpr milliseconds kStopPatience{1000};
constexpr milliseconds kUsual{50};

bool Wait(int fd, milliseconds patience) {
  pollfd watched = {fd, POLLIN, 0};
  int ready;
  do {
    ready = poll(&watched, 1, static_cast<int>(patience.count()));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

// A program beside this library.
std::string OwnProgram(const char* name) {
  Dl_info self = {};
  const bool found = dladdr(reinterpret_cast<const void*>(&WardenProgram), &self) != 0 &&
                     self.dli_fname != nullptr;
  const std::string own = found ? self.dli_fname : "";
  return own.substr(0, own.find_last_of('/') + 1) + name;
}

}  // namespace

PinnedProgram::PinnedProgram(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (fd.valid() && fstat(fd.get(), &info_) == 0 && S_ISREG(info_.st_mode)) {
    fd_.reset(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  }
}

int PinnedProgram::fd() const {
  // The time of the last change of a file cannot be set, and while a warden runs its program cannot
  // be written to.
  struct stat now;
  const bool same = fd_.valid() && fstat(fd_.get(), &now) == 0 && now.st_size == info_.st_size &&
                    now.st_ctim.tv_sec == info_.st_ctim.tv_sec &&
                    now.st_ctim.tv_nsec == info_.st_ctim.tv_nsec;
  return same ? fd_.get() : -1;
}

int WardenProgram() {
  static const PinnedProgram program(OwnProgram("sandbox-run-warden"));
  return program.fd();
}

int BeginProgram() {
  static const PinnedProgram program(OwnProgram("sandbox-run-begin"));
  return program.fd();
}

int RelayProgram() {
  static const PinnedProgram program(OwnProgram("sandbox-run-relay"));
  return program.fd();
}

struct Warden::Memory {
  WardenPlan plan;
  // The addon's own code may have to run here for good.
  alignas(16) char stack[65536];
};

Warden::Warden() = default;
Warden::~Warden() { Stop(); }

Status Warden::Start(int program, ChildPlan* command, char* command_stack) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Failure{"warden", errno, ""};
  }
  channel_.reset(ends[1]);
  const UniqueFd theirs(ends[0]);
  Result<UniqueFd> raised = AboveStdio(theirs.get(), "warden");
  if (!raised.ok()) return raised.failure();
  memory_.reset(new Memory);  // the stack is left as it is
  memory_->plan = {raised.value().get(), program, getpid(), command, command_stack};
  int pidfd = -1;
  pid_ = clone(RunWarden, memory_->stack + sizeof(memory_->stack), CLONE_VM | CLONE_PIDFD | SIGCHLD,
               &memory_->plan, &pidfd);
  if (pid_ < 0) return Failure{"warden", errno, ""};
  pidfd_.reset(pidfd);
  if (pidfd_.valid()) return Status();
  // Before Linux 5.2 the flag means nothing. Its end would not be noticed.
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) == -1 && errno == EINTR) {
  }
  pid_ = -1;
  return Failure{"warden", ENOSYS, ""};
}

Status Warden::KeepScope(int program) { return Start(program, nullptr, nullptr); }

Result<pid_t> Warden::KeepCommand(ChildPlan& command, char* command_stack, int program) {
  if (Status status = Start(program, &command, command_stack); !status.ok())
    return status.failure();
  const std::optional<WardenMessage> started = Receive(kStartPatience);
  if (started && started->kind == WardenMessage::kStarted) return pid_t{started->pid};
  if (command.failed_stage != nullptr) {
    return Failure{command.failed_stage, command.failed_errno, ""};
  }
  return Failure{kWardenLost, 0, ""};
}

bool Warden::alive() const { return pidfd_.valid() && !Wait(pidfd_.get(), milliseconds(0)); }

void Warden::Stop() {
  if (pid_ < 0) return;
  // In words rather than by the end of the connection alone: a process that is just being forked
  // elsewhere in the launcher has a copy of it.
  Ask({WardenRequest::kEnd, 0});
  channel_.reset();
  if (!Wait(pidfd_.get(), kStopPatience)) {
    // It was stopped from outside. From inside of its scope this thread may not signal it; by its
    // descriptor, as the other thread may be late, and the number another process's by then.
    Outside* outside = kill(pid_, SIGKILL) == 0 ? nullptr : Outside::Existing();
    if (outside != nullptr) {
      const auto copy = std::make_shared<UniqueFd>(fcntl(pidfd_.get(), F_DUPFD_CLOEXEC, 3));
      outside->Call([copy] { RawSyscall(abi::kSysPidfdSendSignal, copy->get(), SIGKILL, 0, 0); });
    }
    if (!Wait(pidfd_.get(), kStopPatience)) {
      // It may still use this memory, and will end when it goes on.
      KeepForGood(std::move(memory_));
      return;
    }
  }
  // ECHILD: an embedder waits for every child, or ignores SIGCHLD.
  while (waitpid(pid_, nullptr, 0) == -1 && errno == EINTR) {
  }
  pid_ = -1;
}

bool Warden::Ask(WardenRequest request) {
  return send(channel_.get(), &request, sizeof(request), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof(request));
}

std::optional<WardenMessage> Warden::Receive(milliseconds patience) {
  if (!Wait(channel_.get(), patience)) return std::nullopt;
  WardenMessage message;
  ssize_t size;
  do {
    size = recv(channel_.get(), &message, sizeof(message), 0);
  } while (size < 0 && errno == EINTR);
  if (size != static_cast<ssize_t>(sizeof(message))) return std::nullopt;
  return message;
}

std::optional<WardenMessage> Warden::TakeExit(milliseconds patience) {
  if (!exit_) {
    std::optional<WardenMessage> message = Receive(kUsual);
    if (!message) {
      kill(pid_, SIGCONT);  // see EndAll()
      message = Receive(patience);
    }
    if (message && message->kind == WardenMessage::kExited) exit_ = message;
  }
  return exit_;
}

void Warden::ReleaseCommand() { Ask({WardenRequest::kRelease, 0}); }

void Warden::SignalAll(int number) { Ask({WardenRequest::kSignal, number}); }

bool Warden::EndAll() {
  if (ended_) return *ended_;
  ended_ = false;
  // A process of the tree may have stopped it (before Landlock ABI 6 nothing keeps it from that).
  kill(pid_, SIGCONT);
  if (!Ask({WardenRequest::kEnd, 0})) {
    lost_ = !alive();
    return false;
  }
  const auto until = std::chrono::steady_clock::now() + kEndPatience;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
    const std::optional<WardenMessage> message = Receive(std::max(left, milliseconds(0)));
    if (!message) {
      lost_ = !alive();
      return false;
    }
    if (message->kind == WardenMessage::kExited) {
      exit_ = message;
    } else {
      ended_ = message->kind == WardenMessage::kEnded;
      return *ended_;
    }
  }
}

}  // namespace sandbox_run
