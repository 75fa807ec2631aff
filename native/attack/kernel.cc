// Moves that ask for parts of the kernel that work does not need. What is got is given back with
// the process.
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/types.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "attack/attack.h"

namespace sandbox_run {
namespace {

long IoUring(char**) {
  char parameters[256] = {};
  return syscall(SYS_io_uring_setup, 1, parameters);
}
long AddKey(char**) {
  return syscall(SYS_add_key, "user", "sandbox-run-doctor", "x", 1, KEY_SPEC_PROCESS_KEYRING);
}
long UserKeyring(char**) {
  return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_SESSION_KEYRING, 1);
}
long UserFaults(char**) { return syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */); }
long Bpf(char**) {
  bpf_attr map = {};
  map.map_type = BPF_MAP_TYPE_ARRAY;
  map.key_size = map.value_size = 4;
  map.max_entries = 1;
  return syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map);
}
long Perf(char**) {
  perf_event_attr event = {};
  event.type = PERF_TYPE_SOFTWARE;
  event.size = sizeof event;
  event.config = PERF_COUNT_SW_TASK_CLOCK;
  event.exclude_kernel = 1;
  return syscall(SYS_perf_event_open, &event, 0, -1, -1, 0);
}
long Fanotify(char**) { return syscall(SYS_fanotify_init, 0x200, 0); }
long KernelLog(char**) {
  char text[64];
  return syscall(SYS_syslog, 3, text, sizeof text);
}
long ReadImpliesExecute(char**) { return syscall(SYS_personality, 0x0400000); }
void LetEnd(pid_t child) {
  kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, __WALL) == child && WIFSTOPPED(status)) {
    ptrace(PTRACE_CONT, child, nullptr, nullptr);
  }
}
// A process that may do this while another does can do it to its own tracer. Here each does it to a
// third process, so that nothing happens.
long HaltExits(char**) {
  pid_t children[3];
  for (pid_t& child : children) {
    const pid_t parent = getpid();
    child = fork();
    if (child < 0) return -1;
    if (child > 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent) pause();
    _exit(0);
  }
  const bool first = ptrace(PTRACE_SEIZE, children[0], nullptr, PTRACE_O_TRACEEXIT) == 0;
  const pid_t other = fork();
  if (other == 0) {
    _exit(ptrace(PTRACE_SEIZE, children[1], nullptr, PTRACE_O_TRACEEXIT) == 0 ? 0 : errno);
  }
  int status = 0;
  const bool ended = other > 0 && waitpid(other, &status, 0) == other && WIFEXITED(status);
  // One that was refused to this process proves nothing of two.
  const bool second = ptrace(PTRACE_SEIZE, children[2], nullptr, PTRACE_O_TRACEEXIT) == 0;
  for (const pid_t child : children) LetEnd(child);
  errno = ended ? WEXITSTATUS(status) : ECHILD;
  return ended && errno == 0 && first && second ? 0 : -1;
}

long NewUserNamespace(char**) { return unshare(CLONE_NEWUSER); }
long NewUserNamespaceByClone(char**) {
  const long child =
      syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) _exit(0);
  return child;
}
long NewUserNamespaceByClone3(char**) {
  uint64_t arguments[8] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
  const long child = syscall(SYS_clone3, arguments, sizeof arguments);
  if (child == 0) _exit(0);
  return child;
}
// In a mount namespace of its own where it gets one; in any case the mount is taken away again.
long Mount(char** a) {
  if (unshare(CLONE_NEWNS) == 0) mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  if (mount("none", a[0], "tmpfs", 0, "size=4k") < 0) return -1;
  return umount2(a[0], MNT_DETACH);
}
long NewMountContext(char**) { return syscall(SYS_fsopen, "tmpfs", 0); }
long ChangeRoot(char** a) { return chroot(a[0]); }

long OpenByNumber(char** a) {
  alignas(file_handle) char room[sizeof(file_handle) + MAX_HANDLE_SZ];
  auto* handle = reinterpret_cast<file_handle*>(room);
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount_id = 0;
  if (name_to_handle_at(AT_FDCWD, a[0], handle, &mount_id, 0) < 0) return -1;
  const int directory = open(a[0], O_RDONLY | O_DIRECTORY);
  return open_by_handle_at(directory, handle, O_RDONLY);
}

long AttachSharedMemory(char** a) {
  const void* at = shmat(atoi(a[0]), nullptr, SHM_RDONLY);
  if (at == reinterpret_cast<void*>(-1)) return -1;
  Got(at, 64);
  return 0;
}

// An executable file in the directory, which would run as its owner when another user starts it.
long SetUserId(char** a) {
  const int directory = open(a[0], O_RDONLY | O_DIRECTORY);
  const int file = openat(directory, "set-user-id", O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
  const long result = fchmod(file, 04755);
  const int error = errno;
  unlinkat(directory, "set-user-id", 0);
  errno = error;
  return result;
}
// A process that opens the file for writing waits until it is given back.
long Lease(char** a) {
  const int file = open(a[0], O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
  const long result = fcntl(file, F_SETLEASE, F_RDLCK);
  if (result == 0) fcntl(file, F_SETLEASE, F_UNLCK);
  return result;
}

#if defined(__x86_64__)
// A call by its number in the x32 table.
long OtherTable(char**) { return syscall(0x40000000 | 39); }
long OldTable(char**) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
  if (result < 0) errno = static_cast<int>(-result);
  return result < 0 ? -1 : 0;
}
#endif

}  // namespace

const Attack kKernelAttacks[] = {
    {"io-uring", 0, IoUring},
    {"add-key", 0, AddKey},
    {"user-keyring", 0, UserKeyring},
    {"user-faults", 0, UserFaults},
    {"bpf", 0, Bpf},
    {"perf", 0, Perf},
    {"fanotify", 0, Fanotify},
    {"kernel-log", 0, KernelLog},
    {"read-implies-execute", 0, ReadImpliesExecute},
    {"halt-exits", 0, HaltExits},
    {"new-user-namespace", 0, NewUserNamespace},
    {"new-user-namespace-by-clone", 0, NewUserNamespaceByClone},
    {"new-user-namespace-by-clone3", 0, NewUserNamespaceByClone3},
    {"mount", 1, Mount},
    {"new-mount-context", 0, NewMountContext},
    {"change-root", 1, ChangeRoot},
    {"open-by-number", 1, OpenByNumber},
    {"attach-shared-memory", 1, AttachSharedMemory},
    {"set-user-id", 1, SetUserId},
    {"lease", 1, Lease},
#if defined(__x86_64__)
    {"other-table", 0, OtherTable},
    {"old-table", 0, OldTable},
#endif
    {nullptr, 0, nullptr},
};

}  // namespace sandbox_run
