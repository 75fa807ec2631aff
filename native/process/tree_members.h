#ifndef SANDBOX_RUN_PROCESS_TREE_MEMBERS_H_
#define SANDBOX_RUN_PROCESS_TREE_MEMBERS_H_

#include <sys/types.h>

#include <vector>

#include "process/tree_kill.h"

namespace sandbox_run {

// The processes of the tree whose first process is `leader`: exactly those in the calling thread's
// signal scope; without one those of the leader's session, which a daemon leaves.
std::vector<pid_t> TreeMembers(const SignalScope& scope, pid_t leader);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PROCESS_TREE_MEMBERS_H_
