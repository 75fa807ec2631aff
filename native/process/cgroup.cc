#include "process/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "process/clone_child.h"
#include "process/process_usage.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

constexpr char kPrefix[] = "sandbox-run-";
// How long the last processes of a group may take to end; after that it is left to whoever makes or
// removes the next one.
constexpr int kMaxRemovals = 200;
constexpr useconds_t kRemovalPauseUs = 5000;
constexpr int kKillAttempts = 200;
// No kernel has more process numbers (PID_MAX_LIMIT), and pids.max takes no higher value.
constexpr uint64_t kMostProcesses = 4'194'304;

std::string ReadAll(int directory, const char* name) {
  const UniqueFd fd(openat(directory, name, O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  while (fd.valid()) {
    const ssize_t count = read(fd.get(), buffer, sizeof(buffer));
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

bool WriteText(int directory, const char* name, const std::string& text) {
  const UniqueFd fd(openat(directory, name, O_WRONLY | O_CLOEXEC));
  return fd.valid() &&
         write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// The number after `key` at the beginning of a line ("max 3").
std::optional<uint64_t> Field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
      return strtoull(std::string(line.substr(key.size() + 1)).c_str(), nullptr, 10);
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

std::optional<uint64_t> Number(const std::string& text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  return strtoull(text.c_str(), nullptr, 10);
}

// The text of an open file, from its beginning; for event files this is what re-arms poll().
std::string ReadAgain(int fd) {
  char buffer[1024];
  const ssize_t count = fd < 0 ? 0 : pread(fd, buffer, sizeof(buffer), 0);
  return count <= 0 ? std::string() : std::string(buffer, static_cast<size_t>(count));
}

uint64_t PidNamespace() {
  struct stat info;
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

// Names the launcher: "sandbox-run-NAMESPACE-PID-START-NUMBER".
std::string NewName() {
  static std::atomic<uint64_t> counter{0};
  static const uint64_t namespace_number = PidNamespace();
  const std::optional<ProcessCounts> self = ReadProcessCounts(getpid());
  char name[128];
  snprintf(name, sizeof(name), "%s%" PRIu64 "-%d-%" PRIu64 "-%" PRIu64, kPrefix, namespace_number,
           getpid(), self ? self->start_time : 0, ++counter);
  return name;
}

// True if the launcher that made a group of this name is certainly gone. Numbers of another process
// namespace say nothing here.
bool IsStale(const char* name) {
  uint64_t namespace_number, start, number;
  int pid;
  if (!std::string_view(name).starts_with(kPrefix) ||
      sscanf(name + strlen(kPrefix), "%" SCNu64 "-%d-%" SCNu64 "-%" SCNu64, &namespace_number, &pid,
             &start, &number) != 4) {
    return false;
  }
  if (namespace_number == 0 || namespace_number != PidNamespace() || start == 0) return false;
  if (kill(pid, 0) != 0 && errno == ESRCH) return true;
  const std::optional<ProcessCounts> owner = ReadProcessCounts(pid);
  return owner && owner->start_time != start;
}

// Before Linux 5.14, which has cgroup.kill: nobody may fork, nobody runs while it is looked who is
// there, and a signal that ends is heeded by what is frozen, too (cgroup-v2.rst, cgroup.freeze).
bool KillOneByOne(int directory) {
  WriteText(directory, "pids.max", "0");
  if (!WriteText(directory, "cgroup.freeze", "1")) return false;
  bool populated = true;
  for (int i = 0; i < kKillAttempts && populated; ++i) {
    if (i > 0) usleep(kRemovalPauseUs);
    const std::string members = ReadAll(directory, "cgroup.procs");
    for (const char* at = members.c_str(); *at != '\0';) {
      char* end;
      const long pid = strtol(at, &end, 10);
      if (end == at) break;
      // 0: of a process that cannot be seen from here.
      if (pid > 1) kill(static_cast<pid_t>(pid), SIGKILL);
      at = end + strspn(end, "\n");
    }
    populated = Field(ReadAll(directory, "cgroup.events"), "populated").value_or(1) != 0;
  }
  WriteText(directory, "cgroup.freeze", "0");
  return !populated;
}

// Ends every process of a group; false if that is not known.
bool KillMembers(int directory) {
  return WriteText(directory, "cgroup.kill", "1") || KillOneByOne(directory);
}

// False: there is still somebody in it.
bool Remove(int directory, const std::string& path, int attempts) {
  for (int i = 0; i < attempts; ++i) {
    if (rmdir(path.c_str()) == 0 || errno != EBUSY) return true;
    KillMembers(directory);
    usleep(kRemovalPauseUs);
  }
  return false;
}

// Groups of this process whose members were killed and had not ended when they were to be removed.
class LeftGroups {
 public:
  static LeftGroups& Get() {
    // Never destroyed: commands may end while the process does.
    static LeftGroups& groups = *new LeftGroups();
    return groups;
  }
  void Add(std::string path) {
    const std::lock_guard lock(mutex_);
    paths_.push_back(std::move(path));
  }
  void TryAgain() {
    const std::lock_guard lock(mutex_);
    std::erase_if(
        paths_, [](const std::string& path) { return rmdir(path.c_str()) == 0 || errno != EBUSY; });
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> paths_;
};

void Sweep(const std::string& parent) {
  DIR* stream = opendir(parent.c_str());
  if (stream == nullptr) return;
  while (const dirent* entry = readdir(stream)) {
    if (!IsStale(entry->d_name)) continue;
    const UniqueFd directory(
        openat(dirfd(stream), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    // What runs in it lost its launcher.
    KillMembers(directory.get());
    Remove(directory.get(), parent + "/" + entry->d_name, 10);
  }
  closedir(stream);
}

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

bool ReapedWithSuccess(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
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
  if (pid > 0 && ReapedWithSuccess(pid)) {
    clone_into = true;
  } else {
    pid = CloneChild(MoveAndExit, &group, 0);
    if (pid > 0 && ReapedWithSuccess(pid)) clone_into = false;
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
      Sweep(path);
      return tried;
    }
    if (!nearest) nearest = tried.failure();
    if (path.size() <= own->top.size()) return *nearest;
  }
}

uint64_t CountForPidsMax(uint64_t processes) { return std::min(processes, kMostProcesses); }

Result<std::unique_ptr<Cgroup>> Cgroup::Make(const std::string& parent, const TreeLimits& limits) {
  LeftGroups::Get().TryAgain();
  const std::string path = parent + "/" + NewName();
  if (mkdir(path.c_str(), 0755) != 0) return Failure{"cgroup.create", errno, parent};
  std::unique_ptr<Cgroup> group(new Cgroup(path, limits));
  group->directory_.reset(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const int directory = group->directory_.get();
  const auto limit = [&](const char* name, uint64_t value) {
    return WriteText(directory, name, value == 0 ? "max" : std::to_string(value));
  };
  if (!limit("memory.max", limits.memory) ||
      !limit("pids.max", CountForPidsMax(limits.processes))) {
    return Failure{"cgroup.limit", errno, parent};
  }
  if (limits.memory != 0) {
    // Absent where the kernel does not count swap.
    WriteText(directory, "memory.swap.max", "0");
    // One process that is ended for the memory of all helps nobody.
    WriteText(directory, "memory.oom.group", "1");
  }
  group->procs_.reset(openat(directory, "cgroup.procs", O_WRONLY | O_CLOEXEC));
  if (!group->procs_.valid()) return Failure{"cgroup.enter", errno, parent};
  group->process_events_.reset(openat(directory, "pids.events", O_RDONLY | O_CLOEXEC));
  group->memory_events_.reset(openat(directory, "memory.events", O_RDONLY | O_CLOEXEC));
  return group;
}

Cgroup::~Cgroup() {
  // Descriptors of its files do not keep it.
  if (!Remove(directory_.get(), path_, kMaxRemovals)) LeftGroups::Get().Add(path_);
}

std::optional<LimitExcess> Cgroup::Excess() const {
  const std::string processes = ReadAgain(process_events_.get());
  if (limits_.processes != 0 && Field(processes, "max").value_or(0) > 0) {
    return LimitExcess{LimitName::kProcesses, LimitMeans::kCgroup, limits_.processes, std::nullopt};
  }
  // "oom" is about this group's own limit; "oom_kill" alone may be the host's need.
  const std::string memory = ReadAgain(memory_events_.get());
  if (limits_.memory != 0 && Field(memory, "oom").value_or(0) > 0 &&
      Field(memory, "oom_kill").value_or(0) > 0) {
    return LimitExcess{LimitName::kMemory, LimitMeans::kCgroup, limits_.memory, std::nullopt};
  }
  return std::nullopt;
}

uint64_t Cgroup::CpuMs() const {
  return Field(ReadAll(directory_.get(), "cpu.stat"), "usage_usec").value_or(0) / 1000;
}

TreeUsage Cgroup::Usage() const {
  const int directory = directory_.get();
  TreeUsage usage;
  usage.means = LimitMeans::kCgroup;
  usage.peak_memory = Number(ReadAll(directory, "memory.peak"));   // since 5.19
  usage.peak_processes = Number(ReadAll(directory, "pids.peak"));  // since 6.1
  const std::string cpu = ReadAll(directory, "cpu.stat");
  usage.user_cpu_us = Field(cpu, "user_usec");
  usage.system_cpu_us = Field(cpu, "system_usec");
  if (faccessat(directory, "io.stat", R_OK, 0) == 0) {
    // "8:0 rbytes=1 wbytes=2 rios=3 ...", one line per device.
    const std::string io = ReadAll(directory, "io.stat");
    const auto sum = [&io](const char* key) {
      uint64_t total = 0;
      for (size_t at = io.find(key); at != std::string::npos; at = io.find(key, at + 1)) {
        total += strtoull(io.c_str() + at + strlen(key), nullptr, 10);
      }
      return total;
    };
    usage.read_bytes = sum(" rbytes=");
    usage.written_bytes = sum(" wbytes=");
  }
  return usage;
}

bool Cgroup::Kill() const { return KillMembers(directory_.get()); }

bool Cgroup::Populated() const {
  return Field(ReadAll(directory_.get(), "cgroup.events"), "populated").value_or(1) != 0;
}

}  // namespace sandbox_run
