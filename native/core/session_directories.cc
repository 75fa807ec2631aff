#include "core/session_directories.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "sys/files.h"
#include "sys/removal.h"

namespace sandbox_run {

Result<std::shared_ptr<SessionDirectories>> SessionDirectories::Make(
    const std::string& temporary_parent, const std::string& memory_parent) {
  std::shared_ptr<SessionDirectories> made(new SessionDirectories());
  Result<UniqueFd> lock =
      MakeLockedDirectory(temporary_parent, kPrivateDirectoryPrefix, made->directory_);
  if (!lock.ok()) return lock.failure();
  made->lock_ = std::move(lock.value());
  // tmp_ lies one level deeper, so that a command without a view, which can write in it, cannot
  // rename it.
  made->tmp_ = made->directory_ + "/tmp";
  if (mkdir(made->tmp_.c_str(), 0700) != 0 || chmod(made->tmp_.c_str(), 0700) != 0)
    return Failure{"private_directory", errno, made->tmp_};
  std::vector<std::string> measured = {made->tmp_};
  if (!memory_parent.empty()) {
    Result<UniqueFd> memory_lock =
        MakeLockedDirectory(memory_parent, kPrivateDirectoryPrefix, made->memory_);
    if (!memory_lock.ok()) return memory_lock.failure();
    made->memory_lock_ = std::move(memory_lock.value());
    measured.push_back(made->memory_);
  }
  made->usage_ = std::make_unique<DirectoryUsage>(std::move(measured));
  return made;
}

SessionDirectories::~SessionDirectories() {
  // Removed by descriptor: the name may lead elsewhere by now.
  if (lock_.valid()) RemoveTree(std::move(lock_), directory_);
  if (memory_lock_.valid()) RemoveTree(std::move(memory_lock_), memory_);
}

SessionDirectories::Usage SessionDirectories::Measure(std::chrono::microseconds budget) {
  const std::lock_guard lock(mutex_);
  usage_->Advance(budget);
  return {usage_->bytes(), usage_->memory_bytes(), usage_->unmeasurable()};
}

}  // namespace sandbox_run
