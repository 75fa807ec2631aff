#include "index/tree_index.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "base/unique_fd.h"
#include "sys/files.h"

namespace sandbox_run {
namespace {

// New directories that one look enters; the next one goes on.
constexpr size_t kMaxNewDirectories = 200'000;
// A clock that was set back by more makes every time doubtful.
constexpr int64_t kSetBackNs = 100'000'000;

// Takes the first `most` changes to report; the others stay.
template <typename T>
std::vector<T> TakeSome(std::vector<T>& all, size_t most) {
  if (all.size() <= most) return std::exchange(all, {});
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(most);
  std::vector<T> some(std::make_move_iterator(all.begin()), std::make_move_iterator(end));
  all.erase(all.begin(), end);
  return some;
}

int64_t SteadyNow() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return Nanoseconds(now);
}

std::string Above(const std::string& path) {
  const size_t end = path.rfind('/');
  return end == 0 || end == std::string::npos ? "/" : path.substr(0, end);
}

// When a path can have come to be what it is: it may have come with a directory above it, which
// changes the directory's own time and that of the one above.
int64_t WhenCame(const std::string& path, int64_t changed_ns) {
  int64_t when = changed_ns;
  int64_t lower = changed_ns;
  for (std::string at = path; at != "/";) {
    at = Above(at);
    const Result<UniqueFd> fd = OpenPath(at, "index");
    struct stat info;
    if (!fd.ok() || FileTimesOf(fd.value().get()) == FileTimes::kForeign ||
        fstat(fd.value().get(), &info) != 0) {
      return kSomeTime;
    }
    const int64_t upper = Nanoseconds(info.st_ctim);
    when = std::max(when, std::min(lower, upper));
    lower = upper;
  }
  return when;
}

// Two changes of it may have one time.
bool MayRepeat(const std::string& path) {
  const Result<UniqueFd> fd = OpenPath(path, "index");
  return !fd.ok() || FileTimesOf(fd.value().get()) != FileTimes::kDistinct;
}

int64_t WhenWent(const std::string& path) {
  for (std::string at = path; at != "/";) {
    at = Above(at);
    struct stat info;
    if (lstat(at.c_str(), &info) == 0) {
      const Result<UniqueFd> fd = OpenPath(at, "index");
      return fd.ok() && FileTimesOf(fd.value().get()) != FileTimes::kForeign
                 ? Nanoseconds(info.st_ctim)
                 : kSomeTime;
    }
  }
  return kSomeTime;
}

// Joins a removal and an addition at one path: the entry was replaced, or its directory was.
void JoinReplaced(std::vector<Difference>& differences) {
  std::unordered_map<std::string, Difference*> gone;
  for (Difference& one : differences) {
    if (one.change == EntryChange::kVanished) gone.emplace(one.path, &one);
  }
  if (gone.empty()) return;
  constexpr int64_t kDropped = INT64_MIN;
  for (Difference& one : differences) {
    if (one.change != EntryChange::kAppeared) continue;
    const auto before = gone.find(one.path);
    if (before == gone.end()) continue;
    one.change = EntryChange::kChanged;
    before->second->when_ns = kDropped;
    if (one.state.IsSame(before->second->state)) one.when_ns = kDropped;
  }
  std::erase_if(differences, [](const Difference& one) { return one.when_ns == kDropped; });
}

// The form of what is saved.
constexpr uint64_t kForm = 1;

void PutSpec(const IndexSpec& spec, SavedWriter& out) {
  const auto put = [&out](const std::vector<std::string>& texts) {
    out.Put(static_cast<uint64_t>(texts.size()));
    for (const std::string& text : texts) out.Put(std::string_view(text));
  };
  out.Put(std::string_view(spec.root));
  for (const auto* texts :
       {&spec.beside, &spec.names, &spec.suffixes, &spec.git_names, &spec.wholes})
    put(*texts);
  for (const size_t number : {size_t{spec.links}, spec.max_directories, spec.max_beside})
    out.Put(static_cast<uint64_t>(number));
}

std::string SpecAsText(const IndexSpec& spec) {
  SavedWriter text;
  PutSpec(spec, text);
  return std::move(text).Take();
}

}  // namespace

TreeIndex::TreeIndex(IndexSpec spec) : spec_(std::move(spec)) { MakeTrees(); }

void TreeIndex::MakeTrees() {
  trees_.clear();
  trees_.emplace_back(spec_.root, TreePlaces(spec_));
  for (const std::string& root : spec_.beside) trees_.emplace_back(root, TreePlaces(spec_));
}

Status TreeIndex::EnsureRead() {
  const std::lock_guard lock(mutex_);
  return EnsureReadLocked();
}

Status TreeIndex::EnsureReadLocked() {
  if (is_read_) return Status();
  TreeRound round;
  round.is_first = true;
  if (!ReadSaved()) {
    if (Status walked = Walk(round); !walked.ok()) return walked;
  }
  LookAtWatched(round);
  is_read_ = true;
  return Status();
}

Status TreeIndex::Walk(TreeRound& round) {
  size_t known_beside = 0;
  for (size_t i = 1; i < trees_.size(); ++i) known_beside += trees_[i].directories();
  const auto left = [](size_t most, size_t known) { return known < most ? most - known : 0; };
  for (IndexedTree& tree : trees_) {
    const bool is_root = &tree == &trees_.front();
    if (is_root) {
      round.budget = left(spec_.max_directories, tree.directories());
    } else if (&tree == &trees_[1]) {
      round.budget = left(spec_.max_beside, known_beside);
    }
    round.spent = false;
    tree.Look(round);
    if (round.failure && is_root) return *round.failure;
    // What is granted beside it need not be readable.
    if (round.failure) round.unreadable.push_back(round.failure->path);
    round.failure.reset();
    bool& spent = is_root ? spent_ : spent_beside_;
    spent = spent || round.spent;
  }
  unreadable_.insert(unreadable_.end(), round.unreadable.begin(), round.unreadable.end());
  return Status();
}

std::string TreeIndex::Save(const SavedMoment& now) {
  const std::lock_guard lock(mutex_);
  if (!is_read_ || now.of.empty() || spent_ || spent_beside_ || !unreadable_.empty()) return "";
  SavedWriter out;
  out.Put(kForm);
  out.Put(std::string_view(now.of));
  out.Put(now.real_ns);
  out.Put(now.counted_ns);
  out.Put(std::string_view(SpecAsText(spec_)));
  for (IndexedTree& tree : trees_) tree.Save(out);
  return std::move(out).Take();
}

void TreeIndex::Recall(std::string saved, SavedMoment now) {
  const std::lock_guard lock(mutex_);
  saved_ = std::move(saved);
  saved_until_ = std::move(now);
}

bool TreeIndex::ReadSaved() {
  const std::string saved = std::exchange(saved_, {});
  if (saved.empty()) return false;
  SavedReader in(saved);
  const std::optional<uint64_t> form = in.Take<uint64_t>();
  const std::optional<std::string_view> of = in.TakeText();
  const std::optional<int64_t> real_ns = in.Take<int64_t>(), counted_ns = in.Take<int64_t>();
  const std::optional<std::string_view> spec = in.TakeText();
  if (form != kForm || !of || !real_ns || !counted_ns || spec != SpecAsText(spec_) ||
      !saved_until_.Follows({std::string(*of), *real_ns, *counted_ns})) {
    return false;
  }
  const bool is_restored = std::all_of(trees_.begin(), trees_.end(),
                                       [&in](IndexedTree& tree) { return tree.Restore(in); });
  if (is_restored && in.empty()) {
    LookAnew();
    if (!spent_ && !spent_beside_ && unreadable_.empty()) return true;
  }
  // Only a first walk says what cannot be looked at.
  MakeTrees();
  spent_ = spent_beside_ = false;
  unreadable_.clear();
  return false;
}

void TreeIndex::LookAtTrees(TreeRound& round) {
  for (IndexedTree& tree : trees_) tree.Look(round);
}

Result<Indexed> TreeIndex::Read() {
  const std::lock_guard lock(mutex_);
  if (is_read_) {
    LookAnew();
  } else if (Status read = EnsureReadLocked(); !read.ok()) {
    return read.failure();
  }
  Indexed indexed{{}, 0, 0, spent_, spent_beside_, unreadable_};
  for (IndexedTree& tree : trees_) {
    indexed.directories += tree.directories();
    indexed.read += tree.read();
    tree.ForEach([&indexed](std::string path, EntryKind kind) {
      indexed.entries.push_back({std::move(path), kind});
    });
  }
  return indexed;
}

// Compares each directory's change time, which only the clock sets, and its device and inode
// number, which differ after a mount or a replacement. inotify(7) would be faster where nothing
// changed, but does not report mounts, and its events can be lost.
void TreeIndex::LookAnew() {
  TreeRound round;
  round.is_anew = true;
  const bool is_over = trees_.front().directories() > spec_.max_directories;
  // A root that has vanished is reported as unreadable.
  (void)Walk(round);
  spent_ = spent_ || is_over;
}

void TreeIndex::WatchPaths(const std::vector<std::string>& paths) {
  const std::lock_guard lock(mutex_);
  TreeRound round;
  round.is_first = true;
  for (const std::string& path : paths) watched_.push_back({path, std::nullopt, 0, false});
  LookAtWatched(round);
  Keep(std::move(round.unreadable));
}

void TreeIndex::StopWatching() {
  const std::lock_guard lock(mutex_);
  for (IndexedTree& tree : trees_) tree.StopWatching();
}

void TreeIndex::Keep(std::vector<std::string> unreadable) {
  untold_unreadable_.insert(untold_unreadable_.end(), std::make_move_iterator(unreadable.begin()),
                            std::make_move_iterator(unreadable.end()));
}

void TreeIndex::LookAtWatched(TreeRound& round) {
  for (Watched& one : watched_) {
    const int64_t looked_ns = FileClockNow();
    struct stat info;
    const bool is_there = lstat(one.path.c_str(), &info) == 0;
    if (!is_there && errno != ENOENT && errno != ENOTDIR) {
      if (!std::exchange(one.unreadable, true)) round.unreadable.push_back(one.path);
      continue;
    }
    one.unreadable = false;
    std::optional<EntryState> now;
    if (is_there) now = EntryState{KindOf(info.st_mode), StampOf(info)};
    const std::optional<EntryState> before = std::exchange(one.state, now);
    const int64_t before_ns = std::exchange(one.looked_ns, looked_ns);
    if (round.is_first) continue;
    if (now && before) {
      const int64_t changed_ns = now->stamp.changed_ns;
      const bool may_hide =
          changed_ns >= round.began_ns && !IsSettled(changed_ns, before_ns) && MayRepeat(one.path);
      // Directories too: nothing else notes that entries came into one.
      if (now->kind != before->kind || now->stamp != before->stamp || may_hide) {
        round.differences.push_back(
            {one.path, EntryChange::kChanged, *now, WhenCame(one.path, changed_ns)});
      }
    } else if (now) {
      round.differences.push_back(
          {one.path, EntryChange::kAppeared, *now, WhenCame(one.path, now->stamp.changed_ns)});
    } else if (before) {
      round.differences.push_back({one.path, EntryChange::kVanished, *before, WhenWent(one.path)});
    }
  }
}

std::unique_ptr<TreeIndex::Activity> TreeIndex::Begin() {
  return std::make_unique<Activity>(shared_from_this());
}

TreeIndex::Activity::Activity(std::shared_ptr<TreeIndex> index) : index_(std::move(index)) {
  const std::lock_guard lock(index_->mutex_);
  const auto has_local_times = [](const IndexedTree& tree) { return tree.has_local_times(); };
  if (index_->running_.empty() &&
      !std::all_of(index_->trees_.begin(), index_->trees_.end(), has_local_times)) {
    // Times do not show later who made a change, so the user's own changes are noted now.
    TreeRound round;
    round.budget = kMaxNewDirectories;
    index_->LookAtTrees(round);
    index_->LookAtWatched(round);
    index_->Keep(std::move(round.unreadable));
  }
  since_ns_ = turn_ns_ = FileClockNow();
  since_steady_ns_ = SteadyNow();
  index_->running_.push_back(this);
}

TreeIndex::Activity::~Activity() {
  const std::lock_guard lock(index_->mutex_);
  std::erase(index_->running_, this);
}

void TreeIndex::Activity::BeginTurn(int64_t began_ns) {
  const std::lock_guard lock(index_->mutex_);
  turn_ns_ = began_ns;
}

// Since when changes may be a command's.
int64_t TreeIndex::Oldest() const {
  int64_t oldest = kSomeTime;
  for (const Activity* one : running_) {
    const int64_t expected = one->since_ns_ + (SteadyNow() - one->since_steady_ns_);
    if (FileClockNow() < expected - kSetBackNs) return INT64_MIN;
    oldest = std::min(oldest, one->since_ns_);
  }
  return oldest;
}

LeftBehind TreeIndex::Activity::Look() {
  const std::lock_guard lock(index_->mutex_);
  const int64_t looked_ns = FileClockNow();
  const int64_t looked_steady_ns = SteadyNow();
  TreeRound round;
  round.budget = kMaxNewDirectories;
  round.began_ns = std::min(index_->Oldest(), index_->owed_ns_);
  index_->LookAtTrees(round);
  index_->LookAtWatched(round);
  // What could not be looked at is not known to be the user's when it can be.
  index_->owed_ns_ = round.unreadable.empty() && !round.spent ? kSomeTime : round.began_ns;
  index_->Keep(std::move(round.unreadable));
  std::vector<ChangedEntry> entries = std::exchange(index_->untold_, {});
  if (!round.differences.empty()) JoinReplaced(round.differences);
  for (Difference& one : round.differences) {
    if (one.when_ns < round.began_ns) continue;
    entries.push_back({{std::move(one.path), one.state.kind},
                       one.change,
                       one.when_ns < turn_ns_ && round.began_ns != INT64_MIN});
  }
  LeftBehind left;
  left.unreadable = TakeSome(index_->untold_unreadable_, index_->spec_.max_told);
  left.entries = TakeSome(entries, index_->spec_.max_told);
  index_->untold_ = std::move(entries);
  left.spent = round.spent || !index_->untold_.empty() || !index_->untold_unreadable_.empty();
  since_ns_ = looked_ns;
  since_steady_ns_ = looked_steady_ns;
  return left;
}

}  // namespace sandbox_run
