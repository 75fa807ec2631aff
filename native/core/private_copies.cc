#include "core/private_copies.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <utility>

#include "base/unique_fd.h"
#include "sys/files.h"
#include "sys/open_beneath.h"

namespace sandbox_run {
namespace {

constexpr char kStage[] = "copy";
// A configuration is a few hundred bytes.
constexpr size_t kMaxBytes = 1024 * 1024;

// Never waits: not for the other end of a FIFO either.
constexpr int kReadFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

// Two ticks of the slowest clock there is.
constexpr int64_t kTicks = 20'000'000;

struct Content {
  std::string bytes;
  FileStamp stamp;
};

// The content of an open regular file of at most kMaxBytes.
Result<Content> ReadOpen(int fd, const std::string& path) {
  Content content;
  struct stat info;
  if (fstat(fd, &info) != 0) return Failure{kStage, errno, path};
  if (!S_ISREG(info.st_mode)) return Failure{kStage, EINVAL, path};
  content.stamp = StampOf(info);
  size_t length = 0;
  content.bytes.resize(static_cast<size_t>(info.st_size) < kMaxBytes
                           ? static_cast<size_t>(info.st_size) + 1
                           : kMaxBytes + 1);
  for (;;) {
    const ssize_t count = read(fd, content.bytes.data() + length, content.bytes.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failure{kStage, errno, path};
    length += static_cast<size_t>(count);
    if (length > kMaxBytes) return Failure{kStage, EFBIG, path};
    if (count == 0) break;
    if (length == content.bytes.size()) content.bytes.resize(kMaxBytes + 1);
  }
  content.bytes.resize(length);
  return content;
}

// Whether a word is in a text, in letters of either case.
bool Says(const std::string& text, const std::string& word) {
  return std::search(text.begin(), text.end(), word.begin(), word.end(),
                     [](unsigned char a, unsigned char b) {
                       return std::tolower(a) == std::tolower(b);
                     }) != text.end();
}

// Its directory, too, may be a link by now, to what the command cannot read.
UniqueFd OpenCopy(int slot, const std::string& relative) {
  return UniqueFd(OpenBeneath(slot, relative.c_str(), kReadFlags, 0));
}

Result<Content> ReadCopy(int slot, const std::string& relative) {
  const UniqueFd fd = OpenCopy(slot, relative);
  if (!fd.valid()) return Failure{kStage, -fd.get(), relative};
  return ReadOpen(fd.get(), relative);
}

bool WriteAll(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count = write(fd, bytes.data() + at, bytes.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    at += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

Status PrivateCopies::Seed(int slot) {
  for (Copy& copy : copies_) {
    if (Status seeded = SeedOne(slot, copy); !seeded.ok()) return seeded;
  }
  return Status();
}

Status PrivateCopies::SeedOne(int slot, Copy& copy) {
  const int64_t now = FileClockNow();
  struct stat info;
  if (lstat(copy.source.c_str(), &info) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return Failure{kStage, errno, copy.source};
    if (unlinkat(slot, copy.relative.c_str(), 0) != 0 && errno != ENOENT && errno != ENOTDIR) {
      return Failure{kStage, errno, copy.relative};
    }
    copy.made = false;
    return Status();
  }
  FileStamp preface_stamp;
  struct stat preface;
  if (!copy.preface.empty() && lstat(copy.preface.c_str(), &preface) == 0)
    preface_stamp = StampOf(preface);
  const bool is_same = copy.made && preface_stamp == copy.preface_stamp &&
                       StampOf(info) == copy.source_stamp &&
                       IsSettled(copy.source_stamp.changed_ns, copy.source_looked_ns, kTicks);
  if (is_same && !copy.touched && IsThere(slot, copy)) return Status();

  const UniqueFd fd(open(copy.source.c_str(), kReadFlags));
  if (!fd.valid()) return Failure{kStage, errno, copy.source};
  Result<Content> content = ReadOpen(fd.get(), copy.source);
  if (!content.ok()) return content.failure();
  if (preface_stamp != FileStamp() && !Says(content.value().bytes, copy.unless)) {
    const UniqueFd before(open(copy.preface.c_str(), kReadFlags));
    // Another process may have taken it away.
    Result<Content> kept = before.valid() ? ReadOpen(before.get(), copy.preface)
                                          : Result<Content>(Failure{kStage, errno, copy.preface});
    if (kept.ok()) content.value().bytes.insert(0, kept.value().bytes);
  }
  copy.preface_stamp = preface_stamp;
  const bool has_content = copy.made && content.value().bytes == copy.content;
  copy.source_stamp = content.value().stamp;
  copy.source_looked_ns = now;
  if (has_content && !copy.touched && IsThere(slot, copy)) return Status();
  copy.content = std::move(content.value().bytes);
  return Make(slot, copy);
}

Status PrivateCopies::Make(int slot, Copy& copy) {
  copy.made = false;
  const auto failed = [&copy] { return Failure{kStage, errno, copy.relative}; };
  const std::string directory = copy.relative.substr(0, copy.relative.rfind('/'));
  if (mkdirat(slot, directory.c_str(), 0700) == 0) {
    // Whatever the umask.
    if (fchmodat(slot, directory.c_str(), 0700, 0) != 0) return failed();
  } else if (errno != EEXIST) {
    return failed();
  }
  if (unlinkat(slot, copy.relative.c_str(), 0) != 0 && errno != ENOENT) return failed();
  const UniqueFd fd(openat(slot, copy.relative.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct stat info;
  if (!fd.valid() || fchmod(fd.get(), 0600) != 0 || !WriteAll(fd.get(), copy.content) ||
      fstat(fd.get(), &info) != 0) {
    return failed();
  }
  copy.stamp = StampOf(info);
  copy.made = true;
  copy.touched = false;
  copy.lost = false;
  return Status();
}

// True if the copy is what it was when it was looked at last, and no command ran since.
bool PrivateCopies::IsThere(int slot, const Copy& copy) {
  struct stat info;
  return fstatat(slot, copy.relative.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         StampOf(info) == copy.stamp;
}

// True if a command left the copy as it was.
bool PrivateCopies::IsIntact(int slot, const Copy& copy) {
  const UniqueFd fd = OpenCopy(slot, copy.relative);
  struct stat info;
  if (!fd.valid() || fstat(fd.get(), &info) != 0 || StampOf(info) != copy.stamp ||
      !IsUnmarked(fd.get(), info)) {
    return false;
  }
  // Whatever the stamp says: the clock may not have gone on, and of a mapping it need not tell.
  const Result<Content> now = ReadOpen(fd.get(), copy.relative);
  return now.ok() && now.value().bytes == copy.content;
}

std::vector<ChangedCopy> PrivateCopies::TakeChanges(int slot) {
  std::vector<ChangedCopy> changes;
  for (Copy& copy : copies_) {
    if (!copy.made || IsIntact(slot, copy)) continue;
    copy.touched = true;
    Result<Content> now = ReadCopy(slot, copy.relative);
    if (!now.ok()) {
      if (!copy.lost) changes.push_back({copy.source, copy.content, std::nullopt});
      copy.lost = true;
      continue;
    }
    copy.lost = false;
    copy.stamp = now.value().stamp;
    if (now.value().bytes == copy.content) continue;
    changes.push_back({copy.source, std::exchange(copy.content, now.value().bytes),
                       std::move(now.value().bytes)});
  }
  return changes;
}

void PrivateCopies::AddUntouched(std::vector<std::string>& relatives) const {
  for (const Copy& copy : copies_) {
    if (copy.made && !copy.touched) relatives.push_back(copy.relative);
  }
}

}  // namespace sandbox_run
