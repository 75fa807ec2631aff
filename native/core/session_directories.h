#ifndef SANDBOX_RUN_CORE_SESSION_DIRECTORIES_H_
#define SANDBOX_RUN_CORE_SESSION_DIRECTORIES_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "core/directory_usage.h"

namespace sandbox_run {

// The names of private directories of commands on the host. RemoveStaleDirectories() knows them.
inline constexpr char kPrivateDirectoryPrefix[] = "sandbox-run-slot-";

// The temporary directory, and the one on shared memory, of the commands of one agent session. A
// lock on each says that a process has it; without one the next process removes it, as it removes
// private directories of commands. They are removed with the last owner of the object.
class SessionDirectories {
 public:
  // `memory_parent`: "" for none on shared memory.
  static Result<std::shared_ptr<SessionDirectories>> Make(const std::string& temporary_parent,
                                                          const std::string& memory_parent);
  SessionDirectories(const SessionDirectories&) = delete;
  SessionDirectories& operator=(const SessionDirectories&) = delete;
  ~SessionDirectories();

  const std::string& tmp() const { return tmp_; }
  const std::string& memory() const { return memory_; }

  struct Usage {
    uint64_t bytes = 0;
    uint64_t memory_bytes = 0;  // the part of it on a tmpfs
    bool unmeasurable = false;  // see DirectoryUsage
  };
  // Goes on adding up where the last call stopped, whichever command made it: a row of short
  // commands is measured, too. Thread-safe.
  Usage Measure(std::chrono::microseconds budget);

  // A command was ended for what is in them, so no further command may get them.
  void GiveUp() { given_up_ = true; }
  bool given_up() const { return given_up_; }

 private:
  SessionDirectories() = default;

  std::string directory_, tmp_, memory_;
  UniqueFd lock_, memory_lock_;
  std::atomic<bool> given_up_ = false;
  std::mutex mutex_;  // guards what follows
  std::unique_ptr<DirectoryUsage> usage_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_SESSION_DIRECTORIES_H_
