#ifndef SANDBOX_RUN_NOTIFY_GROUP_MODES_H_
#define SANDBOX_RUN_NOTIFY_GROUP_MODES_H_

#include <linux/filter.h>

#include <functional>
#include <vector>

#include "sys/kernel_abi.h"

namespace sandbox_run {

// Sets the set-group-ID bit of commands' directories, whose new entries then get their group, and
// refuses it for files, which would run with the rights of their group.
//
// A filter does not see whose mode is changed, and the path or descriptor of a call may lead to
// another object by the time that the call continues. So no such call is continued: the object is
// opened here, checked, and changed by that descriptor.
class GroupModes {
 public:
  // The filter's part that asks about chmod(2) and its kin with that bit, without an end of its
  // own. The set-user-ID bit is the command's own filter's.
  static std::vector<sock_filter> Filter();
  // Answers one of those calls; false: it is another one. `may_change`: whether the command could
  // make something in a directory (O_PATH).
  static bool Answer(int listener, const abi::SeccompNotification& call,
                     const std::function<bool(int directory)>& may_change);
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_GROUP_MODES_H_
