#ifndef SANDBOX_RUN_CORE_DIRECTORY_USAGE_H_
#define SANDBOX_RUN_CORE_DIRECTORY_USAGE_H_

#include <dirent.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sandbox_run {

// Adds up what lies beneath some directories, a bit at a time: however many files there are, one
// call takes no longer than it is allowed to. Never follows a link, never leaves the file system
// that a directory is on, and holds few descriptors, however deep the tree.
class DirectoryUsage {
 public:
  // What each entry counts besides its blocks: an empty file costs something too.
  static constexpr uint64_t kEntryBytes = 1024;

  explicit DirectoryUsage(std::vector<std::string> directories);
  ~DirectoryUsage();
  DirectoryUsage(const DirectoryUsage&) = delete;
  DirectoryUsage& operator=(const DirectoryUsage&) = delete;

  // Goes on for at most `budget`.
  void Advance(std::chrono::microseconds budget);

  // The larger of the last complete sum and of the one that is being made.
  uint64_t bytes() const;
  // The part of it that lies in memory (tmpfs).
  uint64_t memory_bytes() const;
  // The end of all directories was reached; the next call begins anew.
  bool complete() const { return complete_; }
  // What others may not look into is not in it.
  bool has_shut() const { return has_shut_; }
  // Nested so deep and so often that nothing sane does it; the sum is not to be relied on.
  bool unmeasurable() const { return unmeasurable_; }

 private:
  struct CloseStream {
    void operator()(DIR* stream) const { closedir(stream); }
  };
  struct Level {
    std::unique_ptr<DIR, CloseStream> stream;
    std::string path;  // beneath the directory that is being added up, "" or "/a/b"
  };
  struct Sum {
    uint64_t all = 0;
    uint64_t memory = 0;
  };

  void Begin();
  bool NextRoot();
  bool OpenDeferred();
  void Count(uint64_t bytes);
  void Enter(int parent, const char* name, const std::string& path);

  const std::vector<std::string> directories_;
  size_t next_ = 0;                // of directories_
  std::string root_;               // the one that is being added up
  dev_t device_ = 0;               // of root_
  bool in_memory_ = false;         // root_ is on a tmpfs
  std::vector<Level> open_;        // from root_ downwards
  std::deque<std::string> later_;  // what lies too deep to hold every level open
  size_t later_bytes_ = 0;
  Sum sum_, last_;
  bool complete_ = true;
  bool unmeasurable_ = false;
  bool has_shut_ = false;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_DIRECTORY_USAGE_H_
