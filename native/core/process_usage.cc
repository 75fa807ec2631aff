#include "core/process_usage.h"

#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/unique_fd.h"

namespace sandbox_run {
namespace {

// Long enough for each of the files that are read here.
struct ProcText {
  char text[8192];
  bool Read(pid_t pid, const char* name) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    const UniqueFd fd(open(path, O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return false;
    const ssize_t count = read(fd.get(), text, sizeof(text) - 1);
    if (count <= 0) return false;
    text[count] = '\0';
    return true;
  }
  // The number after "\nName:", in kB there, in bytes here.
  std::optional<uint64_t> Kilobytes(const char* name) const {
    const size_t length = strlen(name);
    for (const char* at = strstr(text, name); at != nullptr; at = strstr(at + 1, name)) {
      if (at != text && at[-1] != '\n') continue;
      return strtoull(at + length, nullptr, 10) * 1024;
    }
    return std::nullopt;
  }
};

}  // namespace

std::optional<ProcessCounts> ReadProcessCounts(pid_t pid) {
  ProcText file;
  if (!file.Read(pid, "stat")) return std::nullopt;
  // The name of the program may hold anything, a ')' too.
  const char* after_name = strrchr(file.text, ')');
  if (after_name == nullptr) return std::nullopt;
  static const auto kTickMs = static_cast<uint64_t>(1000 / sysconf(_SC_CLK_TCK));
  // Fields 14 to 17, 20 and 22 of proc(5).
  uint64_t user, system, threads, start;
  int64_t reaped_user, reaped_system;
  const int found = sscanf(after_name + 1,
                           " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
                           " %" SCNd64 " %" SCNd64 " %*d %*d %" SCNu64 " %*d %" SCNu64,
                           &user, &system, &reaped_user, &reaped_system, &threads, &start);
  if (found != 6) return std::nullopt;
  ProcessCounts counts;
  counts.threads = threads;
  counts.start_time = start;
  counts.own_cpu_ms = (user + system) * kTickMs;
  counts.reaped_cpu_ms = static_cast<uint64_t>(reaped_user + reaped_system) * kTickMs;
  return counts;
}

std::optional<uint64_t> ReadMemoryAtMost(pid_t pid) {
  ProcText file;
  if (!file.Read(pid, "status")) return std::nullopt;
  // Missing for a zombie, which has none.
  return file.Kilobytes("RssAnon:").value_or(0) + file.Kilobytes("RssShmem:").value_or(0) +
         file.Kilobytes("VmSwap:").value_or(0);
}

std::optional<uint64_t> ReadMemoryShare(pid_t pid) {
  ProcText file;
  if (!file.Read(pid, "smaps_rollup")) return std::nullopt;
  const uint64_t swap = file.Kilobytes("SwapPss:").value_or(0);
  const auto anonymous = file.Kilobytes("Pss_Anon:");  // since 5.3
  if (anonymous) return *anonymous + file.Kilobytes("Pss_Shmem:").value_or(0) + swap;
  const auto all = file.Kilobytes("Pss:");
  if (!all) return std::nullopt;
  return *all + swap;
}

}  // namespace sandbox_run
