#include "sys/open_beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "sys/own_call.h"

namespace sandbox_run {
namespace {

// From linux/openat2.h, which older headers do not have.
#ifndef SYS_openat2
constexpr long kOpenat2 = 437;
#else
constexpr long kOpenat2 = SYS_openat2;
#endif
struct OpenHow {
  uint64_t flags;
  uint64_t mode;
  uint64_t resolve;
};
constexpr uint64_t kNoMagicLinks = 0x02;
constexpr uint64_t kNoSymbolicLinks = 0x04;
constexpr uint64_t kBeneath = 0x08;

// A race with a rename makes the kernel say EAGAIN where `..` is in the path.
constexpr int kAttempts = 64;
// Deeper paths are longer than PATH_MAX, or go up and down for no reason.
constexpr size_t kMaxDepth = 128;

// The directories on the way down, so that `..` is the one that was passed and never asked of the
// kernel: a directory that is moved meanwhile has another parent.
class Way {
 public:
  explicit Way(int root) : root_(root) {}
  ~Way() {
    while (depth_ > 0) Up();
  }
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;

  int At() const { return depth_ == 0 ? root_ : passed_[depth_ - 1]; }
  bool Up() {
    if (depth_ == 0) return false;
    close(passed_[--depth_]);
    return true;
  }
  // 0 or a negative errno.
  int Down(const char* name) {
    if (depth_ == kMaxDepth) return -ENAMETOOLONG;
    const int fd = openat(At(), name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -errno;
    passed_[depth_++] = fd;
    return 0;
  }

 private:
  int root_;
  size_t depth_ = 0;
  int passed_[kMaxDepth];
};

// O_DIRECTORY | O_NOFOLLOW says ENOTDIR for a link too: say what it is.
int WhyNoDirectory(int directory, const char* name, int error) {
  if (error != -ENOTDIR) return error;
  char target;
  return readlinkat(directory, name, &target, 1) >= 0 ? -ELOOP : error;
}

}  // namespace

int OpenBeneathByWalking(int root, const char* path, int flags, mode_t mode) {
  if (path[0] == '/') return -EXDEV;
  Way way(root);
  const char* at = path;
  for (;;) {
    while (*at == '/') ++at;
    const char* end = std::strchr(at, '/');
    const size_t length = end == nullptr ? std::strlen(at) : static_cast<size_t>(end - at);
    const char* after = at + length;
    while (*after == '/') ++after;
    const bool last = *after == '\0';
    const bool stays = length == 0 || (length == 1 && at[0] == '.');
    const bool rises = length == 2 && at[0] == '.' && at[1] == '.';
    if (rises && !way.Up()) return -EXDEV;
    if (last && (stays || rises)) {
      // Only directories have such names.
      const int fd = openat(way.At(), ".", flags & ~O_CREAT, mode);
      return fd < 0 ? -errno : fd;
    }
    if (!stays && !rises) {
      char name[256];
      if (length >= sizeof name) return -ENAMETOOLONG;
      std::memcpy(name, at, length);
      name[length] = '\0';
      if (last && end == nullptr) {
        const int fd = openat(way.At(), name, flags | O_NOFOLLOW, mode);
        return fd < 0 ? -errno : fd;
      }
      const int error = way.Down(name);
      if (error < 0) return WhyNoDirectory(way.At(), name, error);
      if (last) {
        const int fd = openat(way.At(), ".", flags & ~O_CREAT, mode);
        return fd < 0 ? -errno : fd;
      }
    }
    at = after;
  }
}

int OpenBeneath(int root, const char* path, int flags, mode_t mode) {
  OpenHow how = {};
  how.flags = static_cast<uint64_t>(static_cast<unsigned>(flags | O_NOFOLLOW));
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = kBeneath | kNoSymbolicLinks | kNoMagicLinks;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    // Where a thread is looked at like its command, this would wait for the answer.
    const long fd = OwnCall(kOpenat2, root, Arg(path), Arg(&how), sizeof how);
    if (fd == -ENOSYS || fd == -EPERM) return OpenBeneathByWalking(root, path, flags, mode);
    if (fd != -EAGAIN && fd != -EINTR) return static_cast<int>(fd);
  }
  return -EAGAIN;
}

}  // namespace sandbox_run
