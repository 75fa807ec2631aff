#ifndef SANDBOX_RUN_CORE_PRIVATE_COPIES_H_
#define SANDBOX_RUN_CORE_PRIVATE_COPIES_H_

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sys/file_stamp.h"

namespace sandbox_run {

struct CopySpec {
  std::string source;  // canonical, of the host
  std::string path;    // "slot:NAME/...", with a directory of its own
  // A file whose content goes before that of the source, unless the source says the same word in
  // it, whatever its case: what earlier commands set counts where a person set nothing. "": none.
  std::string preface, unless;
};

// A private copy that is not what it was.
struct ChangedCopy {
  std::string source;
  std::string before;
  std::optional<std::string> after;  // none: it is no regular file of a fair size that can be read
};

// An entry in the writable layer of a directory. `path` is relative to the directory.
struct CopiedEntry {
  enum class Kind { kFile, kLink, kDirectory, kGone };
  std::string path;
  Kind kind = Kind::kFile;
  mode_t mode = 0;      // permissions
  std::string content;  // of a file; what a link says
  bool operator==(const CopiedEntry&) const = default;
};

// What a command changed of a directory that it has a writable layer over.
struct ChangedDirectory {
  std::string source;
  bool is_over_kept = false;  // what earlier commands left lay between
  int64_t looked_ns = 0;      // when it was seen what the source holds
  bool is_complete = true;    // false: some of it is too large, too much or of another kind
  std::vector<CopiedEntry> entries;
};

// The copies that the commands of one slot get of files of the host, to do with as they like.
class PrivateCopies {
 public:
  // `relative`: the copy's path beneath the slot's directory.
  void Add(CopySpec spec, std::string relative) {
    Copy& copy = copies_.emplace_back();
    copy.source = std::move(spec.source);
    copy.preface = std::move(spec.preface);
    copy.unless = std::move(spec.unless);
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
    std::string preface, unless;
    bool made = false;
    bool touched = false;  // by a command, since it was made
    bool lost = false;     // that it has no content any more was told
    std::string content;   // that was seeded, or told last
    FileStamp source_stamp, stamp, preface_stamp;
    int64_t source_looked_ns = 0;  // with what it had in it
  };
  static Status SeedOne(int slot, Copy& copy);
  static Status Make(int slot, Copy& copy);
  static bool IsThere(int slot, const Copy& copy);
  static bool IsIntact(int slot, const Copy& copy);

  std::vector<Copy> copies_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_PRIVATE_COPIES_H_
