#include "notify/listener.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include <cerrno>

#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

Failure Refused(long result) { return {kListenerStage, static_cast<int>(-result), ""}; }

void Send(int listener, const abi::SeccompAnswer& answer) {
  // Who asks waits for ever without an answer. ENOENT: it does not ask any more. EINPROGRESS: it
  // has one.
  constexpr int kAttempts = 8;
  for (int i = 0; i < kAttempts; ++i) {
    if (ioctl(listener, abi::kSeccompSend, &answer) == 0 || errno == ENOENT || errno == EINPROGRESS)
      return;
  }
}

long Install(const std::vector<sock_filter>& program, unsigned flags) {
  const sock_fprog filter = {static_cast<unsigned short>(program.size()),
                             const_cast<sock_filter*>(program.data())};
  return RawSyscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, Arg(&filter));
}

}  // namespace

Result<UniqueFd> Listen(const std::vector<sock_filter>& program) {
  // What the answers rely on.
  uint16_t sizes[3] = {};
  long result = RawSyscall(SYS_seccomp, abi::kSeccompGetNotificationSizes, 0, Arg(sizes));
  if (result < 0) return Refused(result);
  if (sizes[0] != sizeof(abi::SeccompNotification) || sizes[1] != sizeof(abi::SeccompAnswer)) {
    return Refused(-EOPNOTSUPP);
  }
  result = RawSyscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (result < 0) return Refused(result);
  // Nothing of this process is to run slower for it, as before Linux 5.16 under a filter. A call
  // that was taken is not given up for a signal that does not kill (since Linux 5.19).
  const unsigned flags = abi::kSeccompNewListener | abi::kSeccompSpeculate;
  result = Install(program, flags | abi::kSeccompWaitKillable);
  if (result == -EINVAL) result = Install(program, flags);
  if (result < 0) return Refused(result);
  return UniqueFd(static_cast<int>(result));
}

bool HasCall(int listener) {
  pollfd watched = {listener, POLLIN, 0};
  return poll(&watched, 1, 0) == 1 && (watched.revents & POLLIN) != 0;
}

bool Receive(int listener, abi::SeccompNotification& call) {
  // One that gave up meanwhile is still counted, so this does not wait for another one then, but
  // fails with ENOENT.
  call = {};
  return ioctl(listener, abi::kSeccompReceive, &call) == 0;
}

void TakeTurns(int listener) {
  [[maybe_unused]] const int ignored =
      ioctl(listener, abi::kSeccompSetFlags, abi::kSeccompWakeOnSameProcessor);
}

bool IsWaiting(int listener, uint64_t id) {
  return ioctl(listener, abi::kSeccompIsValid, &id) == 0;
}

void Continue(int listener, uint64_t id) {
  abi::SeccompAnswer answer;
  answer.id = id;
  answer.flags = abi::kSeccompContinue;
  Send(listener, answer);
}

void Return(int listener, uint64_t id, int64_t value) {
  abi::SeccompAnswer answer;
  answer.id = id;
  answer.value = value;
  Send(listener, answer);
}

void Refuse(int listener, uint64_t id, int error) {
  abi::SeccompAnswer answer;
  answer.id = id;
  answer.error = -error;
  Send(listener, answer);
}

bool CanHandOver(int listener) {
  abi::SeccompHandOver nobody;
  nobody.id = ~uint64_t{0};
  return ioctl(listener, abi::kSeccompHandOver, &nobody) == -1 && errno != EINVAL &&
         errno != ENOTTY;
}

int HandOver(int listener, uint64_t id, int fd, bool close_on_exec) {
  abi::SeccompHandOver given;
  given.id = id;
  given.flags = abi::kSeccompHandOverAnswers;
  given.source = static_cast<uint32_t>(fd);
  given.new_flags = close_on_exec ? O_CLOEXEC : 0;
  if (ioctl(listener, abi::kSeccompHandOver, &given) >= 0) return 0;
  if (errno != EINVAL) return errno;
  // Before Linux 5.14: the answer is another step.
  given.flags = 0;
  const int number = ioctl(listener, abi::kSeccompHandOver, &given);
  if (number < 0) return errno;
  Return(listener, id, number);
  return 0;
}

int PutInPlace(int listener, uint64_t id, int fd, int number, bool close_on_exec) {
  abi::SeccompHandOver given;
  given.id = id;
  given.flags = abi::kSeccompHandOverInPlace;
  given.source = static_cast<uint32_t>(fd);
  given.number = static_cast<uint32_t>(number);
  given.new_flags = close_on_exec ? O_CLOEXEC : 0;
  return ioctl(listener, abi::kSeccompHandOver, &given) >= 0 ? 0 : errno;
}

}  // namespace sandbox_run
