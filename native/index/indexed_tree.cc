#include "index/indexed_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "sys/files.h"
#include "sys/open_beneath.h"

namespace sandbox_run {
namespace {

constexpr char kStage[] = "index";
// So many directories are watched anew in one look: each takes three times as long as to look at
// it, and what ends after a command or two has nothing of it.
constexpr size_t kWatchedPerLook = 2'048;
constexpr size_t kLooksWithoutWatches = 3;  // the first walk among them
// All are looked at so often whatever is said of them; and where it is not said when something is
// mounted over one.
constexpr int64_t kAllEveryNs = 60'000'000'000, kAllWithoutMountsEveryNs = 1'000'000'000;
constexpr size_t kBufferSize = 32 * 1024;
// How coarse times of other machines' clocks, or of old file systems, may be.
constexpr int64_t kForeignTicks = 3'000'000'000;

// Of struct linux_dirent64.
constexpr size_t kLengthAt = 16, kTypeAt = 18, kNameAt = 19;

template <typename T>
T ReadAt(const char* bytes) {
  T value;
  memcpy(&value, bytes, sizeof(value));
  return value;
}

// It went, or something else took its place: a look at the directory above sees that.
bool IsGone(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == ESTALE;
}

// A command may have made it so, which is no reason to refuse the next one.
bool IsShut(int error) { return error == EACCES || error == EPERM || error == ENAMETOOLONG; }

bool HasFineTimes() {
  utsname system;
  int major = 0, minor = 0;
  return uname(&system) == 0 && sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
         std::pair(major, minor) >= std::pair(6, 13);
}

EntryKind KindOfListed(unsigned char type) {
  if (type == DT_REG) return EntryKind::kFile;
  if (type == DT_DIR) return EntryKind::kDirectory;
  return type == DT_LNK ? EntryKind::kLink : EntryKind::kOther;
}

}  // namespace

EntryKind KindOf(mode_t mode) {
  if (S_ISREG(mode)) return EntryKind::kFile;
  if (S_ISDIR(mode)) return EntryKind::kDirectory;
  return S_ISLNK(mode) ? EntryKind::kLink : EntryKind::kOther;
}

FileTimes FileTimesOf(int fd) {
  // All of these move the time of a file that is renamed, too. Of others it is not known.
  constexpr struct {
    unsigned type;
    bool is_fine;  // where the kernel is
  } kLocal[] = {
      {0xEF53, true},       // ext2, ext3, ext4
      {0x58465342, true},   // xfs
      {0x9123683E, true},   // btrfs
      {0x01021994, true},   // tmpfs
      {0x794C7630, false},  // overlayfs, over one of these
      {0xF2F52010, false},  // f2fs
      {0x2FC12FC1, false},  // zfs
      {0xCA451A4E, false},  // bcachefs
  };
  struct statfs info;
  if (fstatfs(fd, &info) != 0) return FileTimes::kForeign;
  for (const auto& [type, is_fine] : kLocal) {
    if (static_cast<unsigned>(info.f_type) != type) continue;
    return is_fine && HasFineTimes() ? FileTimes::kDistinct : FileTimes::kLocal;
  }
  return FileTimes::kForeign;
}

IndexedTree::IndexedTree(std::string root, TreePlaces places)
    : root_(root == "/" ? "" : std::move(root)), places_(std::move(places)) {
  top_.stale = true;
  // A directory of git that is granted by itself, or a part of one.
  top_.place.beneath_git = (root_ + "/").find("/.git/") != std::string::npos;
}

IndexedTree::~IndexedTree() {
  // One after the other: a tree may be deeper than the stack.
  TreeRound round;
  round.is_first = true;
  for (auto& child : std::exchange(top_.children, {})) Forget(std::move(child), 0, round);
}

void IndexedTree::Look(TreeRound& round) {
  const std::string root = root_.empty() ? "/" : root_;
  Result<UniqueFd> opened = OpenPath(root, kStage);
  if (!opened.ok()) {
    if (round.is_first) {
      round.failure = opened.failure();
    } else {
      round.unreadable.push_back(root);
    }
    return;
  }
  root_fd_ = std::move(opened.value());
  TakeTouched(round);
  if (looks_at_all_) LookAhead();
  VisitAll(round);
  ahead_.clear();
  for (; !queue_.empty() && !round.failure; queue_.pop_front()) {
    path_ = PathOf(*queue_.front());
    Enter(*queue_.front(), round);
  }
  queue_.clear();
  root_fd_.reset();
}

void IndexedTree::TakeTouched(const TreeRound& round) {
  timespec steady = {};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &steady);
  const int64_t now = Nanoseconds(steady);
  const bool is_whole =
      watches_.Take([](void* owner) { static_cast<Directory*>(owner)->touched = true; });
  const int64_t every_ns = watches_.SeesMounts() ? kAllEveryNs : kAllWithoutMountsEveryNs;
  looks_at_all_ =
      round.is_first || round.is_anew || !is_whole || now - looked_at_all_ns_ >= every_ns;
  if (looks_at_all_) looked_at_all_ns_ = now;
  may_watch_ = 0;
  if (round.is_anew) return;
  if (!round.is_first) watches_.Open();
  if (++rounds_ > kLooksWithoutWatches) may_watch_ = kWatchedPerLook;
}

// Stats directories on several threads. One stat takes the kernel a microsecond, mostly waiting for
// memory, so 30,000 in a row are most of the cost of a small command. The result is as good as that
// of a visit: a directory with the known device, inode number and time is unchanged, wherever its
// path led in between. Directories below one that is read in this round are looked at again
// (TakeChildren).
void IndexedTree::LookAhead() {
  constexpr size_t kWorthIt = 2'048, kMostThreads = 4, kAtOnce = 512;
  if (directories_ < kWorthIt) return;
  cpu_set_t processors;
  const bool is_known = sched_getaffinity(0, sizeof(processors), &processors) == 0;
  const size_t threads =
      is_known ? std::min(kMostThreads, static_cast<size_t>(CPU_COUNT(&processors))) : 1;
  if (threads < 2) return;
  // Each directory before what is in it: a path is that of the one before with another end.
  std::vector<Directory*> rest = {&top_};
  top_.path_length = 0;
  while (!rest.empty()) {
    Directory* directory = rest.back();
    rest.pop_back();
    directory->ahead = 0;
    if (!directory->entered) continue;
    if (Directory* parent = directory->parent; parent != nullptr) {
      directory->path_length =
          parent->path_length + (parent->path_length > 0) + directory->name.size();
    }
    ahead_.push_back({directory, 0, {}});
    directory->ahead = ahead_.size();
    for (size_t i = directory->children.size(); i > 0; --i)
      rest.push_back(directory->children[i - 1].get());
  }
  std::atomic<size_t> next = 0;
  auto work = [this, &next] {
    for (size_t at; (at = next.fetch_add(kAtOnce)) < ahead_.size();)
      LookAheadAt(at, std::min(at + kAtOnce, ahead_.size()));
  };
  const auto body = [](void* argument) -> void* {
    (*static_cast<decltype(work)*>(argument))();
    return nullptr;
  };
  // If no thread can be started, this one does all the work. No signal that is meant for the
  // process is to be handled on one of them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t started[kMostThreads];
  size_t count = 0;
  while (count < threads - 1 && pthread_create(&started[count], nullptr, body, &work) == 0) ++count;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  work();
  for (size_t i = 0; i < count; ++i) pthread_join(started[i], nullptr);
}

void IndexedTree::LookAheadAt(size_t begin, size_t end) {
  std::string path = PathOf(*ahead_[begin].directory);
  for (size_t i = begin; i < end; ++i) {
    Ahead& one = ahead_[i];
    const Directory& directory = *one.directory;
    if (i > begin) {
      path.resize(directory.parent->path_length);
      if (!path.empty()) path += '/';
      path += directory.name;
    }
    struct stat info;
    one.error = fstatat(root_fd_.get(), path.c_str(), &info,
                        AT_SYMLINK_NOFOLLOW | (path.empty() ? AT_EMPTY_PATH : 0)) == 0
                    ? 0
                    : errno;
    if (one.error == 0) one.stamp = StampOf(info);
  }
}

int IndexedTree::StampNow(Directory& directory, FileStamp& stamp) {
  if (const size_t ahead = std::exchange(directory.ahead, 0); ahead > 0 && !ahead_.empty()) {
    stamp = ahead_[ahead - 1].stamp;
    return ahead_[ahead - 1].error;
  }
  struct stat info;
  if (fstatat(root_fd_.get(), path_.c_str(), &info,
              AT_SYMLINK_NOFOLLOW | (path_.empty() ? AT_EMPTY_PATH : 0)) != 0) {
    return errno;
  }
  stamp = StampOf(info);
  return 0;
}

// Without recursion: a command may have made the tree as deep as paths can be long.
void IndexedTree::VisitAll(TreeRound& round) {
  path_.clear();
  top_.cursor = top_.path_length = 0;
  if (!Check(top_, round)) return;
  for (Directory* at = &top_; at != nullptr && !round.failure;) {
    path_.resize(at->path_length);
    if (at->cursor == at->children.size()) {
      at = at->parent;
      continue;
    }
    Directory* child = at->children[at->cursor++].get();
    if (!child->entered && !child->stale) continue;
    if (!path_.empty()) path_ += '/';
    path_ += child->name;
    child->cursor = 0;
    child->path_length = path_.size();
    if (Check(*child, round)) at = child;
  }
}

bool IndexedTree::Check(Directory& directory, TreeRound& round) {
  if (!directory.entered) {
    // An earlier look did not enter it: its budget was spent, or it failed.
    if (round.budget == 0) {
      round.spent = true;
      return false;
    }
    --round.budget;
    Enter(directory, round);
    return directory.entered;
  }
  const bool is_watched = directory.watch >= 0 && watches_.Covers(directory.watch, &directory);
  if (is_watched && !directory.touched && !directory.stale && !looks_at_all_) {
    if (!directory.noted.empty()) CheckNoted(directory, round);
    return true;
  }
  FileStamp now;
  if (const int error = StampNow(directory, now); error != 0) {
    Refused(directory, error, round);
    return false;
  }
  const FileStamp& known = directory.stamp;
  const int64_t ticks = directory.times != FileTimes::kForeign ? 0 : kForeignTicks;
  const bool to_be_watched =
      !is_watched && may_watch_ > 0 && !watches_.IsFull() && directory.times != FileTimes::kForeign;
  // A clock that is not ours may stand where it stood.
  const bool is_doubtful = round.is_anew && directory.times == FileTimes::kForeign;
  if (is_doubtful || directory.stale || directory.touched || now.device != known.device ||
      now.inode != known.inode || now.changed_ns != known.changed_ns ||
      !IsSettled(known.changed_ns, directory.listed_ns, ticks) ||
      (to_be_watched && !Watch(directory))) {
    Enter(directory, round);
    return directory.entered;
  }
  if (!directory.noted.empty()) CheckNoted(directory, round);
  return true;
}

bool IndexedTree::Watch(Directory& directory) {
  const UniqueFd fd(OpenBeneath(root_fd_.get(), path_.empty() ? "." : path_.c_str(),
                                O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  if (!fd.valid()) return false;
  --may_watch_;
  directory.watch = watches_.Add(fd.get(), &directory);
  struct stat info;
  if (fstat(fd.get(), &info) != 0 || info.st_dev != directory.stamp.device ||
      info.st_ino != directory.stamp.inode ||
      Nanoseconds(info.st_ctim) != directory.stamp.changed_ns) {
    directory.touched = true;
    return false;
  }
  return true;
}

// Nothing came or went.
void IndexedTree::CheckNoted(Directory& directory, TreeRound& round) {
  const size_t length = path_.size();
  for (Noted& noted : directory.noted) {
    if (length > 0) path_ += '/';
    path_ += noted.name;
    const int64_t looked_ns = FileClockNow();
    struct stat info;
    const bool is_there = fstatat(root_fd_.get(), path_.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
    const int error = errno;
    path_.resize(length);
    if (is_there) {
      Compare(directory, noted, {KindOf(info.st_mode), StampOf(info)}, looked_ns, round);
    } else if (IsGone(error)) {
      // In this moment, by another process.
      directory.stale = true;
    } else {
      TellUnreadable(directory, round);
    }
  }
}

void IndexedTree::Compare(Directory& directory, Noted& noted, const EntryState& now,
                          int64_t looked_ns, TreeRound& round) {
  const int64_t changed_ns = now.stamp.changed_ns;
  // Another change may have come in the clock tick of the last look: report it twice rather than
  // never.
  const bool may_hide = now.kind != EntryKind::kDirectory && directory.times == FileTimes::kLocal &&
                        changed_ns >= round.began_ns && !IsSettled(changed_ns, noted.looked_ns);
  if (!now.IsSame(noted.state) || may_hide) {
    round.differences.push_back({Absolute(noted.name), EntryChange::kChanged, now,
                                 directory.times != FileTimes::kForeign ? changed_ns : kSomeTime});
  }
  noted.state = now;
  noted.looked_ns = looked_ns;
}

void IndexedTree::Enter(Directory& directory, TreeRound& round) {
  const int64_t looked_ns = FileClockNow();
  const UniqueFd fd(OpenBeneath(root_fd_.get(), path_.empty() ? "." : path_.c_str(),
                                O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  if (!fd.valid()) return Refused(directory, -fd.get(), round);
  struct stat info;
  // First of all, so that whatever happens meanwhile is seen next time.
  if (fstat(fd.get(), &info) != 0) return Refused(directory, errno, round);
  const bool is_same =
      info.st_dev == directory.stamp.device && info.st_ino == directory.stamp.inode;
  if (directory.watch >= 0 && !is_same) {
    watches_.Remove(std::exchange(directory.watch, -1), &directory);
  }
  const bool is_watched = directory.watch >= 0 && watches_.Covers(directory.watch, &directory);
  if (!is_watched && may_watch_ > 0 && directory.entered &&
      directory.times != FileTimes::kForeign) {
    --may_watch_;
    directory.watch = watches_.Add(fd.get(), &directory);
  }
  directory.touched = false;
  const int error = List(fd.get());
  if (error != 0) return Refused(directory, error, round);
  Classify(directory, fd.get(), StampOf(info));
  TakeNoted(directory, fd.get(), round);
  TakeChildren(directory, round);
  ++read_;
  if (!directory.entered) ++directories_;
  directory.entered = true;
  directory.stale = directory.unreadable = false;
  directory.listed_ns = looked_ns;
  directory.fresh_ns = 0;
}

int IndexedTree::List(int fd) {
  buffer_.resize(kBufferSize);
  names_.clear();
  listed_.clear();
  has_head_ = false;
  for (;;) {
    const long count = syscall(SYS_getdents64, fd, buffer_.data(), buffer_.size());
    if (count < 0) return errno;
    if (count == 0) break;
    for (long at = 0; at < count;) {
      const char* entry = buffer_.data() + at;
      at += ReadAt<uint16_t>(entry + kLengthAt);
      const std::string_view name = entry + kNameAt;
      if (name == "." || name == "..") continue;
      has_head_ = has_head_ || name == "HEAD";
      const auto type = static_cast<unsigned char>(entry[kTypeAt]);
      EntryKind kind = KindOfListed(type);
      struct stat info;
      if (type == DT_UNKNOWN && fstatat(fd, entry + kNameAt, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        kind = KindOf(info.st_mode);
      }
      listed_.push_back(
          {names_.size(), name.size(), static_cast<ino_t>(ReadAt<uint64_t>(entry)), kind});
      names_.insert(names_.end(), entry + kNameAt, entry + kNameAt + name.size() + 1);
    }
  }
  return 0;
}

void IndexedTree::Classify(Directory& directory, int fd, const FileStamp& stamp) {
  const Directory* parent = directory.parent;
  directory.times =
      parent != nullptr && parent->stamp.device == stamp.device ? parent->times : FileTimesOf(fd);
  has_local_times_ = has_local_times_ && directory.times != FileTimes::kForeign;
  const bool was_git = std::exchange(directory.is_git, directory.place.beneath_git || has_head_);
  directory.stamp = stamp;
  int64_t fresh_ns = directory.fresh_ns;
  if (directory.entered) {
    // The directory has become git's: names in it that meant nothing are obeyed now.
    if (directory.is_git && !was_git) fresh_ns = std::max(fresh_ns, stamp.changed_ns);
  } else if (parent != nullptr) {
    // Making or moving a directory changes both.
    fresh_ns = std::max(fresh_ns, std::min(parent->stamp.changed_ns, stamp.changed_ns));
  }
  // Whenever it came, it was not reported.
  if (directory.unreadable) fresh_ns = kSomeTime;
  directory.fresh_ns = directory.times != FileTimes::kForeign ? fresh_ns : kSomeTime;
}

void IndexedTree::TakeNoted(Directory& directory, int fd, TreeRound& round) {
  std::vector<Noted> old = std::exchange(directory.noted, {});
  for (const Listed& listed : listed_) {
    const std::string_view name = NameOf(listed);
    if (!places_.Notes(directory.place, directory.is_git, name, listed.kind)) continue;
    const auto known = std::lower_bound(
        old.begin(), old.end(), name,
        [](const Noted& noted, std::string_view wanted) { return noted.name < wanted; });
    const bool is_known = known != old.end() && known->name == name;
    const int64_t looked_ns = FileClockNow();
    struct stat info;
    if (fstatat(fd, name.data(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      if (IsGone(errno)) continue;
      TellUnreadable(directory, round);
      if (is_known) directory.noted.push_back(*known);
      continue;
    }
    const EntryState now{KindOf(info.st_mode), StampOf(info)};
    if (is_known) {
      directory.noted.push_back(*known);
      Compare(directory, directory.noted.back(), now, looked_ns, round);
    } else {
      if (!round.is_first) {
        round.differences.push_back({Absolute(name), EntryChange::kAppeared, now,
                                     std::max(directory.fresh_ns, now.stamp.changed_ns)});
      }
      directory.noted.push_back({std::string(name), now, looked_ns});
    }
  }
  const auto by_name = [](const Noted& a, const Noted& b) { return a.name < b.name; };
  std::sort(directory.noted.begin(), directory.noted.end(), by_name);
  for (const Noted& noted : old) {
    if (std::binary_search(directory.noted.begin(), directory.noted.end(), noted, by_name))
      continue;
    round.differences.push_back(
        {Absolute(noted.name), EntryChange::kVanished, noted.state,
         directory.times != FileTimes::kForeign ? directory.stamp.changed_ns : kSomeTime});
  }
}

IndexedTree::Directory* IndexedTree::FindChild(const Directory& directory,
                                               const Listed& listed) const {
  const std::string_view name = NameOf(listed);
  const auto found = std::lower_bound(
      directory.children.begin(), directory.children.end(), name,
      [](const auto& child, std::string_view wanted) { return child->name < wanted; });
  const bool is_known = found != directory.children.end() && (*found)->name == name &&
                        (*found)->listed_inode == listed.inode;
  return is_known ? found->get() : nullptr;
}

void IndexedTree::TakeChildren(Directory& directory, TreeRound& round) {
  std::vector<std::unique_ptr<Directory>> added;
  for (auto& child : directory.children) child->cursor = 0;  // 1: it is still there
  for (const Listed& listed : listed_) {
    if (listed.kind != EntryKind::kDirectory) continue;
    const std::string_view name = NameOf(listed);
    const TreePlace place = places_.Within(directory.place, directory.is_git, name);
    if (Directory* known = FindChild(directory, listed)) {
      known->cursor = 1;
      known->ahead = 0;
      if (known->place == place) continue;
      known->place = place;
      known->stale = true;
      known->fresh_ns =
          directory.times != FileTimes::kForeign ? directory.stamp.changed_ns : kSomeTime;
      continue;
    }
    if (!TreePlaces::Enters(directory.place, has_head_, name)) continue;
    auto child = std::make_unique<Directory>();
    child->parent = &directory;
    child->name = name;
    child->listed_inode = listed.inode;
    child->place = place;
    child->fresh_ns = directory.fresh_ns;
    if (round.budget > 0) {
      --round.budget;
      queue_.push_back(child.get());
    } else {
      round.spent = true;
      child->stale = !round.is_first;
      // Whenever it is looked at, it was not known before.
      child->fresh_ns = kSomeTime;
    }
    added.push_back(std::move(child));
  }
  for (auto& child : directory.children) {
    if (child->cursor == 1) {
      child->cursor = 0;
      added.push_back(std::move(child));
    } else {
      Forget(std::move(child),
             directory.times != FileTimes::kForeign ? directory.stamp.changed_ns : kSomeTime,
             round);
    }
  }
  std::sort(added.begin(), added.end(),
            [](const auto& a, const auto& b) { return a->name < b->name; });
  directory.children = std::move(added);
}

// Without recursion, as the visits.
void IndexedTree::Forget(std::unique_ptr<Directory> directory, int64_t when_ns, TreeRound& round) {
  struct Rest {
    std::unique_ptr<Directory> directory;
    std::string path;
  };
  std::vector<Rest> rest;
  std::string path = round.is_first ? std::string() : directory->name;
  rest.push_back({std::move(directory), std::move(path)});
  while (!rest.empty()) {
    const Rest one = std::move(rest.back());
    rest.pop_back();
    if (one.directory->entered) --directories_;
    if (one.directory->watch >= 0) watches_.Remove(one.directory->watch, one.directory.get());
    for (auto& child : one.directory->children) {
      std::string beneath = round.is_first ? std::string() : one.path + "/" + child->name;
      rest.push_back({std::move(child), std::move(beneath)});
    }
    if (round.is_first) continue;
    for (const Noted& noted : one.directory->noted) {
      round.differences.push_back(
          {Absolute(one.path + "/" + noted.name), EntryChange::kVanished, noted.state, when_ns});
    }
  }
}

void IndexedTree::Refused(Directory& directory, int error, TreeRound& round) {
  if (IsGone(error)) {
    if (directory.parent != nullptr) directory.parent->stale = true;
    return;
  }
  if (round.is_first && !IsShut(error)) {
    round.failure = Failure{kStage, error, Absolute("")};
    return;
  }
  TellUnreadable(directory, round);
  directory.stale = true;
}

void IndexedTree::TellUnreadable(Directory& directory, TreeRound& round) {
  if (!std::exchange(directory.unreadable, true)) round.unreadable.push_back(Absolute(""));
}

std::string IndexedTree::PathOf(const Directory& directory) {
  std::vector<const Directory*> chain;
  for (const Directory* at = &directory; at->parent != nullptr; at = at->parent)
    chain.push_back(at);
  std::string path;
  for (size_t i = chain.size(); i > 0; --i) {
    if (!path.empty()) path += '/';
    path += chain[i - 1]->name;
  }
  return path;
}

std::string IndexedTree::Absolute(std::string_view name) const {
  std::string absolute = root_;
  for (const std::string_view part : {std::string_view(path_), name}) {
    if (part.empty()) continue;
    absolute += '/';
    absolute += part;
  }
  return absolute.empty() ? "/" : absolute;
}

void IndexedTree::ForEach(const std::function<void(std::string path, EntryKind kind)>& each) {
  std::vector<const Directory*> rest = {&top_};
  while (!rest.empty()) {
    const Directory* directory = rest.back();
    rest.pop_back();
    for (const auto& child : directory->children) rest.push_back(child.get());
    if (directory->noted.empty()) continue;
    path_ = PathOf(*directory);
    for (const Noted& noted : directory->noted) each(Absolute(noted.name), noted.state.kind);
  }
}

}  // namespace sandbox_run
