#ifndef SANDBOX_RUN_CORE_CONFINEMENT_SPEC_H_
#define SANDBOX_RUN_CORE_CONFINEMENT_SPEC_H_

#include <linux/filter.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/child.h"
#include "core/guest.h"
#include "core/limits.h"
#include "core/private_copies.h"
#include "core/ruleset.h"
#include "core/view_child.h"

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

class Confinement;
class Machine;
class Slot;

// What every command of one sandbox has in common. Built once; the kernel objects that come of it
// are made on first use and reused.
struct ConfinementSpec {
  RulesetMasks landlock;
  std::vector<PathRuleSpec> rules;
  std::vector<sock_filter> filter;
  std::optional<NamespaceSpec> namespaces;
  // Shared with another confinement that wants the same namespaces, except the view; nullptr: new.
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
  // Slot directories and directories in them: what a command makes there is reported, except names
  // that begin with a dot, which tools make for themselves.
  std::vector<std::string> told_directories;
  std::vector<SeedFileSpec> seed_files;      // written anew before each command
  std::vector<SeedLinkSpec> seed_links;      // made anew before each command
  std::optional<CacheSpec> cache;            // outlives the commands
  std::vector<CopySpec> copies;              // as they are on the host, before each command
  std::vector<SlotVariable> slot_variables;  // added to each command's environment
  bool without_scope = false;                // a warden for each command, as on older kernels
  // A slot is made anew if one of these paths appears, vanishes or names another object.
  std::vector<std::string> watched_paths;
  bool rehearses = true;  // starts a throw-away child before the first command, see rehearsal.h
  // Makes the guest of a thread; empty: threads have none. `scopes_signals`: the thread is in a
  // signal scope. Thread guests of the same name ask the kernel for the same.
  std::function<std::unique_ptr<ThreadGuest>(const Confinement&, const Slot&, bool scopes_signals)>
      make_thread_guest;
  std::string thread_guest_name;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_CONFINEMENT_SPEC_H_
