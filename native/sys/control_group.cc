#include "sys/control_group.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/unique_fd.h"

namespace sandbox_run {
namespace {

// Where the hierarchy is mounted. If it is elsewhere or hidden, no group is omitted.
constexpr const char* kMounted = "/sys/fs/cgroup";
// The initial cgroup namespace (the kernel's PROC_CGROUP_INIT_INO). In any other namespace paths
// start at a group that need not be the one mounted at kMounted.
constexpr std::string_view kFirstNamespace = "cgroup:[4026531835]";
constexpr std::string_view kV2 = "0::";

// A file that restricts or favours the processes of a group, and its content by default ("Control
// Group v2" in the kernel's documentation).
struct Setting {
  std::string_view file;
  std::string_view unset;
};
constexpr Setting kSettings[] = {
    {"cgroup.freeze", "0"},
    {"cgroup.max.depth", "max"},
    {"cgroup.max.descendants", "max"},
    {"cgroup.type", "domain"},
    {"cpu.idle", "0"},
    {"cpu.max", "max 100000"},
    {"cpu.max.burst", "0"},
    {"cpu.uclamp.max", "max"},
    {"cpu.uclamp.min", "0.00"},
    // At the default a group competes equally with its siblings, and nothing is capped.
    {"cpu.weight", "100"},
    {"cpuset.cpus", ""},
    {"cpuset.cpus.exclusive", ""},
    {"cpuset.cpus.partition", "member"},
    {"cpuset.mems", ""},
    {"io.bfq.weight", "default 100"},
    {"io.latency", ""},
    {"io.max", ""},
    {"io.prio.class", "no-change"},
    {"io.weight", "default 100"},
    {"memory.high", "max"},
    {"memory.low", "0"},
    {"memory.max", "max"},
    {"memory.min", "0"},
    {"memory.oom.group", "0"},
    {"memory.swap.high", "max"},
    {"memory.swap.max", "max"},
    {"memory.zswap.max", "max"},
    {"memory.zswap.writeback", "1"},
};
constexpr std::string_view kProcessLimit = "pids.max";
constexpr std::string_view kMembers = "cgroup.procs";
// Writable files that restrict nothing: they move or end processes. cgroup.subtree_control only
// enables controllers in child groups, which then have the files of these controllers.
constexpr std::string_view kRestrictNothing[] = {
    kMembers,         "cgroup.kill",     "cgroup.subtree_control",
    "cgroup.threads", "cpu.weight.nice",  // cpu.weight in another unit
    "memory.reclaim",
};
// The kernel's suffixes for files that only report.
constexpr std::string_view kReports[] = {".controllers", ".current", ".effective",
                                         ".events",      ".local",   ".peak",
                                         ".pressure",    ".stat",    "_stat"};

// The beginning of a file, without the final newline. Defaults are short: longer content than fits
// is not a default.
struct Content {
  char bytes[64];
  ssize_t size;

  Content(int group, const char* file) {
    const UniqueFd opened(openat(group, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    size = opened.valid() ? read(opened.get(), bytes, sizeof bytes) : -1;
    if (size > 0 && bytes[size - 1] == '\n') --size;
  }
  bool known() const { return size >= 0; }
  std::string_view text() const { return {bytes, static_cast<size_t>(size)}; }
};

// The process limits of the omitted groups, as lines, the innermost group first.
struct ProcessLimits {
  char lines[256];
  size_t size = 0;

  // Returns false if there is no room left.
  bool Add(std::string_view value) {
    const int added = snprintf(lines + size, sizeof lines - size, "%s %.*s\n", kProcessLimit.data(),
                               static_cast<int>(value.size()), value.data());
    if (added < 0 || static_cast<size_t>(added) >= sizeof lines - size) return false;
    size += static_cast<size_t>(added);
    return true;
  }
};

// Whether a file or group restricts its processes.
enum class Restricts { kNo, kYes, kUnknown };

bool RestrictsNothing(std::string_view file) {
  for (const std::string_view end : kReports)
    if (file.ends_with(end)) return true;
  for (const std::string_view one : kRestrictNothing)
    if (file == one) return true;
  return false;
}

// Whether one file restricts. An unknown file that can be written may be a limit of a newer kernel
// or of a controller that desktops do not use (hugetlb, rdma, misc, dmem), so it counts as one. A
// process limit does not count: it is added to `limits`.
Restricts RestrictsByFile(int group, const char* file, ProcessLimits* limits) {
  const std::string_view name = file;
  if (name == kProcessLimit) {
    const Content content(group, file);
    if (!content.known() || content.text().empty()) return Restricts::kUnknown;
    return content.text() == "max" || limits->Add(content.text()) ? Restricts::kNo
                                                                  : Restricts::kUnknown;
  }
  for (const Setting& setting : kSettings) {
    if (setting.file != name) continue;
    const Content content(group, file);
    if (!content.known()) return Restricts::kUnknown;
    return content.text() == setting.unset ? Restricts::kNo : Restricts::kYes;
  }
  if (RestrictsNothing(name)) return Restricts::kNo;
  struct stat info;
  if (fstatat(group, file, &info, AT_SYMLINK_NOFOLLOW) != 0) return Restricts::kUnknown;
  return (info.st_mode & 0222) == 0 ? Restricts::kNo : Restricts::kYes;
}

// The record of the system call, which is made directly: musl and glibc have different wrappers.
struct Entry {
  uint64_t inode;
  int64_t next;
  unsigned short size;
  unsigned char type;
  char name[];
};

// Whether any file of a group restricts. A group has the files of the controllers that are enabled
// for it.
Restricts RestrictsByFiles(int group, ProcessLimits* limits) {
  alignas(Entry) char entries[4096];
  for (;;) {
    const long size = syscall(SYS_getdents64, group, entries, sizeof entries);
    if (size < 0) return Restricts::kUnknown;
    if (size == 0) return Restricts::kNo;
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const Entry*>(entries + at);
      at += entry->size;
      if (entry->type == DT_DIR) continue;
      const Restricts restricts = RestrictsByFile(group, entry->name, limits);
      if (restricts != Restricts::kNo) return restricts;
    }
  }
}

UniqueFd OpenDirectory(int from, const char* path) {
  return UniqueFd(openat(from, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

// Whether the user owns the list of members, and so may move processes into the group.
bool MayMoveInto(int group, uid_t user) {
  struct stat info;
  return fstatat(group, kMembers.data(), &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_uid == user;
}

// Whether this process is in the initial cgroup namespace, where paths start at the root.
bool IsInFirstNamespace() {
  char target[64];
  const ssize_t size = readlink("/proc/self/ns/cgroup", target, sizeof target);
  return size > 0 && std::string_view(target, static_cast<size_t>(size)) == kFirstNamespace;
}

// The path, if the text has just one line, that of v2. Empty: there are v1 hierarchies, or the
// group was removed.
std::string_view OnlyPath(std::string_view membership) {
  constexpr std::string_view kGone = " (deleted)";
  if (!membership.starts_with(kV2) || membership.find('\n') != membership.size() - 1) return {};
  const std::string_view path = membership.substr(kV2.size(), membership.size() - kV2.size() - 1);
  // A path with ".." leads out of the cgroup namespace of this process.
  if (path.find("/..") != path.npos || path.ends_with(kGone)) return {};
  return path;
}

}  // namespace

bool ControlGroup::Read(const char* process) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/cgroup", process);
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return false;
  for (size_ = 0;;) {
    const ssize_t count = read(file.get(), text_ + size_, sizeof text_ - size_);
    if (count < 0) return false;
    if (count == 0) break;
    size_ += static_cast<size_t>(count);
    if (size_ == sizeof text_) return false;
  }
  return true;
}

void ControlGroup::Set(std::string_view text) { size_ = text.copy(text_, sizeof text_); }

void ControlGroup::OmitGroupsWithoutSettings() {
  const uid_t user = geteuid();
  if (user != 0 && IsInFirstNamespace()) OmitGroupsWithoutSettings(kMounted, user);
}

// A group is omitted only if its list of members and that of its parent belong to the user. The
// user may then move processes from one to the other ("Control Group v2", "Delegation
// Containment"), so nothing but the files of the group can restrict its processes. A group of
// another user may also be subject to restrictions that no file shows: BPF programs for devices and
// addresses (DevicePolicy= and IPAddressDeny= of systemd), firewall rules. The same holds for
// root's groups.
void ControlGroup::OmitGroupsWithoutSettings(const char* root, uid_t user) {
  const std::string_view path = OnlyPath(text());
  if (path.size() < 2) return;
  const UniqueFd top = OpenDirectory(AT_FDCWD, root);
  // Every group except the root of the hierarchy has this file: `root` must be that root.
  if (!top.valid() || faccessat(top.get(), "cgroup.type", F_OK, 0) == 0 || errno != ENOENT) return;

  size_t length = size_ - 1;
  text_[length] = '\0';
  UniqueFd group = OpenDirectory(top.get(), path.data() + 1);
  text_[length] = '\n';
  if (!group.valid()) return;
  ProcessLimits limits;
  for (;;) {
    const size_t slash = text().rfind('/', length - 1);
    // The path has one component left: its parent is the root, which belongs to no ordinary user.
    if (slash == kV2.size()) break;
    UniqueFd above = OpenDirectory(group.get(), "..");
    if (!above.valid()) return;
    if (!MayMoveInto(group.get(), user) || !MayMoveInto(above.get(), user)) break;
    const size_t before = limits.size;
    const Restricts restricts = RestrictsByFiles(group.get(), &limits);
    if (restricts == Restricts::kUnknown) return;
    if (restricts == Restricts::kYes) {
      limits.size = before;
      break;
    }
    length = slash;
    group = std::move(above);
  }
  if (length + 1 + limits.size > sizeof text_) return;
  text_[length] = '\n';
  memcpy(text_ + length + 1, limits.lines, limits.size);
  size_ = length + 1 + limits.size;
}

}  // namespace sandbox_run
