#include "process/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/unique_fd.h"

namespace sandbox_run {
namespace {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  uint64_t started = 0;
  bool found = false;
};

// proc(5): field 4 is the parent, 22 the start. The name, in parentheses, may hold anything.
bool ReadStat(pid_t pid, Process& process) {
  char path[32];
  snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  const UniqueFd fd(open(path, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return false;
  char text[1024];
  const ssize_t size = read(fd.get(), text, sizeof(text) - 1);
  if (size <= 0) return false;
  text[size] = '\0';
  const char* at = strrchr(text, ')');
  if (at == nullptr) return false;
  process.pid = pid;
  for (int field = 3; field <= 22; ++field) {
    at = strchr(at, ' ');
    if (at == nullptr) return false;
    ++at;
    if (field == 4) process.parent = static_cast<pid_t>(strtol(at, nullptr, 10));
  }
  process.started = strtoull(at, nullptr, 10);
  return true;
}

std::vector<Process> AllProcesses() {
  std::vector<Process> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  if (proc == nullptr) return all;
  while (const dirent* entry = readdir(proc.get())) {
    const pid_t pid = static_cast<pid_t>(strtol(entry->d_name, nullptr, 10));
    Process process;
    if (pid > 0 && ReadStat(pid, process)) all.push_back(process);
  }
  return all;
}

}  // namespace

uint64_t ProcessClockNow() {
  timespec now;
  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const auto ticks = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return static_cast<uint64_t>(now.tv_sec) * ticks +
         static_cast<uint64_t>(now.tv_nsec) * ticks / 1'000'000'000;
}

std::vector<pid_t> DescendantsOf(pid_t ancestor, uint64_t since) {
  std::vector<Process> all = AllProcesses();
  std::vector<pid_t> beneath = {ancestor};
  std::vector<pid_t> wanted;
  for (size_t i = 0; i < beneath.size(); ++i) {
    for (Process& process : all) {
      if (process.found || process.parent != beneath[i]) continue;
      process.found = true;
      beneath.push_back(process.pid);
      if (process.started >= since) wanted.push_back(process.pid);
    }
  }
  return wanted;
}

}  // namespace sandbox_run
