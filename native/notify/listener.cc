#include "notify/listener.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <cerrno>

namespace sandbox_run {
namespace {

void Send(int listener, const abi::SeccompAnswer& answer) {
  // Without an answer the caller waits for ever, so other errors are retried. ENOENT: the call has
  // ended. EINPROGRESS: it has an answer.
  constexpr int kAttempts = 8;
  for (int i = 0; i < kAttempts; ++i) {
    if (ioctl(listener, abi::kSeccompSend, &answer) == 0 || errno == ENOENT || errno == EINPROGRESS)
      return;
  }
}

}  // namespace

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

void ReturnError(int listener, uint64_t id, int error) {
  if (error == 0) {
    Return(listener, id, 0);
  } else {
    Refuse(listener, id, error);
  }
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
