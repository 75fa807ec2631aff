#include "sys/raw_terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

namespace sandbox_run {
namespace {

// What ends a process that has an error.
constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// One for the process, as its terminal is. A signal handler reads it.
struct RawTerminal {
  std::atomic<int> fd = -1;  // set: it is raw
  termios before = {};
  std::array<struct sigaction, kCrashes.size()> handlers = {};
};
RawTerminal terminal;
std::mutex mutex;  // guards changes of `terminal`

bool IsInForeground(int fd) { return tcgetpgrp(fd) == getpgrp(); }

void PutBack(int fd) {
  // Async-signal-safe (POSIX).
  if (IsInForeground(fd)) tcsetattr(fd, TCSADRAIN, &terminal.before);
}

void OnCrash(int number) {
  const int fd = terminal.fd.exchange(-1);
  if (fd >= 0) PutBack(fd);
  for (size_t i = 0; i < kCrashes.size(); ++i) {
    if (kCrashes[i] == number) sigaction(number, &terminal.handlers[i], nullptr);
  }
  // Blocked until the return, then for whoever was there before.
  raise(number);
}

}  // namespace

bool EnterRawMode(int fd) {
  const std::lock_guard lock(mutex);
  if (terminal.fd >= 0) return true;
  termios settings;
  if (tcgetattr(fd, &settings) != 0 || !IsInForeground(fd)) return false;
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (own < 0) return false;
  terminal.before = settings;
  struct sigaction action = {};
  action.sa_handler = OnCrash;
  for (size_t i = 0; i < kCrashes.size(); ++i) {
    sigaction(kCrashes[i], &action, &terminal.handlers[i]);
  }
  terminal.fd = own;
  cfmakeraw(&settings);
  tcsetattr(own, TCSADRAIN, &settings);
  return true;
}

void LeaveRawMode() {
  const std::lock_guard lock(mutex);
  const int fd = terminal.fd.exchange(-1);
  if (fd < 0) return;
  PutBack(fd);
  for (size_t i = 0; i < kCrashes.size(); ++i) {
    sigaction(kCrashes[i], &terminal.handlers[i], nullptr);
  }
  close(fd);
}

}  // namespace sandbox_run
