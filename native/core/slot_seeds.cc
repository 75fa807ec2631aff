#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "core/confinement.h"
#include "core/slot_paths.h"
#include "sys/files.h"
#include "sys/removal.h"

namespace sandbox_run {
namespace {

bool IsLinkTo(const std::string& path, const std::string& content) {
  std::string found(content.size() + 1, '\0');
  const ssize_t length = readlink(path.c_str(), found.data(), found.size());
  return length == static_cast<ssize_t>(content.size()) &&
         found.compare(0, content.size(), content) == 0;
}

// True for the file that was seeded, with just that content.
bool IsIntact(const std::string& path, const std::string& content, const FileStamp& seeded) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info;
  if (!fd.valid() || fstat(fd.get(), &info) != 0 || StampOf(info) != seeded ||
      !IsUnmarked(fd.get(), info) || info.st_size != static_cast<off_t>(content.size())) {
    return false;
  }
  // Whatever the stamp says: the clock may not have gone on, and of a mapping it need not tell.
  std::string found(content.size(), '\0');
  return read(fd.get(), found.data(), found.size()) == static_cast<ssize_t>(found.size()) &&
         found == content;
}

// True for a directory as EmptyPrivateDirectory() leaves it that contains only these paths and the
// directories above them.
bool IsPlain(const std::string& path, const std::map<std::string, std::string>& links,
             const std::vector<std::string>& seeds, const std::vector<std::string>& mount_points) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info;
  if (!fd.valid() || fstat(fd.get(), &info) != 0 || (info.st_mode & 07777) != 0700 ||
      !WasContentChangedLast(info) || !HasOnlyLabels(fd.get())) {
    return false;
  }
  DIR* stream = fdopendir(fd.get());
  if (stream == nullptr) return false;
  fd.release();
  bool plain = true;
  while (const dirent* entry = readdir(stream)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string inner = path + "/" + name;
    const auto leads_to = [&inner](const std::string& known) {
      return IsBeneathOrSame(known, inner);
    };
    plain = plain && (std::any_of(links.begin(), links.end(),
                                  [&leads_to](const auto& link) { return leads_to(link.first); }) ||
                      std::any_of(mount_points.begin(), mount_points.end(), leads_to) ||
                      std::find(seeds.begin(), seeds.end(), inner) != seeds.end());
  }
  closedir(stream);
  return plain;
}

}  // namespace

Slot::Way& Slot::WayTo(const std::string& path) {
  // `top` ends with the second name beneath the slot; the first is one of the slot's directories.
  const size_t begin = path.find('/', directory_.size() + 1) + 1;
  const std::string top = path.substr(0, path.find('/', begin));
  auto way = std::find_if(ways_.begin(), ways_.end(),
                          [&top](const Way& known) { return known.top == top; });
  if (way == ways_.end()) {
    way = ways_.insert(way, Way());
    way->top = top;
  }
  // What a command leaves in them would stay with the way.
  for (size_t at = top.size(); at < path.size(); at = path.find('/', at + 1)) {
    way->directories[path.substr(0, at)] = {};
  }
  return *way;
}

bool Slot::IsDeep(const std::string& path) const {
  if (!IsBeneathOrSame(path, directory_)) return false;
  const size_t begin = path.find('/', directory_.size() + 1);
  return begin != std::string::npos && path.find('/', begin + 1) != std::string::npos;
}

Status Slot::MakeWays() {
  for (Way& way : ways_) {
    if (way.intact) continue;
    // Outer ones come first.
    for (auto& [path, stamp] : way.directories) {
      if (Status made = EnsureDirectory(path); !made.ok()) return made;
    }
    for (const auto& [path, content] : way.links) {
      if (symlink(content.c_str(), path.c_str()) != 0) return Failure{"private_file", errno, path};
    }
  }
  return Status();
}

Status Slot::NoteWays() {
  for (Way& way : ways_) {
    if (way.intact) continue;
    way.looked_ns = FileClockNow();
    for (auto& [path, stamp] : way.directories) {
      struct stat info;
      if (lstat(path.c_str(), &info) != 0) return Failure{"private_file", errno, path};
      stamp = StampOf(info);
    }
    way.intact = true;
  }
  return Status();
}

bool Slot::IsUntouched(Way& way) {
  const int64_t now = FileClockNow();
  bool settled = !way.directories.empty();
  for (const auto& [path, stamp] : way.directories) {
    struct stat info;
    if (lstat(path.c_str(), &info) != 0 || StampOf(info) != stamp) return false;
    settled = settled && IsSettled(stamp.changed_ns, way.looked_ns, kCoarsestTickNs);
  }
  if (settled) return true;
  // The time does not tell: what is there does.
  const bool same = std::all_of(way.links.begin(), way.links.end(),
                                [](const auto& link) { return IsLinkTo(link.first, link.second); });
  if (!same) return false;
  for (const auto& [path, stamp] : way.directories) {
    if (!IsPlain(path, way.links, way.seeds, way.mount_points)) return false;
  }
  way.looked_ns = now;
  return true;
}

Status Confinement::Seed(Slot& slot) const {
  if (Status made = slot.MakeWays(); !made.ok()) return made;
  slot.seeds_.resize(spec_.seed_files.size());
  for (size_t i = 0; i < spec_.seed_files.size(); ++i) {
    const SeedFileSpec& seed = spec_.seed_files[i];
    const std::string path = slot.HostPath(seed.path);
    struct stat info;
    // No command ran since it was found intact.
    if (lstat(path.c_str(), &info) == 0 && StampOf(info) == slot.seeds_[i]) continue;
    if (Status made = MakeDirectoriesTo(path, slot.directory_.size() + 1); !made.ok()) return made;
    UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd.valid()) return Failure{"private_file", errno, path};
    if (write(fd.get(), seed.content.data(), seed.content.size()) !=
        static_cast<ssize_t>(seed.content.size())) {
      return Failure{"private_file", errno, path};
    }
    // A file server sets the time when it gets what was written.
    fd.reset();
    if (lstat(path.c_str(), &info) != 0) return Failure{"private_file", errno, path};
    slot.seeds_[i] = StampOf(info);
  }
  if (Status noted = slot.NoteWays(); !noted.ok()) return noted;
  return slot.copies_.Seed(slot.directory_lock_.get());
}

void Confinement::Clean(Slot& slot) const {
  std::vector<std::string> keep = slot.mount_points_;
  slot.told_.clear();
  for (Slot::Way& way : slot.ways_) way.intact = true;
  for (size_t i = 0; i < slot.seeds_.size(); ++i) {
    // Making a file costs more than starting a command: one that is as it was stays.
    const SeedFileSpec& seed = spec_.seed_files[i];
    const std::string path = slot.HostPath(seed.path);
    const bool intact = IsIntact(path, seed.content, slot.seeds_[i]);
    if (!intact) slot.seeds_[i] = {};
    const auto way =
        std::find_if(slot.ways_.begin(), slot.ways_.end(),
                     [&path](const Slot::Way& one) { return IsBeneathOrSame(path, one.top); });
    if (way == slot.ways_.end()) {
      if (intact) keep.push_back(path);
      continue;
    }
    // A seed inside a way is kept or removed with that way.
    way->intact = way->intact && intact;
    if (std::find(way->seeds.begin(), way->seeds.end(), path) == way->seeds.end()) {
      way->seeds.push_back(path);
    }
  }
  for (Slot::Way& way : slot.ways_) {
    way.intact = way.intact && Slot::IsUntouched(way);
    if (way.intact) keep.push_back(way.top);
  }
  // What is beneath a mounted layer must not be cleared, so the next command gets a new slot.
  if (!std::all_of(slot.copied_directories_.begin(), slot.copied_directories_.end(),
                   [](const auto& copied) { return Slot::IsUntouched(copied); })) {
    slot.clean_ = false;
  }
  std::vector<std::string> untouched;
  slot.copies_.AddUntouched(untouched);
  for (const std::string& relative : untouched) keep.push_back(slot.directory_ + "/" + relative);
  const auto clean = [&keep, &slot](const std::string& path) {
    // A command shall not find a note of the one before.
    if (!EmptyPrivateDirectory(path, keep)) slot.clean_ = false;
  };
  for (const std::string& name : spec_.slot_directories)
    if (!IsSharedBySession(slot, name)) clean(slot.HostPath(name));
  if (!slot.memory_directory_.empty()) clean(slot.memory_directory_);
  slot.LetGoOfShared();
}

}  // namespace sandbox_run
