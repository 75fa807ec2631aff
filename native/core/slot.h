#ifndef SANDBOX_RUN_CORE_SLOT_H_
#define SANDBOX_RUN_CORE_SLOT_H_

#include <sys/stat.h>

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "core/child.h"
#include "core/effects.h"
#include "core/machine.h"
#include "core/private_copies.h"
#include "core/session_directories.h"
#include "sys/file_stamp.h"

namespace sandbox_run {

struct ConfinementSpec;
struct ViewStepSpec;

// The private half of a confinement, used by one command at a time: its directories, and the
// ruleset and mount namespace that refer to them.
class Slot {
 public:
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot();

  // The objects that the confinement wants; a slot without one of them is never handed out.
  int ruleset_fd() const { return ruleset_.get(); }
  const std::string& directory() const { return directory_; }
  // The directories that belong to the command, on the host.
  std::vector<std::string> PrivateDirectories() const;
  // The directories that it shares with other commands of its session; nullptr: none.
  const std::shared_ptr<SessionDirectories>& session() const { return session_; }
  // The host path of a spec path.
  std::string HostPath(const std::string& path) const;
  // What the command did since the last call: what it made of its private copies, the directories
  // whose writable layer it changed, and the first few things that it made in `told_directories` of
  // the confinement, which go with it.
  Effects TakeEffects(const ConfinementSpec& spec);
  // No command uses the slot any more: directories that it shares may be cleared, or removed.
  void LetGoOfShared();
  // Whether the command renamed a directory of the slot, or one above a mount point in it: the next
  // command, and the removal, would find something else at that path.
  bool HasMoved() const;

 private:
  friend class Confinement;
  // How often a watched path is checked again.
  enum class Look {
    kOften,          // at most once a second
    kWithDirectory,  // when the directory that it is in has changed
    kEachTime,       // before each command; with its directory if it is not there
  };
  struct Identity {
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;
    bool exists = false;
    Look look = Look::kOften;
  };
  // Paths by the directory that they are or would be in: there may be a hundred of them, and
  // looking at each would cost a tenth of a launch.
  struct Neighbours {
    std::string place;
    std::vector<Identity> names;
    FileStamp stamp;
    int64_t looked_ns = 0;
  };
  // One entry of a directory of the slot with links to the cache, seeded files or mount points in
  // it. A command seldom does anything to it, and to make it anew costs a tenth of a launch.
  struct Way {
    std::string top;                           // host path, as the others
    std::map<std::string, std::string> links;  // what they lead to
    std::map<std::string, FileStamp> directories;
    std::vector<std::string> seeds;  // files that are put beside the links
    std::vector<std::string> mount_points;
    int64_t looked_ns = 0;
    bool intact = false;
  };
  // A directory of the host that commands see with a layer of the slot over it, and so may write
  // without changing it.
  struct CopiedDirectory {
    std::string source;
    std::string upper;  // host path; no command can reach it
    // What lay in the source: its directories, itself included, and its files if `kept` hides them.
    // Where the source is missing, the directory that it would be in.
    std::map<std::string, FileStamp> beneath;
    int64_t looked_ns = 0;
    bool is_missing = false;
    std::string kept;  // what earlier commands left, mounted over the source; empty: nothing
    FileStamp made;    // `upper` when no command had run
    mode_t mode = 0;
    std::vector<CopiedEntry> taken;  // what was told last
  };
  // Makes what the layer needs. nullptr: nothing is to be laid over it.
  Result<const CopiedDirectory*> AddCopiedDirectory(const ViewStepSpec& spec);
  static bool IsUntouched(const CopiedDirectory& copied);
  // The kernel remembers names that were not there: a layer does not show a file that came later.
  static bool IsSourceSame(const CopiedDirectory& copied);
  Slot() = default;
  std::vector<ChangedDirectory> TakeChangedDirectories();
  std::vector<std::string> TakeMade(const ConfinementSpec& spec);
  // The way in which a link, seeded file or mount point is, with the directories that lead to it.
  Way& WayTo(const std::string& path);
  // Whether it lies deeper than directly in a directory of the slot.
  bool IsDeep(const std::string& path) const;
  Status MakeWays();
  // Notes the state of all ways, once everything is in them.
  Status NoteWays();
  // Whether a way is as NoteWays() saw it, with nothing else in it.
  static bool IsUntouched(Way& way);
  // Locks the cache against clearing. Waits this long for a process that is clearing it.
  Status LockCache(std::chrono::milliseconds wait);
  void Hold(const std::string& path);
  // Remembers which object a host path names (`info` is meaningless if there is none).
  void Watch(const std::string& path, bool exists, const struct stat& info, Look look);
  // Call after all paths were added.
  void GroupByDirectory();
  static bool AreSame(Neighbours& neighbours);
  static bool IsSame(const Identity& known);
  // False once a path leads elsewhere. The system's own are looked at `kOften`: a rule and a mount
  // stay with the old object, so being late gives nothing away.
  bool IsCurrent();

  std::string directory_;
  std::string memory_directory_;
  UniqueFd directory_lock_, memory_directory_lock_;
  std::shared_ptr<SessionDirectories> session_;          // while a command uses the slot
  std::weak_ptr<SessionDirectories> session_when_idle_;  // the same, while none does
  std::string cache_directory_, cache_lock_path_;
  UniqueFd cache_lock_;
  UniqueFd ruleset_;
  Namespace mount_namespace_;
  UniqueFd view_root_;
  ObjectId view_root_id_;
  std::vector<Identity> identities_;
  std::vector<Neighbours> neighbours_;
  // No path was looked at before.
  const int64_t began_ns_ = FileClockNow();
  std::chrono::steady_clock::time_point checked_ = std::chrono::steady_clock::now();
  std::vector<Identity> held_directories_;
  bool clean_ = true;  // false: something of the last command could not be removed
  PrivateCopies copies_;
  std::vector<FileStamp> seeds_;  // the seed files as they were made; none: to be made anew
  std::vector<std::string> mount_points_;  // host paths inside the slot that must be kept
  std::set<std::string> told_;             // what TakeMade() told of this command
  std::vector<Way> ways_;
  std::vector<CopiedDirectory> copied_directories_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_SLOT_H_
