#ifndef SANDBOX_RUN_INDEX_INDEXED_TREE_H_
#define SANDBOX_RUN_INDEX_INDEXED_TREE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "index/directory_watches.h"
#include "index/saved_tree.h"
#include "index/tree_places.h"
#include "sys/file_stamp.h"

namespace sandbox_run {

enum class EntryChange : uint8_t { kAppeared, kChanged, kVanished };

EntryKind KindOf(mode_t mode);

// What is noted, and compared with what it was.
struct EntryState {
  EntryKind kind = EntryKind::kOther;
  FileStamp stamp;
  // A directory is its own as long as it is not replaced: what is in it is noted by itself.
  bool IsSame(const EntryState& other) const {
    return kind == other.kind && stamp.device == other.stamp.device &&
           stamp.inode == other.stamp.inode &&
           (kind == EntryKind::kDirectory || stamp == other.stamp);
  }
};

// The time of a change of which no time is known.
inline constexpr int64_t kSomeTime = INT64_MAX;

// What the times of changes on a file system are worth.
enum class FileTimes : uint8_t {
  kForeign,   // of another clock, or of an unknown one
  kLocal,     // of FileClockNow(): two changes in one tick have one time
  kDistinct,  // a change after a look has another time than was seen (since Linux 6.13)
};
FileTimes FileTimesOf(int fd);

struct Difference {
  std::string path;  // absolute
  EntryChange change = EntryChange::kChanged;
  EntryState state;  // as it is, or was
  int64_t when_ns = 0;
};

// One look at a tree, or the first walk.
struct TreeRound {
  bool is_first = false;  // nothing is known to compare with, and nothing may go wrong
  bool is_anew = false;   // as good as a first one: nothing is taken on the word of anything
  size_t budget = 0;      // directories that may be entered for the first time
  bool spent = false;     // there were more
  // A change since then may have left the time of the last look.
  int64_t began_ns = kSomeTime;
  std::vector<Difference> differences;
  std::vector<std::string> unreadable;
  std::optional<Failure> failure;
};

// The directories of a tree and what is noted in them. No links are followed, and nothing is done
// for what did not change but one system call each.
class IndexedTree {
 public:
  IndexedTree(std::string root, TreePlaces places);
  ~IndexedTree();
  IndexedTree(const IndexedTree&) = delete;
  IndexedTree& operator=(const IndexedTree&) = delete;

  void Look(TreeRound& round);
  void StopWatching() { watches_.Close(); }
  size_t directories() const { return directories_; }
  // Directories that were read, and not only looked at, and that were not saved so.
  size_t read() const { return read_; }
  bool has_local_times() const { return has_local_times_; }
  void ForEach(const std::function<void(std::string path, EntryKind kind)>& each);
  // What is known, of what its times are worth something on the file system of the root.
  void Save(SavedWriter& out);
  // Before the first look, which takes nothing on its word: that has to be one anew. False: it is
  // none, and this tree is unusable.
  [[nodiscard]] bool Restore(SavedReader& in);

 private:
  struct Noted {
    std::string name;
    EntryState state;
    int64_t looked_ns = 0;
  };
  struct Directory {
    Directory* parent = nullptr;
    std::string name;
    ino_t listed_inode = 0;  // as its parent lists it
    FileStamp stamp;
    int64_t listed_ns = 0;
    // When entries that are found in it for the first time can have come there with the directory.
    int64_t fresh_ns = 0;
    TreePlace place;
    bool is_git = false;
    FileTimes times = FileTimes::kForeign;
    bool entered = false;                // what is in it is known
    bool stale = false;                  // it has to be listed, whatever its time
    bool unreadable = false;             // and that was told
    int watch = -1;                      // by which the kernel says when something comes or goes
    bool touched = false;                // it said so
    size_t cursor = 0, path_length = 0;  // of a visit
    size_t ahead = 0;                    // of a look: which of ahead_, and one more
    std::vector<Noted> noted;            // by name
    std::vector<std::unique_ptr<Directory>> children;
  };
  struct Listed {
    size_t name_at;  // in names_
    size_t name_length;
    ino_t inode;
    EntryKind kind;
  };

  // What fstatat(2) said of a directory.
  struct Ahead {
    Directory* directory;
    int error;
    FileStamp stamp;
  };

  // Looks at many directories at once, on several threads, for the visits that follow.
  void LookAhead();
  void LookAheadAt(size_t begin, size_t end);
  // What a directory is now, or an errno.
  int StampNow(Directory& directory, FileStamp& stamp);
  // Marks watched directories that must be looked at in this round.
  void TakeTouched(const TreeRound& round);
  void VisitAll(TreeRound& round);
  // False: nothing beneath it is to be looked at.
  bool Check(Directory& directory, TreeRound& round);
  // Watches a directory of which everything is known: what it has is as it was listed, unless its
  // time says otherwise once it is watched (false).
  bool Watch(Directory& directory);
  void CheckNoted(Directory& directory, TreeRound& round);
  void Enter(Directory& directory, TreeRound& round);
  int List(int fd);  // into listed_; 0 or an errno
  void Classify(Directory& directory, int fd, const FileStamp& stamp);
  void TakeNoted(Directory& directory, int fd, TreeRound& round);
  void TakeChildren(Directory& directory, TreeRound& round);
  void Compare(Directory& directory, Noted& noted, const EntryState& now, int64_t looked_ns,
               TreeRound& round);
  Directory* FindChild(const Directory& directory, const Listed& listed) const;
  void Forget(std::unique_ptr<Directory> directory, int64_t when_ns, TreeRound& round);
  void Refused(Directory& directory, int error, TreeRound& round);
  void TellUnreadable(Directory& directory, TreeRound& round);
  // The path of a directory relative to the root.
  static std::string PathOf(const Directory& directory);
  std::string Absolute(std::string_view name) const;
  std::string_view NameOf(const Listed& listed) const {
    return {names_.data() + listed.name_at, listed.name_length};
  }

  const std::string root_;
  const TreePlaces places_;
  Directory top_;
  size_t directories_ = 0, read_ = 0;
  bool has_local_times_ = true;
  DirectoryWatches watches_;
  size_t rounds_ = 0;
  int64_t looked_at_all_ns_ = 0;  // of the steady clock
  // During a look.
  bool looks_at_all_ = true;
  size_t may_watch_ = 0;  // so many directories more
  UniqueFd root_fd_;
  std::string path_;  // of the directory that is looked at, beneath the root
  std::vector<char> buffer_;
  std::vector<char> names_;  // each ended by NUL
  std::vector<Listed> listed_;
  bool has_head_ = false;
  std::deque<Directory*> queue_;  // to be entered
  std::vector<Ahead> ahead_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_INDEX_INDEXED_TREE_H_
