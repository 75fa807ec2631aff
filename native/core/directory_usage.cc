#include "core/directory_usage.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"

namespace sandbox_run {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kOpenFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
constexpr size_t kMaxOpen = 32;
// What a command can make this process remember.
constexpr size_t kMaxLaterBytes = 1024 * 1024;
// Between two looks at the clock.
constexpr int kBatch = 32;

// Opens `path` ("/a/b") beneath `root` one name at a time: no link is followed at any of them, and
// no path is too long.
UniqueFd OpenBeneath(const std::string& root, const std::string& path) {
  UniqueFd fd(open(root.c_str(), kOpenFlags));
  for (size_t at = 0; fd.valid() && at < path.size();) {
    const size_t end = std::min(path.find('/', at + 1), path.size());
    const std::string name = path.substr(at + 1, end - at - 1);
    fd.reset(openat(fd.get(), name.c_str(), kOpenFlags));
    at = end;
  }
  return fd;
}

}  // namespace

DirectoryUsage::DirectoryUsage(std::vector<std::string> directories)
    : directories_(std::move(directories)) {}

DirectoryUsage::~DirectoryUsage() = default;

uint64_t DirectoryUsage::bytes() const { return std::max(sum_.all, last_.all); }
uint64_t DirectoryUsage::memory_bytes() const { return std::max(sum_.memory, last_.memory); }

void DirectoryUsage::Begin() {
  next_ = 0;
  later_.clear();
  later_bytes_ = 0;
  sum_ = {};
  complete_ = false;
}

bool DirectoryUsage::NextRoot() {
  while (next_ < directories_.size()) {
    root_ = directories_[next_++];
    UniqueFd fd(open(root_.c_str(), kOpenFlags));
    struct stat info;
    struct statfs system;
    if (!fd.valid() || fstat(fd.get(), &info) != 0) continue;
    device_ = info.st_dev;
    in_memory_ = fstatfs(fd.get(), &system) == 0 && system.f_type == TMPFS_MAGIC;
    DIR* stream = fdopendir(fd.get());
    if (stream == nullptr) continue;
    fd.release();
    open_.push_back({std::unique_ptr<DIR, CloseStream>(stream), ""});
    return true;
  }
  return false;
}

bool DirectoryUsage::OpenDeferred() {
  while (!later_.empty()) {
    const std::string path = std::move(later_.front());
    later_.pop_front();
    later_bytes_ -= path.size();
    UniqueFd fd = OpenBeneath(root_, path);
    struct stat info;
    // Another directory may have been put there meanwhile.
    if (!fd.valid() || fstat(fd.get(), &info) != 0 || info.st_dev != device_) continue;
    DIR* stream = fdopendir(fd.get());
    if (stream == nullptr) continue;
    fd.release();
    open_.push_back({std::unique_ptr<DIR, CloseStream>(stream), path});
    return true;
  }
  return false;
}

void DirectoryUsage::Count(uint64_t bytes) {
  sum_.all += bytes;
  if (in_memory_) sum_.memory += bytes;
}

void DirectoryUsage::Enter(int parent, const char* name, const std::string& path) {
  std::string inner = path + "/" + name;
  if (open_.size() >= kMaxOpen) {
    if (later_bytes_ + inner.size() > kMaxLaterBytes) {
      unmeasurable_ = true;
      return;
    }
    later_bytes_ += inner.size();
    later_.push_back(std::move(inner));
    return;
  }
  // One that its owner shut stays shut: opening it by force would change what the command sees.
  UniqueFd fd(openat(parent, name, kOpenFlags));
  if (!fd.valid()) {
    has_shut_ = has_shut_ || errno == EACCES;
    return;
  }
  DIR* stream = fdopendir(fd.get());
  if (stream == nullptr) return;
  fd.release();
  open_.push_back({std::unique_ptr<DIR, CloseStream>(stream), std::move(inner)});
}

void DirectoryUsage::Advance(std::chrono::microseconds budget) {
  const auto until = Clock::now() + budget;
  if (complete_) Begin();
  for (int step = 1;; ++step) {
    if (step % kBatch == 0 && Clock::now() >= until) return;
    if (open_.empty() && !OpenDeferred() && !NextRoot()) {
      last_ = sum_;
      complete_ = true;
      return;
    }
    const Level& level = open_.back();
    const dirent* entry = readdir(level.stream.get());
    if (entry == nullptr) {
      open_.pop_back();
      continue;
    }
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    const int parent = dirfd(level.stream.get());
    struct stat info;
    if (fstatat(parent, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (info.st_dev != device_) continue;
    uint64_t size = static_cast<uint64_t>(info.st_blocks) * 512;
    // Each of its names counts for a part of it.
    if (!S_ISDIR(info.st_mode) && info.st_nlink > 1) size /= info.st_nlink;
    Count(size + kEntryBytes);
    if (S_ISDIR(info.st_mode)) Enter(parent, entry->d_name, std::string(level.path));
  }
}

}  // namespace sandbox_run
