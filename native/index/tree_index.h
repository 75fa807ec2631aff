#ifndef SANDBOX_RUN_INDEX_TREE_INDEX_H_
#define SANDBOX_RUN_INDEX_TREE_INDEX_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "index/indexed_tree.h"
#include "index/tree_places.h"

namespace sandbox_run {

struct IndexEntry {
  std::string path;
  EntryKind kind = EntryKind::kOther;
};

// What the first walk found.
struct Indexed {
  std::vector<IndexEntry> entries;
  size_t directories = 0;
  size_t read = 0;  // and not only looked at, since the index was made or saved
  bool spent = false;
  bool spent_beside = false;
  std::vector<std::string> unreadable;
};

struct ChangedEntry {
  IndexEntry entry;
  EntryChange change = EntryChange::kChanged;
  // Before the command or turn began, and since another one did: it may be theirs, or the user's.
  bool earlier = false;
};

// What commands left behind.
struct LeftBehind {
  std::vector<ChangedEntry> entries;
  bool spent = false;
  std::vector<std::string> unreadable;
  bool empty() const { return entries.empty() && !spent && unreadable.empty(); }
};

// What is noted in a tree, and at some paths besides. Tells what came, went or changed while
// commands ran; what did before is the user's own and is passed over. Thread-safe.
class TreeIndex : public std::enable_shared_from_this<TreeIndex> {
 public:
  explicit TreeIndex(IndexSpec spec);

  const IndexSpec& spec() const { return spec_; }

  // What is known, for an index of the same specification in a later process; empty where it is not
  // worth keeping, as not everything could be looked at. Where it is kept no command may write.
  std::string Save(const SavedMoment& now = SavedMoment::Now());
  // Before the first walk, which then looks at each directory and reads what changed meanwhile.
  // What is damaged, of another specification, another boot or of a clock that was set back is
  // passed over.
  void Recall(std::string saved, SavedMoment now = SavedMoment::Now());

  // The first walk, if there was none.
  Status EnsureRead();
  // What is there: by the first walk, or again, for an index that nothing runs with. Then only
  // directories that may have changed are read, and what changed is told to nobody. If it has
  // something to say besides entries, only a new index says what a first walk would.
  Result<Indexed> Read();
  // Further absolute paths, there or not. Before the first command.
  void WatchPaths(const std::vector<std::string>& paths);

  // Nothing is to run with it any more: gives back what it watches with. What does is looked at as
  // before.
  void StopWatching();

  // Something runs that may change the tree: a command, or a shell with its turns.
  class Activity {
   public:
    explicit Activity(std::shared_ptr<TreeIndex> index);
    ~Activity();
    Activity(const Activity&) = delete;
    Activity& operator=(const Activity&) = delete;

    // `began_ns`: by FileClockNow().
    void BeginTurn(int64_t began_ns);
    // The changes to report now. Later changes may belong to this command again.
    LeftBehind Look();

   private:
    friend class TreeIndex;
    const std::shared_ptr<TreeIndex> index_;
    int64_t since_ns_ = 0;         // nothing before is of this one
    int64_t since_steady_ns_ = 0;  // the same, by a clock that cannot be set
    int64_t turn_ns_ = 0;          // the command or the turn began
  };
  // Call EnsureRead() before.
  std::unique_ptr<Activity> Begin();

 private:
  struct Watched {
    std::string path;
    std::optional<EntryState> state;  // none: it is not there
    int64_t looked_ns = 0;
    bool unreadable = false;
  };

  Status EnsureReadLocked();
  void MakeTrees();
  // Whether all is known by what was saved.
  bool ReadSaved();
  void LookAnew();
  void LookAtTrees(TreeRound& round);
  // A first walk, or one that is as good: what is spent and unreadable is kept for it.
  Status Walk(TreeRound& round);
  void LookAtWatched(TreeRound& round);
  int64_t Oldest() const;
  void Keep(std::vector<std::string> unreadable);

  const IndexSpec spec_;
  std::mutex mutex_;               // guards what follows
  std::deque<IndexedTree> trees_;  // the root's first
  bool is_read_ = false;
  std::string saved_;        // to be taken back with the first walk
  SavedMoment saved_until_;  // when it was given
  // Since when something that could not be looked at may have changed; kSomeTime: all was.
  int64_t owed_ns_ = kSomeTime;
  bool spent_ = false;                   // by the first walk
  bool spent_beside_ = false;            // the same, beside the root
  std::vector<std::string> unreadable_;  // for it
  // Too much for one look, or seen without a request.
  std::vector<std::string> untold_unreadable_;
  std::vector<ChangedEntry> untold_;
  std::vector<Watched> watched_;
  std::vector<const Activity*> running_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_INDEX_TREE_INDEX_H_
