#include "begin/others.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

struct DirectoryEntry {  // linux_dirent64
  uint64_t inode;
  int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[1];
};

// The number that a name is; 0: it is none.
long Number(const char* name) {
  long number = 0;
  for (; *name >= '0' && *name <= '9'; ++name) number = number * 10 + (*name - '0');
  return *name == 0 ? number : 0;
}

// Opening a process's memory asks the kernel what ptrace asks it: user, capabilities, whether the
// process is dumpable, and security modules.
long InReach(long directory, const char* name) {
  char path[32];
  size_t at = 0;
  for (; name[at] != 0 && at < 16; ++at) path[at] = name[at];
  const char* const file = "/mem";
  for (size_t i = 0; i < 5; ++i) path[at + i] = file[i];
  const long memory = RawSyscall(SYS_openat, directory, Arg(path), O_RDONLY | O_CLOEXEC, 0);
  if (memory >= 0) {
    RawSyscall(SYS_close, memory);
    return 1;
  }
  const bool denied = memory == -EACCES || memory == -EPERM;
  const bool gone = memory == -ENOENT || memory == -ESRCH;
  return denied || gone ? 0 : memory;
}

long InReachBeside(long directory, long self) {
  alignas(DirectoryEntry) char entries[4096];
  bool found_self = false;
  for (;;) {
    const long size = RawSyscall(SYS_getdents64, directory, Arg(entries), sizeof(entries));
    if (size < 0) return size;
    // A /proc without this process shows others than those that the command sees.
    if (size == 0) return found_self ? 0 : -ESRCH;
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries + at);
      at += entry->length;
      const long number = Number(entry->name);
      if (number == self) found_self = true;
      if (number == 0 || number == self) continue;
      const long reach = InReach(directory, entry->name);
      if (reach != 0) return reach;
    }
  }
}

}  // namespace

long OthersInReach() {
  const long directory =
      RawSyscall(SYS_openat, AT_FDCWD, Arg("/proc"), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (directory < 0) return directory;
  const long result = InReachBeside(directory, RawSyscall(SYS_getpid));
  RawSyscall(SYS_close, directory);
  return result;
}

}  // namespace sandbox_run
