#include "notify/exit_tracing.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/listen.h"
#include "notify/listener.h"
#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

// PTRACE_SEIZE and PTRACE_SETOPTIONS take options, and so does the latter's older number, which
// headers have for some architectures only.
constexpr uint32_t kSeize = 0x4206, kSetOptions = 0x4200, kOldSetOptions = 21;
constexpr uint32_t kTraceExit = 0x40;

constexpr uint32_t LowHalfOf(int argument) {
  return offsetof(seccomp_data, args) + 8 * static_cast<uint32_t>(argument);
}

// Matches what the group @trace-exit refuses. Calls of foreign architectures, whose numbers mean
// other calls, are the command's own filter's.
const sock_filter kAsk[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 7),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LowHalfOf(0)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kSeize, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kSetOptions, 1, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kOldSetOptions, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LowHalfOf(3)),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kTraceExit, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, abi::kSeccompRetUserNotification),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

bool IsReadable(int fd) {
  pollfd watched = {fd, POLLIN, 0};
  return poll(&watched, 1, 0) == 1 && (watched.revents & POLLIN) != 0;
}

}  // namespace

std::vector<sock_filter> ExitTracing::Filter() { return {std::begin(kAsk), std::end(kAsk)}; }

Status ExitTracing::CheckHost() {
  const long self = RawSyscall(abi::kSysPidfdOpen, RawSyscall(SYS_getpid), 0);
  if (self < 0) return Failure{kListenerStage, static_cast<int>(-self), ""};
  RawSyscall(SYS_close, self);
  return Status();
}

void ExitTracing::Answer() {
  abi::SeccompNotification call;
  if (HasCall(listener_.get()) && Receive(listener_.get(), call)) Answer(listener_.get(), call);
}

void ExitTracing::Answer(int listener, const abi::SeccompNotification& call) {
  if (Admit(listener, static_cast<pid_t>(call.pid), call.id)) {
    Continue(listener, call.id);
  } else {
    Refuse(listener, call.id, EINVAL);
  }
}

bool ExitTracing::Admit(int listener, pid_t thread, uint64_t call) {
  // Not readable: it has not ended with all its threads, so it still has its number. What it traced
  // is let go before it becomes readable (exit_notify in kernel/exit.c).
  if (tracer_.valid() && !IsReadable(tracer_.get())) return thread == tracer_pid_;
  // Only the first thread of a process has a descriptor; the others are refused, too. 0: a
  // process of another process namespace.
  if (thread <= 0) return false;
  UniqueFd asking(static_cast<int>(RawSyscall(abi::kSysPidfdOpen, thread, 0)));
  if (!asking.valid()) return false;
  // It still waits for this answer, so it is the one that has been opened.
  if (!IsWaiting(listener, call)) return false;
  tracer_ = std::move(asking);
  tracer_pid_ = thread;
  return true;
}

}  // namespace sandbox_run
