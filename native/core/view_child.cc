#include "core/view_child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "core/child.h"
#include "core/view_flags.h"
#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

// Shares memory with the parent like child.cc, and keeps the same rules.

namespace sandbox_run {
namespace {

static_assert(abi::kMountAttrRdonly == MS_RDONLY && abi::kMountAttrNosuid == MS_NOSUID &&
              abi::kMountAttrNodev == MS_NODEV);

constexpr int kDone = 0;
constexpr int kFailed = 1;

template <typename Plan>
int Fail(Plan* plan, const char* stage, long result, const char* path = nullptr) {
  plan->progress.failed_errno = static_cast<int>(-result);
  plan->progress.failed_path = path;
  plan->progress.failed_stage = stage;
  return kFailed;
}

size_t Length(const char* text) {
  size_t length = 0;
  while (text[length] != 0) ++length;
  return length;
}

long WriteFile(const char* path, const char* text) {
  const long fd = RawSyscall(SYS_openat, AT_FDCWD, Arg(path), O_WRONLY | O_CLOEXEC, 0);
  if (fd < 0) return fd;
  const long length = static_cast<long>(Length(text));
  const long written = RawSyscall(SYS_write, fd, Arg(text), length);
  RawSyscall(SYS_close, fd);
  // The kernel takes these files whole or not at all.
  return written < 0 || written == length ? written : -EIO;
}

long OpenNamespace(const char* path) {
  return RawSyscall(SYS_openat, AT_FDCWD, Arg(path), O_RDONLY | O_CLOEXEC, 0);
}

long LoopbackUp() {
  const long fd = RawSyscall(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fd;
  ifreq request = {};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  request.ifr_flags = IFF_UP;
  const long result = RawSyscall(SYS_ioctl, fd, SIOCSIFFLAGS, Arg(&request));
  RawSyscall(SYS_close, fd);
  return result;
}

constexpr abi::OpenHow kWithoutLinks{O_PATH | O_DIRECTORY | O_CLOEXEC, 0, abi::kResolveNoSymlinks};

// Opens the directory in which step.target is, O_PATH, without following a link; makes the
// directories on the way that are missing.
long OpenParent(const ViewStep& step) {
  char* const inner = step.target + step.target_parent_from;
  *inner = 0;
  long fd = RawSyscall(abi::kSysOpenat2, AT_FDCWD, Arg(step.target), Arg(&kWithoutLinks),
                       sizeof(abi::OpenHow));
  *inner = '/';
  char* name = inner + 1;
  for (char* at = name; fd >= 0 && *at != 0; ++at) {
    if (*at != '/') continue;
    *at = 0;
    const long made = RawSyscall(SYS_mkdirat, fd, Arg(name), 0755);
    const long next = made < 0 && made != -EEXIST
                          ? made
                          : RawSyscall(abi::kSysOpenat2, fd, Arg(name), Arg(&kWithoutLinks),
                                       sizeof(abi::OpenHow));
    *at = '/';
    RawSyscall(SYS_close, fd);
    fd = next;
    name = at + 1;
  }
  return fd;
}

// Makes the mount point, or the link, of a step in a directory of a session.
long MakeInSession(const ViewStep& step) {
  const long parent = OpenParent(step);
  if (parent < 0) return parent;
  const char* name = step.target + step.target_parent_from;
  for (const char* at = name; *at != 0; ++at)
    if (*at == '/') name = at + 1;
  long result = 0;
  if (step.kind == ViewStepKind::kSymlink) {
    result = RawSyscall(SYS_symlinkat, Arg(step.source), parent, Arg(name));
  } else if (step.is_directory && step.kind != ViewStepKind::kMaskedFile) {
    result = RawSyscall(SYS_mkdirat, parent, Arg(name), 0755);
  } else {
    const unsigned mode = step.kind == ViewStepKind::kMaskedFile ? 0 : 0644;
    result = RawSyscall(SYS_mknodat, parent, Arg(name), S_IFREG | mode, 0);
  }
  RawSyscall(SYS_close, parent);
  return result == -EEXIST ? 0 : result;
}

// Creates the directories above step.target that are missing.
long MakeParents(const ViewStep& step) {
  for (char* at = step.target + step.target_parent_from + 1; *at != 0; ++at) {
    if (*at != '/') continue;
    *at = 0;
    const long result = RawSyscall(SYS_mkdirat, AT_FDCWD, Arg(step.target), 0755);
    *at = '/';
    if (result < 0 && result != -EEXIST) return result;
  }
  return 0;
}

long MakeFile(const char* path, unsigned mode) {
  // Never open for writing: another thread's clone copies the descriptor, which then counts as a
  // writer when the root is made read-only (EBUSY).
  const long result = RawSyscall(SYS_mknodat, AT_FDCWD, Arg(path), S_IFREG | mode, 0);
  return result == -EEXIST ? 0 : result;
}

long MakeMountPoint(const ViewStep& step) {
  if (!step.is_directory) return MakeFile(step.target, 0644);
  const long result = RawSyscall(SYS_mkdirat, AT_FDCWD, Arg(step.target), 0755);
  return result == -EEXIST ? 0 : result;
}

// Whether it lies over something of the user's.
bool IsOverUsers(const ViewStep& step) {
  return step.kind == ViewStepKind::kBindLink || step.kind == ViewStepKind::kEmptied;
}

bool IsBind(const ViewStep& step) { return step.kind == ViewStepKind::kBind || IsOverUsers(step); }

long Bind(const ViewStep& step) {
  const long tree = RawSyscall(abi::kSysOpenTree, step.source_fd, Arg(""),
                               AT_EMPTY_PATH | abi::kAtRecursive | abi::kOpenTreeClone | O_CLOEXEC);
  if (tree < 0) return tree;
  abi::MountAttr attributes;
  attributes.attr_set = abi::kMountAttrNosuid;
  if (step.read_only) attributes.attr_set |= abi::kMountAttrRdonly;
  if (!step.allow_devices) attributes.attr_set |= abi::kMountAttrNodev;
  long result = RawSyscall(abi::kSysMountSetattr, tree, Arg(""), AT_EMPTY_PATH | abi::kAtRecursive,
                           Arg(&attributes), sizeof(attributes));
  // Before Linux 5.12, or refused by an outer filter. No process is in this namespace yet, so the
  // flags may come after the mount.
  const bool one_by_one = result == -ENOSYS || result == -EPERM;
  if (result == 0 || one_by_one) {
    // The target may lie inside a tree that a command can write to: no link is followed there.
    const abi::OpenHow how{O_PATH | O_CLOEXEC, 0, abi::kResolveNoSymlinks};
    const long target =
        RawSyscall(abi::kSysOpenat2, AT_FDCWD, Arg(step.target), Arg(&how), sizeof(how));
    result = target < 0 ? target
                        : RawSyscall(abi::kSysMoveMount, tree, Arg(""), target, Arg(""),
                                     abi::kMoveMountFEmptyPath | abi::kMoveMountTEmptyPath);
    if (target >= 0) RawSyscall(SYS_close, target);
  }
  // A path leads through a link and not to it, and a link has nothing that the flags would shut.
  if (one_by_one && result == 0 && step.kind != ViewStepKind::kBindLink) {
    result = AddFlagsToTree(step.target, attributes.attr_set);
  }
  RawSyscall(SYS_close, tree);
  return result;
}

// Mounts a directory on itself, so that its flags can be set apart from those of what it lies in.
long MountOnItself(const ViewStep& step) {
  // No link is followed: commands may be writing to the directory of the target.
  const long target = RawSyscall(abi::kSysOpenat2, AT_FDCWD, Arg(step.target), Arg(&kWithoutLinks),
                                 sizeof(kWithoutLinks));
  if (target < 0) return target;
  const long tree = RawSyscall(abi::kSysOpenTree, target, Arg(""),
                               AT_EMPTY_PATH | abi::kOpenTreeClone | O_CLOEXEC);
  long result = tree;
  if (tree >= 0) {
    result = RawSyscall(abi::kSysMoveMount, tree, Arg(""), target, Arg(""),
                        abi::kMoveMountFEmptyPath | abi::kMoveMountTEmptyPath);
    RawSyscall(SYS_close, tree);
  }
  RawSyscall(SYS_close, target);
  return result;
}

// Makes a mount read-only, but not the mounts beneath it.
long ShutMount(const char* path) {
  abi::MountAttr read_only;
  read_only.attr_set = abi::kMountAttrRdonly;
  const long result =
      RawSyscall(abi::kSysMountSetattr, AT_FDCWD, Arg(path), 0, Arg(&read_only), sizeof(read_only));
  if (result != -ENOSYS && result != -EPERM) return result;
  // Before Linux 5.12, or refused by an outer filter.
  return RawSyscall(SYS_mount, 0, Arg(path), 0,
                    MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, 0);
}

// Decides by what the view has there what is mounted over it: a layer may have put or removed it.
// 0: nothing is there.
long ChooseSource(ViewStep& step) {
  const abi::OpenHow how{O_PATH | O_CLOEXEC, 0, abi::kResolveNoSymlinks};
  const long fd = RawSyscall(abi::kSysOpenat2, AT_FDCWD, Arg(step.target), Arg(&how), sizeof(how));
  if (fd == -ENOENT || fd == -ENOTDIR) return 0;
  if (fd < 0) return fd;
  const abi::OpenHow directory{O_PATH | O_DIRECTORY | O_CLOEXEC, 0, abi::kResolveNoSymlinks};
  const long inside =
      RawSyscall(abi::kSysOpenat2, AT_FDCWD, Arg(step.target), Arg(&directory), sizeof(directory));
  RawSyscall(SYS_close, fd);
  if (inside >= 0) {
    RawSyscall(SYS_close, inside);
    return 1;
  }
  if (inside != -ENOTDIR) return inside;
  step.source = step.file_source;
  return 1;
}

long MountLayer(const ViewStep& step) {
  for (size_t i = 0; i < step.part_count; ++i) {
    const LayerPart& part = step.parts[i];
    const abi::OpenHow how{O_PATH | O_DIRECTORY | O_CLOEXEC, 0, abi::kResolveNoSymlinks};
    const long fd = RawSyscall(abi::kSysOpenat2, AT_FDCWD, Arg(part.path), Arg(&how), sizeof(how));
    if (fd < 0) return fd;
    const long result = RawSyscall(SYS_dup3, fd, part.fd, O_CLOEXEC);
    RawSyscall(SYS_close, fd);
    if (result < 0) return result;
  }
  // The target may lie inside a tree that a command can write to: no link is followed there.
  const abi::OpenHow how{O_PATH | O_DIRECTORY | O_CLOEXEC, 0, abi::kResolveNoSymlinks};
  const long target =
      RawSyscall(abi::kSysOpenat2, AT_FDCWD, Arg(step.target), Arg(&how), sizeof(how));
  if (target < 0) return target;
  char path[] = "/proc/self/fd/0123456789";
  char* digit = path + sizeof("/proc/self/fd/") - 1;
  int digits = 1;
  for (long rest = target; rest >= 10; rest /= 10) ++digits;
  digit[digits] = 0;
  for (long rest = target; digits > 0; rest /= 10)
    digit[--digits] = static_cast<char>('0' + rest % 10);
  const long result = RawSyscall(SYS_mount, Arg("sandbox-run"), Arg(path), Arg("overlay"),
                                 MS_NOSUID | MS_NODEV, Arg(step.source));
  RawSyscall(SYS_close, target);
  return result;
}

long Execute(const ViewStep& step) {
  // These targets exist: no mount point is made for them.
  if (IsOverUsers(step)) return Bind(step);
  // If the kernel, the file system or an outer filter refuses the layer, the read-only mount
  // beneath stays.
  if (step.may_fail) {
    MountLayer(step);
    return 0;
  }
  if (step.in_session) {
    const long made = step.makes_source ? 0 : MakeInSession(step);
    if (made < 0) return made;
    if (step.kind == ViewStepKind::kBind) return Bind(step);
    if (step.kind == ViewStepKind::kLayer) return MountLayer(step);
    return step.kind == ViewStepKind::kBetween ? MountOnItself(step) : made;
  }
  long result = MakeParents(step);
  if (result < 0) return result;
  switch (step.kind) {
    case ViewStepKind::kBind:
      result = MakeMountPoint(step);
      return result < 0 ? result : Bind(step);
    case ViewStepKind::kBindLink:
    case ViewStepKind::kEmptied:
      break;
    case ViewStepKind::kLayer:
      result = MakeMountPoint(step);
      if (result < 0) return result;
      return MountLayer(step);
    case ViewStepKind::kDevpts:
      result = MakeMountPoint(step);
      if (result < 0) return result;
      return RawSyscall(SYS_mount, Arg("devpts"), Arg(step.target), Arg("devpts"),
                        MS_NOSUID | MS_NOEXEC, Arg("newinstance,ptmxmode=0666,mode=0620"));
    case ViewStepKind::kSymlink:
      result = RawSyscall(SYS_symlinkat, Arg(step.source), AT_FDCWD, Arg(step.target));
      return result == -EEXIST ? 0 : result;
    case ViewStepKind::kBetween:
      result = MakeMountPoint(step);
      return result < 0 ? result : MountOnItself(step);
    case ViewStepKind::kMaskedFile:
      return MakeFile(step.target, 0);
  }
  return -EINVAL;
}

// Makes the working directory, which is a mount, the root, and takes the old one out of the
// namespace.
long LeaveHostRoot() {
  constexpr char kOldRoot[] = "/.host";
  long result = RawSyscall(SYS_mkdirat, AT_FDCWD, Arg(kOldRoot + 1), 0700);
  if (result < 0) return result;
  result = RawSyscall(SYS_pivot_root, Arg("."), Arg(kOldRoot + 1));
  if (result < 0) return result;
  // What was mounted on the old root itself came along with it, and an unmount takes the topmost
  // away. Whatever stays is where setns() would lead to, so it goes on until nothing is there.
  constexpr int kMostMounts = 1000;
  for (int i = 0; i < kMostMounts && result == 0; ++i) {
    result = RawSyscall(SYS_umount2, Arg(kOldRoot), MNT_DETACH);
  }
  if (result != -EINVAL) return result < 0 ? result : -ELOOP;
  // Only of what is no mount point; in a user namespace some mounts cannot be taken away.
  result = RawSyscall(SYS_unlinkat, AT_FDCWD, Arg(kOldRoot), AT_REMOVEDIR);
  if (result < 0) return result == -EBUSY ? -EINVAL : result;
  return RawSyscall(SYS_chdir, Arg("/"));
}

int BuildView(ViewSetupPlan* plan) {
  long result = 0;
  if (plan->user_fd) {
    result = RawSyscall(SYS_setns, *plan->user_fd, CLONE_NEWUSER);
    if (result < 0) return Fail(plan, "namespace.user", result);
  }
  // This child's own umask, so that what it makes has the modes named here.
  RawSyscall(SYS_umask, 0022);
  result = RawSyscall(SYS_unshare, CLONE_NEWNS);
  if (result < 0) return Fail(plan, "namespace.mount", result);
  // Slave: what the host unmounts later does not stay pinned here; nothing travels back.
  result = RawSyscall(SYS_mount, 0, Arg("/"), 0, MS_REC | MS_SLAVE, 0);
  if (result < 0) return Fail(plan, "view.propagation", result, "/");

  result = RawSyscall(SYS_mount, Arg("sandbox-run"), Arg(plan->staging), Arg("tmpfs"),
                      MS_NOSUID | MS_NODEV, Arg("mode=0755,size=4m"));
  if (result < 0) return Fail(plan, "view.root", result, plan->staging);

  for (size_t i = 0; i < plan->step_count; ++i) {
    ViewStep& step = plan->steps[i];
    const bool is_link = step.kind == ViewStepKind::kBindLink;
    if (step.file_source != nullptr) {
      result = ChooseSource(step);
      if (result < 0) return Fail(plan, "view.hide", result, step.target);
      if (result == 0) continue;
    }
    if (step.makes_source) {
      result = MakeInSession(step);
      if (result < 0) return Fail(plan, "view.build", result, step.target);
    }
    if (IsBind(step)) {
      // One at a time: a process may have few descriptors.
      const uint64_t flags = O_PATH | O_CLOEXEC | (is_link ? O_NOFOLLOW : 0);
      const abi::OpenHow how{flags, 0, abi::kResolveNoSymlinks};
      result = RawSyscall(abi::kSysOpenat2, AT_FDCWD, Arg(step.source), Arg(&how), sizeof(how));
      if (result < 0) return Fail(plan, "view.open", result, step.source);
      step.source_fd = static_cast<int>(result);
    }
    result = Execute(step);
    if (step.source_fd >= 0) RawSyscall(SYS_close, step.source_fd);
    step.source_fd = -1;
    // Not every kernel and outer filter knows what a link over a file takes, or a layer.
    const char* stage = is_link                             ? "view.link"
                        : step.kind == ViewStepKind::kLayer ? "view.layer"
                                                            : "view.build";
    if (result < 0) return Fail(plan, stage, result, step.target);
  }

  // Once all that lies in them has its place.
  for (size_t i = 0; i < plan->step_count; ++i) {
    if (plan->steps[i].kind != ViewStepKind::kBetween) continue;
    result = ShutMount(plan->steps[i].target);
    if (result < 0) return Fail(plan, "view.build", result, plan->steps[i].target);
  }

  result = OpenNamespace("/proc/self/ns/mnt");
  if (result < 0) return Fail(plan, "namespace.open", result, "/proc/self/ns/mnt");
  plan->mount_fd = static_cast<int>(result);

  result = RawSyscall(SYS_chdir, Arg(plan->staging));
  if (result < 0) return Fail(plan, "view.pivot", result, plan->staging);
  result = LeaveHostRoot();
  if (result < 0) return Fail(plan, "view.pivot", result, plan->staging);

  result = ShutMount("/");
  if (result < 0) return Fail(plan, "view.root", result, "/");

  for (size_t i = 0; i < plan->handle_count; ++i) {
    ViewHandle& handle = plan->handles[i];
    result = RawSyscall(SYS_openat, AT_FDCWD, Arg(handle.path), O_PATH | O_CLOEXEC, 0);
    if (result == -ENOENT && !handle.required) continue;
    if (result < 0) return Fail(plan, "view.open", result, handle.path);
    handle.fd = static_cast<int>(result);
  }
  plan->progress.done = true;
  return kDone;
}

}  // namespace

int RunNamespaceSetup(void* argument) {
  auto* plan = static_cast<NamespaceSetupPlan*>(argument);
  long result = ResetSignalHandlers();
  if (result < 0) return Fail(plan, "signals", result);
  if (plan->with_user) {
    result = WriteFile("/proc/self/uid_map", plan->uid_map);
    if (result < 0) return Fail(plan, "namespace.uid_map", result);
    // Without this an ordinary user may not write gid_map (user_namespaces(7)).
    result = WriteFile("/proc/self/setgroups", "deny");
    if (result < 0) return Fail(plan, "namespace.setgroups", result);
    result = WriteFile("/proc/self/gid_map", plan->gid_map);
    if (result < 0) return Fail(plan, "namespace.gid_map", result);
    // What a command does not get stays for the user's editor. No control counts on it, so a host
    // whose /proc/sys cannot be written is no reason to do without namespaces.
    WriteFile("/proc/sys/user/max_inotify_instances", plan->inotify_instances);
    WriteFile("/proc/sys/user/max_inotify_watches", plan->inotify_watches);
    result = OpenNamespace("/proc/self/ns/user");
    if (result < 0) return Fail(plan, "namespace.open", result);
    plan->user_fd = static_cast<int>(result);
  }
  if (plan->with_network) {
    result = LoopbackUp();
    if (result < 0) return Fail(plan, "namespace.loopback", result);
    result = OpenNamespace("/proc/self/ns/net");
    if (result < 0) return Fail(plan, "namespace.open", result);
    plan->network_fd = static_cast<int>(result);
    // Only explanations of denials use it, so its failure is ignored.
    result = RawSyscall(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (result >= 0) plan->sockets_fd = static_cast<int>(result);
  }
  if (plan->with_ipc) {
    result = OpenNamespace("/proc/self/ns/ipc");
    if (result < 0) return Fail(plan, "namespace.open", result);
    plan->ipc_fd = static_cast<int>(result);
  }
  plan->progress.done = true;
  return kDone;
}

int RunViewSetup(void* argument) {
  auto* plan = static_cast<ViewSetupPlan*>(argument);
  const long result = ResetSignalHandlers();
  if (result < 0) return Fail(plan, "signals", result);
  return BuildView(plan);
}

}  // namespace sandbox_run
