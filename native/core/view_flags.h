#ifndef SANDBOX_RUN_CORE_VIEW_FLAGS_H_
#define SANDBOX_RUN_CORE_VIEW_FLAGS_H_

namespace sandbox_run {

// Adds mount flags to the one mount whose root is at `path`. What it had stays. Raw system calls
// only, like view_child.cc. Returns 0 or -errno.
long AddFlags(const char* path, unsigned long flags);

// Adds mount flags (MS_RDONLY, MS_NOSUID, MS_NODEV) to the mount at `target` and to every mount
// beneath it, one after the other, for kernels without mount_setattr(2) (before Linux 5.12). What
// they had stays. Raw system calls only, like view_child.cc. `target` is absolute, as
// /proc/self/mountinfo shows it. Returns 0 or -errno;
// -ENOENT if there is no mount at `target`.
long AddFlagsToTree(const char* target, unsigned long flags);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_VIEW_FLAGS_H_
