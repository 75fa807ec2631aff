#include "core/keep_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "sys/kernel_abi.h"
#include "sys/own_call.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

constexpr int kDone = 0;
constexpr int kNotScoped = 1;
constexpr int kInit = 1;
constexpr long kMillisecond = 1'000'000;
constexpr long kSignalSetSize = 8;
// Stopped processes start no others; one that cannot be stopped in this time is killed all the
// same.
constexpr long kStopMilliseconds = 200;
// On most machines it takes a few milliseconds. The launcher waits for the answer a little longer.
constexpr long kEndMilliseconds = 5'000;
// Without a launcher no process waits for it.
constexpr long kEndMillisecondsAlone = 10'000;
constexpr int kRoundsAlone = 4;
// The kernel's PID_MAX_LIMIT.
constexpr long kMaxPids = 4 * 1024 * 1024;

long Kill(long pid, int number) { return OwnCall(SYS_kill, pid, number); }

void Sleep(long milliseconds) {
  const timespec time = {milliseconds / 1000, (milliseconds % 1000) * kMillisecond};
  RawSyscall(SYS_nanosleep, Arg(&time), 0);
}

long Now() {
  timespec time = {};
  RawSyscall(SYS_clock_gettime, CLOCK_MONOTONIC, Arg(&time));
  return time.tv_sec * 1000 + time.tv_nsec / kMillisecond;
}

// The end of the launcher. The connection says so too, but a process that forked from the launcher
// without executing anything may hold that open.
class LauncherEnd {
 public:
  explicit LauncherEnd(pid_t launcher)
      : launcher_(launcher),
        fd_(static_cast<int>(RawSyscall(abi::kSysPidfdOpen, static_cast<int>(launcher), 0))) {}
  // Readable once it has ended; negative: not available.
  int fd() const { return fd_; }
  // To be asked whenever there was something, or nothing for a while: it may have ended before the
  // descriptor came to be, which is another process's then, or none.
  bool came() const { return RawSyscall(SYS_getppid) != launcher_; }
  void Close() const { RawSyscall(SYS_close, fd_); }

 private:
  const pid_t launcher_;
  const int fd_;
};

// The wait failed. A warden that cannot wait ends its tree at once.
constexpr long kCannotWait = -1;
// How often to look if there is no descriptor to wait for.
constexpr long kLookMilliseconds = 50;

// How many are ready, 0 if there is no telling yet, or kCannotWait. Before it waits for long, it
// has to be looked whether there is something already.
long Wait(pollfd* watched, int count) {
  bool all = true;
  for (int i = 0; i < count; ++i) all = all && watched[i].fd >= 0;
  timespec look = {0, kLookMilliseconds * kMillisecond};
  const long ready =
      RawSyscall(SYS_ppoll, Arg(watched), count, all ? 0 : Arg(&look), 0, kSignalSetSize);
  if (ready >= 0) return ready;
  for (int i = 0; i < count; ++i) watched[i].revents = 0;
  if (ready == -ENOSYS || ready == -EPERM) return kCannotWait;
  if (ready != -EINTR) Sleep(10);
  return 0;
}

// The next request: its size, 0 at the end of the connection, -EAGAIN if there is none. Asked also
// where poll says nothing, which may be because it cannot.
long Receive(int channel, WardenRequest* request, int flags) {
  return RawSyscall(SYS_recvfrom, channel, Arg(request), sizeof(*request), MSG_DONTWAIT | flags, 0,
                    0);
}

// --- the descendants of a process, by /proc ---

struct Process {
  long parent = 0;
  char state = '?';
};

// The fields after the name, which may hold anything: "PID (NAME) STATE PPID ...".
bool ReadProcess(int directory, const char* path, Process* process) {
  char text[512];
  const long fd = OwnCall(SYS_openat, directory, Arg(path), O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  const long size = RawSyscall(SYS_read, fd, Arg(text), sizeof(text));
  RawSyscall(SYS_close, fd);
  long at = size - 1;
  while (at >= 0 && text[at] != ')') --at;
  if (at < 0 || at + 4 >= size) return false;
  process->state = text[at + 2];
  process->parent = 0;
  for (at += 4; at < size && text[at] >= '0' && text[at] <= '9'; ++at) {
    process->parent = process->parent * 10 + (text[at] - '0');
  }
  return true;
}

// A number, or -1.
long Number(const char* text) {
  long number = 0;
  const char* at = text;
  for (; *at >= '0' && *at <= '9'; ++at) number = number * 10 + (*at - '0');
  return *at == 0 && at != text && number < kMaxPids ? number : -1;
}

class Descendants {
 public:
  // One page for each 2048 numbers that are looked at, not more.
  bool Open() {
    proc_ = static_cast<int>(
        OwnCall(SYS_openat, AT_FDCWD, Arg("/proc"), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
    const long memory =
        RawSyscall(SYS_mmap, 0, 2 * kMaxPids * sizeof(uint16_t), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory < 0 && memory > -4096) return false;
    seen_ = reinterpret_cast<uint16_t*>(memory);
    signaled_ = seen_ + kMaxPids;
    return proc_ >= 0 && IsOfThisNamespace();
  }
  void Close() {
    if (seen_ != nullptr) {
      RawSyscall(SYS_munmap, Arg(seen_), 2 * kMaxPids * sizeof(uint16_t));
      seen_ = nullptr;
    }
    if (proc_ >= 0) RawSyscall(SYS_close, proc_);
    proc_ = -1;
  }

  // Sends a signal to every descendant of this process; returns how many got this signal for the
  // first time.
  long Signal(int number) {
    const long self = RawSyscall(SYS_getpid);
    if (number != last_signal_) ++epoch_;
    last_signal_ = number;
    ++round_;
    long first = 0;
    RawSyscall(SYS_lseek, proc_, 0, SEEK_SET);
    alignas(8) char entries[16384];
    for (;;) {
      const long size = RawSyscall(SYS_getdents64, proc_, Arg(entries), sizeof(entries));
      if (size <= 0) return first;
      for (long at = 0; at < size;) {
        // struct linux_dirent64: the length of the entry at 16, its name at 19.
        const char* entry = entries + at;
        at += static_cast<unsigned char>(entry[16]) |
              static_cast<long>(static_cast<unsigned char>(entry[17])) << 8;
        const long pid = Number(entry + 19);
        if (pid > kInit && pid != self && SignalOne(pid, entry + 19, self, number)) ++first;
      }
    }
  }

 private:
  // In a /proc of another process namespace this process's number is another one's, whose
  // children have nothing to do with it.
  bool IsOfThisNamespace() const {
    char text[16];
    const long size = RawSyscall(SYS_readlinkat, proc_, Arg("self"), Arg(text), sizeof(text) - 1);
    if (size <= 0) return false;
    text[size] = 0;
    return Number(text) == RawSyscall(SYS_getpid);
  }

  bool IsOurs(long pid, long self) const {
    // Seen in this look or the last one: process numbers are not reused in so short a time.
    return pid == self ||
           (pid > kInit && pid < kMaxPids && seen_[pid] != 0 && seen_[pid] + 1 >= round_);
  }

  bool SignalOne(long pid, const char* name, long self, int number) {
    char path[32];
    size_t length = 0;
    while (name[length] != 0 && length < 16) {
      path[length] = name[length];
      ++length;
    }
    const char tail[] = "/stat";
    for (size_t i = 0; i < sizeof(tail); ++i) path[length + i] = tail[i];
    Process process;
    if (!ReadProcess(proc_, path, &process) || !IsOurs(process.parent, self)) return false;
    // The descriptor names one process for ever: it is looked at again through it, and the signal
    // goes through it, so that another process with that number is never touched.
    const long directory =
        OwnCall(SYS_openat, proc_, Arg(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (directory < 0) return false;
    bool first = false;
    if (ReadProcess(static_cast<int>(directory), "stat", &process) &&
        IsOurs(process.parent, self)) {
      seen_[pid] = round_;
      const long sent = OwnCall(abi::kSysPidfdSendSignal, directory, number, 0, 0);
      // An outer filter that does not know the call. The number was its own a moment ago, and is
      // given back only after its parent took notice of its end.
      if (sent == -ENOSYS || sent == -EPERM) Kill(pid, number);
      first = signaled_[pid] != epoch_;
      signaled_[pid] = epoch_;
    }
    RawSyscall(SYS_close, directory);
    return first;
  }

  int proc_ = -1;
  int last_signal_ = 0;
  uint16_t round_ = 0;
  uint16_t epoch_ = 0;
  uint16_t* seen_ = nullptr;      // by pid: the last round in which it was a descendant
  uint16_t* signaled_ = nullptr;  // by pid: the last epoch in which it got the signal
};

// --- the warden of a command ---

class TreeWarden {
 public:
  TreeWarden(int channel, pid_t launcher, pid_t command)
      : channel_(channel), launcher_(launcher), command_(command), released_(command == 0) {}

  TreeEnd Run(bool until_released) {
    const uint64_t children = 1ull << (SIGCHLD - 1);
    const int ended = static_cast<int>(
        RawSyscall(SYS_signalfd4, -1, Arg(&children), kSignalSetSize, O_CLOEXEC | O_NONBLOCK));
    const LauncherEnd launcher(launcher_);
    bool alone = false;
    for (;;) {
      // Also one that ended before this came to be.
      Collect();
      alone = alone || launcher.came();
      if (alone) break;
      pollfd watched[] = {{channel_, POLLIN, 0}, {ended, POLLIN, 0}, {launcher.fd(), POLLIN, 0}};
      const long ready = Wait(watched, 3);
      if (ready == kCannotWait) break;
      if (watched[1].revents != 0) {
        char drained[1024];
        RawSyscall(SYS_read, ended, Arg(drained), sizeof(drained));
      }
      if (watched[2].revents != 0) alone = true;
      WardenRequest request;
      const long size = Receive(channel_, &request, 0);
      if (size == -EINTR || size == -EAGAIN) continue;
      if (size != sizeof(request)) {
        alone = true;
      } else if (request.kind == WardenRequest::kRelease) {
        released_ = true;
        Collect();
        if (until_released) {
          RawSyscall(SYS_close, ended);
          launcher.Close();
          return TreeEnd::kReleased;
        }
      } else if (request.kind == WardenRequest::kSignal) {
        Descendants descendants;
        if (descendants.Open()) descendants.Signal(request.number);
        descendants.Close();
      } else {
        break;
      }
    }
    // /proc takes descriptors, of which there may be few.
    RawSyscall(SYS_close, ended);
    launcher.Close();
    const bool gone = EndAll(alone ? kEndMillisecondsAlone : kEndMilliseconds);
    Say(gone ? WardenMessage::kEnded : WardenMessage::kLeft);
    return TreeEnd::kEnded;
  }

 private:
  void Say(int32_t kind) {
    WardenMessage message;
    message.kind = kind;
    Send(message);
  }
  void Send(const WardenMessage& message) {
    // Signals are blocked, and MSG_NOSIGNAL says it again; without a launcher it goes nowhere.
    RawSyscall(SYS_sendto, channel_, Arg(&message), sizeof(message), MSG_NOSIGNAL, 0, 0);
  }

  // Takes notice of every child that has ended; false: there are no children any more.
  bool Collect() {
    for (;;) {
      siginfo_t info;
      info.si_pid = 0;
      WardenMessage exited;
      const long result = RawSyscall(SYS_waitid, P_ALL, 0, Arg(&info), WEXITED | WNOHANG | WNOWAIT,
                                     Arg(&exited.usage));
      if (result == -ECHILD) return false;
      if (result < 0 || info.si_pid == 0) return true;
      if (info.si_code != CLD_EXITED && info.si_code != CLD_KILLED && info.si_code != CLD_DUMPED) {
        LetGo(info);
        continue;
      }
      if (info.si_pid == command_) {
        if (!reported_) {
          reported_ = true;
          exited.kind = WardenMessage::kExited;
          exited.pid = command_;
          exited.code = info.si_code;
          exited.status = info.si_status;
          Send(exited);
        }
        // Its number is the launcher's to use until it says otherwise, which it does at once.
        if (!released_) return true;
      }
      RawSyscall(SYS_waitid, P_PID, info.si_pid, 0, WEXITED | WNOHANG, 0);
    }
  }

  // A child that has made this process its tracer (PTRACE_TRACEME) and waits for its word: waitid
  // tells of it whatever was asked for, and it is not an end.
  void LetGo(const siginfo_t& stopped) {
    // Its SIGTRAP is for a debugger.
    const int number = stopped.si_status == SIGTRAP ? 0 : stopped.si_status & 0x7f;
    RawSyscall(SYS_waitid, P_PID, stopped.si_pid, 0, WSTOPPED | WNOHANG, 0);
    RawSyscall(SYS_ptrace, PTRACE_DETACH, stopped.si_pid, 0, number);
  }

  bool EndAll(long milliseconds) {
    released_ = true;
    // The usual case: no process is left, and nothing has to be looked for.
    if (!Collect()) return true;
    const long begin = Now();
    Descendants descendants;
    bool open = descendants.Open();
    // Without /proc: what can be found otherwise is the command itself and its group.
    if (!open && command_ > 0) Kill(-command_, SIGKILL);
    while (!open && Now() - begin < kStopMilliseconds) {
      descendants.Close();
      if (!Collect()) return true;
      Sleep(1);
      // It may have been for want of memory or of a descriptor.
      open = descendants.Open();
    }
    if (!open) {
      descendants.Close();
      return !Collect();
    }
    // A stopped process starts no other, so in the end there is no new one to be found.
    while (descendants.Signal(SIGSTOP) > 0 && Now() - begin < kStopMilliseconds) {
    }
    bool gone = false;
    for (long pause = 0; !gone && Now() - begin < milliseconds;) {
      descendants.Signal(SIGKILL);
      if (pause > 0) Sleep(pause);
      if (pause < 8) ++pause;
      gone = !Collect();
    }
    descendants.Close();
    return gone;
  }

  const int channel_;
  const pid_t launcher_;
  const pid_t command_;
  bool reported_ = false;
  bool released_;
};

void TakeName() { RawSyscall(SYS_prctl, PR_SET_NAME, Arg("sandbox-warden"), 0, 0, 0); }

}  // namespace

int KeepScope(int channel, pid_t launcher) {
  TakeName();
  // The launcher is of the same user and outside: only the scope can keep its signals from it. So
  // this is the proof that everything sent from here stays inside; there is no way out of a scope.
  if (Kill(RawSyscall(SYS_getppid), 0) != -EPERM) return kNotScoped;
  const LauncherEnd end(launcher);
  pollfd watched[] = {{channel, POLLIN, 0}, {end.fd(), POLLIN, 0}};
  WardenRequest request;
  while (!end.came() && Wait(watched, 2) == 0 && Receive(channel, &request, MSG_PEEK) == -EAGAIN) {
  }
  // Asked again right before the call that must not go wrong.
  if (Kill(kInit, 0) != -EPERM) return kNotScoped;
  Kill(-1, SIGKILL);
  if (Receive(channel, &request, 0) > 0) return kDone;
  // The launcher has not ended in order. One call reaches all processes, and none can have been
  // started meanwhile (the kernel holds its list of tasks); the rest is for kernels with a fault.
  for (int round = 1; round < kRoundsAlone; ++round) {
    Sleep(20);
    Kill(-1, SIGKILL);
  }
  return kDone;
}

TreeEnd KeepTree(int channel, pid_t launcher, pid_t command, bool until_released) {
  TakeName();
  return TreeWarden(channel, launcher, command).Run(until_released);
}

}  // namespace sandbox_run
