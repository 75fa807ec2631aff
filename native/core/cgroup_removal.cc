#include "core/cgroup_removal.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "core/cgroup_files.h"
#include "core/process_usage.h"

namespace sandbox_run {
namespace {

constexpr char kPrefix[] = "sandbox-run-";
// How long the last processes of a group may take to end.
constexpr int kMaxRemovals = 200;
constexpr useconds_t kRemovalPauseUs = 5000;
constexpr int kKillAttempts = 200;

uint64_t PidNamespace() {
  struct stat info;
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
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

// Before Linux 5.14, which has cgroup.kill: no process may fork or run while it is looked which are
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

// Whether a removal that failed with this error may succeed later.
bool MayGoLater(int error) { return error == EBUSY || IsMomentary(error); }

// False: there is still a process in it.
bool TryToRemove(int directory, const std::string& path, int attempts) {
  for (int i = 0; i < attempts; ++i) {
    if (rmdir(path.c_str()) == 0 || !MayGoLater(errno)) return true;
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
    std::erase_if(paths_, [](const std::string& path) {
      return rmdir(path.c_str()) == 0 || !MayGoLater(errno);
    });
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> paths_;
};

}  // namespace

std::string NewGroupName() {
  static std::atomic<uint64_t> counter{0};
  static const uint64_t namespace_number = PidNamespace();
  const std::optional<ProcessCounts> self = ReadProcessCounts(getpid());
  char name[128];
  snprintf(name, sizeof(name), "%s%" PRIu64 "-%d-%" PRIu64 "-%" PRIu64, kPrefix, namespace_number,
           getpid(), self ? self->start_time : 0, ++counter);
  return name;
}

bool KillMembers(int directory) {
  return WriteText(directory, "cgroup.kill", "1") || KillOneByOne(directory);
}

void RemoveGroup(int directory, const std::string& path) {
  if (!TryToRemove(directory, path, kMaxRemovals)) LeftGroups::Get().Add(path);
}

void RemoveLeftGroups() { LeftGroups::Get().TryAgain(); }

void SweepGroups(const std::string& parent) {
  DIR* stream = opendir(parent.c_str());
  if (stream == nullptr) return;
  while (const dirent* entry = readdir(stream)) {
    if (!IsStale(entry->d_name)) continue;
    const UniqueFd directory(
        openat(dirfd(stream), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    // What runs in it lost its launcher.
    KillMembers(directory.get());
    TryToRemove(directory.get(), parent + "/" + entry->d_name, 10);
  }
  closedir(stream);
}

}  // namespace sandbox_run
