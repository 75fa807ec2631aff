#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string_view>

#include "core/confinement.h"
#include "core/slot_paths.h"
#include "core/view_child.h"
#include "sys/files.h"

namespace sandbox_run {
namespace {

// The directories between `outer` and the view's mounts beneath it, the outermost first; without
// those inside another mount.
std::set<std::string> DirectoriesToMounts(const std::string& outer,
                                          const std::vector<ViewStepSpec>& view) {
  const auto is_mounted = [&view](const std::string& path) {
    return std::any_of(view.begin(), view.end(),
                       [&path](const ViewStepSpec& step) { return step.target == path; });
  };
  std::set<std::string> directories;  // in the order of their names, an outer one comes first
  for (const ViewStepSpec& step : view) {
    if (step.target == outer || !IsBeneathOrSame(step.target, outer)) continue;
    for (size_t end = step.target.find('/', outer.size() + 1); end != std::string::npos;
         end = step.target.find('/', end + 1)) {
      const std::string directory = step.target.substr(0, end);
      if (is_mounted(directory)) break;
      directories.insert(directory);
    }
  }
  return directories;
}

// The root of a view is a file system of its own that cannot be written to any more.
Status CheckViewRoot(int root, ObjectId& id) {
  static constexpr char kStage[] = "view.check";
  struct stat made, own;
  struct statfs flags;
  if (fstat(root, &made) != 0 || fstatfs(root, &flags) != 0 || stat("/", &own) != 0) {
    return Failure{kStage, errno, "/"};
  }
  id = {made.st_dev, made.st_ino};
  if (made.st_dev == own.st_dev) return Failure{kStage, ESTALE, "/"};
  if ((flags.f_flags & ST_RDONLY) == 0) return Failure{kStage, EROFS, "/"};
  return Status();
}

}  // namespace

Result<std::string> Confinement::MakeLink(const Slot& slot, const std::string& content,
                                          size_t number) const {
  const std::string directory = slot.HostPath(kLinksDirectory);
  const std::string path = directory + "/" + std::to_string(number);
  const bool has_directory = (mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST) &&
                             chmod(directory.c_str(), 0700) == 0;
  if (!has_directory || symlink(content.c_str(), path.c_str()) != 0) {
    return Failure{"private_file", errno, path};
  }
  return path;
}

Result<std::string> Confinement::MakeEmptyFile(const Slot& slot, const char* name,
                                               mode_t mode) const {
  const std::string directory = slot.HostPath(kLinksDirectory);
  const std::string path = directory + "/" + name;
  const bool has_directory = (mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST) &&
                             chmod(directory.c_str(), 0700) == 0;
  if (!has_directory) return Failure{"private_file", errno, path};
  // It may be there already, and open to nobody.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd.valid() && errno != EEXIST) return Failure{"private_file", errno, path};
  return path;
}

Result<Confinement::Layer> Confinement::OpenLayer(const Slot& slot,
                                                  const std::vector<std::string>& lowers,
                                                  const std::string& upper,
                                                  const std::string& work) {
  Layer layer;
  // By descriptor: whatever is in a name means nothing to the options, and none shows in the view.
  const auto name = [&layer, &slot](const std::string& named) -> Result<std::string> {
    const std::string& path = layer.paths.emplace_back(slot.HostPath(named));
    Result<UniqueFd> fd = OpenPath(path, "view.open");
    if (!fd.ok()) return fd.failure();
    layer.opened.push_back(std::move(fd.value()));
    layer.parts.push_back({path.c_str(), layer.opened.back().get()});
    return "/proc/self/fd/" + std::to_string(layer.opened.back().get());
  };
  // A layer in the slot is deleted with it, so it need not be synced to disk.
  layer.options = BelongsToSlot(upper) ? "userxattr,volatile" : "userxattr";
  const char* before = ",lowerdir=";
  for (const std::string& lower : lowers) {
    const Result<std::string> one = name(lower);
    if (!one.ok()) return one.failure();
    layer.options += before + one.value();
    before = ":";
  }
  if (upper.empty()) return layer;
  for (const auto& [option, path] :
       {std::pair(",upperdir=", &upper), std::pair(",workdir=", &work)}) {
    const Result<std::string> one = name(*path);
    if (!one.ok()) return one.failure();
    layer.options += option + one.value();
  }
  return layer;
}

Status Confinement::BuildView(Slot& slot,
                              std::vector<std::pair<const PathRuleSpec*, UniqueFd>>& handles) {
  const NamespaceSpec& wanted = *spec_.namespaces;
  const std::string staging = slot.HostPath(kStagingDirectory);
  if (mkdir(staging.c_str(), 0700) != 0 || chmod(staging.c_str(), 0700) != 0)
    return Failure{"private_directory", errno, staging};

  // Declared before the steps, which point into these strings.
  std::vector<std::string> sources, targets, session_mount_points;
  std::string empty_file;
  std::vector<ViewStep> steps;
  std::vector<Layer> layers;
  ManyLooks looks;
  for (const ViewStepSpec& spec : wanted.view) {
    ViewStep step;
    step.kind = spec.kind;
    step.read_only = spec.read_only;
    step.allow_devices = spec.allow_devices;
    std::string source = slot.HostPath(spec.source);
    if (spec.kind == ViewStepKind::kLayer) {
      std::vector<std::string> lowers = spec.lower;
      lowers.push_back(spec.source);
      if (BelongsToSlot(spec.upper)) {
        const Result<const Slot::CopiedDirectory*> added = slot.AddCopiedDirectory(spec);
        if (!added.ok()) return added.failure();
        const Slot::CopiedDirectory* const copied = added.value();
        if (copied == nullptr) continue;
        step.may_fail = true;
        lowers.clear();
        if (!copied->kept.empty()) lowers.push_back(copied->kept);
        lowers.push_back(copied->is_missing ? copied->upper + kNoSource : copied->source);
        if (copied->is_missing) {
          // Nothing can be mounted on what is not there: first what is around it gets a place.
          const auto around = [](const std::string& path) {
            return path.substr(0, path.rfind('/'));
          };
          Result<Layer> place =
              OpenLayer(slot, {copied->upper + kSkeleton, around(copied->source)}, "", "");
          if (!place.ok()) return place.failure();
          layers.push_back(std::move(place.value()));
          ViewStep with_place = step;
          with_place.parts = layers.back().parts.data();
          with_place.part_count = layers.back().parts.size();
          sources.push_back(layers.back().options);
          targets.push_back(staging + around(spec.target));
          steps.push_back(with_place);
        }
      } else {
        const Result<Found> found = LookFor(spec.source, "view.open");
        if (!found.ok()) return found.failure();
        if (!found.value().exists) return Failure{"view.open", ENOENT, spec.source};
        slot.Watch(spec.source, true, found.value().info, Slot::Look::kEachTime);
      }
      Result<Layer> layer = OpenLayer(slot, lowers, spec.upper, spec.work);
      if (!layer.ok()) return layer.failure();
      source = layer.value().options;
      layers.push_back(std::move(layer.value()));
      step.parts = layers.back().parts.data();
      step.part_count = layers.back().parts.size();
    } else if (spec.kind == ViewStepKind::kBind) {
      const Result<Found> found = looks.For(source, "view.open");
      if (!found.ok()) return found.failure();
      const auto& [exists, info] = found.value();
      if (!BelongsToSlot(spec.source)) {
        slot.Watch(source, exists, info,
                   spec.required || spec.watched ? Slot::Look::kEachTime : Slot::Look::kOften);
      }
      if (!exists) {
        if (spec.required) return Failure{"view.open", ENOENT, source};
        continue;
      }
      step.is_directory = S_ISDIR(info.st_mode);
      if (spec.from_view) source.insert(0, staging);
    } else if (spec.kind == ViewStepKind::kBindLink) {
      const Result<Found> found = looks.For(spec.target, "view.link");
      if (!found.ok()) return found.failure();
      const auto& [exists, info] = found.value();
      slot.Watch(spec.target, exists, info, Slot::Look::kEachTime);
      if (!exists && spec.required) return Failure{"view.link", ENOENT, spec.target};
      if (!exists) continue;
      Result<std::string> link = MakeLink(slot, spec.source, steps.size());
      if (!link.ok()) return link.failure();
      source = std::move(link.value());
    } else if (spec.kind == ViewStepKind::kEmptied) {
      const Result<Found> found = looks.For(spec.target, "view.hide");
      if (!found.ok()) return found.failure();
      const auto& [exists, info] = found.value();
      // Only for the system's settings: on another file system, as a workspace may have (FUSE), a
      // directory need not change when an entry in it is replaced.
      const bool is_of_system = spec.target.starts_with("/etc/");
      slot.Watch(spec.target, exists, info,
                 is_of_system ? Slot::Look::kWithDirectory : Slot::Look::kEachTime);
      if (!exists && !spec.from_view) continue;
      step.read_only = true;
      step.is_directory = S_ISDIR(info.st_mode);
      if (spec.refused && !step.is_directory) {
        Result<std::string> shut = MakeEmptyFile(slot, "shut", 0);
        if (!shut.ok()) return shut.failure();
        source = std::move(shut.value());
      } else if (spec.from_view || !step.is_directory) {
        if (empty_file.empty()) {
          Result<std::string> empty = MakeEmptyFile(slot, "empty", S_IRUSR | S_IRGRP | S_IROTH);
          if (!empty.ok()) return empty.failure();
          empty_file = std::move(empty.value());
        }
        if (spec.from_view) {
          step.file_source = empty_file.c_str();
        } else {
          source = empty_file;
        }
      }
    }
    // A mount point inside a directory of the slot must survive the cleaning between two commands.
    for (const ViewStepSpec& outer : wanted.view) {
      if (outer.kind == ViewStepKind::kBind && BelongsToSlot(outer.source) &&
          outer.target != spec.target && IsBeneathOrSame(spec.target, outer.target)) {
        const std::string inner =
            slot.HostPath(outer.source) + spec.target.substr(outer.target.size());
        // What is in a directory of the session stays anyway.
        step.in_session = IsSharedBySession(slot, outer.source);
        (step.in_session ? session_mount_points : slot.mount_points_).push_back(inner);
      }
    }
    sources.push_back(std::move(source));
    targets.push_back(staging + spec.target);
    steps.push_back(step);
    if (!IsSharedBySession(slot, spec.source)) continue;
    // The other commands of the session could move a directory on the way to a mount, and put a
    // link in its place. A mount point cannot be moved, so each of those directories becomes one.
    for (const std::string& target : DirectoriesToMounts(spec.target, wanted.view)) {
      ViewStep pin;
      pin.kind = ViewStepKind::kBind;
      pin.is_directory = true;
      pin.in_session = true;
      pin.makes_source = true;
      sources.push_back(staging + target);
      targets.push_back(staging + target);
      steps.push_back(pin);
    }
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].source = sources[i].c_str();
    steps[i].target = targets[i].data();
    steps[i].target_parent_from = staging.size();
  }
  std::vector<ViewHandle> objects = {{"/", true, -1}};
  for (const PathRuleSpec& rule : spec_.rules) {
    if (rule.in_view) objects.push_back({rule.path.c_str(), rule.required, -1});
  }

  ViewSetupPlan plan;
  if (wanted.user) plan.user_fd = machine_->user_fd();
  plan.staging = staging.c_str();
  plan.steps = steps.data();
  plan.step_count = steps.size();
  plan.handles = objects.data();
  plan.handle_count = objects.size();
  Status made = RunSetup(RunViewSetup, &plan, plan.progress, 0, "view.create");
  UniqueFd mount(plan.mount_fd);
  slot.view_root_.reset(objects[0].fd);
  size_t next = 1;
  for (const PathRuleSpec& rule : spec_.rules) {
    if (rule.in_view) handles.emplace_back(&rule, UniqueFd(objects[next++].fd));
  }
  if (!made.ok()) {
    std::string& path = made.failure().path;
    if (path.starts_with(staging)) path.erase(0, staging.size());
    return made;
  }
  if (Status taken = TakeNamespace(mount.release(), "mnt", slot.mount_namespace_); !taken.ok()) {
    return taken;
  }
  if (Status root = CheckViewRoot(slot.view_root_.get(), slot.view_root_id_); !root.ok()) {
    return root;
  }
  for (Slot::CopiedDirectory& copied : slot.copied_directories_) {
    struct stat info;
    if (lstat(copied.upper.c_str(), &info) != 0) return Failure{"slot.stat", errno, copied.upper};
    copied.made = StampOf(info);
  }
  std::erase_if(slot.mount_points_, [](const std::string& path) {
    struct stat info;
    // A mount point inside another mount has no directory here.
    return lstat(path.c_str(), &info) != 0;
  });
  for (const std::string& path : session_mount_points) slot.Hold(path);
  for (const std::string& path : slot.mount_points_) {
    // As they are for the next command, which must not see that there was one.
    for (size_t end = path.rfind('/'); end > slot.directory_.size();
         end = path.rfind('/', end - 1)) {
      chmod(path.substr(0, end).c_str(), 0700);
    }
    slot.Hold(path);
    if (slot.IsDeep(path)) slot.WayTo(path).mount_points.push_back(path);
  }
  return Status();
}

}  // namespace sandbox_run
