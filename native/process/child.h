#ifndef SANDBOX_RUN_PROCESS_CHILD_H_
#define SANDBOX_RUN_PROCESS_CHILD_H_

#include <linux/filter.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace sandbox_run {

struct ResourceLimit {
  int resource = 0;
  uint64_t soft = 0;
  uint64_t hard = 0;
};

// A namespace to enter: an open /proc/PID/ns descriptor and its CLONE_NEW* type.
struct NamespaceEntry {
  int fd = -1;
  int type = 0;
};

// Everything that the child does between clone and execve, prepared by the parent. Plain data: the
// child shares the parent's memory and may not allocate.
struct ChildPlan {
  const char* program = nullptr;
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  const char* cwd = nullptr;
  int stdio[3] = {-1, -1, -1};        // each >= 3
  bool controlling_terminal = false;  // standard input is a terminal to be the session's
  const NamespaceEntry* namespaces = nullptr;
  size_t namespace_count = 0;
  int cgroup_procs_fd =
      -1;               // cgroup.procs of a group to move to; -1: it was started in the right one
  int ruleset_fd = -1;  // -1: no Landlock domain
  const sock_fprog* filter = nullptr;
  const ResourceLimit* limits = nullptr;
  size_t limit_count = 0;
  int umask = -1;  // -1: left as it is
  pid_t parent_pid = 0;

  // Set by the child before it gives up; read by the parent after the clone returned.
  const char* volatile failed_stage = nullptr;
  volatile int failed_errno = 0;
};

// The child's body for clone(CLONE_VM | CLONE_VFORK): applies the plan and executes the program.
// Only returns (with exit status 127) after a failure, which it leaves in the plan.
int RunChild(void* plan);

// Sets every signal's disposition to default. Part of the child, shared with the view's set-up.
void ResetSignalHandlers();

// Closes all descriptors from `first` on, or marks them to be closed by execve. Returns 0 or
// -errno.
enum class Closing { kNow, kOnExec };
long CloseFrom(int first, Closing when);

// Gives up all capabilities for good: ambient, permitted, effective, inheritable, and uid 0's way
// back. Returns 0 or -errno.
long DropCapabilities();

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PROCESS_CHILD_H_
