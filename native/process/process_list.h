#ifndef SANDBOX_RUN_PROCESS_PROCESS_LIST_H_
#define SANDBOX_RUN_PROCESS_PROCESS_LIST_H_

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

// The numbers of all processes that can be seen; none where ProcessListError() has something to
// say.
std::vector<pid_t> ListPids();

// Nothing: there is no such process.
std::optional<ListedProcess> LookAt(pid_t pid);

// All processes that can be seen.
std::vector<ListedProcess> ListProcesses();

// Those that descend from `ancestor` and are alive, without itself.
std::vector<pid_t> DescendantsOf(pid_t ancestor);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PROCESS_PROCESS_LIST_H_
