#include "core/shut_root.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "core/view_flags.h"
#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

constexpr char kRoot[] = "/";
constexpr char kAboveRoot[] = "/..";

bool Fail(RootFailure* failure, const char* stage, long error) {
  failure->stage = stage;
  failure->error = error;
  return false;
}

bool IsSameMount(const abi::Statx& one, const abi::Statx& other) {
  // Before 5.8 nothing says which mount it is; then a file system above itself is not told.
  const bool known = (one.mask & other.mask & abi::kStatxMountId) != 0;
  return one.inode == other.inode && one.device_major == other.device_major &&
         one.device_minor == other.device_minor && (!known || one.mount_id == other.mount_id);
}

// At the root of a process `..` leads to what is mounted above it, if there is something: a second
// world, in which nothing of what a launcher covers is covered.
bool IsAlone(RootFailure* failure) {
  abi::Statx found[2] = {};
  const char* const paths[2] = {kRoot, kAboveRoot};
  for (int i = 0; i < 2; ++i) {
    const long result = RawSyscall(SYS_statx, AT_FDCWD, Arg(paths[i]), AT_SYMLINK_NOFOLLOW,
                                   abi::kStatxBasicStats | abi::kStatxMountId, Arg(&found[i]));
    if (result < 0) return Fail(failure, "root.look", result);
  }
  return IsSameMount(found[0], found[1]) || Fail(failure, "root.covered", 0);
}

// The owner of a directory can make it writable. Only the owner, or who has a capability for that,
// may open it so; numbers of users say less: in a user namespace, all strangers have the same.
long IsOwnDirectory(const char* path) {
  const long fd = RawSyscall(SYS_openat, AT_FDCWD, Arg(path),
                             O_RDONLY | O_DIRECTORY | O_NOATIME | O_CLOEXEC, 0);
  if (fd >= 0) {
    RawSyscall(SYS_close, fd);
    return 1;
  }
  if (fd == -EPERM) return 0;
  if (fd != -EACCES) return fd;
  // It cannot be read, so that the first question was not reached.
  abi::Statx info;
  const long result = RawSyscall(SYS_statx, AT_FDCWD, Arg(path), AT_SYMLINK_NOFOLLOW,
                                 abi::kStatxBasicStats, Arg(&info));
  if (result < 0) return result;
  return info.uid == static_cast<uint32_t>(RawSyscall(SYS_geteuid)) ? 1 : 0;
}

bool IsShut(const char* path, RootFailure* failure) {
  struct statfs info = {};
  long result = RawSyscall(SYS_statfs, Arg(path), Arg(&info));
  if (result < 0) return Fail(failure, "root.look", result);
  if ((static_cast<unsigned long>(info.f_flags) & MS_RDONLY) != 0) return true;
  result = IsOwnDirectory(path);
  if (result < 0) return Fail(failure, "root.look", result);
  if (result > 0) return Fail(failure, "root.open", 0);
  // By the real user: the effective one is the same here.
  result = RawSyscall(SYS_faccessat, AT_FDCWD, Arg(path), W_OK);
  if (result == -EACCES || result == -EPERM || result == -EROFS) return true;
  return result < 0 ? Fail(failure, "root.look", result) : Fail(failure, "root.open", 0);
}

}  // namespace

bool ShutRoot(const char* const* kept, size_t count, RootFailure* failure) {
  long result = RawSyscall(SYS_unshare, CLONE_NEWNS);
  if (result < 0) return Fail(failure, "root.namespace", result);
  // Nothing comes from the host either: what is mounted there later would be writable here.
  result = RawSyscall(SYS_mount, 0, Arg(kRoot), 0, MS_REC | MS_PRIVATE, 0);
  if (result < 0) return Fail(failure, "root.propagation", result);
  for (size_t i = 0; i < count; ++i) {
    result = RawSyscall(SYS_mount, Arg(kept[i]), Arg(kept[i]), 0, MS_BIND | MS_REC, 0);
    if (result < 0 && result != -ENOENT) return Fail(failure, "root.keep", result);
  }
  // Device files do not mind a read-only mount.
  result = AddFlags(kRoot, MS_RDONLY | MS_NODEV);
  if (result < 0) return Fail(failure, "root.read_only", result);
  struct statfs info = {};
  result = RawSyscall(SYS_statfs, Arg(kRoot), Arg(&info));
  if (result < 0) return Fail(failure, "root.read_only", result);
  if ((static_cast<unsigned long>(info.f_flags) & MS_RDONLY) == 0) {
    return Fail(failure, "root.read_only", 0);
  }
  return IsAlone(failure);
}

bool IsRootShut(RootFailure* failure) {
  return IsAlone(failure) && IsShut(kRoot, failure) && IsShut(kAboveRoot, failure);
}

}  // namespace sandbox_run
