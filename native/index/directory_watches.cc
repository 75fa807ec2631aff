#include "index/directory_watches.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace sandbox_run {
namespace {

// Watches of one tree: a quarter of the user's limit, between these bounds.
constexpr size_t kMaxWatches = 8192, kMostWatches = 65'536, kShareOfWatches = 4;
// inotify instances of this process. A user has 128 by default (fs.inotify.max_user_instances), and
// editors need some; a tree without one looks at every directory.
constexpr int kMaxInstances = 32;
constexpr uint32_t kMask = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR;

std::atomic<int> instances = 0;

size_t MaxWatches() {
  static const size_t most = [] {
    const UniqueFd file(open("/proc/sys/fs/inotify/max_user_watches", O_RDONLY | O_CLOEXEC));
    char digits[32] = {};
    const bool is_read = file.valid() && read(file.get(), digits, sizeof(digits) - 1) > 0;
    const size_t share = is_read ? strtoull(digits, nullptr, 10) / kShareOfWatches : 0;
    return std::clamp(share, kMaxWatches, kMostWatches);
  }();
  return most;
}

}  // namespace

bool DirectoryWatches::IsFull() const { return failed_ || owners_.size() >= MaxWatches(); }

void DirectoryWatches::Open() {
  if (failed_ || inotify_.valid()) return;
  if (instances.fetch_add(1) < kMaxInstances) {
    inotify_.reset(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  }
  failed_ = !inotify_.valid();
  if (failed_) --instances;
  // poll(2) on it says whether anything was mounted or unmounted since it was opened or asked.
  if (!failed_) mounts_.reset(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
}

void DirectoryWatches::Close() {
  owners_.clear();
  mounts_.reset();
  if (!inotify_.valid()) return;
  inotify_.reset();
  --instances;
}

int DirectoryWatches::Add(int directory, void* owner) {
  if (IsFull()) return -1;
  Open();
  const std::string path = "/proc/self/fd/" + std::to_string(directory);
  const int watch = inotify_.valid() ? inotify_add_watch(inotify_.get(), path.c_str(), kMask) : -1;
  if (watch < 0) {
    failed_ = true;
    return -1;
  }
  const auto [known, is_new] = owners_.emplace(watch, owner);
  if (is_new || known->second == owner) return watch;
  known->second = nullptr;
  return -1;
}

bool DirectoryWatches::Covers(int watch, const void* owner) const {
  const auto known = owners_.find(watch);
  return known != owners_.end() && known->second == owner;
}

void DirectoryWatches::Remove(int watch, const void* owner) {
  const auto known = owners_.find(watch);
  if (known == owners_.end() || known->second != owner) return;
  inotify_rm_watch(inotify_.get(), watch);
  owners_.erase(known);
}

bool DirectoryWatches::Take(const std::function<void(void* owner)>& touched) {
  if (!inotify_.valid()) return true;
  pollfd mounts = {mounts_.get(), POLLPRI, 0};
  const bool has_mounted = SeesMounts() && poll(&mounts, 1, 0) != 0;
  alignas(inotify_event) char buffer[16 * 1024];
  for (;;) {
    const ssize_t count = read(inotify_.get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN && !has_mounted;
    if (count == 0) return false;
    for (ssize_t at = 0; at < count;) {
      inotify_event event;
      memcpy(&event, buffer + at, sizeof(event));
      at += static_cast<ssize_t>(sizeof(event) + event.len);
      if ((event.mask & IN_Q_OVERFLOW) != 0) return false;
      const auto known = owners_.find(event.wd);
      if (known == owners_.end()) continue;
      if (known->second != nullptr) touched(known->second);
      // The directory is gone, or its file system.
      if ((event.mask & IN_IGNORED) != 0) owners_.erase(known);
    }
  }
}

}  // namespace sandbox_run
