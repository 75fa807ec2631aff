#ifndef SANDBOX_RUN_CORE_PROCESS_LIST_H_
#define SANDBOX_RUN_CORE_PROCESS_LIST_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace sandbox_run {

// A process as /proc shows it.
struct ListedProcess {
  pid_t pid = 0;
  pid_t parent = 0;
  bool alive = false;    // false: it has ended and waits for its parent to take notice
  uint64_t started = 0;  // as ProcessClockNow()
};

// Now, on the clock that processes are dated with: ticks since the boot.
uint64_t ProcessClockNow();

// Why what runs cannot be looked at: 0, or an errno; ESRCH: /proc is that of another process
// namespace, where numbers mean other processes.
int ProcessListError();

// The ids of all visible processes; empty if ProcessListError() is not 0.
std::vector<pid_t> ListPids();

// Reads one process; nullopt: it does not exist.
std::optional<ListedProcess> LookAt(pid_t pid);

// All processes that can be seen.
std::vector<ListedProcess> ListProcesses();

// Living descendants of `ancestor`, without itself.
std::vector<pid_t> DescendantsOf(pid_t ancestor);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_PROCESS_LIST_H_
