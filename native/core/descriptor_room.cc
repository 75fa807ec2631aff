#include "core/descriptor_room.h"

#include <dirent.h>
#include <sys/resource.h>

#include <chrono>
#include <mutex>

#include "core/kept_descriptors.h"

namespace sandbox_run {
namespace {

// Measured (test/enforcement/exhaust-descriptors.test.ts measures again): what one command without
// descriptors of its own has open at most while its sandbox is made, and while it runs.
constexpr size_t kToStart = 21;
constexpr size_t kToRun = 16;
// For whatever else this process does meanwhile.
constexpr size_t kForOthers = 24;
// A count is used for so long.
constexpr std::chrono::milliseconds kCountIsGood{200};

struct Share {
  std::mutex mutex;  // guards what follows
  size_t taken = 0;
  size_t commands = 0;  // that end by themselves
  size_t others_open = 0;
  std::chrono::steady_clock::time_point counted{};
};

Share& TheShare() {
  // Never destroyed: command threads may outlive static objects.
  static auto* share = new Share();
  return *share;
}

size_t CountOpen() {
  DIR* stream = opendir("/proc/self/fd");
  if (stream == nullptr) return 0;
  size_t count = 0;
  while (readdir(stream) != nullptr) ++count;
  closedir(stream);
  return count;
}

}  // namespace

std::optional<DescriptorRoom> DescriptorRoom::Take(Holder holder, size_t own, Refusal& refusal) {
  Share& share = TheShare();
  const size_t wanted = kToStart + own;
  const std::lock_guard lock(share.mutex);
  if (share.taken == 0) {
    const auto now = std::chrono::steady_clock::now();
    if (now - share.counted >= kCountIsGood) {
      share.others_open = CountOpen();
      share.counted = now;
    }
  } else {
    rlimit limit;
    const bool is_known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
    const size_t used = share.others_open + kForOthers + share.taken + KeptDescriptors::All();
    if (is_known && limit.rlim_cur != RLIM_INFINITY && used + wanted > limit.rlim_cur) {
      refusal = share.commands > 0 ? Refusal::kWait : Refusal::kFull;
      return std::nullopt;
    }
  }
  share.taken += wanted;
  if (holder == Holder::kCommand) ++share.commands;
  return DescriptorRoom(holder, own, wanted);
}

DescriptorRoom::~DescriptorRoom() {
  if (taken_ == 0) return;
  Share& share = TheShare();
  const std::lock_guard lock(share.mutex);
  share.taken -= taken_;
  if (holder_ == Holder::kCommand) --share.commands;
}

void DescriptorRoom::Started() {
  Share& share = TheShare();
  const std::lock_guard lock(share.mutex);
  const size_t needed = kToRun + own_;
  if (needed >= taken_) return;
  share.taken -= taken_ - needed;
  taken_ = needed;
}

}  // namespace sandbox_run
