#ifndef SANDBOX_RUN_SYS_OWN_CALL_H_
#define SANDBOX_RUN_SYS_OWN_CALL_H_

#include <cstdint>

#include "sys/raw_syscall.h"

namespace sandbox_run {

// Marks a call as one of ours, which does not wait to be looked at (notify/call_observer.h): in the
// low half of the sixth argument, which no call that is looked at has, and the kernel so ignores.
// It is no secret. A command that gives it keeps a call out of a list, and gains nothing else: what
// is looked at goes on in any case.
inline constexpr uint32_t kOwnCall = 0x5ab0c0de;

// Makes a system call with that mark. A warden makes all its calls so: it ends a tree when the
// launcher, and with it the observer, is gone.
inline long OwnCall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  return RawSyscall(number, a, b, c, d, e, kOwnCall);
}

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_SYS_OWN_CALL_H_
