#include "process/tree_members.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace sandbox_run {

std::vector<pid_t> TreeMembers(const SignalScope& scope, pid_t leader) {
  std::vector<pid_t> members;
  DIR* stream = opendir("/proc");
  if (stream == nullptr) return members;
  const pid_t self = getpid();
  while (const dirent* entry = readdir(stream)) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    const auto pid = static_cast<pid_t>(strtol(entry->d_name, nullptr, 10));
    if (pid == self) continue;
    // Signal 0 is sent nowhere: it asks whether one could be.
    if (scope.entered() ? kill(pid, 0) == 0 : getsid(pid) == leader) members.push_back(pid);
  }
  closedir(stream);
  return members;
}

size_t CountNewestMembers(const SignalScope& scope, pid_t newest, size_t enough) {
  // Others have numbers in between. What is not reached is counted with the next regular look.
  constexpr size_t kMaxPerMember = 4;
  constexpr size_t kMinNumbers = 4096;
  if (!scope.entered()) return 0;
  size_t found = 0;
  const size_t numbers = std::max(kMinNumbers, enough * kMaxPerMember);
  for (size_t i = 0; i < numbers && newest > 1 && found <= enough; ++i, --newest) {
    if (newest != getpid() && kill(newest, 0) == 0) ++found;
  }
  return found;
}

}  // namespace sandbox_run
