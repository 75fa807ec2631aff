#ifndef SANDBOX_RUN_NOTIFY_CALL_OBSERVER_H_
#define SANDBOX_RUN_NOTIFY_CALL_OBSERVER_H_

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.h"
#include "notify/endpoint.h"
#include "notify/socket_table.h"
#include "notify/target.h"
#include "sys/kernel_abi.h"

namespace sandbox_run {

// Which calls of commands are looked at, each with those before it.
enum class Observed {
  kNothing,
  kChanges,     // what writes, creates, removes, executes and connects
  kEverything,  // what is read, and whether something is there; signals
  kUses,        // the same; and what was not denied is told, too
};

// What the sandbox kept from a process, or from several alike.
struct Denial {
  // What has to be true of the host, so that it was the sandbox that denied it.
  struct OnHost {
    std::string place;                 // where `mode` is asked for: the object, or its directory
    std::string meant;                 // of a directory: what its program is to make beneath it
    int mode = 0;                      // of access(2)
    std::optional<Endpoint> listener;  // of the loopback interface, where somebody has to be
    bool is_udp = false;
    bool in_view = false;
    bool follows = false, makes = false, alters = false, removes = false, executes = false,
         connects = false;
    bool by_owner = false;  // only the owner may
    // Of a rename: the new name of what is removed, or what is to get the name; and the flags.
    std::string new_name;
    std::optional<mode_t> renamed;
    unsigned rename_flags = 0;
    bool makes_directory = false;
    bool renames = false;  // what is removed gets another name, whatever it is
    // Anything but a directory fails, and one is removed only if it is empty.
    bool of_directory = false;
  };
  enum class Act { kRead, kWrite, kCreate, kRemove, kExecute, kConnect, kSignal };
  // What held.
  enum class Control {
    kRights,      // Landlock: no rule grants it
    kMount,       // a read-only mount of the view
    kPinned,      // a mount point of the view cannot be renamed or removed
    kView,        // it is not in the view
    kPrivileges,  // it is another user's, and the superuser has no capabilities
    kNetwork,     // the network namespace leads nowhere
    kScope,       // signals end at the domain
    kSockets,     // socket(2) is refused: without a network namespace it would reach the host's
    kNothing,     // it was not denied
  };
  Act act = Act::kRead;
  Control control = Control::kRights;
  std::string asked;  // as the program named it
  // What that leads to; of a connection HOST:PORT, with /udp if it is one; of a signal the process;
  // of a socket its family, `inet` or `unix`.
  std::string path;
  std::string named;  // what is not in the view: by what it is found; "": by its path
  pid_t process = 0;  // of the first one
  std::string program;
  int64_t first_ms = 0;  // since the epoch
  uint64_t count = 0;
  OnHost on_host;
};

// Each kind once, so many of them, and how many others there were.
struct Denials {
  static constexpr size_t kMost = 64, kMostCandidates = 1'024, kMostUses = 20'000;
  static constexpr size_t kMostBytes = 8u << 20;  // of names; what comes then is untold
  std::vector<Denial> told;
  uint64_t untold = 0;
  uint64_t unseen = 0;  // calls and denials that could not be looked at: no descriptors or memory
  // Counts a denial of a kind that is reported already.
  bool IsCounted(const Denial& denial);
  void Add(Denial denial, size_t most = kMost);
  bool empty() const { return told.empty() && untold == 0 && unseen == 0; }

 private:
  static std::string KindOf(const Denial& denial);
  std::unordered_map<std::string, size_t> places_;  // of what is told, by its kind
  size_t bytes_ = 0;
};

// A path with a watched name, and the program that made it.
struct Making {
  std::string path;
  std::string program;
};

// What holds a command in, as far as calls can be compared with it.
struct HeldBy {
  std::map<std::string, uint64_t> rights;  // Landlock's, by path as the command sees it
  uint64_t handled_fs = 0;                 // of them; 0: no domain
  bool has_view = false;
  // Directories as the command sees them in which something is mounted.
  std::set<std::string, std::less<>> around_mounts;
  bool scopes_signals = false;
  bool has_own_network = false;  // and no way out of it
  // The sockets of that network; nullptr: nothing is known of them.
  std::shared_ptr<SocketTable> own_sockets;
  bool tells_uses = false;  // what is not denied is told, too
  // Names of entries that are looked out for as they are made, ends of such names, and names of
  // directories in which everything is.
  std::set<std::string, std::less<>> names, directories;
  std::vector<std::string> suffixes;
};

// Looks at calls on their way into the kernel and lets every one go on: whether something is
// allowed is decided there and nowhere else, so a process that changes in between what it has
// shown here gains nothing but a wrong line in a list. Told is what the sandbox refuses and the
// same process outside it would have been given; what is not certain is left out. What is outside
// is not looked at while a call waits: the time that it takes would tell the command what is there.
class CallObserver {
 public:
  // The filter's part that asks about those calls, without an end of its own. Signals only where
  // they end at the domain: elsewhere none is denied. Not about calls of ours (sys/own_call.h).
  static std::vector<sock_filter> Filter(Observed observed, bool scopes_signals);

  // A command begins, and has ended.
  void Begin(std::shared_ptr<const HeldBy> held_by);
  void End();
  // What was denied since the last call: now the host is looked at. Not under a lock of the caller.
  Denials Take();
  std::vector<Making> TakeMakings();

  // Whether a call is one that is looked at: then it was seen, and has gone on. Not for connections
  // that somebody else answers.
  bool Observe(int listener, const abi::SeccompNotification& call);
  // Whether the command could make something in a directory (O_PATH), as far as paths say: a
  // read-only mount refuses by itself.
  bool MayMakeIn(int directory);
  // Notes a socket that the caller refuses. Its destination is not known yet.
  void NoteRefusedSocket(int listener, const abi::SeccompNotification& call, bool is_local);

 private:
  struct Use;
  // What is known of a directory that commands name: good enough for what is told of them, although
  // they may put another one in its place.
  struct Directory {
    std::string path;      // as the command sees it, without links
    bool is_free = false;  // the sandbox denies nothing of what is usually done to what is in it
  };
  // The root directory of the command; nullptr: the process is gone.
  std::shared_ptr<const UniqueFd> RootOf(pid_t thread);
  void Look(int listener, const abi::SeccompNotification& call, int root, const HeldBy& held_by);
  void LookAtPath(const Use& use);
  // nullptr: it cannot be looked at.
  const Directory* DirectoryAt(const Use& use, const std::string& path);
  // Whether nothing can be told of it, seen by its directory: nearly all calls of builds and
  // package managers are of this kind, and each waits for the answer.
  bool IsFree(const Use& use);
  void LookAtInterpreter(const Use& use, int script);
  void LookAtExisting(const Use& use, const std::string& path, int object);
  void LookAtNew(const Use& use, const std::string& path, int parent);
  void LookOutsideView(const Use& use, const std::string& path);
  void LookAtConnect(int listener, const abi::SeccompNotification& call, Target& target,
                     const HeldBy& held_by);
  void LookAtSignal(int listener, const abi::SeccompNotification& call, Target& target,
                    const HeldBy& held_by);
  void NoteMaking(const Use& use, const std::string& path);
  void Tell(const Use& use, Denial::Control control, std::string path, std::string place, int mode);
  void Tell(int listener, uint64_t call, const Target& target, Denial denial);
  // A call could not be looked at for this reason; only a shortage is counted.
  void NoteUnseen(int error);

  // By the path that the command names. Only the thread that looks uses it.
  std::unordered_map<std::string, Directory> directories_;

  std::mutex mutex_;                       // guards what follows
  bool has_begun_ = false;                 // another command than that of `directories_`
  std::shared_ptr<const HeldBy> held_by_;  // nullptr: nothing is looked at
  std::shared_ptr<const UniqueFd> root_;   // of the command: no process of it can change its own
  // Programs look for what is not there by the thousand: it does not keep out what they change.
  Denials uses_, candidates_, read_candidates_;
  uint64_t unseen_ = 0;  // calls
  std::vector<Making> makings_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_CALL_OBSERVER_H_
