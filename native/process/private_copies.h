#ifndef SANDBOX_RUN_PROCESS_PRIVATE_COPIES_H_
#define SANDBOX_RUN_PROCESS_PRIVATE_COPIES_H_

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sys/file_stamp.h"

namespace sandbox_run {

struct CopySpec {
  std::string source;  // canonical, of the host
  std::string path;    // "slot:NAME/...", with a directory of its own
};

// A private copy that is not what it was.
struct ChangedCopy {
  std::string source;
  std::string before;
  std::optional<std::string> after;  // none: it is no regular file of a fair size that can be read
};

// The copies that the commands of one slot get of files of the host, to do with as they like.
class PrivateCopies {
 public:
  // `relative`: the copy's path beneath the slot's directory.
  void Add(std::string source, std::string relative) {
    Copy& copy = copies_.emplace_back();
    copy.source = std::move(source);
    copy.relative = std::move(relative);
  }

  // Gives each copy the content of its source, beneath `slot`, the slot's directory. One whose
  // source is not there is not made.
  Status Seed(int slot);

  // What commands made of the copies since they were seeded or since the last call.
  std::vector<ChangedCopy> TakeChanges(int slot);

  // Adds the paths, beneath the slot's directory, of the copies that no command has touched.
  void AddUntouched(std::vector<std::string>& relatives) const;

 private:
  struct Copy {
    std::string source;
    std::string relative;
    bool made = false;
    bool touched = false;  // by a command, since it was made
    bool lost = false;     // that it has no content any more was told
    std::string content;   // that was seeded, or told last
    FileStamp source_stamp, stamp;
    int64_t source_looked_ns = 0;  // with what it had in it
  };
  static Status SeedOne(int slot, Copy& copy);
  static Status Make(int slot, Copy& copy);
  static bool IsThere(int slot, const Copy& copy);
  static bool IsIntact(int slot, const Copy& copy);

  std::vector<Copy> copies_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PROCESS_PRIVATE_COPIES_H_
