#ifndef SANDBOX_RUN_CORE_CLONE_CHILD_H_
#define SANDBOX_RUN_CORE_CLONE_CHILD_H_

#include <sys/types.h>

#include <cstddef>
#include <string>

namespace sandbox_run {

// clone(CLONE_VM | CLONE_VFORK | SIGCHLD | flags): runs `body(argument)` in a child that shares
// this process's memory, and returns once the child has executed a program or exited. All signals
// have to be blocked on the calling thread, or a handler of this process could run inside the
// child. Returns the pid, or -1 with errno. `pidfd` receives a pid descriptor if CLONE_PIDFD is in
// flags.
pid_t CloneChild(int (*body)(void*), void* argument, int flags, int* pidfd = nullptr);

// clone3(CLONE_VM | CLONE_PIDFD | CLONE_INTO_CGROUP): runs `body(argument)` on `stack` in a child
// that is in the control group from its first moment. Returns at once: the pid, or -1 with errno.
pid_t CloneIntoCgroup(int (*body)(void*), void* stack, size_t stack_size, void* argument,
                      int group_fd, int* pidfd);

// Waits for a child that has exited or is about to, and forgets it. Returns its wait status; -1: it
// was lost to other code in this process that waits for every child, or an outer filter refuses.
[[nodiscard]] int Reap(pid_t pid);

// It came to its own end and returned 0.
bool EndedWell(int status);

// "exit 3" or "signal 9"; "" for -1.
std::string DescribeEnd(int status);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_CLONE_CHILD_H_
