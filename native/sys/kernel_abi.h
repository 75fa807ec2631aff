#ifndef SANDBOX_RUN_SYS_KERNEL_ABI_H_
#define SANDBOX_RUN_SYS_KERNEL_ABI_H_

// Kernel interfaces spelled out here because the headers of the build host may be older than the
// kernel that the addon runs on. Numbers above 402 are the same on every architecture.

#include <cstdint>

namespace sandbox_run::abi {

inline constexpr long kSysPidfdSendSignal = 424;
inline constexpr long kSysOpenTree = 428;
inline constexpr long kSysMoveMount = 429;
inline constexpr long kSysPidfdOpen = 434;
inline constexpr long kSysClone3 = 435;
inline constexpr long kSysCloseRange = 436;
inline constexpr long kSysOpenat2 = 437;
inline constexpr long kSysPidfdGetfd = 438;
inline constexpr long kSysMountSetattr = 442;
inline constexpr long kSysLandlockCreateRuleset = 444;
inline constexpr long kSysLandlockAddRule = 445;
inline constexpr long kSysLandlockRestrictSelf = 446;

inline constexpr unsigned kRenameNoReplace = 1u << 0;
inline constexpr unsigned kRenameExchange = 1u << 1;
inline constexpr unsigned kCloseRangeCloexec = 1u << 2;

// <linux/landlock.h>. The size passed to the kernel is the smallest that holds the fields in use,
// so that an older kernel does not see fields that it does not know.
struct LandlockRulesetAttr {
  uint64_t handled_access_fs = 0;
  uint64_t handled_access_net = 0;
  uint64_t scoped = 0;
};
struct __attribute__((packed)) LandlockPathBeneathAttr {
  uint64_t allowed_access = 0;
  int32_t parent_fd = -1;
};
inline constexpr unsigned kLandlockCreateRulesetVersion = 1u << 0;
inline constexpr unsigned kLandlockCreateRulesetErrata = 1u << 1;
inline constexpr int kLandlockRulePathBeneath = 1;
inline constexpr uint64_t kLandlockAccessFsRefer = 1u << 13;
inline constexpr uint64_t kLandlockScopeSignal = 1u << 1;

// <linux/seccomp.h>: calls that a filter leaves to a listener, since Linux 5.0; that go on all
// the same, since 5.5. Everything was there before Landlock was.
struct SeccompNotification {
  uint64_t id = 0;
  uint32_t pid = 0;  // of the thread; 0: it has none here
  uint32_t flags = 0;
  uint64_t call[8] = {};
};
struct SeccompAnswer {
  uint64_t id = 0;
  int64_t value = 0;
  int32_t error = 0;
  uint32_t flags = 0;
};
static_assert(sizeof(SeccompNotification) == 80 && sizeof(SeccompAnswer) == 24);
inline constexpr long kSeccompGetNotificationSizes = 3;
inline constexpr unsigned kSeccompSpeculate = 1u << 2;
inline constexpr unsigned kSeccompNewListener = 1u << 3;
inline constexpr unsigned kSeccompWaitKillable = 1u << 5;
inline constexpr unsigned kSeccompRetUserNotification = 0x7fc00000u;
inline constexpr uint32_t kSeccompContinue = 1u << 0;
inline constexpr unsigned long kSeccompReceive = 0xc0502100ul;
inline constexpr unsigned long kSeccompSend = 0xc0182101ul;
inline constexpr unsigned long kSeccompIsValid = 0x40082102ul;
inline constexpr unsigned long kSeccompSetFlags = 0x40082104ul;  // since Linux 6.6
inline constexpr unsigned long kSeccompWakeOnSameProcessor = 1ul << 0;
// Puts a descriptor into the process that asks, since Linux 5.9.
struct SeccompHandOver {
  uint64_t id = 0;
  uint32_t flags = 0;
  uint32_t source = 0;
  uint32_t number = 0;
  uint32_t new_flags = 0;
};
static_assert(sizeof(SeccompHandOver) == 24);
inline constexpr uint32_t kSeccompHandOverInPlace = 1u << 0;  // of the descriptor `number`
inline constexpr uint32_t kSeccompHandOverAnswers = 1u << 1;  // since 5.14
inline constexpr unsigned long kSeccompHandOver = 0x40182103ul;

// <linux/openat2.h>
struct OpenHow {
  uint64_t flags = 0;
  uint64_t mode = 0;
  uint64_t resolve = 0;
};
inline constexpr uint64_t kResolveNoMagicLinks = 0x02;
inline constexpr uint64_t kResolveNoSymlinks = 0x04;
inline constexpr uint64_t kResolveBeneath = 0x08;
inline constexpr uint64_t kResolveInRoot = 0x10;

// <linux/stat.h>
struct Statx {
  uint32_t mask = 0;
  uint32_t block_size = 0;
  uint64_t attributes = 0;
  uint32_t links = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint16_t mode = 0;
  uint16_t padding = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  uint64_t blocks = 0;
  uint64_t attributes_mask = 0;
  uint64_t times[8] = {};
  uint32_t of_device_major = 0;
  uint32_t of_device_minor = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t mount_id = 0;  // since 5.8
  uint64_t rest[13] = {};
};
static_assert(sizeof(Statx) == 256);
inline constexpr long kStatxBasicStats = 0x7ff;
inline constexpr long kStatxMountId = 0x1000;

// <linux/mount.h>
struct MountAttr {
  uint64_t attr_set = 0;
  uint64_t attr_clr = 0;
  uint64_t propagation = 0;
  uint64_t userns_fd = 0;
};
inline constexpr uint64_t kMountAttrRdonly = 0x1;
inline constexpr uint64_t kMountAttrNosuid = 0x2;
inline constexpr uint64_t kMountAttrNodev = 0x4;
inline constexpr unsigned kOpenTreeClone = 1;
inline constexpr unsigned kMoveMountFEmptyPath = 0x4;
inline constexpr unsigned kMoveMountTEmptyPath = 0x40;
inline constexpr unsigned kAtRecursive = 0x8000;

// <linux/pidfd.h>, since Linux 6.15. Version 1 of the struct: up to the exit code.
struct PidfdInfo {
  uint64_t mask = 0;
  uint64_t cgroup_id = 0;
  uint32_t ids[11] = {};  // pid, tgid, ppid, and four pairs of user and group
  int32_t exit_code = 0;  // as wait() gives it
};
inline constexpr uint64_t kPidfdInfoExit = 1u << 3;
inline constexpr unsigned long kPidfdGetInfo = 0xc000ff0bul | sizeof(PidfdInfo) << 16;
static_assert(sizeof(PidfdInfo) == 64);

}  // namespace sandbox_run::abi

#endif  // SANDBOX_RUN_SYS_KERNEL_ABI_H_
