#ifndef SANDBOX_RUN_INDEX_DIRECTORY_WATCHES_H_
#define SANDBOX_RUN_INDEX_DIRECTORY_WATCHES_H_

#include <cstddef>
#include <functional>
#include <unordered_map>

#include "base/unique_fd.h"

namespace sandbox_run {

// Watches of inotify(7) on directories, by which the kernel says in which of them an entry came or
// went. An instance and its watches count against limits of the user, which the user's editor
// needs too: there may be none, and there are never many.
class DirectoryWatches {
 public:
  DirectoryWatches() = default;
  ~DirectoryWatches() { Close(); }
  DirectoryWatches(const DirectoryWatches&) = delete;
  DirectoryWatches& operator=(const DirectoryWatches&) = delete;

  // Takes the two descriptors that it needs, with the first command and not with a later one.
  void Open();
  // Gives them back, and with them all watches.
  void Close();
  // -1: it is not watched. `directory`: open. To be called before the directory is listed.
  int Add(int directory, void* owner);
  // Whether Take() reports entries that come and go in a directory to its owner.
  bool Covers(int watch, const void* owner) const;
  // Removes a watch of this owner; one that belongs to another owner by now stays.
  void Remove(int watch, const void* owner);
  bool IsFull() const;
  // Whether Take() says when something is mounted: over a directory, that is no event of it.
  bool SeesMounts() const { return mounts_.valid(); }
  // Calls `touched` with the owner of each directory in which something came or went. False: the
  // kernel lost count, or may have, or something was mounted or unmounted.
  bool Take(const std::function<void(void* owner)>& touched);

 private:
  UniqueFd inotify_, mounts_;
  bool failed_ = false;
  // Null: one directory has two names (a mount), so that it cannot be said which was meant.
  std::unordered_map<int, void*> owners_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_INDEX_DIRECTORY_WATCHES_H_
