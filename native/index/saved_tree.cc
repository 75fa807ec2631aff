#include "index/saved_tree.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>

#include "base/unique_fd.h"
#include "sys/file_stamp.h"

namespace sandbox_run {
namespace {

// A clock that was set back by more makes every time doubtful. Two clocks are not read in one
// moment.
constexpr int64_t kSetBackNs = 100'000'000;

// splitmix64, a word after the other: it tells damage, not forgery, as no command can write there.
uint64_t DigestOf(std::string_view bytes) {
  uint64_t digest = bytes.size();
  const auto mix = [&digest](uint64_t word) {
    digest = (digest ^ word) * 0x9e3779b97f4a7c15;
    digest ^= digest >> 32;
  };
  size_t at = 0;
  for (uint64_t word; at + sizeof(word) <= bytes.size(); at += sizeof(word)) {
    memcpy(&word, bytes.data() + at, sizeof(word));
    mix(word);
  }
  uint64_t last = 0;
  memcpy(&last, bytes.data() + at, bytes.size() - at);
  mix(last);
  return digest;
}

std::string BootId() {
  const UniqueFd file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char id[64];
  const ssize_t length = file.valid() ? read(file.get(), id, sizeof(id)) : 0;
  return length > 0 ? std::string(id, static_cast<size_t>(length)) : "";
}

// Monotonic clocks have a different start in each time namespace.
std::string TimeNamespace() {
  char name[64];
  const ssize_t length = readlink("/proc/self/ns/time", name, sizeof(name));
  return length > 0 ? std::string(name, static_cast<size_t>(length)) : "";
}

std::string AddonStamp() {
  Dl_info info = {};
  struct stat file;
  if (dladdr(reinterpret_cast<const void*>(&DigestOf), &info) == 0 || info.dli_fname == nullptr ||
      stat(info.dli_fname, &file) != 0) {
    return "";
  }
  const FileStamp stamp = StampOf(file);
  return std::to_string(stamp.device) + ":" + std::to_string(stamp.inode) + ":" +
         std::to_string(stamp.changed_ns) + ":" + std::to_string(stamp.size);
}

}  // namespace

SavedMoment SavedMoment::Now() {
  const std::string boot = BootId(), addon = AddonStamp();
  timespec counted = {};
  if (boot.empty() || addon.empty() || clock_gettime(CLOCK_BOOTTIME, &counted) != 0) return {};
  return {boot + "\n" + TimeNamespace() + "\n" + addon, FileClockNow(), Nanoseconds(counted)};
}

bool SavedMoment::Follows(const SavedMoment& saved) const {
  return !of.empty() && of == saved.of && counted_ns >= saved.counted_ns &&
         real_ns >= saved.real_ns + (counted_ns - saved.counted_ns) - kSetBackNs;
}

std::string SavedWriter::Take() && {
  Put(DigestOf(bytes_));
  return std::move(bytes_);
}

SavedReader::SavedReader(std::string_view bytes) {
  uint64_t digest = 0;
  if (bytes.size() < sizeof(digest)) return;
  const std::string_view before = bytes.substr(0, bytes.size() - sizeof(digest));
  memcpy(&digest, bytes.data() + before.size(), sizeof(digest));
  if (DigestOf(before) == digest) rest_ = before;
}

std::optional<std::string_view> SavedReader::TakeText() {
  const std::optional<uint64_t> length = Take<uint64_t>();
  if (!length || *length > rest_.size()) return std::nullopt;
  const std::string_view text = rest_.substr(0, *length);
  rest_.remove_prefix(*length);
  return text;
}

}  // namespace sandbox_run
