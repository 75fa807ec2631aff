#ifndef SANDBOX_RUN_SYS_CONTROL_GROUP_H_
#define SANDBOX_RUN_SYS_CONTROL_GROUP_H_

#include <sys/types.h>

#include <cstddef>
#include <string_view>

namespace sandbox_run {

// What a command would be held by through the control group of the process that starts it
// (cgroups(7)), as text: two processes have the same one only if that is the same for both.
//
// It begins as the text of /proc/PID/cgroup, which only processes in the same group have in common.
// On a desktop each tab of a terminal has a group. So groups that hold nothing are left out of the
// path, from the last one up to the nearest group that sets something, or that is not the user's
// own. The number of processes that such a group may have is noted instead: systemd sets it for
// each scope and service, and sets the same one for all.
//   0::/user.slice/user-1000.slice/user@1000.service
//   pids.max 4915
class ControlGroup {
 public:
  // `process`: its id, or "self". False: it is gone, or cannot be looked at.
  bool Read(const char* process);

  // Leaves out groups that hold nothing. The text stays as it was read for root, in a namespace of
  // control groups, under cgroup v1, and if anything of it cannot be read. The process that it was
  // read from has the user and the namespaces of this one.
  void LeaveOutIdleGroups();

  // The same for any text, with the groups as they lie beneath `root` for `user`.
  void Set(std::string_view text);
  void LeaveOutIdleGroups(const char* root, uid_t user);

  std::string_view text() const { return {text_, size_}; }

 private:
  // Fourteen lines, each with a path of the longest there are.
  char text_[64 * 1024];
  size_t size_ = 0;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_SYS_CONTROL_GROUP_H_
