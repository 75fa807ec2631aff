#include "core/ruleset.h"

#include <fcntl.h>
#include <sys/prctl.h>

#include <cerrno>

#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {

int LandlockAbi() {
  return static_cast<int>(
      RawSyscall(abi::kSysLandlockCreateRuleset, 0, 0, abi::kLandlockCreateRulesetVersion));
}

int LandlockErrata() {
  const long errata =
      RawSyscall(abi::kSysLandlockCreateRuleset, 0, 0, abi::kLandlockCreateRulesetErrata);
  return errata < 0 ? 0 : static_cast<int>(errata);
}

Result<UniqueFd> CreateRuleset(const RulesetMasks& masks) {
  const abi::LandlockRulesetAttr attr{masks.handled_fs, masks.handled_net, masks.scoped};
  // The kernel accepts a longer structure only if the unknown tail is zero; the shortest that fits
  // is accepted by every kernel that knows the fields in use.
  const long size = masks.scoped != 0 ? 24 : masks.handled_net != 0 ? 16 : 8;
  const long fd = RawSyscall(abi::kSysLandlockCreateRuleset, Arg(&attr), size, 0);
  if (fd < 0) return Failure{"landlock.create_ruleset", static_cast<int>(-fd), ""};
  return UniqueFd(static_cast<int>(fd));
}

Status AddPathRule(int ruleset_fd, int path_fd, uint64_t access, const std::string& path) {
  const abi::LandlockPathBeneathAttr attr{access, path_fd};
  const long result = RawSyscall(abi::kSysLandlockAddRule, ruleset_fd,
                                 abi::kLandlockRulePathBeneath, Arg(&attr), 0);
  if (result < 0) return Failure{"landlock.add_rule", static_cast<int>(-result), path};
  return Status();
}

Status EnterSignalScope(std::optional<int> view_root) {
  // Once a nested domain handles files, every layer refuses renames and links between directories,
  // also one that does not handle that right (LANDLOCK_ACCESS_FS_REFER in landlock(7)). So it is
  // handled here and granted everywhere: to this thread, and to the command, whose own domain
  // decides.
  constexpr uint64_t kRefer = abi::kLandlockAccessFsRefer;
  Result<UniqueFd> ruleset = CreateRuleset({kRefer, 0, abi::kLandlockScopeSignal});
  if (!ruleset.ok()) return ruleset.failure();
  const UniqueFd own_root(open("/", O_PATH | O_CLOEXEC));
  if (!own_root.valid()) return Failure{"landlock.open", errno, "/"};
  for (const int fd : {own_root.get(), view_root.value_or(own_root.get())}) {
    Status added = AddPathRule(ruleset.value().get(), fd, kRefer, "/");
    if (!added.ok()) return added;
  }
  long result = RawSyscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (result < 0) return Failure{"no_new_privs", static_cast<int>(-result), ""};
  result = RawSyscall(abi::kSysLandlockRestrictSelf, ruleset.value().get(), 0);
  if (result < 0) return Failure{"landlock.restrict_self", static_cast<int>(-result), ""};
  return Status();
}

}  // namespace sandbox_run
