#ifndef SANDBOX_RUN_PROCESS_TREE_MEMBERS_H_
#define SANDBOX_RUN_PROCESS_TREE_MEMBERS_H_

#include <sys/types.h>

#include <cstddef>
#include <vector>

#include "process/tree_kill.h"

namespace sandbox_run {

// The processes of the tree whose first process is `leader`: exactly those in the calling thread's
// signal scope; without one those of the leader's session, which a daemon leaves.
std::vector<pid_t> TreeMembers(const SignalScope& scope, pid_t leader);

// Counts processes and threads of the scope, the newest first, and stops beyond `enough`: a fork
// bomb is recognised in the time that it takes to list a fraction of it. `newest`: the last number
// that was given to a process. 0 without a scope.
size_t CountNewestMembers(const SignalScope& scope, pid_t newest, size_t enough);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PROCESS_TREE_MEMBERS_H_
