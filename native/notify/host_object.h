#ifndef SANDBOX_RUN_NOTIFY_HOST_OBJECT_H_
#define SANDBOX_RUN_NOTIFY_HOST_OBJECT_H_

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"

namespace sandbox_run {

// What this process, which is held by nothing, finds at a path that a command has named.
struct HostObject {
  UniqueFd object;   // O_PATH; not valid: nothing is there, or it is not known
  UniqueFd parent;   // its directory, if that is there
  std::string path;  // without links on the way
  mode_t mode = 0;   // of the object
  // The look failed for want of a descriptor or memory of this process: the
  // other fields say nothing then.
  bool is_short = false;
};

// Walks there step by step, so that the command has nothing done for it: a file system that is
// mounted when somebody asks for a name (autofs), or that a program answers for (FUSE), is not
// entered. `follows`: a link at the end.
HostObject FindOnHost(const std::string& path, bool follows);

// Whether a call failed with this error for want of descriptors or memory, which says nothing about
// what it asked for.
bool IsShortage(int error);

// Whether this process may do it with the object (access(2)), since Linux 5.8.
bool MayDo(const UniqueFd& object, int mode);
// Whether it may change what only its owner may: mode, owner, given times (fs/attr.c).
bool MayChange(const UniqueFd& object);
// Whether it may take it out of its directory, or put something in its place: in a sticky one only
// what is its own (may_delete in fs/namei.c).
bool MayRemove(const HostObject& found);

// Whether the file system may wait for a program, or mount something, before it answers.
bool AnswersByItself(int object);

bool IsMountPoint(int object);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_HOST_OBJECT_H_
