#include "core/slot.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <thread>

#include "core/confinement_spec.h"
#include "core/slot_paths.h"
#include "sys/files.h"
#include "sys/open_beneath.h"
#include "sys/removal.h"

namespace sandbox_run {
namespace {

constexpr std::chrono::milliseconds kCacheLook{5};

}  // namespace

Slot::~Slot() {
  LetGoOfShared();
  // These descriptors keep the mounts on the directories.
  mount_namespace_.fd.reset();
  view_root_.reset();
  // By descriptor: a name may lead elsewhere by now.
  if (!directory_.empty()) RemoveTree(std::move(directory_lock_), directory_);
  if (!memory_directory_.empty()) RemoveTree(std::move(memory_directory_lock_), memory_directory_);
}

std::string Slot::HostPath(const std::string& path) const {
  if (session_ != nullptr && IsBeneathOrSame(path, kTemporaryDirectory))
    return session_->tmp() + path.substr(strlen(kTemporaryDirectory));
  if (path.starts_with(kSlotPrefix)) return directory_ + "/" + path.substr(strlen(kSlotPrefix));
  if (path.starts_with(kMemoryPrefix)) {
    const std::string& memory = session_ != nullptr ? session_->memory() : memory_directory_;
    return memory + path.substr(strlen(kMemoryPrefix));
  }
  if (path.starts_with(kCachePrefix)) return cache_directory_ + path.substr(strlen(kCachePrefix));
  return path;
}

std::vector<std::string> Slot::PrivateDirectories() const {
  std::vector<std::string> directories = {directory_};
  if (!memory_directory_.empty()) directories.push_back(memory_directory_);
  return directories;
}

Effects Slot::TakeEffects(const ConfinementSpec& spec) {
  Effects effects;
  effects.copies = copies_.TakeChanges(directory_lock_.get());
  effects.changed_directories = TakeChangedDirectories();
  effects.made = TakeMade(spec);
  return effects;
}

std::vector<std::string> Slot::TakeMade(const ConfinementSpec& spec) {
  constexpr size_t kMostTold = 16;
  constexpr int kMostLookedAt = 4'096;
  std::vector<std::string> made;
  int looked_at = 0;
  std::set<std::string> found;
  for (const std::string& directory : spec.told_directories) {
    const std::string place = HostPath(directory);
    // An outer directory comes before those in it; if it is missing, so are they.
    const size_t name_end = directory.find('/', directory.find('/') + 1);
    if (!found.empty() && name_end != std::string::npos &&
        found.count(directory.substr(0, name_end)) == 0) {
      continue;
    }
    // A command may have put a link there.
    UniqueFd fd(OpenBeneath(directory_lock_.get(), directory.c_str() + strlen(kSlotPrefix),
                            O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC, 0));
    DIR* stream = fd.valid() ? fdopendir(fd.get()) : nullptr;
    if (stream == nullptr) continue;
    fd.release();
    while (const dirent* entry = readdir(stream)) {
      if (made.size() >= kMostTold || ++looked_at > kMostLookedAt) break;
      const std::string named = directory + "/" + entry->d_name;
      found.insert(named);
      if (entry->d_name[0] == '.') continue;
      const std::string path = place + "/" + entry->d_name;
      const auto leads_to = [&path](const std::string& known) {
        return IsBeneathOrSame(known, path);
      };
      const auto is_put = [this, &leads_to](const auto& seed) {
        return leads_to(HostPath(seed.path));
      };
      const bool is_ours = std::any_of(mount_points_.begin(), mount_points_.end(), leads_to) ||
                           std::any_of(spec.seed_links.begin(), spec.seed_links.end(), is_put) ||
                           std::any_of(spec.seed_files.begin(), spec.seed_files.end(), is_put);
      if (!is_ours && told_.insert(named).second) made.push_back(named);
    }
    closedir(stream);
  }
  return made;
}

Status Slot::LockCache(std::chrono::milliseconds wait) {
  if (!cache_lock_.valid()) return Status();
  const auto until = std::chrono::steady_clock::now() + wait;
  // A thread that sleeps in flock() could not be told that it is waited for in vain.
  while (flock(cache_lock_.get(), LOCK_SH | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() >= until) {
      return Failure{"cache.lock", errno, cache_lock_path_};
    }
    std::this_thread::sleep_for(kCacheLook);
  }
  return Status();
}

void Slot::LetGoOfShared() {
  if (session_ != nullptr) session_when_idle_ = session_;
  session_.reset();
  // By its own call: a process that is being started may hold a copy of the descriptor.
  if (cache_lock_.valid()) flock(cache_lock_.get(), LOCK_UN);
}

void Slot::Watch(const std::string& path, bool exists, const struct stat& info, Look look) {
  // Most paths have both a mount and a rule.
  for (Identity& known : identities_) {
    if (known.path != path) continue;
    known.look = std::max(known.look, look);
    return;
  }
  identities_.push_back({path, info.st_dev, info.st_ino, exists, look});
}

void Slot::GroupByDirectory() {
  std::map<std::string, Neighbours> by_place;
  std::erase_if(identities_, [&by_place](const Identity& known) {
    const bool is_grouped =
        known.exists ? known.look == Look::kWithDirectory : known.look != Look::kOften;
    if (is_grouped) by_place[known.path.substr(0, known.path.rfind('/'))].names.push_back(known);
    return is_grouped;
  });
  for (auto& [place, neighbours] : by_place) {
    neighbours.place = place;
    // A directory that had settled when this slot began has not changed since.
    struct stat info;
    if (lstat(place.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
      neighbours.stamp = StampOf(info);
      neighbours.looked_ns = began_ns_;
    }
    neighbours_.push_back(std::move(neighbours));
  }
}

// Nothing came, went or was replaced where the directory is the one that it was, with the time of
// change that it had.
bool Slot::AreSame(Neighbours& neighbours) {
  struct stat info = {};
  const int64_t now = FileClockNow();
  if (lstat(neighbours.place.c_str(), &info) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return false;
    neighbours.stamp = FileStamp();
    return std::none_of(neighbours.names.begin(), neighbours.names.end(),
                        [](const Identity& known) { return known.exists; });
  }
  const FileStamp stamp = StampOf(info);
  // A link has no part in what changes where it leads.
  if (S_ISDIR(info.st_mode) && stamp == neighbours.stamp &&
      IsSettled(stamp.changed_ns, neighbours.looked_ns, kCoarsestTickNs)) {
    return true;
  }
  if (!std::all_of(neighbours.names.begin(), neighbours.names.end(), IsSame)) return false;
  neighbours.stamp = stamp;
  neighbours.looked_ns = now;
  return true;
}

bool Slot::IsSame(const Identity& known) {
  // Sound because the ruleset and the mounts pin the inodes: a number cannot have been reused.
  const Result<Found> now = LookFor(known.path, "look");
  return now.ok() && now.value().exists == known.exists &&
         (!known.exists ||
          (now.value().info.st_dev == known.device && now.value().info.st_ino == known.inode));
}

void Slot::Hold(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) == 0) {
    held_directories_.push_back({path, info.st_dev, info.st_ino, true});
  }
}

bool Slot::HasMoved() const {
  // Mounts and locks pin the directories, so that their numbers cannot have been reused.
  for (const Identity& known : held_directories_) {
    struct stat info;
    if (lstat(known.path.c_str(), &info) != 0 || info.st_dev != known.device ||
        info.st_ino != known.inode) {
      return true;
    }
  }
  return false;
}

bool Slot::IsCurrent() {
  constexpr std::chrono::seconds kFullCheckInterval{1};
  const auto now = std::chrono::steady_clock::now();
  const bool full = now - checked_ >= kFullCheckInterval;
  if (full) checked_ = now;
  return std::all_of(neighbours_.begin(), neighbours_.end(), AreSame) &&
         std::all_of(copied_directories_.begin(), copied_directories_.end(), IsSourceSame) &&
         std::all_of(identities_.begin(), identities_.end(), [full](const Identity& known) {
           return (!full && known.look == Look::kOften) || IsSame(known);
         });
}

}  // namespace sandbox_run
