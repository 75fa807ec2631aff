#include "notify/own_processes.h"

#include <linux/capability.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "notify/listener.h"
#include "notify/target.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

constexpr uint32_t kPriorityOfProcess = 0;    // PRIO_PROCESS
constexpr uint32_t kIoPriorityOfProcess = 1;  // IOPRIO_WHO_PROCESS
constexpr int kNone = -1;

// A call that names a thread or process by number. `who`: the argument with the number.
struct NumberCall {
  long number;
  int who = 0;
  int kind = kNone;        // the argument that says what `who` is …
  uint32_t of_single = 0;  // … and its value for a thread or process
  int changes = kNone;     // a pointer: it is NULL if nothing is changed
};
constexpr NumberCall kNumberCalls[] = {
    {SYS_sched_setscheduler},
    {SYS_sched_setparam},
    {SYS_sched_setattr},
    {SYS_sched_setaffinity},
    {SYS_setpriority, 1, 0, kPriorityOfProcess},
    {SYS_ioprio_set, 1, 0, kIoPriorityOfProcess},
    {SYS_prlimit64, 0, kNone, 0, 2},
};

const NumberCall* Find(const abi::SeccompNotification& call) {
  const auto* found =
      std::find_if(std::begin(kNumberCalls), std::end(kNumberCalls),
                   [&call](const NumberCall& one) { return one.number == NumberOf(call); });
  return found == std::end(kNumberCalls) ? nullptr : found;
}

// A structure that begins with its size, as sched_setattr(2) takes it. 0 or an errno.
int SetAttributes(pid_t who, Target& caller, const abi::SeccompNotification& call) {
  constexpr uint32_t kFirstSize = 48, kMost = 4096;
  char attributes[kMost] = {};
  uint32_t size = 0;
  const uint64_t from = PointerOf(call, 1);
  if (!caller.Read(from, &size, sizeof(size))) return EFAULT;
  if (size == 0) size = kFirstSize;
  if (size < kFirstSize || size > kMost) return E2BIG;
  if (!caller.Read(from, attributes, size)) return EFAULT;
  // The other threads of the caller may have written there since.
  memcpy(attributes, &size, sizeof(size));
  return static_cast<int>(
      -RawSyscall(SYS_sched_setattr, who, Arg(attributes), ArgumentOf(call, 2)));
}

int SetAffinity(pid_t who, Target& caller, const abi::SeccompNotification& call) {
  // More processors than any kernel has.
  unsigned char mask[1024] = {};
  const auto size = std::min<uint64_t>(static_cast<uint32_t>(ArgumentOf(call, 1)), sizeof(mask));
  if (!caller.Read(PointerOf(call, 2), mask, size)) return EFAULT;
  return static_cast<int>(
      -RawSyscall(SYS_sched_setaffinity, who, static_cast<long>(size), Arg(mask)));
}

int SetLimit(pid_t who, Target& caller, const abi::SeccompNotification& call) {
  uint64_t wanted[2], before[2];
  if (!caller.Read(PointerOf(call, 2), wanted, sizeof(wanted))) return EFAULT;
  const long result = RawSyscall(SYS_prlimit64, who, ArgumentOf(call, 1), Arg(wanted), Arg(before));
  if (result < 0) return static_cast<int>(-result);
  const uint64_t to = PointerOf(call, 3);
  return to == 0 || caller.Write(to, before, sizeof(before)) ? 0 : EFAULT;
}

// Makes the call for its caller. 0 or an errno.
int Make(pid_t who, const abi::SeccompNotification& call) {
  Target caller(static_cast<pid_t>(call.pid));
  int parameter = 0;
  switch (NumberOf(call)) {
    case SYS_setpriority:
      return static_cast<int>(
          -RawSyscall(SYS_setpriority, kPriorityOfProcess, who, ArgumentOf(call, 2)));
    case SYS_ioprio_set:
      return static_cast<int>(
          -RawSyscall(SYS_ioprio_set, kIoPriorityOfProcess, who, ArgumentOf(call, 2)));
    case SYS_sched_setattr:
      return SetAttributes(who, caller, call);
    case SYS_sched_setaffinity:
      return SetAffinity(who, caller, call);
    case SYS_prlimit64:
      return SetLimit(who, caller, call);
    case SYS_sched_setparam:
      if (!caller.Read(PointerOf(call, 1), &parameter, sizeof(parameter))) return EFAULT;
      return static_cast<int>(-RawSyscall(SYS_sched_setparam, who, Arg(&parameter)));
    case SYS_sched_setscheduler:
      if (!caller.Read(PointerOf(call, 2), &parameter, sizeof(parameter))) return EFAULT;
      return static_cast<int>(
          -RawSyscall(SYS_sched_setscheduler, who, ArgumentOf(call, 1), Arg(&parameter)));
    default:
      return EPERM;
  }
}

// Gives up what this thread may do beyond what a command may. 0 or an errno.
int DropCapabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  return static_cast<int>(-RawSyscall(SYS_capset, Arg(&header), Arg(none)));
}

// 0, or why it is not a thread or process of the command.
int CheckIsOfCommand(pid_t who) {
  if (kill(who, 0) != 0) return errno;
  // The threads of this process are in reach of each other.
  const pid_t process = Target(who).Process();
  return process == 0 ? ESRCH : process == getpid() ? EPERM : 0;
}

struct OtherCall {
  const int listener;
  const abi::SeccompNotification& call;
  const pid_t who;
  int error = EPERM;
  pid_t thread = 0;  // the one that makes it
};

// Runs on a thread of its own, as there is no way back for it, and as the kernel lets go of what a
// thread traces when the thread ends: nothing that is traced has to stop for that.
void* MakeForOther(void* of) {
  OtherCall& other = *static_cast<OtherCall*>(of);
  other.thread = static_cast<pid_t>(RawSyscall(SYS_gettid));
  if ((other.error = DropCapabilities()) != 0) return nullptr;
  if ((other.error = CheckIsOfCommand(other.who)) != 0) return nullptr;
  // From now on nobody reaps it, so that its number stays its own.
  const bool is_held = ptrace(PTRACE_SEIZE, other.who, nullptr, nullptr) == 0;
  // Where nobody may trace, or a debugger does: threads that are pinned to processors have to
  // start.
  if (!is_held && NumberOf(other.call) != SYS_sched_setaffinity) {
    other.error = errno == ESRCH ? ESRCH : EPERM;
    return nullptr;
  }
  // It may have become another one before, and the caller may have ended.
  if ((other.error = CheckIsOfCommand(other.who)) != 0) return nullptr;
  if (!IsWaiting(other.listener, other.call.id)) return nullptr;
  other.error = Make(other.who, other.call);
  return nullptr;
}

// A thread can be joined before the kernel lets go of what it traced (exit_notify in kernel/exit.c
// comes after the wake-up), and until then nobody else can trace that: the next call would be
// refused. Once the kernel knows no such thread, it has.
void WaitUntilGone(pid_t thread) {
  // Bounded, as another thread may get its number.
  for (int tries = 0; tries < 10'000; ++tries) {
    if (RawSyscall(SYS_tgkill, getpid(), thread, 0) != 0) return;
    sched_yield();
  }
}

// 0 or an errno.
int AskOther(int listener, const abi::SeccompNotification& call, pid_t who) {
  if (who < 0) return ESRCH;
  OtherCall other{listener, call, who};
  pthread_t thread;
  if (pthread_create(&thread, nullptr, MakeForOther, &other) != 0) return EPERM;
  pthread_join(thread, nullptr);
  WaitUntilGone(other.thread);
  return other.error;
}

}  // namespace

std::vector<sock_filter> OwnProcesses::Filter() {
  const auto load = [](int argument, bool high = false) -> sock_filter {
    return BPF_STMT(
        BPF_LD | BPF_W | BPF_ABS,
        offsetof(seccomp_data, args) + 8 * static_cast<uint32_t>(argument) + (high ? 4 : 0));
  };
  std::vector<sock_filter> program;
  for (const NumberCall& call : kNumberCalls) {
    // 0 is the caller, of which nobody is asked.
    std::vector<sock_filter> part = {load(call.who), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
                                     BPF_STMT(BPF_RET | BPF_K, abi::kSeccompRetUserNotification)};
    if (call.kind != kNone)
      part.insert(part.begin(),
                  {load(call.kind), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.of_single, 0, 3)});
    if (call.changes != kNone)
      part.insert(part.begin(),
                  {load(call.changes), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2),
                   load(call.changes, true), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, 0)});
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call.number), 0,
                               static_cast<uint8_t>(part.size())));
    program.insert(program.end(), part.begin(), part.end());
  }
  return program;
}

bool OwnProcesses::Answer(int listener, const abi::SeccompNotification& call, bool scopes_signals) {
  const NumberCall* how = Find(call);
  if (how == nullptr) return false;
  // 0: a process of another process namespace.
  const auto thread = static_cast<pid_t>(call.pid);
  const auto who = static_cast<pid_t>(ArgumentOf(call, how->who));
  int error = EPERM;
  if (thread != 0) {
    const bool is_self = who == thread || who == Target(thread).Process();
    if (is_self && IsWaiting(listener, call.id)) {
      Continue(listener, call.id);
      return true;
    }
    if (scopes_signals) {
      error = AskOther(listener, call, who);
    } else if (NumberOf(call) == SYS_sched_setaffinity) {
      Continue(listener, call.id);
      return true;
    }
  }
  ReturnError(listener, call.id, error);
  return true;
}

}  // namespace sandbox_run
