#ifndef SANDBOX_RUN_BASE_UNIQUE_FD_H_
#define SANDBOX_RUN_BASE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace sandbox_run {

// Owns one file descriptor and closes it. -1 means none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    const int old = std::exchange(fd_, fd);
    // close() is never retried: on Linux the number is free even after EINTR.
    if (old >= 0) ::close(old);
  }

 private:
  int fd_ = -1;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_BASE_UNIQUE_FD_H_
