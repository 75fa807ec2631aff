// The program `sandbox-run-warden`: no libc, no arguments but numbers of processes, no environment,
// one descriptor. `sandbox-warden LAUNCHER`: tier "signal-scope"; `sandbox-warden LAUNCHER
// COMMAND`: tier "subreaper".

#include <cstddef>

#include "core/keep_watch.h"
#include "sys/raw_syscall.h"

#if defined(__x86_64__)
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  xor %ebp, %ebp\n"
    "  mov %rsp, %rdi\n"
    "  and $-16, %rsp\n"
    "  call WardenMain\n");
#elif defined(__aarch64__)
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  mov x29, #0\n"
    "  mov x30, #0\n"
    "  mov x0, sp\n"
    "  bl WardenMain\n");
#else
#error "sandbox-run supports x86-64 and arm64 only"
#endif

// What a compiler may call of its own accord, even for freestanding code: GCC does so for the
// larger arrays on arm64. `volatile` keeps it from finding such a call in here as well.
extern "C" void* memset(void* to, int value, size_t size) {
  volatile unsigned char* at = static_cast<volatile unsigned char*>(to);
  for (size_t i = 0; i < size; ++i) at[i] = static_cast<unsigned char>(value);
  return to;
}
extern "C" void* memcpy(void* __restrict to, const void* __restrict from, size_t size) {
  volatile unsigned char* at = static_cast<volatile unsigned char*>(to);
  const unsigned char* source = static_cast<const unsigned char*>(from);
  for (size_t i = 0; i < size; ++i) at[i] = source[i];
  return to;
}

namespace {

pid_t Number(long argument) {
  pid_t number = 0;
  for (const char* at = reinterpret_cast<const char*>(argument); *at != 0; ++at) {
    number = number * 10 + (*at - '0');
  }
  return number;
}

}  // namespace

extern "C" [[noreturn]] void WardenMain(const long* stack);

// `stack`: the number of arguments, then pointers to them (the process's first stack frame).
void WardenMain(const long* stack) {
  int result = 0;
  if (stack[0] < 2) {
    result = 127;  // not started by us
  } else if (stack[0] < 3) {
    result = sandbox_run::KeepScope(0, Number(stack[2]));
  } else {
    sandbox_run::KeepTree(0, Number(stack[2]), Number(stack[3]), false);
  }
  for (;;) sandbox_run::RawSyscall(SYS_exit_group, result);
}
