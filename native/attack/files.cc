// Moves against files: each takes the path to attack.
#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "attack/attack.h"
#include "sys/kernel_abi.h"

namespace sandbox_run {
namespace {

long WriteText(int fd, const char* text) {
  return fd < 0 ? -1 : write(fd, text, strlen(text)) > 0 ? 0 : -1;
}

long Read(char** a) { return ReadAndShow(a[0]); }
long Write(char** a) { return WriteText(open(a[0], O_WRONLY | O_APPEND), a[1]); }
long Create(char** a) { return WriteText(open(a[0], O_WRONLY | O_CREAT | O_EXCL, 0600), a[1]); }
long Remove(char** a) { return unlink(a[0]); }
long MakeDirectory(char** a) { return mkdir(a[0], 0700); }

// Makes a file and removes it at once, so that none is left if the caller is killed.
long CreateBriefly(char** a) {
  return open(a[0], O_WRONLY | O_CREAT | O_EXCL, 0600) < 0 ? -1 : unlink(a[0]);
}
long MakeDirectoryBriefly(char** a) { return mkdir(a[0], 0700) < 0 ? -1 : rmdir(a[0]); }

long Execute(char** a) {
  char prove[] = "prove";
  char* const arguments[] = {a[0], prove, nullptr};
  return ExitStatusOf(arguments) == kProof ? 0 : -1;
}

long List(char** a) {
  DIR* directory = opendir(a[0]);
  if (directory == nullptr) return -1;
  while (const dirent* entry = readdir(directory)) {
    if (strcmp(entry->d_name, a[1]) == 0) return 0;
  }
  errno = ENOENT;
  return -1;
}

long See(char** a) {
  struct stat seen;
  return lstat(a[0], &seen);
}

long Truncate(char** a) { return truncate(a[0], 0); }
long OpenTruncate(char** a) { return open(a[0], O_WRONLY | O_TRUNC); }
long ReadTruncate(char** a) { return open(a[0], O_RDONLY | O_TRUNC); }

long ChangeMode(char** a) { return chmod(a[0], 0777); }
long ChangeModeByMagicLink(char** a) {
  char path[64];
  const int fd = open(a[0], O_PATH);
  if (fd < 0) return -1;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return chmod(path, 0777);
}
long ChangeTimes(char** a) {
  const timespec times[2] = {{1, 0}, {1, 0}};
  return utimensat(AT_FDCWD, a[0], times, 0);
}
long SetAttribute(char** a) { return setxattr(a[0], "user.sandbox_run", "x", 1, 0); }

long Rename(char** a) { return rename(a[0], a[1]); }
// Not by renameat2(), which musl has not.
long Exchange(char** a) {
  return syscall(SYS_renameat2, AT_FDCWD, a[0], AT_FDCWD, a[1], abi::kRenameExchange);
}
// A second name for a file, where more may be done with it.
long LinkAndWrite(char** a) {
  return link(a[0], a[1]) < 0 ? -1 : WriteText(open(a[1], O_WRONLY | O_APPEND), a[2]);
}
long SymlinkAndWrite(char** a) {
  return symlink(a[0], a[1]) < 0 ? -1 : WriteText(open(a[1], O_WRONLY | O_APPEND), a[2]);
}
// Moves a directory aside and puts one of its own in its place.
long ReplaceDirectory(char** a) {
  char aside[4096], file[4096];
  snprintf(aside, sizeof aside, "%s.aside", a[0]);
  snprintf(file, sizeof file, "%s/%s", a[0], a[1]);
  if (rename(a[0], aside) < 0 || mkdir(a[0], 0700) < 0) return -1;
  return WriteText(open(file, O_WRONLY | O_CREAT, 0700), a[2]);
}

long MakeDevice(char** a) {
  if (mknod(a[0], S_IFCHR | 0600, makedev(1, 3)) < 0) return -1;
  return unlink(a[0]);
}
long OpenDevice(char** a) { return open(a[0], O_RDWR | O_NONBLOCK | O_NOCTTY); }
// RNDGETENTCNT: how much randomness there is; changes nothing.
long ControlDevice(char** a) {
  int bits = 0;
  const int fd = open(a[0], O_RDONLY | O_NONBLOCK);
  return fd < 0 ? -1 : ioctl(fd, 0x80045200, &bits);
}

}  // namespace

long ReadAndShow(const char* path) {
  char text[256];
  const int fd = open(path, O_RDONLY | O_NONBLOCK);
  const ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text);
  if (size > 0) Got(text, static_cast<size_t>(size));
  return size;
}

long ExitStatusOf(char* const arguments[]) {
  int told[2];
  if (pipe2(told, O_CLOEXEC) < 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    execv(arguments[0], arguments);
    const int error = errno;
    _exit(write(told[1], &error, sizeof error) > 0 ? 126 : 125);
  }
  close(told[1]);
  int status = 0;
  int error = 0;
  if (child < 0 || waitpid(child, &status, 0) < 0) return -1;
  if (read(told[0], &error, sizeof error) > 0) {
    errno = error;
    return -1;
  }
  errno = EPERM;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

const Attack kFileAttacks[] = {
    {"read", 1, Read},
    {"write", 2, Write},
    {"create", 2, Create},
    {"remove", 1, Remove},
    {"make-directory", 1, MakeDirectory},
    {"create-briefly", 1, CreateBriefly},
    {"make-directory-briefly", 1, MakeDirectoryBriefly},
    {"execute", 1, Execute},
    {"list", 2, List},
    {"see", 1, See},
    {"truncate", 1, Truncate},
    {"open-truncate", 1, OpenTruncate},
    {"read-truncate", 1, ReadTruncate},
    {"change-mode", 1, ChangeMode},
    {"change-mode-by-magic-link", 1, ChangeModeByMagicLink},
    {"change-times", 1, ChangeTimes},
    {"set-attribute", 1, SetAttribute},
    {"rename", 2, Rename},
    {"exchange", 2, Exchange},
    {"link-and-write", 3, LinkAndWrite},
    {"symlink-and-write", 3, SymlinkAndWrite},
    {"replace-directory", 3, ReplaceDirectory},
    {"make-device", 1, MakeDevice},
    {"open-device", 1, OpenDevice},
    {"control-device", 1, ControlDevice},
    {nullptr, 0, nullptr},
};

}  // namespace sandbox_run
