#include "sys/raw_terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>

namespace sandbox_run {
namespace {

// Signals of a process that has an error, even if other code handles them.
constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
// What does not end a process by default, or cannot be handled.
constexpr std::array kHarmless = {SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU,
                                  SIGCONT, SIGCHLD, SIGURG,  SIGWINCH};
constexpr size_t kSignals = NSIG;

// One for the process, as its terminal is. A signal handler reads it.
struct RawTerminal {
  std::atomic<int> fd = -1;  // set: it is raw
  termios before = {};
  // The former handlers of the signals that are handled here while it is raw.
  std::array<std::optional<struct sigaction>, kSignals> handlers = {};
};
RawTerminal terminal;
std::mutex mutex;  // guards changes of `terminal`

bool IsInForeground(int fd) { return tcgetpgrp(fd) == getpgrp(); }

void PutBack(int fd) {
  // Async-signal-safe (POSIX).
  if (IsInForeground(fd)) tcsetattr(fd, TCSADRAIN, &terminal.before);
}

void OnEnd(int number) {
  const int fd = terminal.fd.exchange(-1);
  if (fd >= 0) PutBack(fd);
  const auto& before = terminal.handlers[static_cast<size_t>(number)];
  if (before) sigaction(number, &*before, nullptr);
  // Blocked until the return, then for the handler that was there before.
  raise(number);
}

template <size_t N>
bool IsOneOf(const std::array<int, N>& numbers, int number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

// Every signal that would end this process now. Those that other code handles are left to it.
void HandleEnds() {
  struct sigaction action = {};
  action.sa_handler = OnEnd;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    struct sigaction before;
    if (IsOneOf(kHarmless, number) || sigaction(number, nullptr, &before) != 0) continue;
    if (before.sa_handler != SIG_DFL && !IsOneOf(kCrashes, number)) continue;
    terminal.handlers[static_cast<size_t>(number)] = before;
    if (sigaction(number, &action, nullptr) != 0)
      terminal.handlers[static_cast<size_t>(number)].reset();
  }
}

void LeaveEnds() {
  for (size_t i = 1; i < kSignals; ++i) {
    if (!terminal.handlers[i]) continue;
    struct sigaction now;
    const int number = static_cast<int>(i);
    // Other code may have taken it over meanwhile.
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == OnEnd)
      sigaction(number, &*terminal.handlers[i], nullptr);
    terminal.handlers[i].reset();
  }
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
  HandleEnds();
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
  LeaveEnds();
  close(fd);
}

}  // namespace sandbox_run
