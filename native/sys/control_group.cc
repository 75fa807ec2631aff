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

// Elsewhere, or hidden: nothing is left out.
constexpr const char* kMounted = "/sys/fs/cgroup";
// The kernel's PROC_CGROUP_INIT_INO. In any other namespace a path begins at a group that need not
// be the one which is mounted.
constexpr std::string_view kFirstNamespace = "cgroup:[4026531835]";
constexpr std::string_view kV2 = "0::";

// A file by which a group holds its processes or gives them something, with what stands in it where
// nothing was set ("Control Group v2" of the kernel's documentation).
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
    // With the default a group shares with its neighbours: nothing is capped.
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
constexpr std::string_view kMostProcesses = "pids.max";
constexpr std::string_view kMembers = "cgroup.procs";
// Files that hold nothing: by them processes are moved and ended. The controllers that a group
// hands down are seen by the files that the groups beneath have then.
constexpr std::string_view kNoLimits[] = {
    kMembers,         "cgroup.kill",     "cgroup.subtree_control",
    "cgroup.threads", "cpu.weight.nice",  // cpu.weight as another number
    "memory.reclaim",
};
// How the names of files end that count and tell, as the kernel names them.
constexpr std::string_view kAccounting[] = {".controllers", ".current", ".effective",
                                            ".events",      ".local",   ".peak",
                                            ".pressure",    ".stat",    "_stat"};

// What of a file of a group is looked at; a longer one is none that is unset. Without the line's
// end.
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

// What the groups that are left out allow of processes, the innermost first.
struct MostProcesses {
  char lines[256];
  size_t size = 0;

  // False: there is no room for more.
  bool Add(std::string_view value) {
    const int added = snprintf(lines + size, sizeof lines - size, "%s %.*s\n",
                               kMostProcesses.data(), static_cast<int>(value.size()), value.data());
    if (added < 0 || static_cast<size_t>(added) >= sizeof lines - size) return false;
    size += static_cast<size_t>(added);
    return true;
  }
};

enum class Effect { kNone, kSome, kUnknown };

bool IsNoLimit(std::string_view file) {
  for (const std::string_view end : kAccounting)
    if (file.ends_with(end)) return true;
  for (const std::string_view one : kNoLimits)
    if (file == one) return true;
  return false;
}

// What one file does to the processes of its group. One that is not known and can be written may be
// a limit of a newer kernel or of a controller that desktops do not use (hugetlb, rdma, misc,
// dmem).
Effect EffectOfFile(int group, const char* file, MostProcesses* most) {
  const std::string_view name = file;
  if (name == kMostProcesses) {
    const Content content(group, file);
    if (!content.known() || content.text().empty()) return Effect::kUnknown;
    return content.text() == "max" || most->Add(content.text()) ? Effect::kNone : Effect::kUnknown;
  }
  for (const Setting& setting : kSettings) {
    if (setting.file != name) continue;
    const Content content(group, file);
    if (!content.known()) return Effect::kUnknown;
    return content.text() == setting.unset ? Effect::kNone : Effect::kSome;
  }
  if (IsNoLimit(name)) return Effect::kNone;
  struct stat info;
  if (fstatat(group, file, &info, AT_SYMLINK_NOFOLLOW) != 0) return Effect::kUnknown;
  return (info.st_mode & 0222) == 0 ? Effect::kNone : Effect::kSome;
}

// The kernel's own record: musl and glibc have different names for the call.
struct Entry {
  uint64_t inode;
  int64_t next;
  unsigned short size;
  unsigned char type;
  char name[];
};

// What a group does to its processes, by the files that it has: those of controllers that are on.
Effect EffectOfGroup(int group, MostProcesses* most) {
  alignas(Entry) char entries[4096];
  for (;;) {
    const long size = syscall(SYS_getdents64, group, entries, sizeof entries);
    if (size < 0) return Effect::kUnknown;
    if (size == 0) return Effect::kNone;
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const Entry*>(entries + at);
      at += entry->size;
      if (entry->type == DT_DIR) continue;
      const Effect effect = EffectOfFile(group, entry->name, most);
      if (effect != Effect::kNone) return effect;
    }
  }
}

UniqueFd OpenDirectory(int from, const char* path) {
  return UniqueFd(openat(from, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

bool MayMoveInto(int group, uid_t user) {
  struct stat info;
  return fstatat(group, kMembers.data(), &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_uid == user;
}

// Whether this process sees all groups at their places.
bool IsInFirstNamespace() {
  char target[64];
  const ssize_t size = readlink("/proc/self/ns/cgroup", target, sizeof target);
  return size > 0 && std::string_view(target, static_cast<size_t>(size)) == kFirstNamespace;
}

// The path of the only line there is; empty: there are others, of v1, or the group is gone.
std::string_view OnlyPath(std::string_view membership) {
  constexpr std::string_view kGone = " (deleted)";
  if (!membership.starts_with(kV2) || membership.find('\n') != membership.size() - 1) return {};
  const std::string_view path = membership.substr(kV2.size(), membership.size() - kV2.size() - 1);
  // Above the root of a namespace.
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

void ControlGroup::LeaveOutIdleGroups() {
  const uid_t user = geteuid();
  if (user != 0 && IsInFirstNamespace()) LeaveOutIdleGroups(kMounted, user);
}

// A group is left out only if its list of members and that of the group around it belong to the
// user. The user may then move processes from the one to the other ("Control Group v2", "Delegation
// Containment"), so the group holds nobody to more than what its files say. A group of somebody
// else may hold its processes by what no file shows: BPF programs for devices and addresses
// (DevicePolicy= and IPAddressDeny= of systemd), rules of a firewall. So may a group of root's own.
void ControlGroup::LeaveOutIdleGroups(const char* root, uid_t user) {
  const std::string_view path = OnlyPath(text());
  if (path.size() < 2) return;
  const UniqueFd top = OpenDirectory(AT_FDCWD, root);
  // All groups have it but the root of the hierarchy.
  if (!top.valid() || faccessat(top.get(), "cgroup.type", F_OK, 0) == 0 || errno != ENOENT) return;

  size_t length = size_ - 1;
  text_[length] = '\0';
  UniqueFd group = OpenDirectory(top.get(), path.data() + 1);
  text_[length] = '\n';
  if (!group.valid()) return;
  MostProcesses most;
  for (;;) {
    const size_t slash = text().rfind('/', length - 1);
    // The root belongs to nobody's user.
    if (slash == kV2.size()) break;
    UniqueFd above = OpenDirectory(group.get(), "..");
    if (!above.valid()) return;
    if (!MayMoveInto(group.get(), user) || !MayMoveInto(above.get(), user)) break;
    const size_t before = most.size;
    const Effect effect = EffectOfGroup(group.get(), &most);
    if (effect == Effect::kUnknown) return;
    if (effect == Effect::kSome) {
      most.size = before;
      break;
    }
    length = slash;
    group = std::move(above);
  }
  if (length + 1 + most.size > sizeof text_) return;
  text_[length] = '\n';
  memcpy(text_ + length + 1, most.lines, most.size);
  size_ = length + 1 + most.size;
}

}  // namespace sandbox_run
