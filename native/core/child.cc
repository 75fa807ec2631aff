#include "core/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/shut_root.h"
#include "sys/kernel_abi.h"
#include "sys/own_call.h"
#include "sys/raw_syscall.h"

// This code runs in a process that shares memory with its parent, whose other threads run on: raw
// system calls only, no allocation, no locks, no errno, no libc state.

namespace sandbox_run {
namespace {

// The kernel's own struct sigaction; libc's has another layout.
struct KernelSigaction {
  void (*handler)(int) = SIG_DFL;
  unsigned long flags = 0;
  void (*restorer)() = nullptr;
  uint64_t mask = 0;
};
struct KernelLimit {
  uint64_t soft = 0;
  uint64_t hard = 0;
};
constexpr long kSigsetSize = 8;
constexpr int kLastSignal = 64;
constexpr int kExitNotStarted = 127;

int Fail(ChildPlan* plan, const char* stage, long result) {
  plan->failed_errno = static_cast<int>(-result);
  plan->failed_stage = stage;
  return kExitNotStarted;
}

int Execute(ChildPlan* plan, const char* program, char* const* argv, char* const* envp) {
  // From here on a signal may end it, which then is how the command ended.
  plan->confined = true;
  const uint64_t empty_mask = 0;
  long result = RawSyscall(SYS_rt_sigprocmask, SIG_SETMASK, Arg(&empty_mask), 0, kSigsetSize);
  if (result < 0) return Fail(plan, "signals", result);
  // A rehearsal.
  if (program == nullptr) return 0;
  if (plan->about_to_execute != nullptr) plan->about_to_execute();
  result = OwnCall(SYS_execve, Arg(program), Arg(argv), Arg(envp));
  return Fail(plan, "exec", result);
}

// Compares what `name` in `directory` leads to. Returns 0, -errno, or -ESTALE: it is another
// object.
long CheckIdentity(long directory, const char* name, const ObjectId& wanted) {
  struct stat found;
  const long result = RawSyscall(SYS_newfstatat, directory, Arg(name), Arg(&found), 0);
  if (result < 0) return result;
  return ObjectId{found.st_dev, found.st_ino} == wanted ? 0 : -ESTALE;
}

// Enters the namespaces, and looks where it stands then: what a descriptor led to is not taken on
// trust. Returns 0, or what the child is to exit with after a failure, which is in the plan.
int EnterNamespaces(ChildPlan* plan) {
  if (plan->namespace_count > 0) {
    // Opened before the /proc of the host is out of sight.
    const long own =
        RawSyscall(SYS_openat, AT_FDCWD, Arg("/proc/self/ns"), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (own < 0) return Fail(plan, "namespace.check", own);
    for (size_t i = 0; i < plan->namespace_count; ++i) {
      const NamespaceEntry& entry = plan->namespaces[i];
      const long result = RawSyscall(SYS_setns, entry.fd, entry.type);
      if (result < 0) return Fail(plan, "namespace.enter", result);
    }
    for (size_t i = 0; i < plan->namespace_count; ++i) {
      const NamespaceEntry& entry = plan->namespaces[i];
      const long result = CheckIdentity(own, entry.name, entry.id);
      if (result < 0) return Fail(plan, "namespace.check", result);
    }
    RawSyscall(SYS_close, own);
  }
  if (plan->root) {
    const long result = CheckIdentity(AT_FDCWD, "/", *plan->root);
    if (result < 0) return Fail(plan, "view.check", result);
  }
  return 0;
}

// Whatever keeps a process from gaining privileges is left out, and resource limits, which the
// launcher would be bound to as well: what it starts sees to them.
int ExecuteLauncher(ChildPlan* plan) {
  const LauncherPlan& launcher = *plan->launcher;
  RootFailure root;
  // Before the working directory, which is to be one of the new mounts.
  if (launcher.kept_open != nullptr &&
      !ShutRoot(launcher.kept_open, launcher.kept_open_count, &root)) {
    return Fail(plan, root.stage, root.error);
  }
  long result = RawSyscall(SYS_chdir, Arg(plan->cwd));
  if (result < 0) return Fail(plan, "cwd", result);
  for (int i = 0; i < kLauncherFds; ++i) {
    result = RawSyscall(SYS_dup3, launcher.fds[i], 3 + i, 0);
    if (result < 0) return Fail(plan, "launcher_descriptors", result);
  }
  result = CloseFrom(3 + kLauncherFds, Closing::kOnExec);
  if (result < 0) return Fail(plan, "close_descriptors", result);
  return Execute(plan, launcher.program, launcher.argv, launcher.envp);
}

}  // namespace

long CloseFrom(int first, Closing when) {
  const bool on_exec = when == Closing::kOnExec;
  long result = RawSyscall(abi::kSysCloseRange, first, ~0u, on_exec ? abi::kCloseRangeCloexec : 0);
  if (result == 0) return 0;
  // Before 5.11 (EINVAL: the flag; ENOSYS: the call), or refused by an outer filter: one by one, up
  // to the highest descriptor that the process may have.
  KernelLimit limit;
  result = RawSyscall(SYS_prlimit64, 0, 7 /* RLIMIT_NOFILE */, 0, Arg(&limit));
  if (result < 0) return result;
  // A limit that was lowered after descriptors were opened does not close them, so look further.
  uint64_t last = limit.hard < 65536 ? 65536 : limit.hard;
  if (last > 1048576) last = 1048576;
  for (uint64_t fd = static_cast<uint64_t>(first); fd < last; ++fd) {
    const long number = static_cast<long>(fd);
    result = on_exec ? RawSyscall(SYS_fcntl, number, F_SETFD, FD_CLOEXEC)
                     : RawSyscall(SYS_close, number);
    // EBADF: there is none. After other errors of close(2) it is gone all the same, unless the call
    // was never made, as an outer filter has it.
    if (result < 0 && result != -EBADF && RawSyscall(SYS_fcntl, number, F_GETFD) != -EBADF) {
      return result;
    }
  }
  return 0;
}

bool RehearseWarden(ChildPlan* plan, WardenTier tier) {
  const auto refused = [plan](const char* stage, long result) {
    if (result != -ENOSYS && result != -EPERM) return false;
    Fail(plan, stage, result);
    return true;
  };
  const int64_t no_time[2] = {0, 0};
  if (refused("warden.ppoll", RawSyscall(SYS_ppoll, 0, 0, Arg(no_time), 0, kSigsetSize))) {
    return false;
  }
  if (tier == WardenTier::kScope) return true;
  const long pidfd = RawSyscall(abi::kSysPidfdOpen, RawSyscall(SYS_getpid), 0);
  if (pidfd >= 0) RawSyscall(SYS_close, pidfd);
  return !refused("warden.pidfd_open", pidfd) &&
         !refused("warden.waitid", RawSyscall(SYS_waitid, P_ALL, 0, 0, WEXITED | WNOHANG, 0)) &&
         !refused("warden.sendto", RawSyscall(SYS_sendto, -1, 0, 0, 0, 0, 0));
}

long ResetSignalHandlers() {
  const KernelSigaction defaults;
  for (int number = 1; number <= kLastSignal; ++number) {
    if (number == SIGKILL || number == SIGSTOP) continue;
    const long result = RawSyscall(SYS_rt_sigaction, number, Arg(&defaults), 0, kSigsetSize);
    if (result < 0) return result;
  }
  return 0;
}

long DropCapabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  long result = RawSyscall(SYS_capget, Arg(&header), Arg(data));
  if (result < 0) return result;
  const bool any = (data[0].permitted | data[1].permitted) != 0;
  const bool may_set_securebits = (data[0].effective & (1u << CAP_SETPCAP)) != 0;
  if (may_set_securebits) {
    // uid 0 gets nothing back at execve. The bounding set is left alone: with these bits locked,
    // no_new_privs set and no permitted capability there is nothing for it to bound
    // (cap_bprm_creds_from_file in security/commoncap.c), and emptying it costs 41 calls.
    result = RawSyscall(SYS_prctl, PR_SET_SECUREBITS,
                        SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                            SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                            SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
                        0, 0, 0);
    if (result < 0) return result;
  }
  // An ambient capability is an inheritable and permitted one, and goes with these (capset(2)).
  const bool inheritable = (data[0].inheritable | data[1].inheritable) != 0;
  if (!any && !inheritable) return 0;
  header = {_LINUX_CAPABILITY_VERSION_3, 0};
  data[0] = {};
  data[1] = {};
  return RawSyscall(SYS_capset, Arg(&header), Arg(data));
}

int ConfineAndExecute(ChildPlan* plan) {
  // By path, never by a descriptor of the parent: that would lead out of the new mount namespace.
  long result = RawSyscall(SYS_chdir, Arg(plan->cwd));
  if (result < 0) return Fail(plan, "cwd", result);

  for (size_t i = 0; i < plan->limit_count; ++i) {
    // A limit only ever goes down: what the host set lower stays.
    const ResourceLimit& limit = plan->limits[i];
    KernelLimit wanted = {limit.soft, limit.hard};
    KernelLimit current;
    result = RawSyscall(SYS_prlimit64, 0, limit.resource, 0, Arg(&current));
    if (result < 0) return Fail(plan, "rlimit", result);
    if (current.hard < wanted.hard) wanted.hard = current.hard;
    if (wanted.hard < wanted.soft) wanted.soft = wanted.hard;
    result = RawSyscall(SYS_prlimit64, 0, limit.resource, Arg(&wanted), 0);
    if (result < 0) return Fail(plan, "rlimit", result);
  }
  if (plan->umask >= 0) {
    result = RawSyscall(SYS_umask, plan->umask);
    if (result < 0) return Fail(plan, "umask", result);
  }

  result = CloseFrom(3, Closing::kOnExec);
  if (result < 0) return Fail(plan, "close_descriptors", result);

  result = DropCapabilities();
  if (result < 0) return Fail(plan, "capabilities", result);

  result = RawSyscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (result < 0) return Fail(plan, "no_new_privs", result);

  if (plan->ruleset_fd) {
    result = RawSyscall(abi::kSysLandlockRestrictSelf, *plan->ruleset_fd, 0);
    if (result < 0) return Fail(plan, "landlock.restrict_self", result);
  }

  for (const sock_fprog* filter : {plan->filter, plan->added_filter}) {
    if (filter == nullptr) continue;
    result = RawSyscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, Arg(filter));
    if (result < 0) return Fail(plan, "seccomp", result);
  }

  return Execute(plan, plan->program, plan->argv, plan->envp);
}

int RunChild(void* argument) {
  auto* plan = static_cast<ChildPlan*>(argument);
  long result = 0;

  result = ResetSignalHandlers();
  if (result < 0) return Fail(plan, "signals", result);
  if (plan->program == nullptr && !RehearseWarden(plan, WardenTier::kScope)) {
    return kExitNotStarted;
  }

  // First of all, so that whatever follows is counted.
  if (plan->cgroup_procs_fd) {
    result = RawSyscall(SYS_write, *plan->cgroup_procs_fd, Arg("0"), 1);
    if (result != 1) return Fail(plan, "cgroup.enter", result);
  }

  if (const int failed = EnterNamespaces(plan); failed != 0) return failed;

  result = RawSyscall(SYS_setsid);
  if (result < 0) return Fail(plan, "session", result);
  if (plan->controlling_terminal) {
    // 0: never by taking it from another session, which root could.
    result = RawSyscall(SYS_ioctl, plan->stdio[0], TIOCSCTTY, 0);
    if (result < 0) return Fail(plan, "terminal", result);
  }

  // After setns: a change of credentials clears the signal. It hangs on the creating thread, which
  // waits for this process. A parent that died before this line would go unnoticed: ask.
  result = RawSyscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (result < 0) return Fail(plan, "parent_death_signal", result);
  if (RawSyscall(SYS_getppid) != plan->parent_pid) return Fail(plan, "parent_gone", 0);

  for (int fd = 0; fd < 3; ++fd) {
    // dup3 clears close-on-exec on the copy; Node marks its own 0 to 2 close-on-exec.
    result = RawSyscall(SYS_dup3, plan->stdio[fd], fd, 0);
    if (result < 0) return Fail(plan, "stdio", result);
  }

  return plan->launcher != nullptr ? ExecuteLauncher(plan) : ConfineAndExecute(plan);
}

}  // namespace sandbox_run
