#include "core/view_flags.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/statfs.h>

#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

// Field of a line of /proc/self/mountinfo, counted from 0 (proc_pid_mountinfo(5)).
constexpr int kMountPointField = 4;
// The same bits as those of mount(2). Without any flag about access times a remount leaves these as
// they are.
constexpr unsigned long kKeptFlags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

// A name of /proc/self/fd; `name` has room for it.
void NameOfDescriptor(long fd, char (&name)[32]) {
  constexpr char kPrefix[] = "/proc/self/fd/";
  size_t length = 0;
  for (; kPrefix[length] != 0; ++length) name[length] = kPrefix[length];
  char digits[12];
  size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + fd % 10);
    fd /= 10;
  } while (fd > 0);
  while (count > 0) name[length++] = digits[--count];
  name[length] = 0;
}

long AddFlagsIfInReach(const char* path, unsigned long flags) {
  const abi::OpenHow how{O_PATH | O_CLOEXEC, 0, abi::kResolveNoSymlinks};
  const long fd = RawSyscall(abi::kSysOpenat2, AT_FDCWD, Arg(path), Arg(&how), sizeof(how));
  // Behind a directory that is shut, or under another mount: out of reach for a command too.
  if (fd == -EACCES || fd == -ENOENT || fd == -ENOTDIR) return 0;
  if (fd < 0) return fd;
  char name[32];
  NameOfDescriptor(fd, name);
  const long result = AddFlags(name, flags);
  RawSyscall(SYS_close, fd);
  return result;
}

bool IsSame(const char* path, const char* other) {
  size_t at = 0;
  while (path[at] != 0 && path[at] == other[at]) ++at;
  return path[at] == other[at];
}

bool IsBeneath(const char* path, const char* root) {
  size_t at = 0;
  while (root[at] != 0 && path[at] == root[at]) ++at;
  return root[at] == 0 && (path[at] == 0 || path[at] == '/' || (at == 1 && root[0] == '/'));
}

// Puts the mount points together from the characters of mountinfo, in which blanks and the like are
// \ooo.
class MountPoints {
 public:
  MountPoints(const char* target, unsigned long flags) : target_(target), flags_(flags) {}

  // The mount at the target itself was among them.
  bool found() const { return found_; }

  long Take(char character) {
    if (character == '\n') {
      field_ = 0;
      length_ = 0;
      return 0;
    }
    if (character == ' ') return field_++ == kMountPointField ? Finish() : 0;
    if (field_ != kMountPointField) return 0;
    if (length_ + 1 >= sizeof(path_)) return -ENAMETOOLONG;
    path_[length_++] = character;
    return 0;
  }

 private:
  long Finish() {
    size_t to = 0;
    for (size_t from = 0; from < length_; ++to) {
      const bool escaped = path_[from] == '\\' && from + 3 < length_;
      path_[to] = escaped ? static_cast<char>((path_[from + 1] - '0') * 64 +
                                              (path_[from + 2] - '0') * 8 + path_[from + 3] - '0')
                          : path_[from];
      from += escaped ? 4 : 1;
    }
    path_[to] = 0;
    if (!IsBeneath(path_, target_)) return 0;
    if (IsSame(path_, target_)) found_ = true;
    return AddFlagsIfInReach(path_, flags_);
  }

  const char* target_;
  unsigned long flags_;
  bool found_ = false;
  int field_ = 0;
  size_t length_ = 0;
  // Escapes are four characters for one.
  char path_[4 * PATH_MAX];
};

}  // namespace

long AddFlags(const char* path, unsigned long flags) {
  struct statfs info;
  const long result = RawSyscall(SYS_statfs, Arg(path), Arg(&info));
  if (result < 0) return result;
  const unsigned long kept = static_cast<unsigned long>(info.f_flags) & kKeptFlags;
  return RawSyscall(SYS_mount, 0, Arg(path), 0,
                    static_cast<long>(MS_REMOUNT | MS_BIND | kept | flags), 0);
}

long AddFlagsToTree(const char* target, unsigned long flags) {
  const long fd =
      RawSyscall(SYS_openat, AT_FDCWD, Arg("/proc/self/mountinfo"), O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return fd;
  MountPoints points(target, flags);
  char buffer[1024];
  long result = 0;
  while (result == 0) {
    const long count = RawSyscall(SYS_read, fd, Arg(buffer), sizeof(buffer));
    if (count == -EINTR) continue;
    if (count <= 0) {
      result = count;
      break;
    }
    for (long i = 0; i < count && result == 0; ++i) result = points.Take(buffer[i]);
  }
  RawSyscall(SYS_close, fd);
  // A name that mountinfo spells otherwise would be a mount without its flags.
  return result == 0 && !points.found() ? -ENOENT : result;
}

}  // namespace sandbox_run
