#include "process/clone_child.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>

namespace sandbox_run {

pid_t CloneChild(int (*body)(void*), void* argument, int flags, int* pidfd) {
  // On this thread's own stack: it sleeps until the child is done with it.
  alignas(16) char stack[32768];
  return clone(body, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD | flags, argument,
               pidfd);
}

void Reap(pid_t pid) {
  while (waitpid(pid, nullptr, 0) == -1 && errno == EINTR) {
  }
}

}  // namespace sandbox_run
