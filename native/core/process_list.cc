#include "core/process_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_set>

#include "base/unique_fd.h"

namespace sandbox_run {
namespace {

// "PID (NAME) STATE PPID ...": the name may hold anything.
bool Parse(const char* text, ListedProcess& process) {
  const char* after_name = strrchr(text, ')');
  if (after_name == nullptr) return false;
  char state = '?';
  int parent = 0;
  long threads = 0;
  unsigned long long started = 0;
  // Fields 3, 4, 20 and 22 of proc_pid_stat(5).
  if (sscanf(after_name + 1,
             " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
             &state, &parent, &threads, &started) != 4) {
    return false;
  }
  process.parent = parent;
  process.started = started;
  // A process whose first thread has ended while others run on looks like one that has ended.
  process.alive = (state != 'Z' && state != 'X') || threads > 1;
  return true;
}

// 0 if /proc calls this process by the number that it has for itself.
int OwnNumberError() {
  char text[16];
  // The very call that a warden makes: an outer filter may refuse it and not its older kin.
  const ssize_t size = readlinkat(AT_FDCWD, "/proc/self", text, sizeof(text) - 1);
  if (size < 0) return errno;
  text[size] = '\0';
  return strtol(text, nullptr, 10) == getpid() ? 0 : ESRCH;
}

}  // namespace

int ProcessListError() {
  if (const int error = OwnNumberError(); error != 0) return error;
  const std::vector<pid_t> pids = ListPids();
  if (std::find(pids.begin(), pids.end(), getpid()) == pids.end()) return ENOENT;
  return LookAt(getpid()) ? 0 : EACCES;
}

std::vector<pid_t> ListPids() {
  std::vector<pid_t> pids;
  if (OwnNumberError() != 0) return pids;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return pids;
  while (const dirent* entry = readdir(proc)) {
    char* end = nullptr;
    const auto pid = static_cast<pid_t>(strtol(entry->d_name, &end, 10));
    if (pid > 0 && *end == '\0') pids.push_back(pid);
  }
  closedir(proc);
  return pids;
}

std::optional<ListedProcess> LookAt(pid_t pid) {
  char path[32];
  snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  const UniqueFd fd(open(path, O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t size = fd.valid() ? read(fd.get(), text, sizeof(text) - 1) : -1;
  if (size <= 0) return std::nullopt;
  text[size] = '\0';
  ListedProcess process;
  process.pid = pid;
  if (!Parse(text, process)) return std::nullopt;
  return process;
}

uint64_t ProcessClockNow() {
  timespec now;
  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const auto ticks = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return static_cast<uint64_t>(now.tv_sec) * ticks +
         static_cast<uint64_t>(now.tv_nsec) * ticks / 1'000'000'000;
}

std::vector<ListedProcess> ListProcesses() {
  std::vector<ListedProcess> processes;
  for (const pid_t pid : ListPids()) {
    if (const std::optional<ListedProcess> process = LookAt(pid)) processes.push_back(*process);
  }
  return processes;
}

std::vector<pid_t> DescendantsOf(pid_t ancestor) {
  const std::vector<ListedProcess> processes = ListProcesses();
  std::unordered_set<pid_t> known = {ancestor};
  // A child may stand before its parent, once the numbers have come round.
  for (size_t before = 0; before != known.size();) {
    before = known.size();
    for (const ListedProcess& process : processes) {
      if (known.contains(process.parent)) known.insert(process.pid);
    }
  }
  std::vector<pid_t> descendants;
  for (const ListedProcess& process : processes) {
    if (process.alive && process.pid != ancestor && known.contains(process.pid)) {
      descendants.push_back(process.pid);
    }
  }
  return descendants;
}

}  // namespace sandbox_run
