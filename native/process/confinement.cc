#include "process/confinement.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <thread>

#include "process/clone_child.h"
#include "sys/files.h"
#include "sys/open_beneath.h"
#include "sys/removal.h"

namespace sandbox_run {
namespace {

// The clock of file systems ticks at least a hundred times a second (CONFIG_HZ).
constexpr int64_t kCoarsestTickNs = 10'000'000;

constexpr int kBuildTries = 8;

constexpr char kStagingDirectory[] = "slot:root";
// Beside the upper directory of a layer: what stands for a directory that is not there, and a
// directory with the place for it.
constexpr char kNoSource[] = ".none";
constexpr char kSkeleton[] = ".around";
constexpr char kTemporaryDirectory[] = "slot:tmp";
// Of links that are mounted over files; beside it, so that no command sees it.
constexpr char kLinksDirectory[] = "slot:links";

// What is at a path, without following a link. Only what is known not to be there is left out of a
// view or a rule: whatever else keeps us from looking is no reason not to shut it.
struct Found {
  bool exists = false;
  struct stat info = {};
};
Result<Found> LookFor(const std::string& path, const char* stage) {
  Found found;
  found.exists = lstat(path.c_str(), &found.info) == 0;
  if (!found.exists && errno != ENOENT && errno != ENOTDIR) return Failure{stage, errno, path};
  return found;
}

// Neither comes nor goes while the slot is there.
bool BelongsToSlot(const std::string& path) {
  return path.starts_with(kSlotPrefix) || path.starts_with(kMemoryPrefix) ||
         path.starts_with(kCachePrefix);
}

// To clear a cache takes seconds at most.
constexpr std::chrono::seconds kCacheWait{30};
constexpr std::chrono::milliseconds kCacheLook{5};

bool IsLinkTo(const std::string& path, const std::string& content) {
  std::string found(content.size() + 1, '\0');
  const ssize_t length = readlink(path.c_str(), found.data(), found.size());
  return length == static_cast<ssize_t>(content.size()) &&
         found.compare(0, content.size(), content) == 0;
}

bool IsBeneathOrSame(const std::string& path, const std::string& ancestor) {
  return path == ancestor || (path.starts_with(ancestor) && path[ancestor.size()] == '/');
}

// What the next commands of the session are to find.
bool IsSharedBySession(const Slot& slot, const std::string& path) {
  return slot.session() != nullptr && (path == kTemporaryDirectory || path == kMemoryPrefix);
}

// The directories between `outer` and what the view mounts beneath it, the outermost first. What
// lies in another mount is not theirs.
std::set<std::string> DirectoriesToMounts(const std::string& outer,
                                          const std::vector<ViewStepSpec>& view) {
  const auto is_mounted = [&view](const std::string& path) {
    return std::any_of(view.begin(), view.end(),
                       [&path](const ViewStepSpec& step) { return step.target == path; });
  };
  std::set<std::string> directories;  // in the order of their names, an outer one comes first
  for (const ViewStepSpec& step : view) {
    if (step.target == outer || !IsBeneathOrSame(step.target, outer)) continue;
    for (size_t end = step.target.find('/', outer.size() + 1); end != std::string::npos;
         end = step.target.find('/', end + 1)) {
      const std::string directory = step.target.substr(0, end);
      if (is_mounted(directory)) break;
      directories.insert(directory);
    }
  }
  return directories;
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

// Makes a directory of the slot. One that leads to a mount point may be there, and no link is
// taken for it: what is put into it would lie outside.
Status EnsureDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return Status();
  struct stat info;
  if (errno == EEXIST && lstat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return Status();
    errno = ENOTDIR;
  }
  return Failure{"private_file", errno, path};
}

// Makes the directories that lead from a private directory of the slot to a seeded file. What the
// command before left there is gone by now.
Status MakeDirectoriesTo(const std::string& path, size_t from) {
  for (size_t end = path.find('/', from); end != std::string::npos; end = path.find('/', end + 1)) {
    if (Status made = EnsureDirectory(path.substr(0, end)); !made.ok()) return made;
  }
  return Status();
}

// True for a directory as EmptyPrivateDirectory() leaves it, in which nothing is but (what leads
// to) these.
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

// Whether it is time to look for what launchers left behind in a directory that were killed: once a
// minute, for a server lives long.
bool IsToBeSwept(const std::string& parent) {
  constexpr std::chrono::minutes kEvery{1};
  static std::mutex mutex;
  // Never destroyed: command threads may outlive static objects.
  static auto* const swept = new std::map<std::string, std::chrono::steady_clock::time_point>();
  const std::lock_guard lock(mutex);
  const auto now = std::chrono::steady_clock::now();
  const auto known = swept->find(parent);
  if (known != swept->end() && now - known->second < kEvery) return false;
  (*swept)[parent] = now;
  return true;
}

// Has a child make something, and says whether it did: it may have been killed on the way.
template <typename Plan>
Status RunSetup(int (*body)(void*), Plan& plan, int flags, const char* stage) {
  const pid_t pid = CloneChild(body, &plan, CLONE_FILES | flags);
  if (pid < 0) return Failure{stage, errno, ""};
  const int status = Reap(pid);
  const SetupProgress& progress = plan.progress;
  if (progress.failed_stage != nullptr) {
    const char* path = progress.failed_path;
    return Failure{progress.failed_stage, progress.failed_errno, path == nullptr ? "" : path};
  }
  // A status that other code took (-1) says nothing; the child's last store does.
  if (progress.done && (status == -1 || EndedWell(status))) return Status();
  return Failure{"setup.ended", 0, DescribeEnd(status)};
}

// The root of a view is a file system of its own that cannot be written to any more.
Status CheckViewRoot(int root, ObjectId& id) {
  constexpr char kStage[] = "view.check";
  struct stat made, own;
  struct statfs flags;
  if (fstat(root, &made) != 0 || fstatfs(root, &flags) != 0 || stat("/", &own) != 0) {
    return Failure{kStage, errno, "/"};
  }
  id = {made.st_dev, made.st_ino};
  if (made.st_dev == own.st_dev) return Failure{kStage, ESTALE, "/"};
  if ((flags.f_flags & ST_RDONLY) == 0) return Failure{kStage, EROFS, "/"};
  return Status();
}

// Half of the number in a file of /proc/sys, in digits; empty where there is none or nothing to
// halve.
std::string HalfOf(const char* path) {
  const UniqueFd fd(open(path, O_RDONLY | O_CLOEXEC));
  char text[24] = {};
  if (!fd.valid() || read(fd.get(), text, sizeof text - 1) <= 0) return "";
  const long half = std::strtol(text, nullptr, 10) / 2;
  return half > 0 ? std::to_string(half) : "";
}

// Takes what a set-up child made; the launcher's own namespace would be none.
Status TakeNamespace(int fd, const char* name, Namespace& into) {
  into.fd.reset(fd);
  struct stat made, own;
  const std::string path = std::string("/proc/self/ns/") + name;
  if (fstat(fd, &made) != 0 || stat(path.c_str(), &own) != 0) {
    return Failure{"namespace.check", errno, path};
  }
  into.id = {made.st_dev, made.st_ino};
  if (into.id == ObjectId{own.st_dev, own.st_ino}) return Failure{"namespace.check", ESTALE, path};
  return Status();
}

}  // namespace

Status Machine::Ensure(const NamespaceSpec& wanted) {
  const std::lock_guard lock(mutex_);
  if (ready_) {
    const bool same = wanted.user == user_.fd.valid() && wanted.network == network_.fd.valid() &&
                      wanted.ipc == ipc_.fd.valid();
    return same ? Status() : Status(Failure{"namespace.check", EINVAL, ""});
  }
  const std::string uid_map = std::to_string(geteuid()) + " " + std::to_string(geteuid()) + " 1";
  const std::string gid_map = std::to_string(getegid()) + " " + std::to_string(getegid()) + " 1";
  NamespaceSetupPlan plan;
  plan.with_user = wanted.user;
  plan.with_network = wanted.network;
  plan.with_ipc = wanted.ipc;
  plan.uid_map = uid_map.c_str();
  plan.gid_map = gid_map.c_str();
  const std::string instances = HalfOf("/proc/sys/fs/inotify/max_user_instances");
  const std::string watches = HalfOf("/proc/sys/fs/inotify/max_user_watches");
  plan.inotify_instances = instances.c_str();
  plan.inotify_watches = watches.c_str();
  const int flags = (wanted.user ? CLONE_NEWUSER : 0) | (wanted.network ? CLONE_NEWNET : 0) |
                    (wanted.ipc ? CLONE_NEWIPC : 0);
  if (flags != 0) {
    Status made = RunSetup(RunNamespaceSetup, plan, flags, "namespace.create");
    // Taken in any case, so that what a child left is closed.
    UniqueFd user(plan.user_fd), network(plan.network_fd), ipc(plan.ipc_fd);
    UniqueFd sockets(plan.sockets_fd);
    if (!made.ok()) return made;
    if (wanted.user) made = TakeNamespace(user.release(), "user", user_);
    if (made.ok() && wanted.network) made = TakeNamespace(network.release(), "net", network_);
    if (made.ok() && wanted.ipc) made = TakeNamespace(ipc.release(), "ipc", ipc_);
    if (!made.ok()) return made;
    if (sockets.valid()) sockets_ = std::make_shared<SocketTable>(std::move(sockets));
  }
  ready_ = true;
  return Status();
}

std::vector<NamespaceEntry> Machine::Entries(const NamespaceSpec& wanted) const {
  const std::lock_guard lock(mutex_);
  std::vector<NamespaceEntry> entries;
  const auto enter = [&entries](const Namespace& one, int type, const char* name) {
    entries.push_back({one.fd.get(), type, name, one.id});
  };
  // The user namespace first: it brings the capabilities that the others ask for.
  if (wanted.user) enter(user_, CLONE_NEWUSER, "user");
  if (wanted.network) enter(network_, CLONE_NEWNET, "net");
  if (wanted.ipc) enter(ipc_, CLONE_NEWIPC, "ipc");
  return entries;
}

int Machine::user_fd() const {
  const std::lock_guard lock(mutex_);
  return user_.fd.get();
}

std::shared_ptr<SocketTable> Machine::sockets() const {
  const std::lock_guard lock(mutex_);
  return sockets_;
}

Result<std::shared_ptr<SessionDirectories>> Machine::Directories(
    const std::string& temporary_parent, const std::string& memory_parent) {
  const std::lock_guard lock(mutex_);
  if (directories_ != nullptr && !directories_->given_up()) return directories_;
  Result<std::shared_ptr<SessionDirectories>> made =
      SessionDirectories::Make(temporary_parent, memory_parent);
  // A command that began before the session ended, and gets its directories now, has them alone.
  if (made.ok() && users_ > 0) directories_ = made.value();
  return made;
}

void Machine::Join() {
  const std::lock_guard lock(mutex_);
  ++users_;
}

void Machine::Leave() {
  std::shared_ptr<SessionDirectories> dropped;
  const std::lock_guard lock(mutex_);
  if (--users_ == 0) dropped.swap(directories_);
}

Slot::~Slot() {
  LetGoOfShared();
  // They keep the mounts on the directories.
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

std::vector<std::string> Slot::TakeMade(const ConfinementSpec& spec) {
  constexpr size_t kMostTold = 16;
  constexpr int kMostLookedAt = 4'096;
  std::vector<std::string> made;
  int looked_at = 0;
  for (const std::string& directory : spec.told_directories) {
    const std::string place = HostPath(directory);
    // A command may have put a link there.
    UniqueFd fd(OpenBeneath(directory_lock_.get(), directory.c_str() + strlen(kSlotPrefix),
                            O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC, 0));
    DIR* stream = fd.valid() ? fdopendir(fd.get()) : nullptr;
    if (stream == nullptr) continue;
    fd.release();
    while (const dirent* entry = readdir(stream)) {
      if (made.size() >= kMostTold || ++looked_at > kMostLookedAt) break;
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
      const std::string named = directory + "/" + entry->d_name;
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

void Slot::Watch(const std::string& path, bool exists, const struct stat& info, bool essential) {
  // Most paths have both a mount and a rule.
  for (Identity& known : identities_) {
    if (known.path != path) continue;
    known.essential = known.essential || essential;
    return;
  }
  identities_.push_back({path, info.st_dev, info.st_ino, exists, essential});
}

void Slot::GroupAbsences() {
  std::map<std::string, Absences> by_place;
  std::erase_if(identities_, [&by_place](const Identity& known) {
    if (known.exists || !known.essential) return false;
    by_place[known.path.substr(0, known.path.rfind('/'))].paths.push_back(known.path);
    return true;
  });
  for (auto& [place, absences] : by_place) {
    absences.place = place;
    absences_.push_back(std::move(absences));
  }
}

// Nothing came where the directory is the one that it was, with the time of change that it had.
bool Slot::StillAbsent(Absences& absences) {
  struct stat info = {};
  const int64_t now = FileClockNow();
  const bool exists = lstat(absences.place.c_str(), &info) == 0;
  if (!exists && errno != ENOENT && errno != ENOTDIR) return false;
  if (!exists) {
    absences.stamp = FileStamp();
    return true;
  }
  const FileStamp stamp = StampOf(info);
  if (stamp == absences.stamp && IsSettled(stamp.changed_ns, absences.looked_ns, kCoarsestTickNs)) {
    return true;
  }
  for (const std::string& path : absences.paths) {
    const Result<Found> found = LookFor(path, "look");
    if (!found.ok() || found.value().exists) return false;
  }
  absences.stamp = stamp;
  absences.looked_ns = now;
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

void Slot::AddWay(const std::string& link, const std::string& content) {
  // The second name beneath the slot: the first is that of one of its directories.
  const size_t begin = link.find('/', directory_.size() + 1) + 1;
  const std::string top = link.substr(0, link.find('/', begin));
  auto way = std::find_if(ways_.begin(), ways_.end(),
                          [&top](const Way& known) { return known.top == top; });
  if (way == ways_.end()) {
    way = ways_.insert(way, Way());
    way->top = top;
  }
  way->links[link] = content;
  for (size_t at = top.size(); at < link.size(); at = link.find('/', at + 1)) {
    way->directories[link.substr(0, at)] = {};
  }
}

void Slot::AddMountPoint(const std::string& path) {
  for (Way& way : ways_) {
    if (!IsBeneathOrSame(path, way.top)) continue;
    way.mount_points.push_back(path);
    // What a command leaves in them would stay with the way.
    for (size_t at = way.top.size(); at < path.size(); at = path.find('/', at + 1)) {
      way.directories[path.substr(0, at)] = {};
    }
  }
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
  Watch(spec.source, found.value().exists, found.value().info, true);
  copied.is_missing = !found.value().exists;
  struct stat info = found.value().info;
  struct stat kept;
  const bool has_kept = !spec.lower.empty() && lstat(spec.lower.front().c_str(), &kept) == 0;
  if (!spec.lower.empty()) Watch(spec.lower.front(), has_kept, kept, true);
  // What lies there was written by us, and by nobody else.
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
  // Whatever the stamp says: the clock may not have gone on since it was taken.
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

bool Slot::IsCurrent() {
  constexpr std::chrono::seconds kFullCheckInterval{1};
  const auto now = std::chrono::steady_clock::now();
  const bool full = now - checked_ >= kFullCheckInterval;
  if (full) checked_ = now;
  return std::all_of(absences_.begin(), absences_.end(), StillAbsent) &&
         std::all_of(copied_directories_.begin(), copied_directories_.end(), IsSourceSame) &&
         std::all_of(identities_.begin(), identities_.end(), [full](const Identity& known) {
           return (!full && !known.essential) || IsSame(known);
         });
}

Confinement::Confinement(ConfinementSpec spec)
    : spec_(std::move(spec)),
      machine_(spec_.machine ? spec_.machine : std::make_shared<Machine>()) {
  machine_->Join();
  filter_.len = static_cast<unsigned short>(spec_.filter.size());
  // The kernel only reads it; the structure predates const.
  filter_.filter = const_cast<sock_filter*>(spec_.filter.data());
}

Confinement::~Confinement() {
  if (!closed_) machine_->Leave();
}

Result<std::unique_ptr<Slot>> Confinement::Acquire() {
  for (;;) {
    std::unique_ptr<Slot> slot;
    {
      const std::lock_guard lock(mutex_);
      if (idle_.empty()) break;
      slot = std::move(idle_.back());
      idle_.pop_back();
    }
    // One that is out of date or cannot be used is dropped; a new one may do.
    if (Refresh(*slot)) return slot;
  }
  std::shared_ptr<SessionDirectories> session;
  Result<std::unique_ptr<Slot>> built = Build(session);
  for (int tries = 1; !built.ok() && tries < kBuildTries; ++tries) {
    // A command of the session put something where a view mounts. It is left to it: the session
    // goes on with empty directories.
    const bool is_blocked = session != nullptr && MayBeBlocked(built.failure());
    if (is_blocked) session->GiveUp();
    if (!is_blocked && !WentMeanwhile(built.failure())) break;
    built = Build(session);
  }
  if (!built.ok()) return built;
  if (Status seeded = Seed(*built.value()); !seeded.ok()) return seeded.failure();
  return built;
}

// What a view shows if it is there may go while the view is made: other commands run, and what they
// leave behind is taken away.
bool Confinement::WentMeanwhile(const Failure& failure) const {
  if (!spec_.namespaces || (failure.error != ENOENT && failure.error != ENOTDIR)) return false;
  const std::vector<ViewStepSpec>& view = spec_.namespaces->view;
  return std::any_of(view.begin(), view.end(), [&failure](const ViewStepSpec& step) {
    return !step.required && (step.source == failure.path || step.target == failure.path);
  });
}

// Only what commands made can be in the way of what is mounted in the directories of a session.
bool Confinement::MayBeBlocked(const Failure& failure) const {
  const int error = failure.error;
  const bool is_other = error == ELOOP || error == ENOTDIR || error == ENOENT || error == EEXIST;
  if (!spec_.namespaces || !is_other || !std::string_view(failure.stage).starts_with("view."))
    return false;
  const std::vector<ViewStepSpec>& view = spec_.namespaces->view;
  return std::any_of(view.begin(), view.end(), [&failure](const ViewStepSpec& step) {
    return (step.source == kTemporaryDirectory || step.source.starts_with(kMemoryPrefix)) &&
           failure.path != step.target && IsBeneathOrSame(failure.path, step.target);
  });
}

void Confinement::Release(std::unique_ptr<Slot> slot) {
  slot->LetGoOfShared();
  const std::lock_guard lock(mutex_);
  if (!closed_) idle_.push_back(std::move(slot));
}

bool Confinement::Refresh(Slot& slot) const {
  if (spec_.shares_directories) {
    if (slot.session_ == nullptr) slot.session_ = slot.session_when_idle_.lock();
    if (slot.session_ == nullptr || slot.session_->given_up()) return false;
  }
  return slot.clean_ && !slot.HasMoved() && slot.IsCurrent() && Seed(slot).ok() &&
         slot.LockCache(std::chrono::milliseconds(0)).ok();
}

void Confinement::Close() {
  std::vector<std::unique_ptr<Slot>> dropped;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) machine_->Leave();
    closed_ = true;
    dropped.swap(idle_);
  }
  dropped.clear();
  RetryRemovals(Retry::kAll);
}

std::vector<NamespaceEntry> Confinement::NamespacesFor(const Slot& slot) const {
  if (!spec_.namespaces) return {};
  std::vector<NamespaceEntry> entries = machine_->Entries(*spec_.namespaces);
  const Namespace& mounts = slot.mount_namespace_;
  entries.push_back({mounts.fd.get(), CLONE_NEWNS, "mnt", mounts.id});
  return entries;
}

std::optional<ObjectId> Confinement::RootFor(const Slot& slot) const {
  if (!spec_.namespaces) return std::nullopt;
  return slot.view_root_id_;
}

std::optional<int> Confinement::ViewRootOf(const Slot& slot) const {
  if (!spec_.namespaces) return std::nullopt;
  return slot.view_root_.get();
}

// What the plan wants and a slot does not have would be taken for "none wanted" somewhere.
Status Confinement::CheckIsWhole(const Slot& slot) const {
  const auto missing = [](const char* what) { return Failure{"slot.incomplete", EBADF, what}; };
  if (!spec_.landlock.empty() && !slot.ruleset_.valid()) return missing("ruleset");
  if (!spec_.namespaces) return Status();
  for (const NamespaceEntry& entry : NamespacesFor(slot)) {
    if (entry.fd < 0) return missing(entry.name);
  }
  if (!slot.view_root_.valid()) return missing("root");
  return Status();
}

Result<std::unique_ptr<Slot>> Confinement::Build(std::shared_ptr<SessionDirectories>& session) {
  for (const std::string& parent : {spec_.temporary_parent, spec_.memory_parent}) {
    if (!parent.empty() && IsToBeSwept(parent))
      RemoveStaleDirectories(parent, kPrivateDirectoryPrefix);
  }
  KeepDescriptorsForRemoval();
  std::unique_ptr<Slot> slot(new Slot());
  Result<UniqueFd> lock =
      MakeLockedDirectory(spec_.temporary_parent, kPrivateDirectoryPrefix, slot->directory_);
  if (!lock.ok()) return lock.failure();
  slot->directory_lock_ = std::move(lock.value());
  slot->Hold(slot->directory_);
  if (spec_.shares_directories) {
    Result<std::shared_ptr<SessionDirectories>> shared =
        machine_->Directories(spec_.temporary_parent, spec_.memory_parent);
    if (!shared.ok()) return shared.failure();
    session = slot->session_ = std::move(shared.value());
  } else if (!spec_.memory_parent.empty()) {
    Result<UniqueFd> memory_lock =
        MakeLockedDirectory(spec_.memory_parent, kPrivateDirectoryPrefix, slot->memory_directory_);
    if (!memory_lock.ok()) return memory_lock.failure();
    slot->memory_directory_lock_ = std::move(memory_lock.value());
    slot->Hold(slot->memory_directory_);
  }
  if (spec_.cache) {
    slot->cache_directory_ = spec_.cache->directory;
    slot->cache_lock_path_ = spec_.cache->lock;
    slot->cache_lock_.reset(
        open(slot->cache_lock_path_.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!slot->cache_lock_.valid()) return Failure{"cache.lock", errno, slot->cache_lock_path_};
    for (const SeedLinkSpec& link : spec_.seed_links) {
      slot->AddWay(slot->HostPath(link.path), slot->HostPath(link.content));
    }
    if (Status locked = slot->LockCache(kCacheWait); !locked.ok()) return locked.failure();
  }
  for (const std::string& name : spec_.slot_directories) {
    if (IsSharedBySession(*slot, name)) continue;
    const std::string path = slot->HostPath(name);
    if (mkdir(path.c_str(), 0700) != 0 || chmod(path.c_str(), 0700) != 0)
      return Failure{"private_directory", errno, path};
    slot->Hold(path);
  }

  for (const CopySpec& copy : spec_.copies) {
    // What is mounted over the source vanishes when a process outside replaces the source.
    const Result<Found> found = LookFor(copy.source, "copy");
    if (!found.ok()) return found.failure();
    slot->Watch(copy.source, found.value().exists, found.value().info, true);
    slot->copies_.Add(copy, copy.path.substr(strlen(kSlotPrefix)));
  }

  std::vector<std::pair<const PathRuleSpec*, UniqueFd>> view_objects;
  if (spec_.namespaces) {
    if (Status made = machine_->Ensure(*spec_.namespaces); !made.ok()) return made.failure();
    if (Status status = BuildView(*slot, view_objects); !status.ok()) return status.failure();
  }
  if (spec_.launcher) {
    for (const LauncherSpec::Conditional& one : spec_.launcher->conditional) {
      const Result<Found> found = LookFor(one.path, "launcher.look");
      if (!found.ok()) return found.failure();
      slot->Watch(one.path, found.value().exists, found.value().info, true);
    }
  }
  if (!spec_.landlock.empty()) {
    if (Status status = AddRules(*slot, view_objects); !status.ok()) return status.failure();
  }
  if (Status status = CheckIsWhole(*slot); !status.ok()) return status.failure();
  slot->GroupAbsences();
  if (spec_.observed != Observed::kNothing)
    slot->held_by_ = std::make_shared<const HeldBy>(WhatHolds(*slot));
  return slot;
}

HeldBy Confinement::WhatHolds(const Slot& slot) const {
  HeldBy held_by;
  held_by.handled_fs = spec_.landlock.handled_fs;
  held_by.has_view = spec_.namespaces.has_value();
  held_by.scopes_signals = (spec_.landlock.scoped & abi::kLandlockScopeSignal) != 0;
  held_by.tells_uses = spec_.observed == Observed::kUses;
  held_by.has_own_network = spec_.namespaces && spec_.namespaces->network;
  if (held_by.has_own_network) held_by.own_sockets = machine_->sockets();
  if (spec_.index != nullptr) {
    const IndexSpec& looked_for = spec_.index->spec();
    held_by.names = {looked_for.names.begin(), looked_for.names.end()};
    held_by.directories = {looked_for.git_names.begin(), looked_for.git_names.end()};
    held_by.names.merge(std::set(held_by.directories));
    held_by.suffixes = looked_for.suffixes;
  }
  if (held_by.has_view) {
    for (const ViewStepSpec& step : spec_.namespaces->view)
      held_by.around_mounts.insert(step.target.substr(0, step.target.find_last_of('/')));
  }
  for (const PathRuleSpec& rule : spec_.rules) {
    // As the command sees it: what is private to the slot is mounted elsewhere in a view.
    std::string path = slot.HostPath(rule.path);
    struct stat about;
    const bool is_there = stat(path.c_str(), &about) == 0;
    const bool is_directory = is_there ? S_ISDIR(about.st_mode) : rule.in_view;
    if (held_by.has_view) {
      for (const ViewStepSpec& step : spec_.namespaces->view)
        if (step.kind == ViewStepKind::kBind && step.source == rule.path) path = step.target;
    }
    held_by.rights[path] |= is_directory ? rule.directory_access : rule.file_access;
  }
  return held_by;
}

Result<std::string> Confinement::MakeLink(const Slot& slot, const std::string& content,
                                          size_t number) const {
  const std::string directory = slot.HostPath(kLinksDirectory);
  const std::string path = directory + "/" + std::to_string(number);
  const bool has_directory = (mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST) &&
                             chmod(directory.c_str(), 0700) == 0;
  if (!has_directory || symlink(content.c_str(), path.c_str()) != 0) {
    return Failure{"private_file", errno, path};
  }
  return path;
}

Result<std::string> Confinement::MakeEmptyFile(const Slot& slot, const char* name,
                                               mode_t mode) const {
  const std::string directory = slot.HostPath(kLinksDirectory);
  const std::string path = directory + "/" + name;
  const bool has_directory = (mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST) &&
                             chmod(directory.c_str(), 0700) == 0;
  if (!has_directory) return Failure{"private_file", errno, path};
  // It may be there already, and open to nobody.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd.valid() && errno != EEXIST) return Failure{"private_file", errno, path};
  return path;
}

Result<Confinement::Layer> Confinement::OpenLayer(const Slot& slot,
                                                  const std::vector<std::string>& lowers,
                                                  const std::string& upper,
                                                  const std::string& work) {
  Layer layer;
  // By descriptor: whatever is in a name means nothing to the options, and none shows in the view.
  const auto name = [&layer, &slot](const std::string& named) -> Result<std::string> {
    const std::string& path = layer.paths.emplace_back(slot.HostPath(named));
    Result<UniqueFd> fd = OpenPath(path, "view.open");
    if (!fd.ok()) return fd.failure();
    layer.opened.push_back(std::move(fd.value()));
    layer.parts.push_back({path.c_str(), layer.opened.back().get()});
    return "/proc/self/fd/" + std::to_string(layer.opened.back().get());
  };
  // What goes with the slot needs no time to be safe on a disk.
  layer.options = BelongsToSlot(upper) ? "userxattr,volatile" : "userxattr";
  const char* before = ",lowerdir=";
  for (const std::string& lower : lowers) {
    const Result<std::string> one = name(lower);
    if (!one.ok()) return one.failure();
    layer.options += before + one.value();
    before = ":";
  }
  if (upper.empty()) return layer;
  for (const auto& [option, path] :
       {std::pair(",upperdir=", &upper), std::pair(",workdir=", &work)}) {
    const Result<std::string> one = name(*path);
    if (!one.ok()) return one.failure();
    layer.options += option + one.value();
  }
  return layer;
}

Status Confinement::BuildView(Slot& slot,
                              std::vector<std::pair<const PathRuleSpec*, UniqueFd>>& handles) {
  const NamespaceSpec& wanted = *spec_.namespaces;
  const std::string staging = slot.HostPath(kStagingDirectory);
  if (mkdir(staging.c_str(), 0700) != 0 || chmod(staging.c_str(), 0700) != 0)
    return Failure{"private_directory", errno, staging};

  // Strings first: the steps point into them.
  std::vector<std::string> sources, targets, session_mount_points;
  std::string empty_file;
  std::vector<ViewStep> steps;
  std::vector<Layer> layers;
  for (const ViewStepSpec& spec : wanted.view) {
    ViewStep step;
    step.kind = spec.kind;
    step.read_only = spec.read_only;
    step.allow_devices = spec.allow_devices;
    std::string source = slot.HostPath(spec.source);
    if (spec.kind == ViewStepKind::kLayer) {
      std::vector<std::string> lowers = spec.lower;
      lowers.push_back(spec.source);
      if (BelongsToSlot(spec.upper)) {
        const Result<const Slot::CopiedDirectory*> added = slot.AddCopiedDirectory(spec);
        if (!added.ok()) return added.failure();
        const Slot::CopiedDirectory* const copied = added.value();
        if (copied == nullptr) continue;
        step.may_fail = true;
        lowers.clear();
        if (!copied->kept.empty()) lowers.push_back(copied->kept);
        lowers.push_back(copied->is_missing ? copied->upper + kNoSource : copied->source);
        if (copied->is_missing) {
          // Nothing can be mounted on what is not there: first what is around it gets a place.
          const auto around = [](const std::string& path) {
            return path.substr(0, path.rfind('/'));
          };
          Result<Layer> place =
              OpenLayer(slot, {copied->upper + kSkeleton, around(copied->source)}, "", "");
          if (!place.ok()) return place.failure();
          layers.push_back(std::move(place.value()));
          ViewStep with_place = step;
          with_place.parts = layers.back().parts.data();
          with_place.part_count = layers.back().parts.size();
          sources.push_back(layers.back().options);
          targets.push_back(staging + around(spec.target));
          steps.push_back(with_place);
        }
      } else {
        const Result<Found> found = LookFor(spec.source, "view.open");
        if (!found.ok()) return found.failure();
        if (!found.value().exists) return Failure{"view.open", ENOENT, spec.source};
        slot.Watch(spec.source, true, found.value().info, true);
      }
      Result<Layer> layer = OpenLayer(slot, lowers, spec.upper, spec.work);
      if (!layer.ok()) return layer.failure();
      source = layer.value().options;
      layers.push_back(std::move(layer.value()));
      step.parts = layers.back().parts.data();
      step.part_count = layers.back().parts.size();
    } else if (spec.kind == ViewStepKind::kBind) {
      const Result<Found> found = LookFor(source, "view.open");
      if (!found.ok()) return found.failure();
      const auto& [exists, info] = found.value();
      if (!BelongsToSlot(spec.source)) {
        slot.Watch(source, exists, info, spec.required || spec.watched);
      }
      if (!exists) {
        if (spec.required) return Failure{"view.open", ENOENT, source};
        continue;
      }
      step.is_directory = S_ISDIR(info.st_mode);
      if (spec.from_view) source.insert(0, staging);
    } else if (spec.kind == ViewStepKind::kBindLink) {
      const Result<Found> found = LookFor(spec.target, "view.link");
      if (!found.ok()) return found.failure();
      const auto& [exists, info] = found.value();
      slot.Watch(spec.target, exists, info, true);
      if (!exists && spec.required) return Failure{"view.link", ENOENT, spec.target};
      if (!exists) continue;
      Result<std::string> link = MakeLink(slot, spec.source, steps.size());
      if (!link.ok()) return link.failure();
      source = std::move(link.value());
    } else if (spec.kind == ViewStepKind::kEmptied) {
      const Result<Found> found = LookFor(spec.target, "view.hide");
      if (!found.ok()) return found.failure();
      const auto& [exists, info] = found.value();
      slot.Watch(spec.target, exists, info, true);
      if (!exists && !spec.from_view) continue;
      step.read_only = true;
      step.is_directory = S_ISDIR(info.st_mode);
      if (spec.refused && !step.is_directory) {
        Result<std::string> shut = MakeEmptyFile(slot, "shut", 0);
        if (!shut.ok()) return shut.failure();
        source = std::move(shut.value());
      } else if (spec.from_view || !step.is_directory) {
        if (empty_file.empty()) {
          Result<std::string> empty = MakeEmptyFile(slot, "empty", S_IRUSR | S_IRGRP | S_IROTH);
          if (!empty.ok()) return empty.failure();
          empty_file = std::move(empty.value());
        }
        if (spec.from_view) {
          step.file_source = empty_file.c_str();
        } else {
          source = empty_file;
        }
      }
    }
    // What lies inside a directory of the slot has to survive the cleaning between two commands.
    for (const ViewStepSpec& outer : wanted.view) {
      if (outer.kind == ViewStepKind::kBind && BelongsToSlot(outer.source) &&
          outer.target != spec.target && IsBeneathOrSame(spec.target, outer.target)) {
        const std::string inner =
            slot.HostPath(outer.source) + spec.target.substr(outer.target.size());
        // What is in a directory of the session stays anyway.
        step.in_session = IsSharedBySession(slot, outer.source);
        (step.in_session ? session_mount_points : slot.mount_points_).push_back(inner);
      }
    }
    sources.push_back(std::move(source));
    targets.push_back(staging + spec.target);
    steps.push_back(step);
    if (!IsSharedBySession(slot, spec.source)) continue;
    // The other commands of the session could move a directory on the way to a mount, and put a
    // link in its place. A mount point cannot be moved, so each of those directories becomes one.
    for (const std::string& target : DirectoriesToMounts(spec.target, wanted.view)) {
      ViewStep pin;
      pin.kind = ViewStepKind::kBind;
      pin.is_directory = true;
      pin.in_session = true;
      pin.makes_source = true;
      sources.push_back(staging + target);
      targets.push_back(staging + target);
      steps.push_back(pin);
    }
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].source = sources[i].c_str();
    steps[i].target = targets[i].data();
    steps[i].target_parent_from = staging.size();
  }
  std::vector<ViewHandle> objects = {{"/", true, -1}};
  for (const PathRuleSpec& rule : spec_.rules) {
    if (rule.in_view) objects.push_back({rule.path.c_str(), rule.required, -1});
  }

  ViewSetupPlan plan;
  if (wanted.user) plan.user_fd = machine_->user_fd();
  plan.staging = staging.c_str();
  plan.steps = steps.data();
  plan.step_count = steps.size();
  plan.handles = objects.data();
  plan.handle_count = objects.size();
  Status made = RunSetup(RunViewSetup, plan, 0, "view.create");
  UniqueFd mount(plan.mount_fd);
  slot.view_root_.reset(objects[0].fd);
  size_t next = 1;
  for (const PathRuleSpec& rule : spec_.rules) {
    if (rule.in_view) handles.emplace_back(&rule, UniqueFd(objects[next++].fd));
  }
  if (!made.ok()) {
    std::string& path = made.failure().path;
    if (path.starts_with(staging)) path.erase(0, staging.size());
    return made;
  }
  if (Status taken = TakeNamespace(mount.release(), "mnt", slot.mount_namespace_); !taken.ok()) {
    return taken;
  }
  if (Status root = CheckViewRoot(slot.view_root_.get(), slot.view_root_id_); !root.ok()) {
    return root;
  }
  for (Slot::CopiedDirectory& copied : slot.copied_directories_) {
    struct stat info;
    if (lstat(copied.upper.c_str(), &info) != 0) return Failure{"slot.stat", errno, copied.upper};
    copied.made = StampOf(info);
  }
  std::erase_if(slot.mount_points_, [](const std::string& path) {
    struct stat info;
    // What lies inside another mount has no directory here.
    return lstat(path.c_str(), &info) != 0;
  });
  for (const std::string& path : session_mount_points) slot.Hold(path);
  for (const std::string& path : slot.mount_points_) {
    // As they are for the next command, which must not see that there was one.
    for (size_t end = path.rfind('/'); end > slot.directory_.size();
         end = path.rfind('/', end - 1)) {
      chmod(path.substr(0, end).c_str(), 0700);
    }
    slot.Hold(path);
    slot.AddMountPoint(path);
  }
  return Status();
}

Status Confinement::AddRules(Slot& slot,
                             std::vector<std::pair<const PathRuleSpec*, UniqueFd>>& handles) {
  Result<UniqueFd> ruleset = CreateRuleset(spec_.landlock);
  if (!ruleset.ok()) return ruleset.failure();
  for (const PathRuleSpec& rule : spec_.rules) {
    if (rule.in_view) continue;
    const std::string path = slot.HostPath(rule.path);
    Result<UniqueFd> opened = OpenPath(path, "landlock.open");
    if (!opened.ok()) {
      const int error = opened.failure().error;
      const bool missing = error == ENOENT || error == ENOTDIR;
      if (rule.required || !missing) return opened.failure();
      slot.Watch(path, false, {}, rule.required);
      continue;
    }
    struct stat info;
    if (fstat(opened.value().get(), &info) != 0) return Failure{"landlock.open", errno, path};
    if (!BelongsToSlot(rule.path)) slot.Watch(path, true, info, rule.required);
    const uint64_t access = S_ISDIR(info.st_mode) ? rule.directory_access : rule.file_access;
    if (access == 0) continue;
    if (Status status = AddPathRule(ruleset.value().get(), opened.value().get(), access, path);
        !status.ok()) {
      return status;
    }
  }
  for (auto& [rule, fd] : handles) {
    if (!fd.valid()) continue;
    struct stat info;
    if (fstat(fd.get(), &info) != 0) return Failure{"landlock.open", errno, rule->path};
    const uint64_t access = S_ISDIR(info.st_mode) ? rule->directory_access : rule->file_access;
    if (access == 0) continue;
    if (Status status = AddPathRule(ruleset.value().get(), fd.get(), access, rule->path);
        !status.ok()) {
      return status;
    }
  }
  slot.ruleset_ = std::move(ruleset.value());
  return Status();
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
    // It stays with its way or goes with it.
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
