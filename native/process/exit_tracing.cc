#include "process/exit_tracing.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

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

Failure Refused(long result) { return {kExitTracingStage, static_cast<int>(-result), ""}; }

bool IsReadable(int fd) {
  pollfd watched = {fd, POLLIN, 0};
  return poll(&watched, 1, 0) == 1 && (watched.revents & POLLIN) != 0;
}

}  // namespace

Status ExitTracing::Enter() {
  if (listener_.valid()) return Status();
  // What Answer() relies on.
  uint16_t sizes[3] = {};
  long result = RawSyscall(SYS_seccomp, abi::kSeccompGetNotificationSizes, 0, Arg(sizes));
  if (result < 0) return Refused(result);
  if (sizes[0] != sizeof(abi::SeccompNotification) || sizes[1] != sizeof(abi::SeccompAnswer)) {
    return Refused(-EOPNOTSUPP);
  }
  const long self = RawSyscall(abi::kSysPidfdOpen, RawSyscall(SYS_getpid), 0);
  if (self < 0) return Refused(self);
  RawSyscall(SYS_close, self);

  result = RawSyscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (result < 0) return Refused(result);
  const sock_fprog program = {sizeof(kAsk) / sizeof(kAsk[0]), const_cast<sock_filter*>(kAsk)};
  // Nothing of this process is to run slower for it, as before Linux 5.16 under a filter.
  result = RawSyscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                      abi::kSeccompNewListener | abi::kSeccompSpeculate, Arg(&program));
  if (result < 0) return Refused(result);
  listener_.reset(static_cast<int>(result));
  return Status();
}

void ExitTracing::Answer() {
  // Receiving waits if no process asks. One that gave up meanwhile is still counted, so receiving
  // does not wait for another one then, but fails with ENOENT.
  if (!IsReadable(listener_.get())) return;
  abi::SeccompNotification call;
  if (ioctl(listener_.get(), abi::kSeccompReceive, &call) != 0) return;
  abi::SeccompAnswer answer;
  answer.id = call.id;
  if (Admit(static_cast<pid_t>(call.pid), call.id)) {
    answer.flags = abi::kSeccompContinue;
  } else {
    answer.error = -EINVAL;
  }
  // ENOENT: it does not ask any more.
  [[maybe_unused]] const int ignored = ioctl(listener_.get(), abi::kSeccompSend, &answer);
}

bool ExitTracing::Admit(pid_t thread, uint64_t call) {
  // Not readable: it has not ended with all its threads, so it still has its number. What it traced
  // is let go before it becomes readable (exit_notify in kernel/exit.c).
  if (tracer_.valid() && !IsReadable(tracer_.get())) return thread == tracer_pid_;
  // Only the first thread of a process has a descriptor; the others are refused, too. 0: a
  // process of another process namespace.
  if (thread <= 0) return false;
  UniqueFd asking(static_cast<int>(RawSyscall(abi::kSysPidfdOpen, thread, 0)));
  if (!asking.valid()) return false;
  // It still waits for this answer, so it is the one that has been opened.
  if (ioctl(listener_.get(), abi::kSeccompIsValid, &call) != 0) return false;
  tracer_ = std::move(asking);
  tracer_pid_ = thread;
  return true;
}

}  // namespace sandbox_run
