#ifndef SANDBOX_RUN_PROCESS_CONFINEMENT_H_
#define SANDBOX_RUN_PROCESS_CONFINEMENT_H_

#include <linux/filter.h>
#include <sys/stat.h>

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "landlock/ruleset.h"
#include "notify/call_observer.h"
#include "notify/network_gate.h"
#include "process/child.h"
#include "process/launcher_link.h"
#include "process/limits.h"
#include "process/private_copies.h"
#include "process/session_directories.h"
#include "process/tree_index.h"
#include "process/view_child.h"
#include "sys/file_stamp.h"

namespace sandbox_run {

// A path in a spec is a canonical host path, or one of these followed by nothing or "/name": they
// name the directories that belong to the slot.
inline constexpr char kSlotPrefix[] = "slot:";    // the private directory of a command
inline constexpr char kMemoryPrefix[] = "shm:";   // its private directory on shared memory
inline constexpr char kCachePrefix[] = "cache:";  // what the commands of a workspace share

struct PathRuleSpec {
  std::string path;
  uint64_t directory_access = 0;  // used if the object is a directory
  uint64_t file_access = 0;       // used for everything else
  bool required = false;          // a missing path is an error, otherwise it is left out
  bool in_view = false;           // names an object of the view, not of the host
};

struct ViewStepSpec {
  ViewStepKind kind = ViewStepKind::kBind;
  std::string source;
  std::string target;
  bool read_only = false;
  bool allow_devices = false;
  bool required = false;
  bool watched = false;  // looked at before and after each command, whether it is there or not
  // bind: `source` is a path of the view, as the steps before this one make it, and a host path
  // only for whether it is there. emptied: what is there is looked for in the view.
  bool from_view = false;
  bool refused = false;  // emptied: a file has no permissions
  // layer: `source` is the lowest directory; those over it, the topmost first; where changes go;
  // and a directory of overlayfs's own beside that. If both are of the slot, they are made, `lower`
  // need not be there and counts only where it is newer than `source`, and `source` is left as the
  // steps before show it where it cannot have a layer.
  std::vector<std::string> lower;
  std::string upper, work;
};

struct NamespaceSpec {
  bool user = false;  // create a user namespace first (without it CAP_SYS_ADMIN is needed)
  bool network = false;
  bool ipc = false;
  std::vector<ViewStepSpec> view;
};

struct SeedFileSpec {
  std::string path;  // "slot:..."
  std::string content;
};

// A link in a directory of the slot.
struct SeedLinkSpec {
  std::string path;     // "slot:DIRECTORY/..."
  std::string content;  // a spec path, or one of the view
};

// What the commands of one workspace keep for each other.
struct CacheSpec {
  std::string directory;  // of what is named "cache:..."
  std::string lock;       // a file; locked, shared, by each slot that a command uses
};

// A variable whose value is a directory of the slot ("slot:home"), for hosts without a view.
struct SlotVariable {
  std::string name;
  std::string path;
};

// A namespace that was made for commands.
struct Namespace {
  UniqueFd fd;
  ObjectId id;
};

// What the commands of one agent session, or of one sandbox without a session, have in common
// beside the workspace: namespaces (so loopback and System V IPC) and, in a session, directories.
// Made when the first command needs it. Thread-safe.
class Machine {
 public:
  // Makes what is wanted, or finds it made with the same wants.
  Status Ensure(const NamespaceSpec& wanted);
  // In the order in which to enter them; one that is wanted and was not made has no descriptor.
  std::vector<NamespaceEntry> Entries(const NamespaceSpec& wanted) const;
  int user_fd() const;
  // The sockets of the network namespace; nullptr: it was not made, or cannot be asked.
  std::shared_ptr<SocketTable> sockets() const;

  // The directories of the session, new ones if the last were given up. The parents count when they
  // are made.
  Result<std::shared_ptr<SessionDirectories>> Directories(const std::string& temporary_parent,
                                                          const std::string& memory_parent);
  // A confinement uses it, until it leaves. When the last one has left, the session is over: the
  // directories go as soon as no command runs in them.
  void Join();
  void Leave();

 private:
  mutable std::mutex mutex_;  // guards what follows
  int users_ = 0;
  std::shared_ptr<SessionDirectories> directories_;
  bool ready_ = false;
  Namespace user_, network_, ipc_;
  std::shared_ptr<SocketTable> sockets_;
};

// What every command of one sandbox has in common. Built once; the kernel objects that come of it
// are made on first use and reused.
struct ConfinementSpec {
  RulesetMasks landlock;
  std::vector<PathRuleSpec> rules;
  std::vector<sock_filter> filter;
  std::optional<NamespaceSpec> namespaces;
  // Those of another confinement that wants the same of them, but for the view; else new ones.
  std::shared_ptr<Machine> machine;
  // The session's directories take the place of slot:tmp and shm:.
  bool shares_directories = false;
  std::vector<ResourceLimit> limits;          // of each process
  TreeLimits tree_limits;                     // of each command
  std::string cgroup_parent;                  // where groups for commands are made, "" = nowhere
  bool cgroup_clone = false;                  // a child can be started in one
  std::chrono::milliseconds idle_timeout{0};  // without output; 0: none
  int umask = -1;                             // -1: left as the launcher has it
  std::string temporary_parent;               // where private directories are made
  std::string memory_parent;                  // "" = no directory on shared memory
  std::vector<std::string> slot_directories;  // "slot:tmp", ...
  // Those and directories in them: what a command makes there is told, except names that begin with
  // a dot, which tools make for themselves.
  std::vector<std::string> told_directories;
  std::vector<SeedFileSpec> seed_files;      // written anew before each command
  std::vector<SeedLinkSpec> seed_links;      // made anew before each command
  std::optional<CacheSpec> cache;            // outlives the commands
  std::vector<CopySpec> copies;              // as they are on the host, before each command
  std::shared_ptr<TreeIndex> index;          // what commands leave behind is looked for with it
  std::vector<SlotVariable> slot_variables;  // added to each command's environment
  // A set-uid program that does the confining, with what is said here but for Landlock and
  // namespaces; commands get a warden each.
  std::optional<LauncherSpec> launcher;
  bool without_scope = false;  // a warden for each command, as on older kernels
  // What commands may connect to; `filter` relies on it that a NetworkSupervisor answers. None:
  // they have no network, or that of the host.
  std::shared_ptr<NetworkGate> network;
  // `filter` leaves set-group-ID modes of existing objects to GroupModes. Only where calls are
  // looked at, or the network is listed: then somebody answers.
  bool group_modes = false;
  bool exit_tracing = false;               // `filter` leaves it to ExitTracing who may halt exits
  Observed observed = Observed::kNothing;  // of which denials are told
};

// The private half of a confinement, used by one command at a time: its directories, and the
// ruleset and mount namespace that refer to them.
class Slot {
 public:
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot();

  // Those that the confinement wants; a slot without one of them is never handed out.
  int ruleset_fd() const { return ruleset_.get(); }
  const std::string& directory() const { return directory_; }
  // What holds its command in.
  const std::shared_ptr<const HeldBy>& held_by() const { return held_by_; }
  // The directories that belong to the command, on the host.
  std::vector<std::string> PrivateDirectories() const;
  // Those that it shares with the commands of its session; nullptr: none.
  const std::shared_ptr<SessionDirectories>& session() const { return session_; }
  // The host path of a spec path.
  std::string HostPath(const std::string& path) const;
  // What the command made of its private copies since the last call.
  std::vector<ChangedCopy> TakeChangedCopies() {
    return copies_.TakeChanges(directory_lock_.get());
  }
  // The directories whose writable layer a command changed since the last call.
  std::vector<ChangedDirectory> TakeChangedDirectories();
  // What a command made in `told_directories` of the confinement since the last call, as spec
  // paths; the first few. It goes with the command.
  std::vector<std::string> TakeMade(const ConfinementSpec& spec);
  // No command uses it: what it shares with others may be cleared, or removed.
  void LetGoOfShared();
  // The command renamed a directory of the slot or what lies above a mount point in it: the next
  // one, and who cleans up, would find something else at that path.
  bool HasMoved() const;

 private:
  friend class Confinement;
  struct Identity {
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;
    bool exists = false;
    bool essential = false;
  };
  // Essential paths that were not there, by the directory that they would be in: there may be a
  // hundred of them, and looking at each would cost a tenth of a launch.
  struct Absences {
    std::string place;
    std::vector<std::string> paths;
    FileStamp stamp;
    int64_t looked_ns = 0;
  };
  // Links to the cache in one entry of a directory of the slot, with what leads to them. A command
  // seldom does anything to them, and to make them anew costs a tenth of a launch.
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
  void AddWay(const std::string& link, const std::string& content);
  // Of what the view shows in a directory of the slot.
  void AddMountPoint(const std::string& path);
  Status MakeWays();
  // Remembers what they are, once all is in them.
  Status NoteWays();
  // It is as NoteWays() saw it, and nothing else is in it.
  static bool IsUntouched(Way& way);
  // Keeps the cache from being cleared; waits so long for who does that.
  Status LockCache(std::chrono::milliseconds wait);
  void Hold(const std::string& path);
  // Remembers which object a host path names (`info` is meaningless if there is none).
  void Watch(const std::string& path, bool exists, const struct stat& info, bool essential);
  // To be called when all is watched.
  void GroupAbsences();
  static bool StillAbsent(Absences& absences);
  static bool IsSame(const Identity& known);
  // False once a path leads elsewhere. Essential paths are looked at each time, the system's own at
  // most once a second: a rule and a mount stay with the old object, so being late gives nothing
  // away.
  bool IsCurrent();

  std::string directory_;
  std::string memory_directory_;
  UniqueFd directory_lock_, memory_directory_lock_;
  std::shared_ptr<SessionDirectories> session_;          // while a command uses the slot
  std::weak_ptr<SessionDirectories> session_when_idle_;  // the same, while none does
  std::string cache_directory_, cache_lock_path_;
  UniqueFd cache_lock_;
  UniqueFd ruleset_;
  std::shared_ptr<const HeldBy> held_by_;
  Namespace mount_namespace_;
  UniqueFd view_root_;
  ObjectId view_root_id_;
  std::vector<Identity> identities_;
  std::vector<Absences> absences_;
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

// Thread-safe: commands on several threads take and return slots.
class Confinement {
 public:
  explicit Confinement(ConfinementSpec spec);
  ~Confinement();

  // A clean slot: an idle one whose paths are still the same objects, or a new one.
  Result<std::unique_ptr<Slot>> Acquire();

  // Keeps an unused slot for the next Acquire().
  void Release(std::unique_ptr<Slot> slot);

  // Makes a cleaned slot ready for the next command. False: it is out of date and of no more use.
  // False as well for a cache that is being cleared: the next try says so.
  bool Refresh(Slot& slot) const;

  // Removes what a command left in the slot. Where that fails, it is of no more use.
  void Clean(Slot& slot) const;

  // Drops idle slots; later releases drop theirs too.
  void Close();

  const ConfinementSpec& spec() const { return spec_; }
  const std::shared_ptr<Machine>& machine() const { return machine_; }
  const sock_fprog* filter() const { return spec_.filter.empty() ? nullptr : &filter_; }
  // The namespaces of a command that runs in `slot`, in the order in which to enter them, and the
  // root on which it then has to stand; none without namespaces.
  std::vector<NamespaceEntry> NamespacesFor(const Slot& slot) const;
  std::optional<ObjectId> RootFor(const Slot& slot) const;
  // That root, O_PATH.
  std::optional<int> ViewRootOf(const Slot& slot) const;

 private:
  bool WentMeanwhile(const Failure& failure) const;
  bool MayBeBlocked(const Failure& failure) const;
  Status CheckIsWhole(const Slot& slot) const;
  // `session`: receives the directories that were to be shared, whether or not it succeeds.
  Result<std::unique_ptr<Slot>> Build(std::shared_ptr<SessionDirectories>& session);
  // Makes the slot's mount namespace; `handles` receive the descriptors of rules inside it.
  // Makes a link to mount later, in a place that commands do not see.
  Result<std::string> MakeLink(const Slot& slot, const std::string& content, size_t number) const;
  // Makes an empty file to mount later, there too, unless there is one.
  Result<std::string> MakeEmptyFile(const Slot& slot, const char* name, mode_t mode) const;
  // What a layer is made of, with the options of its mount, which name that by descriptors.
  struct Layer {
    std::string options;
    std::vector<UniqueFd> opened;
    std::list<std::string> paths;  // the parts point into them
    std::vector<LayerPart> parts;
  };
  // `lowers`: the topmost first. Without `upper` nothing can be written to it.
  static Result<Layer> OpenLayer(const Slot& slot, const std::vector<std::string>& lowers,
                                 const std::string& upper, const std::string& work);
  Status BuildView(Slot& slot, std::vector<std::pair<const PathRuleSpec*, UniqueFd>>& handles);
  Status AddRules(Slot& slot, std::vector<std::pair<const PathRuleSpec*, UniqueFd>>& handles);
  HeldBy WhatHolds(const Slot& slot) const;
  Status Seed(Slot& slot) const;

  const ConfinementSpec spec_;
  const std::shared_ptr<Machine> machine_;
  sock_fprog filter_ = {};
  std::mutex mutex_;  // guards what follows
  bool closed_ = false;
  std::vector<std::unique_ptr<Slot>> idle_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PROCESS_CONFINEMENT_H_
