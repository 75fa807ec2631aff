#include "sys/tree_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"
#include "sys/open_beneath.h"

namespace sandbox_run {
namespace {

constexpr char kStage[] = "walk";

// An entry by a name that follows no link on its way.
std::string NameOf(int directory, const std::string& name) {
  return "/proc/self/fd/" + std::to_string(directory) + "/" + name;
}

// Documentation/filesystems/overlayfs.rst, "whiteouts and opaque directories".
bool IsOpaque(int directory, const std::string& name) {
  char value = 0;
  return lgetxattr(NameOf(directory, name).c_str(), "user.overlay.opaque", &value, 1) == 1 &&
         (value == 'y' || value == 'x');
}

// What a command sets of the layer's own names the kernel puts behind one more prefix.
bool IsLayerMark(std::string_view name) {
  return name.starts_with("user.overlay.") && !name.starts_with("user.overlay.overlay.");
}

void ReadAttributes(int directory, const std::string& name, TreeEntry& entry) {
  std::string names(1024, '\0');
  const ssize_t length = llistxattr(NameOf(directory, name).c_str(), names.data(), names.size());
  // More than fit are some.
  if (length < 0) entry.attributes = errno == ERANGE;
  for (ssize_t at = 0; at < length;) {
    const std::string_view one(names.data() + at);
    // fs/overlayfs/copy_up.c. Its value is a file handle, which cannot be opened without
    // privileges.
    if (one == "user.overlay.origin") entry.copied = true;
    if ((one.starts_with("user.") && !IsLayerMark(one)) || one.starts_with("system.posix_acl") ||
        one == "security.capability") {
      entry.attributes = true;
    }
    at += static_cast<ssize_t>(one.size()) + 1;
  }
}

int OpenDirectory(int root, const std::string& path, bool make_readable) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const char* name = path.empty() ? "." : path.c_str();
  const int fd = OpenBeneath(root, name, kFlags, 0);
  if (!make_readable) return fd;
  // Its names can be read, and nothing is known of what they name.
  struct stat own;
  if (fd >= 0 && faccessat(fd, ".", X_OK, AT_EACCESS) != 0 && fstat(fd, &own) == 0)
    fchmod(fd, (own.st_mode & 07777) | S_IRWXU);
  if (fd != -EACCES) return fd;
  const UniqueFd handle(OpenBeneath(root, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0));
  struct stat info;
  if (!handle.valid() || fstat(handle.get(), &info) != 0) return fd;
  const std::string by_descriptor = "/proc/self/fd/" + std::to_string(handle.get());
  if (chmod(by_descriptor.c_str(), (info.st_mode & 07777) | S_IRWXU) != 0) return fd;
  return OpenBeneath(root, name, kFlags, 0);
}

bool MayEverybodyRead(const struct stat& info) {
  if (S_ISDIR(info.st_mode)) return (info.st_mode & S_IROTH) != 0 && (info.st_mode & S_IXOTH) != 0;
  return S_ISREG(info.st_mode) && (info.st_mode & S_IROTH) != 0;
}

}  // namespace

Result<std::vector<TreeEntry>> WalkTree(const std::string& root, WalkKind kind, size_t most) {
  const bool is_layer = kind == WalkKind::kLayer;
  const UniqueFd top(open(root.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat of_top;
  if (!top.valid() || fstat(top.get(), &of_top) != 0) return Failure{kStage, errno, root};
  std::vector<TreeEntry> entries;
  // Directories to be looked into, the next one last; -1: the top.
  std::vector<ssize_t> pending = {-1};
  while (!pending.empty()) {
    const ssize_t at = pending.back();
    pending.pop_back();
    const std::string path = at < 0 ? "" : entries[at].path;
    const int opened = OpenDirectory(top.get(), path, is_layer);
    if (opened < 0) {
      // It went meanwhile, or is not for us to see; the caller compares what it got. A command can
      // go deeper than any path leads: that is no reason not to see the rest.
      if (at < 0 || (is_layer && opened != -ENAMETOOLONG)) return Failure{kStage, -opened, path};
      entries[at].unreadable = true;
      continue;
    }
    DIR* listing = fdopendir(opened);
    if (listing == nullptr) {
      close(opened);
      return Failure{kStage, errno, path};
    }
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* one = readdir(listing)) {
      if (strcmp(one->d_name, ".") != 0 && strcmp(one->d_name, "..") != 0)
        names.emplace_back(one->d_name);
    }
    const int error = errno;
    std::sort(names.begin(), names.end());
    const size_t first = entries.size();
    for (std::string& name : names) {
      TreeEntry entry;
      if (fstatat(opened, name.c_str(), &entry.info, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (is_layer) {
        entry.opaque = S_ISDIR(entry.info.st_mode) && IsOpaque(opened, name);
        if (!S_ISLNK(entry.info.st_mode)) ReadAttributes(opened, name, entry);
      }
      entry.path = path.empty() ? std::move(name) : path + "/" + name;
      entries.push_back(std::move(entry));
    }
    closedir(listing);
    if (error != 0) return Failure{kStage, error, path};
    if (entries.size() > most) return Failure{kStage, E2BIG, root};
    for (size_t i = entries.size(); i > first; --i) {
      const struct stat& info = entries[i - 1].info;
      if (S_ISDIR(info.st_mode) && info.st_dev == of_top.st_dev)
        pending.push_back(static_cast<ssize_t>(i - 1));
    }
  }
  return entries;
}

Result<std::vector<TreeEntry>> FindShut(const std::string& root, const std::set<std::string>& named,
                                        size_t most) {
  const UniqueFd top(open(root.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat of_top;
  if (!top.valid() || fstat(top.get(), &of_top) != 0) return Failure{kStage, errno, root};
  std::vector<TreeEntry> found;
  std::vector<std::string> pending = {""};
  size_t seen = 0;
  while (!pending.empty()) {
    const std::string path = std::move(pending.back());
    pending.pop_back();
    const int opened = OpenDirectory(top.get(), path, false);
    if (opened == -ENOENT || opened == -ENOTDIR) continue;
    if (opened < 0 && path.empty()) return Failure{kStage, -opened, root};
    UniqueFd fd(opened < 0 ? -1 : opened);
    if (!path.empty()) {
      TreeEntry entry;
      entry.path = path;
      // What we cannot look into is shut, whatever its mode.
      const bool is_shut =
          !fd.valid() || fstat(fd.get(), &entry.info) != 0 || !MayEverybodyRead(entry.info);
      const bool is_elsewhere = entry.info.st_dev != of_top.st_dev;
      if (is_shut || path.find('/') == std::string::npos) found.push_back(std::move(entry));
      if (is_shut || is_elsewhere) continue;
    }
    DIR* listing = fdopendir(fd.get());
    if (listing == nullptr) return Failure{kStage, errno, path};
    fd.release();
    errno = 0;
    while (const dirent* one = readdir(listing)) {
      if (strcmp(one->d_name, ".") == 0 || strcmp(one->d_name, "..") == 0) continue;
      if (++seen > most) break;
      if (one->d_type == DT_LNK) continue;
      TreeEntry entry;
      entry.path = path.empty() ? one->d_name : path + "/" + one->d_name;
      const bool is_named = named.count(entry.path) > 0;
      if (one->d_type == DT_DIR && !is_named) {
        pending.push_back(std::move(entry.path));
        continue;
      }
      const int looked = fstatat(dirfd(listing), one->d_name, &entry.info, AT_SYMLINK_NOFOLLOW);
      const bool is_gone = looked != 0 && errno == ENOENT;
      errno = 0;
      // An entry that cannot be looked at counts as shut.
      if (looked != 0 && !is_gone) entry.info = {};
      // The entry is gone, or it is a link, which a listing without types does not show.
      if (is_gone || S_ISLNK(entry.info.st_mode)) continue;
      if (S_ISDIR(entry.info.st_mode) && !is_named) {
        pending.push_back(std::move(entry.path));
      } else if (path.empty() || is_named || !MayEverybodyRead(entry.info)) {
        found.push_back(std::move(entry));
      }
    }
    const int error = errno;
    closedir(listing);
    if (error != 0) return Failure{kStage, error, path};
    if (seen > most) return Failure{kStage, E2BIG, root};
  }
  std::sort(found.begin(), found.end(),
            [](const TreeEntry& one, const TreeEntry& other) { return one.path < other.path; });
  return found;
}

Status RemoveLayerMarks(const std::string& path) {
  std::string names(1024, '\0');
  const ssize_t length = llistxattr(path.c_str(), names.data(), names.size());
  if (length < 0) return errno == ENOTSUP ? Status() : Failure{"marks", errno, ""};
  for (size_t at = 0; at < static_cast<size_t>(length);) {
    const std::string_view one(names.data() + at);
    if (IsLayerMark(one) && lremovexattr(path.c_str(), one.data()) != 0)
      return Failure{"marks", errno, ""};
    at += one.size() + 1;
  }
  return Status();
}

namespace {

Status Failed(int error) { return Failure{"copy", error, ""}; }

// One stretch of data of the file, at the same place.
Status CopyStretch(int from, int to, off_t at, off_t end) {
  off_t in = at, out = at;
  while (in < end) {
    const ssize_t copied = copy_file_range(from, &in, to, &out, end - in, 0);
    if (copied > 0) continue;
    // It became shorter.
    if (copied == 0) return Status();
    if (errno == EINTR) continue;
    if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
      return Failed(errno);
    break;
  }
  std::vector<char> buffer(in < end ? 256 * 1024 : 0);
  while (in < end) {
    const size_t wanted = std::min<off_t>(buffer.size(), end - in);
    const ssize_t got = pread(from, buffer.data(), wanted, in);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0 ? Status() : Failed(errno);
    for (ssize_t done = 0; done < got;) {
      const ssize_t written = pwrite(to, buffer.data() + done, got - done, in + done);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return Failed(errno);
      done += written;
    }
    in += got;
  }
  return Status();
}

// Holes are left out.
Status CopyStretches(int from, int to, off_t size) {
  off_t end = 0;
  while (end < size) {
    const off_t at = lseek(from, end, SEEK_DATA);
    // The rest is a hole, or the file system knows none.
    if (at < 0 && errno == ENXIO) break;
    const bool knows_holes = at >= 0;
    const off_t begin = knows_holes ? at : end;
    end = knows_holes ? lseek(from, begin, SEEK_HOLE) : size;
    if (end < 0) return Failed(errno);
    if (Status copied = CopyStretch(from, to, begin, end); !copied.ok()) return copied;
  }
  return ftruncate(to, size) == 0 ? Status() : Failed(errno);
}

}  // namespace

Status CopyContent(int from, int to) {
  struct stat info;
  if (fstat(from, &info) != 0) return Failed(errno);
  if (ioctl(to, FICLONE, from) != 0) {
    if (Status copied = CopyStretches(from, to, info.st_size); !copied.ok()) return copied;
  }
  const timespec times[] = {info.st_atim, info.st_mtim};
  return futimens(to, times) == 0 ? Status() : Failed(errno);
}

}  // namespace sandbox_run
