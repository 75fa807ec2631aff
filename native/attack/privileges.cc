// Moves with what the launcher may have left to the command: rights, descriptors, variables, its
// terminal.
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "attack/attack.h"

namespace sandbox_run {
namespace {

long HasCapabilities(char**) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) < 0) return -1;
  if ((data[0].permitted | data[1].permitted | data[0].inheritable | data[1].inheritable) != 0)
    return 0;
  errno = EPERM;
  return -1;
}
// Without no_new_privs, executing a set-uid program gives the rights of its owner.
long CanGainPrivileges(char**) {
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0) return 0;
  errno = EPERM;
  return -1;
}
long BecomeOwner(char** a) {
  char word[] = "effective-user";
  char* const arguments[] = {a[0], word, nullptr};
  return ExitStatusOf(arguments) == kProof ? 0 : -1;
}
long BecomeAnother(char**) { return setuid(getuid() + 1); }

long OpenDescriptors(char**) {
  char text[96] = "";
  int found = 0;
  for (int fd = 3; fd < 65536; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) continue;
    if (found++ < 8) snprintf(text + strlen(text), sizeof text - strlen(text), "%d ", fd);
  }
  if (found > 0) {
    Got(text, strlen(text));
    return 0;
  }
  errno = EBADF;
  return -1;
}
// Reads from a directory that is open although the command did not open it.
long ReadThroughDescriptors(char** a) {
  for (int fd = 3; fd < 65536; ++fd) {
    char text[64];
    const int file = openat(fd, a[0], O_RDONLY);
    const ssize_t size = pread(file >= 0 ? file : fd, text, sizeof text, 0);
    if (size <= 0) continue;
    Got(text, static_cast<size_t>(size));
    return 0;
  }
  errno = EBADF;
  return -1;
}

long Variable(char** a) {
  const char* value = getenv(a[0]);
  if (value == nullptr) {
    errno = ENOENT;
    return -1;
  }
  Got(value, strlen(value));
  return 0;
}

// `own`: types into a terminal made for it, as a positive control; else into the one that it has as
// standard input.
long Type(char** a) {
  int fd = 0;
  if (strcmp(a[0], "own") == 0) {
    setsid();
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    int unlocked = 0;
    int number = 0;
    char path[32];
    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0) return -1;
    if (ioctl(master, TIOCGPTN, &number) < 0) return -1;
    snprintf(path, sizeof path, "/dev/pts/%d", number);
    fd = open(path, O_RDWR);
    if (fd < 0) return -1;
  }
  return ioctl(fd, TIOCSTI, "#");
}
// TIOCSTI with higher bits, which the kernel ignores.
long TypeWithHighBits(char** a) {
  if (strcmp(a[0], "own") == 0) return Type(a);
  return syscall(SYS_ioctl, 0, 0x100000000ul | TIOCSTI, "#");
}
long OpenTerminal(char**) { return open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK); }

}  // namespace

const Attack kPrivilegeAttacks[] = {
    {"has-capabilities", 0, HasCapabilities},
    {"can-gain-privileges", 0, CanGainPrivileges},
    {"become-owner", 1, BecomeOwner},
    {"become-another", 0, BecomeAnother},
    {"open-descriptors", 0, OpenDescriptors},
    {"read-through-descriptors", 1, ReadThroughDescriptors},
    {"variable", 1, Variable},
    {"type", 1, Type},
    {"type-with-high-bits", 1, TypeWithHighBits},
    {"open-terminal", 0, OpenTerminal},
    {nullptr, 0, nullptr},
};

}  // namespace sandbox_run
