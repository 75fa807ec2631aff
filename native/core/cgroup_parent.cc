#include "core/cgroup_parent.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "base/unique_fd.h"
#include "core/cgroup.h"
#include "core/cgroup_files.h"
#include "core/cgroup_removal.h"
#include "core/clone_child.h"
#include "sys/control_group.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

// Where this process is in the v2 hierarchy, and the directory above which nothing is visible.
struct OwnGroup {
  std::string top;
  std::string path;
};

std::optional<OwnGroup> FindOwnGroup() {
  const std::string groups = ReadAll(AT_FDCWD, "/proc/self/cgroup");
  const size_t at = groups.starts_with("0::") ? 0 : groups.find("\n0::");
  if (at == std::string::npos) return std::nullopt;
  const size_t from = groups.find("::", at) + 2;
  const std::string own = groups.substr(from, groups.find('\n', from) - from);
  if (own.find("/..") != std::string::npos) return std::nullopt;
  const std::string mounts = ReadAll(AT_FDCWD, "/proc/self/mountinfo");
  for (size_t begin = 0; begin < mounts.size();) {
    const size_t end = std::min(mounts.find('\n', begin), mounts.size());
    const std::string line = mounts.substr(begin, end - begin);
    begin = end + 1;
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    // "ID PARENT MAJOR:MINOR ROOT MOUNTPOINT ..."
    char root[4096], mount_point[4096];
    if (sscanf(line.c_str(), "%*d %*d %*s %4095s %4095s", root, mount_point) != 2) continue;
    const std::string_view prefix = strcmp(root, "/") == 0 ? "" : root;
    if (!own.starts_with(prefix)) continue;
    std::string rest = own.substr(prefix.size());
    if (rest == "/") rest.clear();
    if (!rest.empty() && rest[0] != '/') continue;
    return OwnGroup{mount_point, mount_point + rest};
  }
  return std::nullopt;
}

int ExitAtOnce(void*) { return 0; }

int MoveAndExit(void* group) {
  return RawSyscall(SYS_write, static_cast<Cgroup*>(group)->procs_fd(), Arg("0"), 1) == 1 ? 0 : 1;
}

// Puts a child into the group; which way works, if any.
std::optional<bool> TryChild(Cgroup& group) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::optional<bool> clone_into;
  alignas(16) char stack[16384];
  int pidfd = -1;
  pid_t pid =
      CloneIntoCgroup(ExitAtOnce, stack, sizeof(stack), nullptr, group.directory_fd(), &pidfd);
  const UniqueFd held(pidfd);
  if (pid > 0 && EndedWell(Reap(pid))) {
    clone_into = true;
  } else {
    pid = CloneChild(MoveAndExit, &group, 0);
    if (pid > 0 && EndedWell(Reap(pid))) clone_into = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return clone_into;
}

Result<CgroupParent> TryParent(const std::string& path) {
  // Limits that nothing reaches.
  const TreeLimits generous{uint64_t{1} << 50, 1 << 20, 0, 0};
  Result<std::unique_ptr<Cgroup>> made = Cgroup::Make(path, generous);
  if (!made.ok() && made.failure().error == ENOENT) {
    // A group without the controllers. They can be switched on where no process is, or at the root.
    const UniqueFd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!WriteText(directory.get(), "cgroup.subtree_control", "+memory +pids"))
      return made.failure();
    WriteText(directory.get(), "cgroup.subtree_control", "+io");  // only counted
    made = Cgroup::Make(path, generous);
  }
  if (!made.ok()) return made.failure();
  const std::optional<bool> clone_into = TryChild(*made.value());
  if (!clone_into) return Failure{"cgroup.enter", EPERM, path};
  return CgroupParent{path, *clone_into};
}

}  // namespace

Result<CgroupParent> FindCgroupParent() {
  const std::optional<OwnGroup> own = FindOwnGroup();
  if (!own) return Failure{"cgroup.mount", ENOENT, ""};
  std::optional<Failure> nearest;
  for (std::string path = own->path;; path.erase(path.rfind('/'))) {
    Result<CgroupParent> tried = TryParent(path);
    if (tried.ok()) {
      SweepGroups(path);
      return tried;
    }
    if (!nearest) nearest = tried.failure();
    if (path.size() <= own->top.size()) return *nearest;
    // Outside of this group its commands would have what it keeps them from, such as more memory.
    const UniqueFd group(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!group.valid() || RestrictsProcesses(group.get())) return *nearest;
  }
}

}  // namespace sandbox_run
