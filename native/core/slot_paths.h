#ifndef SANDBOX_RUN_CORE_SLOT_PATHS_H_
#define SANDBOX_RUN_CORE_SLOT_PATHS_H_

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "core/slot.h"

namespace sandbox_run {

// Shared by the parts of a slot: its places, and the lookup of paths.

// The clock of file systems ticks at least a hundred times a second (CONFIG_HZ).
inline constexpr int64_t kCoarsestTickNs = 10'000'000;
inline constexpr char kTemporaryDirectory[] = "slot:tmp";
inline constexpr char kStagingDirectory[] = "slot:root";
// Holds the links that are mounted over files; beside the staging directory, so that no command
// sees it.
inline constexpr char kLinksDirectory[] = "slot:links";
// Beside the upper directory of a layer: what stands for a directory that is not there, and a
// directory with the place for it.
inline constexpr char kNoSource[] = ".none";
inline constexpr char kSkeleton[] = ".around";

// What is at a path, without following a link. Only what is known not to be there is left out of a
// view or a rule: whatever else keeps us from looking is no reason not to shut it.
struct Found {
  bool exists = false;
  struct stat info = {};
};
Result<Found> LookFor(const std::string& path, const char* stage);

// LookFor() for many paths at one time. If many are in one directory, its listing shows which are
// missing: to look at a hundred protected names one by one, most of them missing, takes as many
// round trips on a network file system.
class ManyLooks {
 public:
  Result<Found> For(const std::string& path, const char* stage);

 private:
  // In lower case; nothing: the listing does not tell what is missing.
  using Names = std::optional<std::set<std::string>>;
  static Names NamesIn(const std::string& directory);

  std::map<std::string, int> asked_;
  std::map<std::string, Names> names_;
};

bool IsBeneathOrSame(const std::string& path, const std::string& ancestor);
// Whether a path is the slot's own, so that it does not appear or vanish while the slot exists.
bool BelongsToSlot(const std::string& path);
// Whether the next commands of the session must find the content of a path.
bool IsSharedBySession(const Slot& slot, const std::string& path);

// Makes a directory of the slot. One that leads to a mount point may exist already, but a link is
// refused: what is put into it would lie outside.
Status EnsureDirectory(const std::string& path);
// Makes the directories that lead from a private directory of the slot to a seeded file. What the
// command before left there is gone by now.
Status MakeDirectoriesTo(const std::string& path, size_t from);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_SLOT_PATHS_H_
