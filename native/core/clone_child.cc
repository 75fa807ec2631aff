#include "core/clone_child.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {

pid_t CloneChild(int (*body)(void*), void* argument, int flags, int* pidfd) {
  // On this thread's own stack: it sleeps until the child is done with it.
  alignas(16) char stack[32768];
  const pid_t pid =
      clone(body, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD | flags, argument, pidfd);
#if defined(__SANITIZE_ADDRESS__)
  // The child ended within its functions, and what the sanitizer marks in their frames stays.
  __asan_unpoison_memory_region(stack, sizeof(stack));
#endif
  return pid;
}

pid_t CloneIntoCgroup(int (*body)(void*), void* stack, size_t stack_size, void* argument,
                      int group_fd, int* pidfd) {
  // struct clone_args of <linux/sched.h>, which older headers have without the last field.
  struct {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
        set_tid_size, cgroup;
  } args = {};
  constexpr uint64_t kCloneIntoCgroup = 0x200000000;
  args.flags = CLONE_VM | CLONE_PIDFD | kCloneIntoCgroup;
  args.pidfd = static_cast<uint64_t>(Arg(pidfd));
  args.exit_signal = SIGCHLD;
  args.stack = static_cast<uint64_t>(Arg(stack));
  args.stack_size = stack_size;
  args.cgroup = static_cast<uint64_t>(group_fd);
  // libc has no such function: in the child the call returns on another stack, from which nothing
  // may return.
  long result;
#if defined(__x86_64__)
  register long body_register __asm__("r8") = Arg(reinterpret_cast<const void*>(body));
  register long argument_register __asm__("r9") = Arg(argument);
  __asm__ volatile(
      "syscall\n\t"
      "testq %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xorl %%ebp, %%ebp\n\t"
      "movq %%r9, %%rdi\n\t"
      "callq *%%r8\n\t"
      "movl %%eax, %%edi\n\t"
      "movl $60, %%eax\n\t"  // exit
      "syscall\n\t"
      "hlt\n"
      "1:"
      : "=a"(result)
      : "a"(abi::kSysClone3), "D"(&args), "S"(sizeof(args)), "r"(body_register),
        "r"(argument_register)
      : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = abi::kSysClone3;
  register long x0 __asm__("x0") = Arg(&args);
  register long x1 __asm__("x1") = sizeof(args);
  register long x2 __asm__("x2") = Arg(reinterpret_cast<const void*>(body));
  register long x3 __asm__("x3") = Arg(argument);
  __asm__ volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, xzr\n\t"
      "mov x0, x3\n\t"
      "blr x2\n\t"
      "mov x8, #93\n\t"  // exit
      "svc #0\n\t"
      "brk #1\n"
      "1:"
      : "+r"(x0)
      : "r"(x8), "r"(x1), "r"(x2), "r"(x3)
      : "memory", "cc");
  result = x0;
#endif
  if (result >= 0) return static_cast<pid_t>(result);
  errno = static_cast<int>(-result);
  return -1;
}

int Reap(pid_t pid) {
  int status = 0;
  pid_t reaped;
  do {
    reaped = waitpid(pid, &status, 0);
  } while (reaped == -1 && errno == EINTR);
  return reaped == pid ? status : -1;
}

std::string DescribeEnd(int status) {
  if (status == -1) return "";
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                             : "exit " + std::to_string(WEXITSTATUS(status));
}

bool EndedWell(int status) { return status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0; }

}  // namespace sandbox_run
