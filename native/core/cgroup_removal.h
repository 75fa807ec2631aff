#ifndef SANDBOX_RUN_CORE_CGROUP_REMOVAL_H_
#define SANDBOX_RUN_CORE_CGROUP_REMOVAL_H_

#include <string>

namespace sandbox_run {

// A new name for a group, which says what launcher it belongs to:
// "sandbox-run-NAMESPACE-PID-START-NUMBER".
std::string NewGroupName();

// Ends every process of a group; false if that is not known.
bool KillMembers(int directory);

// Ends what is left in a group of this process and removes it; may take a while. What had not ended
// by then is left to RemoveLeftGroups.
void RemoveGroup(int directory, const std::string& path);

// Tries those again whose members were killed and had not ended when they were to be removed.
void RemoveLeftGroups();

// Ends and removes what launchers left in a directory that are dead.
void SweepGroups(const std::string& parent);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_CGROUP_REMOVAL_H_
