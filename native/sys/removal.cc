#include "sys/removal.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string_view>
#include <utility>

#include "sys/own_call.h"

namespace sandbox_run {
namespace {

bool IsShortage(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

bool IsDotOrDotDot(const char* name) {
  return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0;
}

bool IsBeneath(const std::string& path, const std::string& ancestor) {
  return path.size() > ancestor.size() && path.starts_with(ancestor) &&
         path[ancestor.size()] == '/';
}

// 0 or an error number. A thread of a command is looked at like the command: each of ten thousand
// files would wait for an answer.
int Unlink(int parent, const char* name, int flags) {
  return static_cast<int>(-OwnCall(SYS_unlinkat, parent, Arg(name), flags));
}

enum class Keep { kNothing, kSomethingBeneath, kAll };

Keep KeepOf(const std::string& path, const std::vector<std::string>& keep) {
  Keep found = Keep::kNothing;
  for (const std::string& kept : keep) {
    // Whatever is kept beneath it: it stays as a whole.
    if (kept == path) return Keep::kAll;
    if (IsBeneath(kept, path)) found = Keep::kSomethingBeneath;
  }
  return found;
}

// Opens a subdirectory for listing, readable or not, without following a link.
UniqueFd OpenSubdirectory(int parent, const char* name, mode_t mode) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  if ((mode & S_IRWXU) != S_IRWXU) {
    // Through an O_PATH descriptor, so that a link put in its place by a surviving process cannot
    // redirect the chmod.
    const UniqueFd handle(openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!handle.valid()) return UniqueFd();
    chmod(("/proc/self/fd/" + std::to_string(handle.get())).c_str(), S_IRWXU);
  }
  return UniqueFd(openat(parent, name, kFlags));
}

// See EmptyPrivateDirectory().
bool ResetAttributes(int fd) {
  const bool is_reset = fchmod(fd, 0700) == 0 && futimens(fd, nullptr) == 0;
  // The kernel's limit for the names of one object (XATTR_LIST_MAX).
  constexpr size_t kMaxNames = 65536;
  const ssize_t needed = flistxattr(fd, nullptr, 0);
  if (needed == 0 || (needed < 0 && errno == ENOTSUP)) return is_reset;
  std::string names(kMaxNames, '\0');
  const ssize_t length = flistxattr(fd, names.data(), names.size());
  bool is_free = length >= 0;
  for (ssize_t at = 0; at < length;) {
    const char* name = &names[static_cast<size_t>(at)];
    const std::string_view text = name;
    // Others, such as a security label, are the system's.
    if (text.starts_with("user.") || text.starts_with("system.posix_acl_")) {
      is_free = fremovexattr(fd, name) == 0 && is_free;
    }
    at += static_cast<ssize_t>(strlen(name)) + 1;
  }
  return is_reset && is_free;
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

// What became of a removal.
struct Left {
  bool something = false;
  bool for_shortage = false;

  void Note(int error) {
    something = true;
    for_shortage = for_shortage || IsShortage(error);
  }
};

struct Removal {
  int top_fd;  // the directory whose contents are removed
  dev_t device;
  const std::vector<std::string>& keep;
  int moved = 0;                   // directories moved to the top, to be removed in another round
  std::vector<std::string> later;  // of the top, to be opened once its listing is closed
  Left left;
};

enum class Afterwards { kNothing, kResetAttributes };

void RemoveEntries(UniqueFd directory, const std::string& path, Removal& removal, int depth,
                   Afterwards afterwards);

// A directory that is not empty, or of which something is kept.
void RemoveSubdirectory(int parent, const char* name, const std::string& path, Keep kept,
                        Removal& removal, int depth) {
  struct stat info;
  if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno != ENOENT) removal.left.Note(errno);
    return;
  }
  if (!S_ISDIR(info.st_mode) || info.st_dev != removal.device) return removal.left.Note(EBUSY);
  UniqueFd child;
  int error = 0;
  if (depth < kMaxDepth) {
    child = OpenSubdirectory(parent, name, info.st_mode);
    error = child.valid() ? 0 : errno;
  }
  const bool is_short = IsShortage(error);
  if (kept == Keep::kNothing && (depth >= kMaxDepth || (is_short && depth > 0))) {
    // Its ".." changes, for which its owner needs to be able to write it.
    if ((info.st_mode & S_IRWXU) != S_IRWXU) OpenSubdirectory(parent, name, info.st_mode);
    if (renameat(parent, name, removal.top_fd, UnusedName().c_str()) == 0) {
      ++removal.moved;
    } else {
      removal.left.Note(is_short ? error : errno);
    }
    return;
  }
  if (is_short && kept == Keep::kNothing) {
    removal.later.push_back(name);
    return;
  }
  if (!child.valid()) return removal.left.Note(error);
  RemoveEntries(std::move(child), path, removal, depth + 1,
                kept == Keep::kNothing ? Afterwards::kNothing : Afterwards::kResetAttributes);
  if (kept != Keep::kNothing) return;
  if (const int gone = Unlink(parent, name, AT_REMOVEDIR); gone != 0 && gone != ENOENT) {
    removal.left.Note(gone);
  }
}

void RemoveEntries(UniqueFd directory, const std::string& path, Removal& removal, int depth,
                   Afterwards afterwards) {
  DIR* stream = fdopendir(directory.get());
  if (stream == nullptr) return removal.left.Note(errno);
  directory.release();
  const int fd = dirfd(stream);
  const bool keeps = !removal.keep.empty();
  while (const dirent* entry = readdir(stream)) {
    if (IsDotOrDotDot(entry->d_name)) continue;
    const std::string entry_path = keeps ? path + "/" + entry->d_name : std::string();
    const Keep kept = keeps ? KeepOf(entry_path, removal.keep) : Keep::kNothing;
    if (kept == Keep::kAll) continue;
    if (kept == Keep::kNothing) {
      if (entry->d_type != DT_DIR && Unlink(fd, entry->d_name, 0) == 0) continue;
      if (Unlink(fd, entry->d_name, AT_REMOVEDIR) == 0) continue;
    }
    RemoveSubdirectory(fd, entry->d_name, entry_path, kept, removal, depth);
  }
  if (afterwards == Afterwards::kResetAttributes && !ResetAttributes(fd)) removal.left.Note(0);
  closedir(stream);
}

Left RemoveContentsOf(int top, dev_t device, const std::string& path,
                      const std::vector<std::string>& keep) {
  for (;;) {
    Removal removal{top, device, keep, 0, {}, {}};
    UniqueFd listing(openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!listing.valid()) {
      removal.left.Note(errno);
      return removal.left;
    }
    RemoveEntries(std::move(listing), path, removal, 0, Afterwards::kNothing);
    // With one descriptor less in use than before.
    for (const std::string& name : std::exchange(removal.later, {})) {
      RemoveSubdirectory(top, name.c_str(), path + "/" + name, Keep::kNothing, removal, 0);
    }
    if (!removal.later.empty()) removal.left.Note(EMFILE);
    // Where directories were moved, only the last round knows what is left.
    if (removal.moved == 0) return removal.left;
  }
}

bool Empty(const std::string& path, const struct stat& info, const std::vector<std::string>& keep,
           Afterwards afterwards) {
  if (!S_ISDIR(info.st_mode)) return false;
  const UniqueFd top = OpenSubdirectory(AT_FDCWD, path.c_str(), info.st_mode);
  return top.valid() && !RemoveContentsOf(top.get(), info.st_dev, path, keep).something &&
         (afterwards == Afterwards::kNothing || ResetAttributes(top.get()));
}

// Directories that could not be removed.
struct Remembered {
  std::string path;
  dev_t device;
  ino_t inode;
  bool for_shortage;
};

// One for the whole process, as the limit is; never destroyed, threads may outlive static objects.
struct Removals {
  std::mutex mutex;  // guards what follows
  // The top of what is removed, its listing and one for a look at what is in it.
  static constexpr size_t kReserve = 3;
  UniqueFd reserve[kReserve];
  std::vector<Remembered> remembered;
  std::atomic<size_t> count{0};  // of those, for a look without the lock

  void FillReserve() {
    for (UniqueFd& fd : reserve) {
      if (!fd.valid()) fd.reset(open("/", O_PATH | O_CLOEXEC));
    }
  }
  void FreeReserve() {
    for (UniqueFd& fd : reserve) fd.reset();
  }
  void Remember(Remembered one) {
    remembered.push_back(std::move(one));
    count = remembered.size();
  }
};

Removals& TheRemovals() {
  static auto* removals = new Removals();
  return *removals;
}

Left RemoveOpen(int directory, dev_t device, const std::string& path) {
  Left left = RemoveContentsOf(directory, device, path, {});
  if (rmdir(path.c_str()) == 0 || errno == ENOENT) return Left();
  left.Note(errno);
  return left;
}

// With what is kept for this.
Left RemoveWithReserve(UniqueFd directory, const Remembered& one, Removals& removals) {
  removals.FreeReserve();
  Left left;
  if (!directory.valid()) {
    directory.reset(open(one.path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  struct stat info;
  if (!directory.valid()) {
    if (errno != ENOENT) left.Note(errno);
  } else if (fstat(directory.get(), &info) != 0) {
    left.Note(errno);
  } else if (info.st_dev == one.device && info.st_ino == one.inode) {
    left = RemoveOpen(directory.get(), info.st_dev, one.path);
  }
  directory.reset();
  removals.FillReserve();
  return left;
}

}  // namespace

bool RemoveContents(const std::string& path, const std::vector<std::string>& keep) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return errno == ENOENT;
  return Empty(path, info, keep, Afterwards::kNothing);
}

bool EmptyPrivateDirectory(const std::string& path, const std::vector<std::string>& keep) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 && Empty(path, info, keep, Afterwards::kResetAttributes);
}

void RemoveTree(UniqueFd directory, const std::string& path) {
  struct stat info;
  if (fstat(directory.get(), &info) != 0) {
    // It could not even be opened: it was just made, and nothing is in it.
    if (rmdir(path.c_str()) == 0 || lstat(path.c_str(), &info) != 0) return;
  }
  const bool is_open = directory.valid();
  Left left;
  if (is_open) left = RemoveOpen(directory.get(), info.st_dev, path);
  if (is_open && !left.something) return;
  Removals& removals = TheRemovals();
  Remembered one{path, info.st_dev, info.st_ino, true};
  const std::lock_guard lock(removals.mutex);
  left = RemoveWithReserve(std::move(directory), one, removals);
  one.for_shortage = left.for_shortage;
  if (left.something) removals.Remember(std::move(one));
}

void KeepDescriptorsForRemoval() {
  Removals& removals = TheRemovals();
  const std::lock_guard lock(removals.mutex);
  removals.FillReserve();
}

void RetryRemovals(Retry which) {
  Removals& removals = TheRemovals();
  if (removals.count == 0) return;
  const std::lock_guard lock(removals.mutex);
  std::vector<Remembered> tried = std::exchange(removals.remembered, {});
  removals.count = 0;
  bool is_short = false;
  for (Remembered& one : tried) {
    // Where there is nothing for one, there is nothing for the others.
    if (is_short || (which == Retry::kShortages && !one.for_shortage)) {
      removals.Remember(std::move(one));
      continue;
    }
    const Left left = RemoveWithReserve(UniqueFd(), one, removals);
    is_short = left.for_shortage;
    one.for_shortage = left.for_shortage;
    if (left.something) removals.Remember(std::move(one));
  }
}

}  // namespace sandbox_run
