#ifndef SANDBOX_RUN_INDEX_TREE_PLACES_H_
#define SANDBOX_RUN_INDEX_TREE_PLACES_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sandbox_run {

enum class EntryKind : uint8_t { kFile, kDirectory, kLink, kOther };

// What is looked for in a tree.
struct IndexSpec {
  std::string root;                    // canonical
  std::vector<std::string> beside;     // further directories, canonical, none in another one
  std::vector<std::string> names;      // of entries that are noted in every directory
  std::vector<std::string> suffixes;   // entries whose name ends so are noted, too
  std::vector<std::string> git_names;  // in directories of git besides
  std::vector<std::string> wholes;     // directories of which everything beneath is noted
  bool links = false;                  // symbolic links are noted, but for those of packages
  size_t max_directories = 0;          // of the first walk, in the root
  size_t max_beside = 0;               // the same of all others together
  // Entries in one report. The receiver needs a moment for each, and a command can make as many as
  // it likes; what is not reported is not shut. So this number is more than honest work makes in
  // passing.
  size_t max_told = 200'000;
};

// What kind of place a directory is, by its name and what it lies in.
struct TreePlace {
  enum class Modules : uint8_t { kNone, kRoot, kScope, kPackage, kPrograms };
  bool beneath_git = false;  // named `.git`, or beneath one
  bool hooks = false;        // `hooks` in a directory of git
  bool whole = false;        // everything in it is noted
  Modules modules = Modules::kNone;
  bool operator==(const TreePlace&) const = default;
};

// Which entries are noted where, and which directories are entered.
class TreePlaces {
 public:
  explicit TreePlaces(const IndexSpec& spec);

  // `is_git`: the directory is one of git.
  bool Notes(const TreePlace& place, bool is_git, std::string_view name, EntryKind kind) const;
  // `has_head`: there is an entry HEAD beside it.
  static bool Enters(const TreePlace& place, bool has_head, std::string_view name);
  TreePlace Within(const TreePlace& place, bool is_git, std::string_view name) const;

 private:
  // Not hashed: asking that for a string_view takes libstdc++ 11, and old hosts get what is built
  // with 10.
  using Names = std::set<std::string, std::less<>>;

  Names names_, git_names_, wholes_;
  std::vector<std::string> suffixes_;
  bool links_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_INDEX_TREE_PLACES_H_
