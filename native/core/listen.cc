#include "core/listen.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cerrno>

#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

Failure Refused(long result) { return {kListenerStage, static_cast<int>(-result), ""}; }

long Install(const std::vector<sock_filter>& program, unsigned flags) {
  const sock_fprog filter = {static_cast<unsigned short>(program.size()),
                             const_cast<sock_filter*>(program.data())};
  return RawSyscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, Arg(&filter));
}

}  // namespace

Result<UniqueFd> Listen(const std::vector<sock_filter>& program) {
  // What the answers rely on.
  uint16_t sizes[3] = {};
  long result = RawSyscall(SYS_seccomp, abi::kSeccompGetNotificationSizes, 0, Arg(sizes));
  if (result < 0) return Refused(result);
  if (sizes[0] != sizeof(abi::SeccompNotification) || sizes[1] != sizeof(abi::SeccompAnswer)) {
    return Refused(-EOPNOTSUPP);
  }
  result = RawSyscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (result < 0) return Refused(result);
  // Nothing of this process is to run slower for it, as before Linux 5.16 under a filter. A call
  // that was taken is not given up for a signal that does not kill (since Linux 5.19).
  const unsigned flags = abi::kSeccompNewListener | abi::kSeccompSpeculate;
  result = Install(program, flags | abi::kSeccompWaitKillable);
  if (result == -EINVAL) result = Install(program, flags);
  if (result < 0) return Refused(result);
  return UniqueFd(static_cast<int>(result));
}

}  // namespace sandbox_run
