#ifndef SANDBOX_RUN_CORE_RULESET_H_
#define SANDBOX_RUN_CORE_RULESET_H_

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"

namespace sandbox_run {

// What a Landlock domain handles, as kernel masks. Which bits exist is decided by the caller.
struct RulesetMasks {
  uint64_t handled_fs = 0;
  uint64_t handled_net = 0;
  uint64_t scoped = 0;

  bool empty() const { return handled_fs == 0 && handled_net == 0 && scoped == 0; }
};

// Landlock's ABI version, or -errno: -ENOSYS not built in, -EOPNOTSUPP disabled at boot.
int LandlockAbi();

// The kernel's bit set of fixed Landlock errata (0 where the query is unknown).
int LandlockErrata();

// Creates an empty ruleset (stage "landlock.create_ruleset").
Result<UniqueFd> CreateRuleset(const RulesetMasks& masks);

// Allows `access` beneath the object that `path_fd` (O_PATH) names (stage "landlock.add_rule").
Status AddPathRule(int ruleset_fd, int path_fd, uint64_t access, const std::string& path);

// Puts the calling thread into a domain that only scopes signals. Sets no_new_privs on the thread.
// `view_root` (O_PATH) is the root directory of the processes that the thread will start; none:
// they have that of the thread.
Status EnterSignalScope(std::optional<int> view_root);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_RULESET_H_
