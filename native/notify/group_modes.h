#ifndef SANDBOX_RUN_NOTIFY_GROUP_MODES_H_
#define SANDBOX_RUN_NOTIFY_GROUP_MODES_H_

#include <linux/filter.h>

#include <functional>
#include <vector>

#include "sys/kernel_abi.h"

namespace sandbox_run {

// Gives directories of commands the set-group-ID bit, by which what is made in them gets their
// group, and refuses it to files, which would run with the rights of their group.
//
// A filter does not see what a mode is for, and a process may have something else under the same
// path or descriptor by the time its call goes on. So no such call ever goes on: the object is
// opened here, looked at, and changed by that descriptor.
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
