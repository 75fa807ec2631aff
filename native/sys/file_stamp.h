#ifndef SANDBOX_RUN_SYS_FILE_STAMP_H_
#define SANDBOX_RUN_SYS_FILE_STAMP_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <ctime>

namespace sandbox_run {

// Which object a name led to, and when it was changed last. Only the clock sets the time of
// the last change, so an object whose stamp is the same is the same, once it has settled.
struct FileStamp {
  dev_t device = 0;
  ino_t inode = 0;
  int64_t changed_ns = 0;  // the ctime
  off_t size = 0;
  bool operator==(const FileStamp&) const = default;
};

inline int64_t Nanoseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

inline FileStamp StampOf(const struct stat& info) {
  return {info.st_dev, info.st_ino, Nanoseconds(info.st_ctim), info.st_size};
}

// The clock that file systems of this machine take their times from: never later than the time of
// a change that follows.
inline int64_t FileClockNow() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return Nanoseconds(now);
}

// False: a change after the look at `looked_ns` may have left the time as it was. `ticks`: how
// coarse the time is, if it is not of this machine's clock.
inline bool IsSettled(int64_t changed_ns, int64_t looked_ns, int64_t ticks = 0) {
  constexpr int64_t kSecond = 1'000'000'000;
  // The file system has no others: ext4 with inodes of 128 bytes.
  if (changed_ns % kSecond == 0 && ticks < kSecond) ticks = kSecond;
  return changed_ns < looked_ns - ticks;
}

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_SYS_FILE_STAMP_H_
