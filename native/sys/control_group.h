#ifndef SANDBOX_RUN_SYS_CONTROL_GROUP_H_
#define SANDBOX_RUN_SYS_CONTROL_GROUP_H_

#include <sys/types.h>

#include <cstddef>
#include <string_view>

namespace sandbox_run {

// The restrictions that a command inherits from the control group (cgroups(7)) of the process that
// starts it, as text. If the texts of two processes are equal, so are the restrictions.
//
// Read() gives the text of /proc/PID/cgroup, which is equal only for processes in the same group.
// That is too strict: on a desktop each tab of a terminal has its own group.
// OmitGroupsWithoutSettings() therefore omits groups that restrict nothing at the end of the
// path, up to the nearest group that sets something or does not belong to the user. The limits on
// the number of processes in omitted groups are appended, because systemd sets one, always the
// same, for each scope and service. Example:
//   0::/user.slice/user-1000.slice/user@1000.service
//   pids.max 4915
class ControlGroup {
 public:
  // `process`: its ID, or "self". Returns false if the process is gone or cannot be inspected.
  bool Read(const char* process);

  // Omits groups that restrict nothing. Changes nothing for root, in a cgroup namespace, under
  // cgroup v1, or if anything of the hierarchy cannot be read. The process given to Read() must
  // have the same user and namespaces as this one.
  void OmitGroupsWithoutSettings();

  // For tests: the same for a given text, with the groups beneath `root` and their owner `user`.
  void Set(std::string_view text);
  void OmitGroupsWithoutSettings(const char* root, uid_t user);

  std::string_view text() const { return {text_, size_}; }

 private:
  // Room for fourteen lines (one for each v1 controller), each with the longest possible path.
  char text_[64 * 1024];
  size_t size_ = 0;
};

// Whether a group sets anything that restricts its processes, other than how many there may be;
// also true if that cannot be found out. `group`: its directory, opened for reading.
bool RestrictsProcesses(int group);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_SYS_CONTROL_GROUP_H_
