#ifndef SANDBOX_RUN_CORE_CGROUP_PARENT_H_
#define SANDBOX_RUN_CORE_CGROUP_PARENT_H_

#include <string>

#include "base/result.h"

namespace sandbox_run {

// A directory of the cgroup v2 hierarchy in which groups for commands can be made.
struct CgroupParent {
  std::string path;
  bool clone_into = false;  // a child can be started in a group, else it has to move there
};

// The nearest directory above this process in which a group with the controllers for memory and
// processes can be made and a child be put: found by doing both. The search ends at the first group
// that restricts its processes (RestrictsProcesses). Nothing that runs is moved. Also ends and
// removes what launchers left there that are dead.
Result<CgroupParent> FindCgroupParent();

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_CGROUP_PARENT_H_
