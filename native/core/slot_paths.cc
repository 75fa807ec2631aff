#include "core/slot_paths.h"

#include <sys/stat.h>

#include <cerrno>

namespace sandbox_run {

Result<Found> LookFor(const std::string& path, const char* stage) {
  Found found;
  found.exists = lstat(path.c_str(), &found.info) == 0;
  if (!found.exists && errno != ENOENT && errno != ENOTDIR) return Failure{stage, errno, path};
  return found;
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
