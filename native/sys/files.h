#ifndef SANDBOX_RUN_SYS_FILES_H_
#define SANDBOX_RUN_SYS_FILES_H_

#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace sandbox_run {

// A copy that is none of the standard descriptors, which the child overwrites.
Result<UniqueFd> AboveStdio(int fd, const char* stage);

// Opens a canonical path O_PATH. A symbolic link anywhere in it gives ELOOP: the caller resolved
// the path before, so a link means that somebody changed it since.
Result<UniqueFd> OpenPath(const std::string& path, const char* stage);

// Creates a directory of mode 0700 with an unguessable name: `parent`/`prefix`XXXXXX.
Result<std::string> MakePrivateDirectory(const std::string& parent, const std::string& prefix);

// Locks a directory for as long as the descriptor is open, so that RemoveStaleDirectories() of
// another process leaves it alone.
Result<UniqueFd> LockDirectory(const std::string& path);

// Removes the directories of this user in `parent` whose name begins with `prefix` and that nobody
// has locked: what a launcher left behind that was killed. Young ones are spared, they may be about
// to be locked.
void RemoveStaleDirectories(const std::string& parent, const std::string& prefix);

// Removes everything beneath `path` except the paths in `keep` and the directories that lead to
// them. Never follows a symbolic link and never crosses into another file system. Errors are not
// reported: what cannot be removed stays (what its owner made unreadable is made readable first).
void RemoveContents(const std::string& path, const std::vector<std::string>& keep = {});

// Gives a private directory the mode 0700 and the time of now, and takes away the attributes that
// its owner can set (extended ones of the user, access control lists).
void ResetAttributes(const std::string& path);

// Removes everything beneath an open directory and then `path`, its name; whatever else has that
// name by now is left alone.
void RemoveTree(int directory, const std::string& path);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_SYS_FILES_H_
