#ifndef SANDBOX_RUN_SYS_REMOVAL_H_
#define SANDBOX_RUN_SYS_REMOVAL_H_

#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace sandbox_run {

// Removes everything beneath `path` except the paths in `keep` and the directories that lead to
// them. Never follows a symbolic link and never crosses into another file system; what its owner
// made unreadable is made readable first. False: something else is left.
[[nodiscard]] bool RemoveContents(const std::string& path,
                                  const std::vector<std::string>& keep = {});

// Like RemoveContents(). Also gives the directory, and those that lead to what is kept, the mode
// 0700 and the present time, and removes the attributes that its owner can set (extended user
// attributes, access control lists). False also if some of these may be left.
[[nodiscard]] bool EmptyPrivateDirectory(const std::string& path,
                                         const std::vector<std::string>& keep);

// Removes everything beneath an open directory and then `path`, its name; whatever else has that
// name by now is left alone. What cannot be removed is remembered for RetryRemovals().
void RemoveTree(UniqueFd directory, const std::string& path);

// Opens the descriptors that are kept for removing when there are no others. Cheap if they are.
void KeepDescriptorsForRemoval();

enum class Retry {
  kShortages,  // what was not removed for want of descriptors or memory
  kAll,        // and what could not be for another reason
};
// Tries again. Cheap if there is nothing.
void RetryRemovals(Retry which);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_SYS_REMOVAL_H_
