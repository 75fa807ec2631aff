// The program `sandbox-run-begin`: no libc, no arguments, see handover.h. Runs inside the sandbox
// that a set-uid launcher made, as process 2 or so of its process namespace.

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cstddef>

#include "begin/handover.h"
#include "begin/others.h"
#include "core/child.h"
#include "core/shut_root.h"
#include "sys/raw_syscall.h"

#if defined(__x86_64__)
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  xor %ebp, %ebp\n"
    "  and $-16, %rsp\n"
    "  call BeginMain\n");
#elif defined(__aarch64__)
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  mov x29, #0\n"
    "  mov x30, #0\n"
    "  bl BeginMain\n");
#else
#error "sandbox-run supports x86-64 and arm64 only"
#endif

// The compiler may ask for these.
extern "C" void* memset(void* to, int value, size_t size) {
  auto* at = static_cast<volatile char*>(to);
  for (size_t i = 0; i < size; ++i) at[i] = static_cast<char>(value);
  return to;
}
extern "C" void* memcpy(void* to, const void* from, size_t size) {
  auto* at = static_cast<volatile char*>(to);
  for (size_t i = 0; i < size; ++i) at[i] = static_cast<const char*>(from)[i];
  return to;
}

namespace sandbox_run {
namespace {

constexpr long kSignalSetSize = 8;
constexpr int kNotStarted = 127;

uint64_t nonce = 0;

[[noreturn]] void Exit(int status) {
  for (;;) RawSyscall(SYS_exit_group, status);
}

bool Send(BeginRecord& record) {
  record.nonce = nonce;
  return RawSyscall(SYS_write, kReportFd, Arg(&record), sizeof(record)) == sizeof(record);
}

[[noreturn]] void GiveUp(const char* stage, long error) {
  BeginRecord record;
  record.kind = BeginRecord::kFailed;
  record.error = static_cast<int32_t>(error < 0 ? -error : error);
  for (size_t i = 0; i + 1 < sizeof(record.stage) && stage[i] != 0; ++i) record.stage[i] = stage[i];
  Send(record);
  Exit(kNotStarted);
}

void SayBegun() {
  BeginRecord record;
  record.kind = BeginRecord::kBegun;
  // Nothing runs that the launcher does not know of.
  if (!Send(record)) Exit(kNotStarted);
}

// Takes the nonce out of the file and makes it what it stays: the launcher's own processes hold the
// file too, and where the command can get at theirs it finds no nonce and changes nothing.
void TakeNonce() {
  const long at = offsetof(Handover, nonce);
  const long taken = RawSyscall(SYS_pread64, kHandoverFd, Arg(&nonce), sizeof(nonce), at);
  if (taken != sizeof(nonce)) GiveUp("handover", taken);
  const uint64_t nothing = 0;
  const long wiped = RawSyscall(SYS_pwrite64, kHandoverFd, Arg(&nothing), sizeof(nothing), at);
  if (wiped != sizeof(nothing)) GiveUp("handover", wiped);
  const long sealed = RawSyscall(SYS_fcntl, kHandoverFd, F_ADD_SEALS,
                                 F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  if (sealed < 0) GiveUp("handover", sealed);
}

// The file is sealed: what is mapped cannot change. Private, as offsets become addresses in it.
char* MapHandover() {
  TakeNonce();
  const long size = RawSyscall(SYS_lseek, kHandoverFd, 0, SEEK_END);
  if (size < static_cast<long>(sizeof(Handover))) GiveUp("handover", size);
  const long base = RawSyscall(SYS_mmap, 0, size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_POPULATE, kHandoverFd, 0);
  if (base < 0 && base > -4096) GiveUp("handover", base);
  auto* handover = reinterpret_cast<Handover*>(base);
  if (handover->size != static_cast<uint64_t>(size)) GiveUp("handover", 0);
  RawSyscall(SYS_close, kHandoverFd);
  return reinterpret_cast<char*>(base);
}

char** Pointers(char* base, uint64_t at) {
  auto* offsets = reinterpret_cast<uint64_t*>(base + at);
  for (size_t i = 0; offsets[i] != 0; ++i) offsets[i] += reinterpret_cast<uint64_t>(base);
  return reinterpret_cast<char**>(offsets);
}

// `parent`: the number of the process that waits for the command.
[[noreturn]] void BeCommand(char* base, long parent) {
  const auto* handover = reinterpret_cast<const Handover*>(base);
  ChildPlan plan;
  plan.program = base + handover->program;
  plan.cwd = base + handover->cwd;
  plan.argv = Pointers(base, handover->argv);
  plan.envp = Pointers(base, handover->envp);
  plan.limits = reinterpret_cast<const ResourceLimit*>(base + handover->limits);
  plan.limit_count = handover->limit_count;
  plan.umask = handover->umask;
  sock_fprog filter = {};
  filter.len = static_cast<unsigned short>(handover->filter_length);
  filter.filter = reinterpret_cast<sock_filter*>(base + handover->filter);
  if (filter.len > 0) plan.filter = &filter;
  plan.about_to_execute = SayBegun;

  // A group of its own, so that signals to it do not reach the launcher, which would end
  // everything; and the terminal's, so that it may read.
  RawSyscall(SYS_setpgid, 0, 0);
  // Without the process that waits for it, its end would not be reported.
  const long dies = RawSyscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (dies < 0) GiveUp("parent_death_signal", dies);
  if (RawSyscall(SYS_getppid) != parent) GiveUp("parent_gone", 0);
  if (handover->terminal != 0) {
    const int32_t group = static_cast<int32_t>(RawSyscall(SYS_getpid));
    const long result = RawSyscall(SYS_ioctl, 0, TIOCSPGRP, Arg(&group));
    if (result < 0) GiveUp("terminal", result);
  }
  if (const long reset = ResetSignalHandlers(); reset < 0) GiveUp("signals", reset);
  ConfineAndExecute(&plan);
  GiveUp(plan.failed_stage, plan.failed_errno);
}

}  // namespace
}  // namespace sandbox_run

extern "C" [[noreturn]] void BeginMain() {
  using namespace sandbox_run;
  // Nothing but the end of the command ends this process, except for SIGKILL.
  const uint64_t all = ~0ull;
  const long blocked = RawSyscall(SYS_rt_sigprocmask, SIG_SETMASK, Arg(&all), 0, kSignalSetSize);
  // The command is of the same user: it shall not get at the descriptors here.
  const long shut = RawSyscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  const long closing = CloseFrom(3, Closing::kOnExec);
  char* const base = MapHandover();
  // Not before: until then the launcher does not know who reports.
  if (blocked < 0) GiveUp("signals", blocked);
  if (shut < 0) GiveUp("handover", shut);
  if (closing < 0) GiveUp("close_descriptors", closing);
  // A process that has only the launcher's filters could do for the command what ours refuses.
  if (reinterpret_cast<const Handover*>(base)->alone != 0) {
    const long others = OthersInReach();
    if (others != 0) GiveUp("others", others < 0 ? others : 0);
  }
  // If `/` can be changed, the launcher did not make the sandbox that was asked for.
  if (RootFailure root;
      reinterpret_cast<const Handover*>(base)->checks_root != 0 && !IsRootShut(&root)) {
    GiveUp(root.stage, root.error);
  }
  const long self = RawSyscall(SYS_getpid);
  const long command = RawSyscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (command < 0) GiveUp("clone", command);
  if (command == 0) BeCommand(base, self);

  // Not held any longer than needed: what the command reads has an end when its writer has ended.
  for (int fd = 0; fd < 3; ++fd) RawSyscall(SYS_close, fd);
  siginfo_t info = {};
  long result;
  do {
    result = RawSyscall(SYS_waitid, P_PID, command, Arg(&info), WEXITED, 0);
  } while (result == -EINTR);
  BeginRecord record;
  record.kind = BeginRecord::kEnded;
  record.code = info.si_code;
  record.status = info.si_status;
  if (result == 0) Send(record);
  Exit(info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status);
}
