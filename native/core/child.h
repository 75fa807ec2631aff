#ifndef SANDBOX_RUN_CORE_CHILD_H_
#define SANDBOX_RUN_CORE_CHILD_H_

#include <linux/filter.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace sandbox_run {

struct ResourceLimit {
  int resource = 0;
  uint64_t soft = 0;
  uint64_t hard = 0;
};

// Identifies a file system object. Unique as long as the object is held open.
struct ObjectId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const ObjectId&) const = default;
};

// A namespace to enter: an open /proc/PID/ns descriptor, its CLONE_NEW* type, its name in
// /proc/PID/ns and which one it is.
struct NamespaceEntry {
  int fd = -1;
  int type = 0;
  const char* name = "";
  ObjectId id;
};

inline constexpr int kLauncherFds = 4;

// A set-uid launcher that the child executes in place of the program. It gains privileges to
// confine what it starts, so the child does not confine it.
struct LauncherPlan {
  const char* program = nullptr;
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  int fds[kLauncherFds] = {-1, -1, -1, -1};  // its descriptors from 3 on
  // `/` is made read-only for it except for these paths, see shut_root.h; nullptr: it is left as it
  // is.
  const char* const* kept_open = nullptr;
  size_t kept_open_count = 0;
};

// Everything that the child does between clone and execve, prepared by the parent. Plain data: the
// child shares the parent's memory and may not allocate.
struct ChildPlan {
  const char* program = nullptr;  // nullptr: a rehearsal, which ends where it would be executed
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  const char* cwd = nullptr;
  int stdio[3] = {-1, -1, -1};        // each >= 3
  bool controlling_terminal = false;  // standard input is a terminal to be the session's
  const NamespaceEntry* namespaces = nullptr;
  size_t namespace_count = 0;
  // What `/` has to be once the namespaces are entered; none: that of the launcher.
  std::optional<ObjectId> root;
  // A descriptor that is wanted and is not there (-1) is a failure.
  std::optional<int>
      cgroup_procs_fd;            // of a group to move to; none: it was started in the right one
  std::optional<int> ruleset_fd;  // none: no Landlock domain
  const sock_fprog* filter = nullptr;
  const sock_fprog* added_filter = nullptr;  // beside it
  const ResourceLimit* limits = nullptr;
  size_t limit_count = 0;
  int umask = -1;  // -1: left as it is
  pid_t parent_pid = 0;
  // Called right before the program is executed.
  void (*about_to_execute)() = nullptr;
  const LauncherPlan* launcher = nullptr;  // nullptr: the child executes the program itself

  // Set by the child before it gives up; read by the parent once the child is gone.
  const char* volatile failed_stage = nullptr;
  volatile int failed_errno = 0;
  // Set by the child when all is applied, right before it executes the program.
  volatile bool confined = false;
};

// The child's body for clone(CLONE_VM): applies the plan and executes the program.
// Only returns after a failure, which it leaves in the plan (exit status 127), and from a rehearsal
// in which nothing failed (0).
int RunChild(void* plan);

// In a rehearsal: makes the calls that a warden depends on, with arguments for which they do
// nothing or fail. False: one of them is refused, and the plan has that failure.
enum class WardenTier { kScope, kCommand };
bool RehearseWarden(ChildPlan* plan, WardenTier tier);

// The second half of RunChild(), from the working directory on. Leaves a failure in the plan, too.
int ConfineAndExecute(ChildPlan* plan);

// Sets every signal's disposition to default. Part of the child, shared with the view's set-up.
// Returns 0 or -errno: a handler that stays would run in the child, on the parent's memory.
long ResetSignalHandlers();

// Closes all descriptors from `first` on, or marks them to be closed by execve. Returns 0 or
// -errno.
enum class Closing { kNow, kOnExec };
long CloseFrom(int first, Closing when);

// Gives up all capabilities for good: ambient, permitted, effective, inheritable, and uid 0's way
// back. Returns 0 or -errno.
long DropCapabilities();

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_CHILD_H_
