// Saves an IndexedTree for another process, and restores it.

#include <algorithm>
#include <utility>

#include "index/indexed_tree.h"
#include "index/saved_tree.h"

namespace sandbox_run {
namespace {

struct SavedTree {
  uint64_t device;
  uint64_t is_known;  // else nothing follows
  uint64_t times;
};
struct SavedDirectory {
  uint64_t listed_inode;
  uint64_t inode;
  int64_t changed_ns;
  int64_t listed_ns;
  uint32_t noted;
  uint32_t children;
  uint32_t is_entered;  // else it must be read as if new
  uint16_t is_stale;
  uint16_t is_git;
};
struct SavedNoted {
  uint64_t device;
  uint64_t inode;
  int64_t changed_ns;
  int64_t size;
  int64_t looked_ns;
  uint64_t kind;
};

bool IsName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

}  // namespace

// Saves each directory before those in it, as Restore() expects them.
void IndexedTree::Save(SavedWriter& out) {
  read_ = 0;
  const dev_t device = top_.stamp.device;
  const bool is_known = top_.entered && top_.times != FileTimes::kForeign;
  out.Put(SavedTree{device, is_known, static_cast<uint64_t>(top_.times)});
  if (!is_known) return;
  std::vector<const Directory*> rest = {&top_};
  while (!rest.empty()) {
    const Directory& one = *rest.back();
    rest.pop_back();
    // Directories on other file systems are read again: a device number can be reused by a file
    // system with the same inode numbers and times (a subvolume that was replaced by another).
    const bool is_entered =
        one.entered && one.stamp.device == device && one.times != FileTimes::kForeign;
    const size_t noted = is_entered ? one.noted.size() : 0;
    const size_t children = is_entered ? one.children.size() : 0;
    out.Put(SavedDirectory{one.listed_inode, one.stamp.inode, one.stamp.changed_ns, one.listed_ns,
                           static_cast<uint32_t>(noted), static_cast<uint32_t>(children),
                           is_entered, one.stale, one.is_git});
    out.Put(std::string_view(one.name));
    for (size_t i = 0; i < noted; ++i) {
      const auto& [name, state, looked_ns] = one.noted[i];
      out.Put(SavedNoted{state.stamp.device, state.stamp.inode, state.stamp.changed_ns,
                         state.stamp.size, looked_ns, static_cast<uint64_t>(state.kind)});
      out.Put(std::string_view(name));
    }
    for (size_t i = children; i > 0; --i) rest.push_back(one.children[i - 1].get());
  }
}

// Places are not saved: they follow from names.
bool IndexedTree::Restore(SavedReader& in) {
  const std::optional<SavedTree> tree = in.Take<SavedTree>();
  if (!tree) return false;
  if (tree->is_known == 0) return true;
  const auto times = static_cast<FileTimes>(tree->times);
  if (times != FileTimes::kLocal && times != FileTimes::kDistinct) return false;
  struct Open {
    Directory* directory;
    size_t children;  // still to come
  };
  std::vector<Open> open;
  do {
    const std::optional<SavedDirectory> saved = in.Take<SavedDirectory>();
    const std::optional<std::string_view> name = in.TakeText();
    if (!saved || !name) return false;
    Directory* one = &top_;
    if (!open.empty()) {
      Directory& parent = *open.back().directory;
      // Children must be sorted by name: lookups use binary search.
      if (!IsName(*name) || (!parent.children.empty() && parent.children.back()->name >= *name))
        return false;
      one = parent.children.emplace_back(std::make_unique<Directory>()).get();
      one->parent = &parent;
      one->name = *name;
      one->place = places_.Within(parent.place, parent.is_git, *name);
      --open.back().children;
    }
    one->listed_inode = saved->listed_inode;
    one->entered = saved->is_entered != 0;
    one->stale = saved->is_stale != 0 || !one->entered;
    one->is_git = saved->is_git != 0;
    one->stamp = {tree->device, saved->inode, saved->changed_ns, 0};
    one->listed_ns = saved->listed_ns;
    one->times = times;
    if (one->entered) ++directories_;
    // More than there are bytes for is found out one by one, and takes no memory before.
    for (uint32_t i = 0; i < saved->noted; ++i) {
      const std::optional<SavedNoted> noted = in.Take<SavedNoted>();
      const std::optional<std::string_view> of = in.TakeText();
      if (!noted || !of || !IsName(*of) || noted->kind > static_cast<uint64_t>(EntryKind::kOther) ||
          (!one->noted.empty() && one->noted.back().name >= *of)) {
        return false;
      }
      one->noted.push_back({std::string(*of),
                            {static_cast<EntryKind>(noted->kind),
                             {noted->device, noted->inode, noted->changed_ns, noted->size}},
                            noted->looked_ns});
    }
    open.push_back({one, saved->children});
    while (!open.empty() && open.back().children == 0) open.pop_back();
  } while (!open.empty());
  return true;
}

}  // namespace sandbox_run
