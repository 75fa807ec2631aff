#ifndef SANDBOX_RUN_SYS_FILES_H_
#define SANDBOX_RUN_SYS_FILES_H_

#include <sys/stat.h>

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace sandbox_run {

// A copy that is none of the standard descriptors, which the child overwrites.
Result<UniqueFd> AboveStdio(int fd, const char* stage);

// Opens a canonical path O_PATH. A symbolic link anywhere in it gives ELOOP: the caller resolved
// the path before, so a link means that it was changed since.
Result<UniqueFd> OpenPath(const std::string& path, const char* stage);

// False for what its owner gave attributes; the system's own, such as labels, stay.
bool HasOnlyLabels(int fd);

// True where the last change was that of its content: any other, of the times themselves as well,
// moves the time of the last change alone.
bool WasContentChangedLast(const struct stat& info);

// True for a plain file of its owner alone that has one name and no attributes, and whose last
// change was that of its content.
bool IsUnmarked(int fd, const struct stat& info);

// Creates a directory of mode 0700 with an unguessable name: `parent`/`prefix`XXXXXX.
Result<std::string> MakePrivateDirectory(const std::string& parent, const std::string& prefix);

// Locks a directory for as long as the descriptor is open, so that RemoveStaleDirectories() of
// another process leaves it alone.
Result<UniqueFd> LockDirectory(const std::string& path);

// Both at once: another process may remove a directory before it is locked, and then another one is
// made.
Result<UniqueFd> MakeLockedDirectory(const std::string& parent, const std::string& prefix,
                                     std::string& path);

// Makes this user's parent of private directories if it is missing: it may have been removed as old
// since the last time. Fails if something else has its name. A path with another name is left as it
// is.
Status EnsurePrivateParent(const std::string& path);

// Removes the directories of this user in `parent` whose name begins with `prefix` and that no
// process has locked: what a launcher left behind that was killed. As many as fit into half a
// second.
void RemoveStaleDirectories(const std::string& parent, const std::string& prefix);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_SYS_FILES_H_
