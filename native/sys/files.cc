#include "sys/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <utility>

#include "sys/kernel_abi.h"
#include "sys/own_call.h"
#include "sys/raw_syscall.h"
#include "sys/removal.h"

namespace sandbox_run {
Result<UniqueFd> AboveStdio(int fd, const char* stage) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return Failure{stage, errno, ""};
  return Result<UniqueFd>(std::move(copy));
}

Result<UniqueFd> OpenPath(const std::string& path, const char* stage) {
  const abi::OpenHow how{O_PATH | O_CLOEXEC, 0, abi::kResolveNoSymlinks};
  // A thread of a command is looked at like the command, and this would wait for the answer.
  long fd = OwnCall(abi::kSysOpenat2, AT_FDCWD, Arg(path.c_str()), Arg(&how), sizeof(how));
  if (fd == -ENOSYS || fd == -EPERM) {
    // Before 5.6, or an outer seccomp filter that does not know openat2.
    fd = RawSyscall(SYS_openat, AT_FDCWD, Arg(path.c_str()), O_PATH | O_CLOEXEC | O_NOFOLLOW, 0);
  }
  if (fd < 0) return Failure{stage, static_cast<int>(-fd), path};
  return UniqueFd(static_cast<int>(fd));
}

bool HasOnlyLabels(int fd) {
  char names[256];
  const ssize_t length = flistxattr(fd, names, sizeof(names));
  if (length < 0) return errno == ENOTSUP;
  for (ssize_t at = 0; at < length; at += static_cast<ssize_t>(strlen(&names[at])) + 1) {
    if (!std::string_view(&names[at]).starts_with("security.")) return false;
  }
  return true;
}

bool WasContentChangedLast(const struct stat& info) {
  return info.st_ctim.tv_sec == info.st_mtim.tv_sec && info.st_ctim.tv_nsec == info.st_mtim.tv_nsec;
}

bool IsUnmarked(int fd, const struct stat& info) {
  return S_ISREG(info.st_mode) && (info.st_mode & 07777) == 0600 && info.st_nlink == 1 &&
         // A `touch` sets both times to now: the attributes have to be checked nevertheless.
         WasContentChangedLast(info) && HasOnlyLabels(fd);
}

Result<std::string> MakePrivateDirectory(const std::string& parent, const std::string& prefix) {
  std::string path = parent + "/" + prefix + "XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return Failure{"private_directory", errno, parent};
  // Whatever the umask: a launcher that is started with 0777 could not use it.
  if (chmod(path.c_str(), 0700) == 0) return path;
  const int error = errno;
  rmdir(path.c_str());
  return Failure{"private_directory", error, path};
}

Result<UniqueFd> LockDirectory(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid() || flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return Failure{"private_directory", errno, path};
  }
  return fd;
}

Result<UniqueFd> MakeLockedDirectory(const std::string& parent, const std::string& prefix,
                                     std::string& path) {
  // Each is lost only to a launcher that sweeps in just this moment.
  constexpr int kAttempts = 1'000;
  Failure failure{"private_directory", EAGAIN, parent};
  for (int i = 0; i < kAttempts; ++i) {
    Result<std::string> made = MakePrivateDirectory(parent, prefix);
    if (!made.ok()) {
      failure = made.failure();
      // Another launcher removed the new directory before it had its mode: try again.
      if (failure.error == ENOENT && failure.path != parent) continue;
      break;
    }
    path = std::move(made.value());
    Result<UniqueFd> lock = LockDirectory(path);
    struct stat held, named;
    // Not by its number of links, which some file systems do not count for directories.
    if (lock.ok() && fstat(lock.value().get(), &held) == 0 && lstat(path.c_str(), &named) == 0 &&
        held.st_dev == named.st_dev && held.st_ino == named.st_ino) {
      return lock;
    }
    // Remove the new directory if it cannot be locked or checked: nothing else would clean it up.
    // If another process made one with this name meanwhile, rmdir fails (not empty) or that process
    // makes it again.
    if (!lock.ok()) failure = lock.failure();
    const bool is_taken = !lock.ok() && (failure.error == EWOULDBLOCK || failure.error == ENOENT);
    if (!is_taken) rmdir(path.c_str());
    if (!lock.ok() && !is_taken) break;
  }
  return failure;
}

Status EnsurePrivateParent(const std::string& path) {
  // As in src/workspace/host/user-directories.ts.
  const std::string name = "/.sandbox-run-" + std::to_string(geteuid());
  if (!path.ends_with(name) && !path.ends_with(name + "-inner")) return Status();
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return Failure{"private_directory", errno, path};
  const UniqueFd opened(open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info;
  if (!opened.valid() || fstat(opened.get(), &info) != 0)
    return Failure{"private_directory", errno, path};
  if (info.st_uid != geteuid() || (info.st_mode & 0077) != 0)
    return Failure{"private_directory", EPERM, path};
  if ((info.st_mode & 0700) == 0700) return Status();
  // The umask of its creator may have removed rights of the user itself.
  const std::string of_process = "/proc/self/fd/" + std::to_string(opened.get());
  if (chmod(of_process.c_str(), 0700) != 0) return Failure{"private_directory", errno, path};
  return Status();
}

void RemoveStaleDirectories(const std::string& parent, const std::string& prefix) {
  // One that is large holds up the command that this is done before; the next ones do the rest.
  constexpr std::chrono::milliseconds kLongest{500};
  const auto until = std::chrono::steady_clock::now() + kLongest;
  constexpr size_t kRandomLength = 6;  // of MakePrivateDirectory()
  DIR* stream = opendir(parent.c_str());
  if (stream == nullptr) return;
  while (const dirent* entry = readdir(stream)) {
    if (std::chrono::steady_clock::now() >= until) break;
    const std::string name = entry->d_name;
    struct stat info;
    if (!name.starts_with(prefix) || name.size() != prefix.size() + kRandomLength ||
        fstatat(dirfd(stream), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(info.st_mode) || (info.st_mode & 0777) != 0700 || info.st_uid != geteuid()) {
      continue;
    }
    const std::string path = parent + "/" + name;
    if (Result<UniqueFd> lock = LockDirectory(path); lock.ok()) {
      RemoveTree(std::move(lock.value()), path);
    }
  }
  closedir(stream);
}

}  // namespace sandbox_run
