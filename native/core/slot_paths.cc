#include "core/slot_paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <utility>

#include "base/unique_fd.h"
#include "sys/file_stamp.h"

namespace sandbox_run {

Result<Found> LookFor(const std::string& path, const char* stage) {
  Found found;
  found.exists = lstat(path.c_str(), &found.info) == 0;
  if (!found.exists && errno != ENOENT && errno != ENOTDIR) return Failure{stage, errno, path};
  return found;
}

namespace {

// A file system that ignores case, or has short names (GIT~1), finds others than those it lists.
bool IsPlain(const std::string& name) {
  return name.back() != '.' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

std::string InLowerCase(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace

Result<Found> ManyLooks::For(const std::string& path, const char* stage) {
  constexpr int kFew = 4;
  const size_t end = path.rfind('/');
  const std::string name = path.substr(end + 1);
  const std::string directory = path.substr(0, end);
  if (end == 0 || name.empty() || !IsPlain(name) || ++asked_[directory] <= kFew)
    return LookFor(path, stage);
  const auto known = names_.find(directory);
  const Names& names =
      known != names_.end() ? known->second : names_[directory] = NamesIn(directory);
  if (names && names->count(InLowerCase(name)) == 0) return Found();
  return LookFor(path, stage);
}

ManyLooks::Names ManyLooks::NamesIn(const std::string& directory) {
  // A larger directory takes longer to read than the names take to look at.
  constexpr size_t kMost = 1000;
  const int64_t began = FileClockNow();
  UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat before, after;
  struct statfs system;
  if (!fd.valid() || fstat(fd.get(), &before) != 0 || fstatfs(fd.get(), &system) != 0)
    return std::nullopt;
  // What is mounted there on demand need not be listed before.
  if (system.f_type == AUTOFS_SUPER_MAGIC) return std::nullopt;
  DIR* const stream = fdopendir(fd.get());
  if (stream == nullptr) return std::nullopt;
  fd.release();
  std::set<std::string> names;
  bool tells = true;
  errno = 0;
  while (const dirent* entry = readdir(stream)) {
    const std::string name = entry->d_name;
    // How other letters are folded only the file system knows.
    tells = tells && names.size() < kMost &&
            std::all_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x80; });
    if (!tells) break;
    names.insert(InLowerCase(name));
  }
  // Fails where names can be listed and not looked at.
  // A name that is given to another file meanwhile may be left out, although it was there all the
  // time.
  tells = tells && errno == 0 && fstatat(dirfd(stream), ".", &after, 0) == 0 &&
          StampOf(before) == StampOf(after) &&
          IsSettled(StampOf(before).changed_ns, began, kCoarsestTickNs);
  closedir(stream);
  return tells ? Names(std::move(names)) : std::nullopt;
}

bool IsBeneathOrSame(const std::string& path, const std::string& ancestor) {
  return path == ancestor || (path.starts_with(ancestor) && path[ancestor.size()] == '/');
}

bool BelongsToSlot(const std::string& path) {
  return path.starts_with(kSlotPrefix) || path.starts_with(kMemoryPrefix) ||
         path.starts_with(kCachePrefix);
}

bool IsSharedBySession(const Slot& slot, const std::string& path) {
  return slot.session() != nullptr && (path == kTemporaryDirectory || path == kMemoryPrefix);
}

Status EnsureDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return Status();
  struct stat info;
  if (errno == EEXIST && lstat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return Status();
    errno = ENOTDIR;
  }
  return Failure{"private_file", errno, path};
}

Status MakeDirectoriesTo(const std::string& path, size_t from) {
  for (size_t end = path.find('/', from); end != std::string::npos; end = path.find('/', end + 1)) {
    if (Status made = EnsureDirectory(path.substr(0, end)); !made.ok()) return made;
  }
  return Status();
}

}  // namespace sandbox_run
