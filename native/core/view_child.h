#ifndef SANDBOX_RUN_CORE_VIEW_CHILD_H_
#define SANDBOX_RUN_CORE_VIEW_CHILD_H_

#include <cstddef>
#include <optional>

namespace sandbox_run {

enum class ViewStepKind {
  kBind,        // attaches a host path
  kBindLink,    // mounts a symbolic link over a file that is there
  kEmptied,     // mounts an empty file or directory over what is there, read-only
  kLayer,       // a copy-on-write layer over a host directory (overlayfs)
  kDevpts,      // a pseudo-terminal instance of its own
  kSymlink,     // a symbolic link
  kBetween,     // a directory that holds nothing but what is mounted in it, and cannot be written
  kMaskedFile,  // an empty file without permissions: "permission denied" instead of "not found"
};

// A directory that a layer is made of. The options of its mount name it by `fd`, which the parent
// opened; the child opens it anew under that number, because a layer takes only directories of the
// mount namespace that it is mounted in.
struct LayerPart {
  const char* path = nullptr;
  int fd = -1;
};

// One step that builds the view, as the set-up child executes it. Plain data.
struct ViewStep {
  ViewStepKind kind = ViewStepKind::kBind;
  // bind: canonical host path; bind-link, emptied: that of what is mounted; symlink: its content;
  // layer: the options of the mount
  const char* source = nullptr;
  char* target = nullptr;  // beneath the staging directory; written to and restored while used
  size_t target_parent_from = 0;  // where the path below the staging directory begins in `target`
  // emptied: of what is mounted if no directory is there; null: it is known that `source` fits
  const char* file_source = nullptr;
  bool is_directory = true;  // bind: what the mount point has to be
  bool read_only = false;
  bool allow_devices = false;
  // It lies in a directory that commands write to while the view is made: no link is followed.
  bool in_session = false;
  bool makes_source = false;  // bind: `source` is `target`, and a directory is made there first
  int source_fd = -1;         // used by the child
  const LayerPart* parts = nullptr;  // layer
  size_t part_count = 0;
  // layer: what lies beneath is mounted there already, and stays if the kernel refuses the layer
  bool may_fail = false;
};

// An object inside the finished view whose O_PATH descriptor the parent asks for.
struct ViewHandle {
  const char* path = nullptr;
  bool required = true;  // false: it need not be there
  int fd = -1;           // result; -1: it is not there
};

// How far a set-up child got. One that was killed names no failed stage: only `done` says that all
// was made, and it is the child's last store.
struct SetupProgress {
  const char* volatile failed_stage = nullptr;
  volatile int failed_errno = 0;
  const char* volatile failed_path = nullptr;
  volatile bool done = false;
};

// Data of RunNamespaceSetup() and RunViewSetup(); results are left in it.
struct NamespaceSetupPlan {
  SetupProgress progress;
  bool with_user = false;
  bool with_network = false;
  bool with_ipc = false;
  const char* uid_map = nullptr;  // "UID UID 1"
  const char* gid_map = nullptr;
  // How many inotify instances and watches the user namespace may have, in digits; empty: as many
  // as the user.
  const char* inotify_instances = "";
  const char* inotify_watches = "";
  int user_fd = -1, network_fd = -1, ipc_fd = -1;  // results
  int sockets_fd = -1;  // result: asks which sockets the network has; -1: it cannot be asked
};

struct ViewSetupPlan {
  SetupProgress progress;
  std::optional<int> user_fd;  // user namespace to enter first
  const char* staging = nullptr;
  ViewStep* steps = nullptr;
  size_t step_count = 0;
  ViewHandle* handles = nullptr;
  size_t handle_count = 0;
  int mount_fd = -1;  // result: the mount namespace
};

// Bodies for clone(CLONE_VM | CLONE_VFORK | CLONE_FILES): descriptors that they open appear in the
// parent's table. RunNamespaceSetup() expects to be in the new namespaces already (clone flags).
int RunNamespaceSetup(void* plan);
int RunViewSetup(void* plan);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_VIEW_CHILD_H_
