#ifndef SANDBOX_RUN_NOTIFY_LISTENER_H_
#define SANDBOX_RUN_NOTIFY_LISTENER_H_

#include <cstdint>

#include "sys/kernel_abi.h"

namespace sandbox_run {

// The parts of a call: seccomp_data has number, architecture, instruction pointer, arguments.
inline int NumberOf(const abi::SeccompNotification& call) { return static_cast<int>(call.call[0]); }
inline int ArgumentOf(const abi::SeccompNotification& call, int argument) {
  return static_cast<int>(call.call[2 + argument]);
}
inline uint64_t PointerOf(const abi::SeccompNotification& call, int argument) {
  return call.call[2 + argument];
}

// Whether a call waits for an answer.
bool HasCall(int listener);
// Takes a call; waits for one if there is none. False: the calling thread has given up since.
bool Receive(int listener, abi::SeccompNotification& call);

// Has who asks and who answers take turns on one processor, instead of waking another one for each
// question and each answer. Where the kernel cannot, since Linux 6.6, it stays as it is.
void TakeTurns(int listener);

// Whether the call still waits: what was learned of its process in between is then true of it.
bool IsWaiting(int listener, uint64_t id);

// As the kernel ends a call for a signal: the call begins anew, or fails with EINTR, as the program
// has it (include/linux/errno.h).
inline constexpr int kRestartForSignal = 512;

// Answers. A call that does not wait any more needs none.
void Continue(int listener, uint64_t id);
void Return(int listener, uint64_t id, int64_t value);
void Refuse(int listener, uint64_t id, int error);
// With 0, or refused with an errno.
void ReturnError(int listener, uint64_t id, int error);

// Whether the kernel can put a descriptor into the process of a call (since Linux 5.9).
bool CanHandOver(int listener);
// Puts a copy of `fd` into the process, which the call returns. 0 or the errno, and then the call
// waits on.
int HandOver(int listener, uint64_t id, int fd, bool close_on_exec);

// Puts one in the place of the process's own descriptor `number`. 0 or the errno; the call waits
// on.
int PutInPlace(int listener, uint64_t id, int fd, int number, bool close_on_exec);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_LISTENER_H_
