#ifndef SANDBOX_RUN_SYS_TREE_WALK_H_
#define SANDBOX_RUN_SYS_TREE_WALK_H_

#include <sys/stat.h>

#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace sandbox_run {

// Something beneath a directory, as lstat(2) sees it.
struct TreeEntry {
  std::string path;  // relative, any bytes
  struct stat info = {};
  bool opaque = false;      // a directory of a layer that hides what is beneath it
  bool attributes = false;  // of a layer: it has extended attributes or access lists of its own
  bool copied = false;      // of a layer: a copy of what is, or was, beneath the layer
  bool unreadable = false;  // a directory that could not be looked into, or is too deep for a path
};

enum class WalkKind {
  kPlain,
  // The upper directory of an overlay (userxattr): its marks are read, and directories that their
  // owner may not read are made readable. Nothing else uses it.
  kLayer,
};

// Everything beneath `root`, each directory before what is in it, names in the order of their
// bytes. No symbolic link is followed and no other file system entered. Stage "walk"; E2BIG: there
// is more than `most`.
Result<std::vector<TreeEntry>> WalkTree(const std::string& root, WalkKind kind, size_t most);

// What lies directly in `root`, and further down what not everybody may read (others may read a
// file, and list and enter a directory), or is `named`, relative to `root`. Links are left out, and
// a directory that is shut, named or of another file system is not looked into. In the order of
// their bytes. It costs one look-up for each file and each directory, and none for a link. Stages
// and errors as WalkTree().
Result<std::vector<TreeEntry>> FindShut(const std::string& root, const std::set<std::string>& named,
                                        size_t most);

// Removes what the kernel noted on a file of a layer (userxattr), which is to be one like any
// other. No link is followed at the end of the path. Stage "marks".
Status RemoveLayerMarks(const std::string& path);

// Copies what an open file holds to another, which is empty, with the times of its content: shares
// the blocks where the file system can (FICLONE), else copies and leaves holes holes. Stage "copy".
Status CopyContent(int from, int to);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_SYS_TREE_WALK_H_
