#include "notify/group_modes.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "notify/listener.h"
#include "notify/target.h"

namespace sandbox_run {
namespace {

constexpr long kSysFchmodat2 = 452;

// A call that changes the mode of an object. Members are the indexes of its arguments; -1: none.
struct ModeCall {
  long number;
  int mode;
  int directory, path;  // `path` -1: `directory` is the object
  int flags = -1;
};
constexpr ModeCall kModeCalls[] = {
    {SYS_fchmod, 1, 0, -1},
    {SYS_fchmodat, 2, 0, 1},
    {kSysFchmodat2, 2, 0, 1, 3},
#if defined(SYS_chmod)
    {SYS_chmod, 1, -1, 0},
#endif
};

const ModeCall* Find(const abi::SeccompNotification& call) {
  const auto* found =
      std::find_if(std::begin(kModeCalls), std::end(kModeCalls),
                   [&call](const ModeCall& one) { return one.number == NumberOf(call); });
  // Tests the same bit as the filter: the kernel reads only the low 16 bits as the mode.
  return found == std::end(kModeCalls) || (ArgumentOf(call, found->mode) & S_ISGID) == 0 ? nullptr
                                                                                         : found;
}

// Opens the object of a process's descriptor (O_PATH), or returns a negative errno.
int OpenDescriptor(pid_t thread, int fd) {
  if (fd < 0) return -EBADF;
  char name[64];
  snprintf(name, sizeof(name), "/proc/%d/fd/%d", thread, fd);
  const int opened = open(name, O_PATH | O_CLOEXEC);
  return opened >= 0 ? opened : errno == ENOENT ? -EBADF : -errno;
}

// The number in a path by which a library names a descriptor of its own process.
std::optional<int> DescriptorIn(const std::string& path) {
  constexpr char kPrefix[] = "/proc/self/fd/";
  if (!path.starts_with(kPrefix)) return std::nullopt;
  const std::string number = path.substr(sizeof(kPrefix) - 1);
  if (number.empty() || number.size() > 9 ||
      number.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return atoi(number.c_str());
}

// Opens the object whose mode a call changes (O_PATH), or returns a negative errno.
int OpenObject(const abi::SeccompNotification& call, const ModeCall& how) {
  const auto thread = static_cast<pid_t>(call.pid);
  if (how.path < 0) return OpenDescriptor(thread, ArgumentOf(call, how.directory));
  const unsigned flags = how.flags < 0 ? 0 : static_cast<unsigned>(ArgumentOf(call, how.flags));
  constexpr unsigned kKnown = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;
  if ((flags & ~kKnown) != 0) return -EINVAL;
  Target target(thread);
  const std::optional<std::string> path = target.ReadText(PointerOf(call, how.path), PATH_MAX);
  if (!path) return -EFAULT;
  const int directory = how.directory < 0 ? AT_FDCWD : ArgumentOf(call, how.directory);
  if (path->empty())
    return (flags & AT_EMPTY_PATH) == 0 ? -ENOENT : OpenDescriptor(thread, directory);
  const bool follows = (flags & AT_SYMLINK_NOFOLLOW) == 0;
  if (const std::optional<int> named = DescriptorIn(*path); named && follows)
    return OpenDescriptor(thread, *named);
  return target.OpenObject(target.AbsolutePath(*path, directory), follows);
}

bool IsOwnGroup(gid_t group) {
  if (group == getegid()) return true;
  const int count = getgroups(0, nullptr);
  std::vector<gid_t> groups(static_cast<size_t>(std::max(count, 0)));
  const int got = getgroups(static_cast<int>(groups.size()), groups.data());
  return got > 0 && std::find(groups.begin(), groups.begin() + got, group) != groups.begin() + got;
}

// 0 or an errno. This process may have capabilities that the command has not, and does for it only
// what an owner may do.
int Change(int object, mode_t mode) {
  struct stat about;
  if (fstat(object, &about) != 0) return errno;
  if (!S_ISDIR(about.st_mode) || (mode & S_ISUID) != 0) return EPERM;
  if (about.st_uid != geteuid() || !IsOwnGroup(about.st_gid)) return EPERM;
  // By the mount of the descriptor, so that a read-only one refuses.
  char name[64];
  snprintf(name, sizeof(name), "/proc/self/fd/%d", object);
  return chmod(name, mode) == 0 ? 0 : errno;
}

}  // namespace

std::vector<sock_filter> GroupModes::Filter() {
  std::vector<sock_filter> program;
  for (const ModeCall& call : kModeCalls) {
    const uint32_t mode = offsetof(seccomp_data, args) + 8 * static_cast<uint32_t>(call.mode);
    program.insert(program.end(),
                   {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call.number), 0, 3),
                    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, mode),
                    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, S_ISGID, 0, 1),
                    BPF_STMT(BPF_RET | BPF_K, abi::kSeccompRetUserNotification)});
  }
  return program;
}

bool GroupModes::Answer(int listener, const abi::SeccompNotification& call,
                        const std::function<bool(int directory)>& may_change) {
  const ModeCall* how = Find(call);
  if (how == nullptr) return false;
  // 0: a process of another process namespace.
  const int opened = call.pid == 0 ? -EPERM : OpenObject(call, *how);
  const UniqueFd object(std::max(opened, -1));
  int error = 0;
  if (!object.valid()) {
    // No path leads through /proc here, and what cannot be looked at is not given the bit.
    const bool is_plain = opened == -ENOENT || opened == -ENOTDIR || opened == -EBADF ||
                          opened == -EFAULT || opened == -EINVAL;
    error = is_plain ? -opened : EPERM;
  } else if (!IsWaiting(listener, call.id)) {
    // The number of the process may be another one's by now, and so may be what was opened.
    return true;
  } else {
    error = may_change(object.get())
                ? Change(object.get(), static_cast<mode_t>(ArgumentOf(call, how->mode)) & 07777)
                : EPERM;
  }
  ReturnError(listener, call.id, error);
  return true;
}

}  // namespace sandbox_run
