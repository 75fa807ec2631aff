// Moves against other processes: only the bystander that doctor started is ever named.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "attack/attack.h"
#include "sys/kernel_abi.h"

namespace sandbox_run {
namespace {

pid_t Pid(char** a) { return atoi(a[0]); }

long Kill(char** a) { return kill(Pid(a), atoi(a[1])); }
long KillGroup(char** a) { return kill(-Pid(a), atoi(a[1])); }
long KillThread(char** a) { return syscall(SYS_tgkill, Pid(a), Pid(a), atoi(a[1])); }
long Queue(char** a) { return sigqueue(Pid(a), atoi(a[1]), {}); }
long KillByDescriptor(char** a) {
  const long fd = syscall(SYS_pidfd_open, Pid(a), 0);
  return fd < 0 ? -1 : syscall(SYS_pidfd_send_signal, fd, atoi(a[1]), nullptr, 0);
}
// The kernel sends the signal when there is something to read.
long SignalByOwner(char** a) {
  int ends[2];
  if (pipe(ends) < 0 || fcntl(ends[0], F_SETOWN, Pid(a)) < 0) return -1;
  if (fcntl(ends[0], F_SETSIG, atoi(a[1])) < 0 || fcntl(ends[0], F_SETFL, O_ASYNC) < 0) return -1;
  return write(ends[1], "x", 1);
}

long ReadOf(char** a, const char* what) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", Pid(a), what);
  return ReadAndShow(path);
}

// Looks for the value of `NAME`.
long Environment(char** a) {
  char path[64], text[65536];
  snprintf(path, sizeof path, "/proc/%d/environ", Pid(a));
  const int fd = open(path, O_RDONLY);
  const ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (size <= 0) return -1;
  text[size] = 0;
  const size_t length = strlen(a[1]);
  for (const char* at = text; at < text + size; at += strlen(at) + 1) {
    if (strncmp(at, a[1], length) == 0 && at[length] == '=') {
      Got(at + length + 1, strlen(at + length + 1));
      return 0;
    }
  }
  errno = ENOENT;
  return -1;
}

long Memory(char** a) {
  char path[64], text[64];
  snprintf(path, sizeof path, "/proc/%d/mem", Pid(a));
  const int fd = open(path, O_RDONLY);
  const ssize_t size = fd < 0 ? -1 : pread(fd, text, sizeof text, strtol(a[1], nullptr, 16));
  if (size > 0) Got(text, static_cast<size_t>(size));
  return size;
}
long ReadMemory(char** a) {
  char text[64];
  iovec mine = {text, sizeof text};
  iovec theirs = {reinterpret_cast<void*>(strtoul(a[1], nullptr, 16)), sizeof text};
  const ssize_t size = process_vm_readv(Pid(a), &mine, 1, &theirs, 1, 0);
  if (size > 0) Got(text, static_cast<size_t>(size));
  return size;
}
long Attach(char** a) { return ptrace(PTRACE_SEIZE, Pid(a), nullptr, nullptr); }
long Maps(char** a) { return ReadOf(a, "maps"); }
long Descriptor(char** a) {
  const long fd = syscall(SYS_pidfd_open, Pid(a), 0);
  return fd < 0 ? -1 : syscall(abi::kSysPidfdGetfd, fd, 0, 0);
}
long ReadLink(char** a) {
  char path[64], text[256];
  snprintf(path, sizeof path, "/proc/%d/%s", Pid(a), a[1]);
  const ssize_t size = readlink(path, text, sizeof text);
  if (size > 0) Got(text, static_cast<size_t>(size));
  return size;
}
// A limit with which a process is easily ended; the bystander does without.
long LimitOther(char** a) {
  rlimit limit;
  if (prlimit(Pid(a), RLIMIT_NOFILE, nullptr, &limit) < 0) return -1;
  if (limit.rlim_cur > 64) limit.rlim_cur -= 1;
  return prlimit(Pid(a), RLIMIT_NOFILE, &limit, nullptr);
}

// Leaves a process behind, in a session of its own, without the command's streams, for so many
// seconds at most. The last argument is a mark by which it is found.
long Daemonize(char** a) {
  int told[2];
  if (pipe(told) < 0) return -1;
  const pid_t first = fork();
  if (first < 0) return -1;
  if (first == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    prctl(PR_SET_PDEATHSIG, 0);
    const bool heard = write(told[1], "x", 1) == 1;
    for (int fd = 0; fd < 64; ++fd) close(fd);
    for (int left = atoi(a[0]) * 10; heard && left > 0; --left) usleep(100000);
    _exit(0);
  }
  char byte;
  return read(told[0], &byte, 1) == 1 ? 0 : -1;
}

}  // namespace

const Attack kProcessAttacks[] = {
    {"kill", 2, Kill},
    {"kill-group", 2, KillGroup},
    {"kill-thread", 2, KillThread},
    {"queue-signal", 2, Queue},
    {"kill-by-descriptor", 2, KillByDescriptor},
    {"signal-by-owner", 2, SignalByOwner},
    {"environment-of", 2, Environment},
    {"memory-of", 2, Memory},
    {"read-memory-of", 2, ReadMemory},
    {"attach", 1, Attach},
    {"map-of", 1, Maps},
    {"descriptor-of", 1, Descriptor},
    {"link-of", 2, ReadLink},
    {"limit-other", 1, LimitOther},
    {"daemonize", 2, Daemonize},
    {nullptr, 0, nullptr},
};

}  // namespace sandbox_run
