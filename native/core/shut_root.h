#ifndef SANDBOX_RUN_CORE_SHUT_ROOT_H_
#define SANDBOX_RUN_CORE_SHUT_ROOT_H_

#include <cstddef>

namespace sandbox_run {

// Where a step failed.
struct RootFailure {
  const char* stage = nullptr;
  long error = 0;  // -errno, or 0: what was found is not as it should be
};

// A launcher that root starts leaves `/` itself writable: root owns it and needs no capability.
// This closes it. Takes a mount namespace of this process's own and makes the mount at `/`
// read-only in it, without device files. What lies at the `kept` paths (canonical) and beneath them
// stays as it is; one that is gone is left out.
//
// The mount itself and not another one above it: at the root, `..` leads to what is mounted there.
// Raw system calls only, like child.cc. False: something failed, nothing may be started.
bool ShutRoot(const char* const* kept, size_t count, RootFailure* failure);

// Whether this process, which has no capabilities, can neither change what is in `/` nor make that
// so, by whatever way there is to it, and `..` leads nowhere else from there.
bool IsRootShut(RootFailure* failure);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_SHUT_ROOT_H_
