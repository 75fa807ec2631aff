#include "index/tree_places.h"

#include <algorithm>

namespace sandbox_run {
namespace {

constexpr std::string_view kRepository = ".git";
// Of a repository: large, and nothing in them is obeyed.
constexpr std::string_view kBulk[] = {"objects", "refs", "logs", "lfs", "rr-cache", "annex"};

}  // namespace

TreePlaces::TreePlaces(const IndexSpec& spec)
    : names_(spec.names.begin(), spec.names.end()),
      git_names_(spec.git_names.begin(), spec.git_names.end()),
      wholes_(spec.wholes.begin(), spec.wholes.end()),
      suffixes_(spec.suffixes),
      links_(spec.links) {}

bool TreePlaces::Notes(const TreePlace& place, bool is_git, std::string_view name,
                       EntryKind kind) const {
  // Programs obey the files of a package only when they run inside it.
  if (place.modules != TreePlace::Modules::kNone &&
      place.modules != TreePlace::Modules::kPrograms) {
    return name == kRepository || (is_git && git_names_.contains(name));
  }
  if (names_.contains(name) || (is_git && git_names_.contains(name))) return true;
  for (const std::string& suffix : suffixes_) {
    if (name.ends_with(suffix)) return true;
  }
  if (place.hooks && !name.ends_with(".sample")) return true;
  if (place.modules == TreePlace::Modules::kNone &&
      ((place.whole && kind != EntryKind::kDirectory) || (links_ && kind == EntryKind::kLink))) {
    return true;
  }
  // A link is what an installation makes there.
  return place.modules == TreePlace::Modules::kPrograms && kind == EntryKind::kFile;
}

bool TreePlaces::Enters(const TreePlace& place, bool has_head, std::string_view name) {
  switch (place.modules) {
    case TreePlace::Modules::kPackage:
      // Not deeper, except for a repository in it, in which the user may work.
      return name == ".git";
    case TreePlace::Modules::kPrograms:
      return false;
    default:
      return !(place.beneath_git && has_head &&
               std::find(std::begin(kBulk), std::end(kBulk), name) != std::end(kBulk));
  }
}

TreePlace TreePlaces::Within(const TreePlace& place, bool is_git, std::string_view name) const {
  using Modules = TreePlace::Modules;
  TreePlace within;
  within.beneath_git = place.beneath_git || name == ".git";
  within.hooks = is_git && name == "hooks";
  within.whole = place.whole || wholes_.contains(name);
  if (place.modules == Modules::kRoot) {
    within.modules = name == ".bin"          ? Modules::kPrograms
                     : name.starts_with('@') ? Modules::kScope
                                             : Modules::kPackage;
  } else if (place.modules == Modules::kScope) {
    within.modules = Modules::kPackage;
  } else if (name == "node_modules") {
    within.modules = Modules::kRoot;
  }
  return within;
}

}  // namespace sandbox_run
