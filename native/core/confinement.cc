#include "core/confinement.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <string_view>

#include "core/slot_paths.h"
#include "sys/files.h"
#include "sys/removal.h"

namespace sandbox_run {
namespace {

constexpr int kBuildTries = 8;

// To clear a cache takes seconds at most.
constexpr std::chrono::seconds kCacheWait{30};

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

}  // namespace

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
    // A slot that is out of date or unusable is dropped; a new one may be usable.
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

// Fails if the slot lacks an object that the plan wants: other code would take that for "not
// wanted".
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
    if (parent.empty()) continue;
    if (Status made = EnsurePrivateParent(parent); !made.ok()) return made.failure();
    if (!IsToBeSwept(parent)) continue;
    RemoveStaleDirectories(parent, kPrivateDirectoryPrefix);
    // Older versions made private directories directly in the shared directory.
    RemoveStaleDirectories(parent.substr(0, parent.rfind('/')), kPrivateDirectoryPrefix);
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
      const std::string path = slot->HostPath(link.path);
      slot->WayTo(path).links[path] = slot->HostPath(link.content);
    }
    if (Status locked = slot->LockCache(kCacheWait); !locked.ok()) return locked.failure();
  }
  for (const SeedFileSpec& seed : spec_.seed_files) {
    const std::string path = slot->HostPath(seed.path);
    if (slot->IsDeep(path)) slot->WayTo(path);
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
    slot->Watch(copy.source, found.value().exists, found.value().info, Slot::Look::kEachTime);
    slot->copies_.Add(copy, copy.path.substr(strlen(kSlotPrefix)));
  }

  std::vector<std::pair<const PathRuleSpec*, UniqueFd>> view_objects;
  if (spec_.namespaces) {
    if (Status made = machine_->Ensure(*spec_.namespaces); !made.ok()) return made.failure();
    if (Status status = BuildView(*slot, view_objects); !status.ok()) return status.failure();
  }
  for (const std::string& path : spec_.watched_paths) {
    const Result<Found> found = LookFor(path, "launcher.look");
    if (!found.ok()) return found.failure();
    slot->Watch(path, found.value().exists, found.value().info, Slot::Look::kEachTime);
  }
  if (!spec_.landlock.empty()) {
    if (Status status = AddRules(*slot, view_objects); !status.ok()) return status.failure();
  }
  if (Status status = CheckIsWhole(*slot); !status.ok()) return status.failure();
  slot->GroupByDirectory();
  return slot;
}

Status Confinement::AddRules(Slot& slot,
                             std::vector<std::pair<const PathRuleSpec*, UniqueFd>>& handles) {
  Result<UniqueFd> ruleset = CreateRuleset(spec_.landlock);
  if (!ruleset.ok()) return ruleset.failure();
  for (const PathRuleSpec& rule : spec_.rules) {
    if (rule.in_view) continue;
    const std::string path = slot.HostPath(rule.path);
    const Slot::Look look = rule.required ? Slot::Look::kEachTime : Slot::Look::kOften;
    Result<UniqueFd> opened = OpenPath(path, "landlock.open");
    if (!opened.ok()) {
      const int error = opened.failure().error;
      const bool missing = error == ENOENT || error == ENOTDIR;
      if (rule.required || !missing) return opened.failure();
      slot.Watch(path, false, {}, look);
      continue;
    }
    struct stat info;
    if (fstat(opened.value().get(), &info) != 0) return Failure{"landlock.open", errno, path};
    if (!BelongsToSlot(rule.path)) slot.Watch(path, true, info, look);
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

}  // namespace sandbox_run
