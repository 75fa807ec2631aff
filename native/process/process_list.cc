#include "process/process_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
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
  // Fields 3, 4 and 20 of proc_pid_stat(5).
  if (sscanf(after_name + 1,
             " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld", &state,
             &parent, &threads) != 3) {
    return false;
  }
  process.parent = parent;
  // A process whose first thread has ended while others run on looks like one that has ended.
  process.alive = (state != 'Z' && state != 'X') || threads > 1;
  return true;
}

std::optional<ListedProcess> Look(pid_t pid) {
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

}  // namespace

std::vector<pid_t> ListPids() {
  std::vector<pid_t> pids;
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

bool IsAlive(pid_t pid) {
  const std::optional<ListedProcess> process = Look(pid);
  return process && process->alive;
}

std::vector<ListedProcess> ListProcesses() {
  std::vector<ListedProcess> processes;
  for (const pid_t pid : ListPids()) {
    if (const std::optional<ListedProcess> process = Look(pid)) processes.push_back(*process);
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
