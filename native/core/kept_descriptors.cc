#include "core/kept_descriptors.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>

namespace sandbox_run {
namespace {

std::atomic<size_t> all_kept = 0;

}  // namespace

size_t ShareOfDescriptors(size_t parts, size_t least, size_t most) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return least;
  return std::clamp<size_t>(limit.rlim_cur / parts, least, most);
}

void KeptDescriptors::Set(size_t count) {
  // Unsigned: if `count` is smaller, the addition wraps around to the right sum.
  all_kept += count - count_;
  count_ = count;
}

size_t KeptDescriptors::All() { return all_kept; }

}  // namespace sandbox_run
