#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <string_view>

#include "core/confinement_spec.h"
#include "core/slot.h"
#include "core/slot_paths.h"

namespace sandbox_run {
namespace {

// Two ticks of the slowest clock there is.
constexpr int64_t kTick = 20'000'000;

// Hooks lie in one or two directories.
constexpr size_t kMostNoted = 256;

// Notes a directory, those in it and, if wanted, its files. False: it cannot be read, or there is
// too much.
bool NoteDirectory(const std::string& path, bool with_files,
                   std::map<std::string, FileStamp>& noted) {
  struct stat info;
  if (noted.size() >= kMostNoted || lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return false;
  noted[path] = StampOf(info);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (directory == nullptr) return false;
  while (const dirent* entry = readdir(directory.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string inner = path + "/" + name;
    if (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN && !with_files) continue;
    if (lstat(inner.c_str(), &info) != 0) return false;
    if (S_ISDIR(info.st_mode)) {
      if (!NoteDirectory(inner, with_files, noted)) return false;
    } else if (with_files) {
      if (noted.size() >= kMostNoted) return false;
      noted[inner] = StampOf(info);
    }
  }
  return true;
}

// What an earlier command left counts as long as nothing in the source changed since it was seen
// what that holds: the hooks that a person installs outside take its place.
bool IsNewerThan(const struct stat& kept, const std::map<std::string, FileStamp>& source) {
  return std::all_of(source.begin(), source.end(), [&kept](const auto& one) {
    return one.second.changed_ns <= Nanoseconds(kept.st_mtim);
  });
}

// Reads the writable half of a layer. Commands that still run change it meanwhile, by way of the
// layer only, so no link is followed and nothing is waited for.
class LayerReader {
 public:
  explicit LayerReader(ChangedDirectory& into) : into_(into) {}

  void Read(int parent, const char* name, const std::string& prefix) {
    UniqueFd fd(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    DIR* const opened = fd.valid() ? fdopendir(fd.get()) : nullptr;
    if (opened == nullptr) {
      into_.is_complete = false;
      return;
    }
    const int at = fd.release();
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(opened, closedir);
    while (const dirent* entry = readdir(directory.get())) {
      const std::string inner = entry->d_name;
      if (inner != "." && inner != "..") ReadEntry(at, inner, prefix + inner);
    }
  }

 private:
  void ReadEntry(int at, const std::string& name, const std::string& path) {
    struct stat info;
    if (into_.entries.size() >= kMostNoted ||
        fstatat(at, name.c_str(), &info, AT_SYMLINK_NOFOLLOW)) {
      into_.is_complete = false;
      return;
    }
    CopiedEntry entry;
    entry.path = path;
    entry.mode = info.st_mode & 0777;
    if (S_ISDIR(info.st_mode)) {
      entry.kind = CopiedEntry::Kind::kDirectory;
      into_.entries.push_back(std::move(entry));
      Read(at, name.c_str(), path + "/");
      return;
    }
    if (S_ISLNK(info.st_mode)) {
      entry.kind = CopiedEntry::Kind::kLink;
      entry.content.resize(PATH_MAX);
      const ssize_t length =
          readlinkat(at, name.c_str(), entry.content.data(), entry.content.size());
      entry.content.resize(length < 0 ? 0 : static_cast<size_t>(length));
      if (length <= 0) into_.is_complete = false;
    } else if (S_ISREG(info.st_mode)) {
      if (!ReadFile(at, name, entry.content)) into_.is_complete = false;
    } else if (S_ISCHR(info.st_mode) && info.st_rdev == 0) {
      entry.kind = CopiedEntry::Kind::kGone;
    } else {
      into_.is_complete = false;
      return;
    }
    into_.entries.push_back(std::move(entry));
  }

  bool ReadFile(int at, const std::string& name, std::string& content) {
    // Hooks are scripts of some kilobytes.
    constexpr size_t kMostBytes = 512 * 1024;
    const UniqueFd fd(
        openat(at, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!fd.valid()) return false;
    char piece[16 * 1024];
    for (;;) {
      const ssize_t count = read(fd.get(), piece, sizeof piece);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return count == 0;
      bytes_ += static_cast<size_t>(count);
      if (bytes_ > kMostBytes) return false;
      content.append(piece, static_cast<size_t>(count));
    }
  }

  ChangedDirectory& into_;
  size_t bytes_ = 0;
};

}  // namespace

Result<const Slot::CopiedDirectory*> Slot::AddCopiedDirectory(const ViewStepSpec& spec) {
  const CopiedDirectory* const none = nullptr;
  CopiedDirectory copied;
  copied.source = spec.source;
  copied.looked_ns = FileClockNow();
  const Result<Found> found = LookFor(spec.source, "view.open");
  if (!found.ok()) return found.failure();
  Watch(spec.source, found.value().exists, found.value().info, Slot::Look::kEachTime);
  copied.is_missing = !found.value().exists;
  struct stat info = found.value().info;
  struct stat kept;
  const bool has_kept = !spec.lower.empty() && lstat(spec.lower.front().c_str(), &kept) == 0;
  if (!spec.lower.empty()) Watch(spec.lower.front(), has_kept, kept, Look::kEachTime);
  // Usable only if nobody else can have written there.
  const bool is_usable = has_kept && S_ISDIR(kept.st_mode) && kept.st_uid == geteuid() &&
                         (kept.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  if (copied.is_missing) {
    const std::string around = spec.source.substr(0, spec.source.rfind('/'));
    if (!NoteDirectory(around, false, copied.beneath)) return none;
    if (lstat(around.c_str(), &info) != 0) return none;
    if (is_usable) copied.kept = spec.lower.front();
  } else {
    if (!S_ISDIR(info.st_mode)) return none;
    if (!NoteDirectory(spec.source, is_usable, copied.beneath)) return none;
    if (is_usable && IsNewerThan(kept, copied.beneath)) copied.kept = spec.lower.front();
  }
  copied.upper = HostPath(spec.upper);
  // The layer shows the mode of the topmost directory, and a command has to be able to write there.
  copied.mode = S_IRWXU | (info.st_mode & (S_IRWXG | S_IRWXO));
  std::vector<std::pair<std::string, mode_t>> wanted = {{copied.upper, copied.mode},
                                                        {HostPath(spec.work), mode_t{S_IRWXU}}};
  if (copied.is_missing) {
    const std::string name = spec.source.substr(spec.source.rfind('/'));
    wanted.emplace_back(copied.upper + kNoSource, copied.mode);
    wanted.emplace_back(copied.upper + kSkeleton, info.st_mode & 0777);
    wanted.emplace_back(copied.upper + kSkeleton + name, copied.mode);
  }
  for (const auto& [path, mode] : wanted) {
    if (Status made = MakeDirectoriesTo(path, directory_.size() + 1); !made.ok())
      return made.failure();
    if (mkdir(path.c_str(), S_IRWXU) != 0 || chmod(path.c_str(), mode | S_IRWXU) != 0)
      return Failure{"private_directory", errno, path};
  }
  copied_directories_.push_back(std::move(copied));
  return static_cast<const CopiedDirectory*>(&copied_directories_.back());
}

bool Slot::IsUntouched(const CopiedDirectory& copied) {
  struct stat info;
  if (lstat(copied.upper.c_str(), &info) != 0 || StampOf(info) != copied.made ||
      (info.st_mode & ALLPERMS) != copied.mode) {
    return false;
  }
  // Reads the directory whatever its stamp says: the file system's clock may not have ticked since.
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(copied.upper.c_str()), closedir);
  if (directory == nullptr) return false;
  while (const dirent* entry = readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return false;
  }
  return true;
}

bool Slot::IsSourceSame(const CopiedDirectory& copied) {
  return std::all_of(copied.beneath.begin(), copied.beneath.end(), [&copied](const auto& one) {
    struct stat info;
    return lstat(one.first.c_str(), &info) == 0 && StampOf(info) == one.second &&
           IsSettled(one.second.changed_ns, copied.looked_ns, kTick);
  });
}

std::vector<ChangedDirectory> Slot::TakeChangedDirectories() {
  std::vector<ChangedDirectory> changed;
  for (CopiedDirectory& copied : copied_directories_) {
    if (IsUntouched(copied)) continue;
    ChangedDirectory one;
    one.source = copied.source;
    one.is_over_kept = !copied.kept.empty();
    one.looked_ns = copied.looked_ns;
    LayerReader(one).Read(AT_FDCWD, copied.upper.c_str(), "");
    std::sort(one.entries.begin(), one.entries.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    if (one.is_complete && one.entries == copied.taken) continue;
    copied.taken = one.entries;
    changed.push_back(std::move(one));
  }
  return changed;
}

}  // namespace sandbox_run
