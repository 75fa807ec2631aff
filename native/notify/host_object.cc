#include "notify/host_object.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <utility>
#include <vector>

#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

constexpr long kSysFaccessat2 = 439;
constexpr uint64_t kMountRoot = 0x00002000;  // STATX_ATTR_MOUNT_ROOT, since Linux 5.8
constexpr long kFuse = 0x65735546;           // FUSE_SUPER_MAGIC
// As the kernel (include/linux/namei.h).
constexpr int kMostLinks = 40;

// The parts of a path, the last one first.
std::vector<std::string> PartsOf(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t end = path.size(); end != 0;) {
    const size_t at = path.rfind('/', end - 1);
    const size_t begin = at == std::string::npos ? 0 : at + 1;
    if (begin < end) parts.push_back(path.substr(begin, end - begin));
    end = at == std::string::npos ? 0 : at;
  }
  return parts;
}

bool Owns(int object) {
  struct stat about;
  return geteuid() == 0 || (fstat(object, &about) == 0 && about.st_uid == geteuid());
}

std::string ContentOf(int link) {
  char content[PATH_MAX];
  const ssize_t size = readlinkat(link, "", content, sizeof(content));
  return std::string(content, size > 0 ? static_cast<size_t>(size) : 0);
}

// A directory on the way, with its name.
struct Step {
  UniqueFd fd;
  std::string name;
};

std::string Joined(const std::vector<Step>& way, const std::string& last) {
  std::string path;
  for (const Step& step : way)
    if (!step.name.empty()) path += "/" + step.name;
  return path + "/" + last;
}

// The answer where no object was found. `error` is the errno of the look.
HostObject NotFound(int error) {
  HostObject nothing;
  nothing.is_short = IsShortage(error);
  return nothing;
}

}  // namespace

bool IsShortage(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

HostObject FindOnHost(const std::string& path, bool follows) {
  std::vector<Step> way;
  const auto begin_at_root = [&way] {
    way.clear();
    way.push_back({UniqueFd(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)), ""});
    return way.back().fd.valid();
  };
  if (!begin_at_root()) return NotFound(errno);
  std::vector<std::string> parts = PartsOf(path);
  for (int links = 0; !parts.empty();) {
    const std::string name = std::move(parts.back());
    parts.pop_back();
    if (name == ".") continue;
    if (name == "..") {
      if (way.size() > 1) way.pop_back();
      continue;
    }
    UniqueFd next(openat(way.back().fd.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat about;
    const bool is_last = parts.empty();
    if (!next.valid()) {
      if (!is_last || errno != ENOENT) return NotFound(errno);
      HostObject missing;
      missing.path = Joined(way, name);
      missing.parent = std::move(way.back().fd);
      return missing;
    }
    if (fstat(next.get(), &about) != 0 || AnswersByItself(next.get())) return {};
    if (S_ISLNK(about.st_mode) && (follows || !is_last)) {
      const std::string content = ContentOf(next.get());
      if (content.empty() || ++links > kMostLinks) return {};
      if (content.starts_with('/') && !begin_at_root()) return NotFound(errno);
      for (std::string& part : PartsOf(content)) parts.push_back(std::move(part));
      // The first part of the content is the next one.
      continue;
    }
    if (is_last) {
      HostObject found;
      found.path = Joined(way, name);
      found.object = std::move(next);
      found.parent = std::move(way.back().fd);
      found.mode = about.st_mode;
      return found;
    }
    way.push_back({std::move(next), name});
  }
  // The root, or where `..` leads.
  HostObject found;
  struct stat about;
  if (fstat(way.back().fd.get(), &about) != 0) return {};
  const std::string name = way.back().name;
  found.object = std::move(way.back().fd);
  way.pop_back();
  found.path = Joined(way, name);
  if (!way.empty()) found.parent = std::move(way.back().fd);
  found.mode = about.st_mode;
  return found;
}

bool MayDo(const UniqueFd& object, int mode) {
  return object.valid() &&
         RawSyscall(kSysFaccessat2, object.get(), Arg(""), mode, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

bool MayChange(const UniqueFd& object) { return object.valid() && Owns(object.get()); }

bool MayRemove(const HostObject& found) {
  struct stat directory;
  if (!found.object.valid() || !MayDo(found.parent, W_OK | X_OK) ||
      fstat(found.parent.get(), &directory) != 0)
    return false;
  return (directory.st_mode & S_ISVTX) == 0 || Owns(found.parent.get()) || Owns(found.object.get());
}

bool AnswersByItself(int object) {
  struct statfs about;
  return fstatfs(object, &about) != 0 || about.f_type == AUTOFS_SUPER_MAGIC ||
         about.f_type == kFuse;
}

bool IsMountPoint(int object) {
  abi::Statx about;
  return RawSyscall(SYS_statx, object, Arg(""), AT_EMPTY_PATH, 0, Arg(&about)) == 0 &&
         (about.attributes & kMountRoot) != 0;
}

}  // namespace sandbox_run
