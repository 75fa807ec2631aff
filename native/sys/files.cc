#include "sys/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

bool IsDotOrDotDot(const char* name) {
  return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0;
}

bool IsBeneath(const std::string& path, const std::string& ancestor) {
  return path.size() > ancestor.size() && path.starts_with(ancestor) &&
         path[ancestor.size()] == '/';
}

enum class Keep { kNothing, kSomethingBeneath, kAll };

Keep KeepOf(const std::string& path, const std::vector<std::string>& keep) {
  for (const std::string& kept : keep) {
    if (kept == path) return Keep::kAll;
    if (IsBeneath(kept, path)) return Keep::kSomethingBeneath;
  }
  return Keep::kNothing;
}

// Opens a subdirectory for listing, readable or not, without following a link.
UniqueFd OpenSubdirectory(int parent, const char* name, mode_t mode) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  if ((mode & S_IRWXU) != S_IRWXU) {
    // Through an O_PATH descriptor, so that a link put in its place by a surviving process cannot
    // redirect the chmod.
    const UniqueFd handle(openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (handle.valid()) {
      chmod(("/proc/self/fd/" + std::to_string(handle.get())).c_str(), S_IRWXU);
    }
  }
  return UniqueFd(openat(parent, name, kFlags));
}

// What lies deeper is first moved up, so that no tree, however deep, exhausts the thread's stack.
constexpr int kMaxDepth = 64;

// A name that the removed tree cannot have prepared for.
std::string UnusedName() {
  static std::atomic<uint64_t> counter{0};
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return ".removing-" + std::to_string(now.tv_nsec) + "-" + std::to_string(++counter);
}

struct Removal {
  int top_fd;  // the directory whose contents are removed
  dev_t device;
  const std::vector<std::string>& keep;
  int moved = 0;  // directories moved to the top, to be removed in another round
};

void RemoveEntries(UniqueFd directory, const std::string& path, Removal& removal, int depth) {
  DIR* stream = fdopendir(directory.get());
  if (stream == nullptr) return;
  directory.release();
  const int fd = dirfd(stream);
  const bool keeps = !removal.keep.empty();
  while (const dirent* entry = readdir(stream)) {
    if (IsDotOrDotDot(entry->d_name)) continue;
    const std::string entry_path = keeps ? path + "/" + entry->d_name : std::string();
    const Keep kept = keeps ? KeepOf(entry_path, removal.keep) : Keep::kNothing;
    if (kept == Keep::kAll) continue;
    if (kept == Keep::kNothing) {
      if (entry->d_type != DT_DIR && unlinkat(fd, entry->d_name, 0) == 0) continue;
      if (unlinkat(fd, entry->d_name, AT_REMOVEDIR) == 0) continue;
    }
    struct stat info;
    if (fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(info.st_mode) ||
        info.st_dev != removal.device) {
      continue;
    }
    if (depth >= kMaxDepth) {
      // Its ".." changes, for which its owner needs to be able to write it.
      OpenSubdirectory(fd, entry->d_name, info.st_mode);
      if (renameat(fd, entry->d_name, removal.top_fd, UnusedName().c_str()) == 0) ++removal.moved;
      continue;
    }
    UniqueFd child = OpenSubdirectory(fd, entry->d_name, info.st_mode);
    if (child.valid()) RemoveEntries(std::move(child), entry_path, removal, depth + 1);
    if (kept == Keep::kSomethingBeneath) ResetAttributes(entry_path);
    if (kept == Keep::kNothing) unlinkat(fd, entry->d_name, AT_REMOVEDIR);
  }
  closedir(stream);
}

void RemoveContentsOf(int top, dev_t device, const std::string& path,
                      const std::vector<std::string>& keep) {
  for (int moved = 1; moved > 0;) {
    UniqueFd listing(openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!listing.valid()) return;
    Removal removal{top, device, keep};
    RemoveEntries(std::move(listing), path, removal, 0);
    moved = removal.moved;
  }
}

}  // namespace

Result<UniqueFd> AboveStdio(int fd, const char* stage) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return Failure{stage, errno, ""};
  return Result<UniqueFd>(std::move(copy));
}

Result<UniqueFd> OpenPath(const std::string& path, const char* stage) {
  const abi::OpenHow how{O_PATH | O_CLOEXEC, 0, abi::kResolveNoSymlinks};
  long fd = RawSyscall(abi::kSysOpenat2, AT_FDCWD, Arg(path.c_str()), Arg(&how), sizeof(how));
  if (fd == -ENOSYS || fd == -EPERM) {
    // Before 5.6, or an outer seccomp filter that does not know openat2.
    fd = RawSyscall(SYS_openat, AT_FDCWD, Arg(path.c_str()), O_PATH | O_CLOEXEC | O_NOFOLLOW, 0);
  }
  if (fd < 0) return Failure{stage, static_cast<int>(-fd), path};
  return UniqueFd(static_cast<int>(fd));
}

Result<std::string> MakePrivateDirectory(const std::string& parent, const std::string& prefix) {
  std::string path = parent + "/" + prefix + "XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return Failure{"private_directory", errno, parent};
  return path;
}

Result<UniqueFd> LockDirectory(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid() || flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return Failure{"private_directory", errno, path};
  }
  return fd;
}

void RemoveStaleDirectories(const std::string& parent, const std::string& prefix) {
  constexpr time_t kYoungSeconds = 60;
  constexpr size_t kRandomLength = 6;  // of MakePrivateDirectory()
  DIR* stream = opendir(parent.c_str());
  if (stream == nullptr) return;
  while (const dirent* entry = readdir(stream)) {
    const std::string name = entry->d_name;
    struct stat info;
    if (!name.starts_with(prefix) || name.size() != prefix.size() + kRandomLength ||
        fstatat(dirfd(stream), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(info.st_mode) || (info.st_mode & 0777) != 0700 || info.st_uid != geteuid() ||
        info.st_ctime + kYoungSeconds > time(nullptr)) {
      continue;
    }
    const std::string path = parent + "/" + name;
    if (const Result<UniqueFd> lock = LockDirectory(path); lock.ok()) {
      RemoveTree(lock.value().get(), path);
    }
  }
  closedir(stream);
}

void RemoveContents(const std::string& path, const std::vector<std::string>& keep) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return;
  const UniqueFd top = OpenSubdirectory(AT_FDCWD, path.c_str(), info.st_mode);
  if (top.valid()) RemoveContentsOf(top.get(), info.st_dev, path, keep);
}

void ResetAttributes(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return;
  const UniqueFd fd = OpenSubdirectory(AT_FDCWD, path.c_str(), info.st_mode);
  if (!fd.valid()) return;
  fchmod(fd.get(), 0700);
  futimens(fd.get(), nullptr);
  // The kernel's limit for the names of one object (XATTR_LIST_MAX).
  constexpr size_t kMaxNames = 65536;
  const ssize_t needed = flistxattr(fd.get(), nullptr, 0);
  if (needed <= 0) return;
  std::string names(kMaxNames, '\0');
  const ssize_t length = flistxattr(fd.get(), names.data(), names.size());
  for (ssize_t at = 0; at < length;) {
    const char* name = &names[static_cast<size_t>(at)];
    const std::string_view text = name;
    // Others, such as a security label, are the system's.
    if (text.starts_with("user.") || text.starts_with("system.posix_acl_")) {
      fremovexattr(fd.get(), name);
    }
    at += static_cast<ssize_t>(strlen(name)) + 1;
  }
}

void RemoveTree(int directory, const std::string& path) {
  struct stat info;
  if (fstat(directory, &info) == 0) RemoveContentsOf(directory, info.st_dev, path, {});
  rmdir(path.c_str());
}

}  // namespace sandbox_run
