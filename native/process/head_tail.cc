#include "process/head_tail.h"

#include <algorithm>
#include <cstring>

namespace sandbox_run {
namespace {

// As much as a pipe holds by default. A ring that is smaller would make every read a small one, and
// below this size a copy costs less than memory that is given back unused.
constexpr size_t kReadSize = 64 * 1024;
// Less contiguous room than this, at the end of the ring, is not worth a read of its own.
constexpr size_t kLeastRoom = 4 * 1024;
constexpr size_t kLeastCapacity = 256;

size_t RingSize(size_t tail_limit) { return std::max(tail_limit, kReadSize); }

// Limits may be as large as numbers are; their sums must not overflow.
size_t Bounded(size_t limit) { return std::min(limit, SIZE_MAX / 8); }

MallocMemory Allocate(size_t size) { return MallocMemory(static_cast<char*>(malloc(size))); }

}  // namespace

HeadTail::HeadTail(size_t head_limit, size_t tail_limit)
    : wanted_head_(Bounded(head_limit)),
      wanted_tail_(Bounded(tail_limit)),
      head_limit_(wanted_head_),
      tail_limit_(wanted_tail_),
      ring_size_(RingSize(wanted_tail_)) {}

bool HeadTail::Reserve(size_t size) {
  if (size <= capacity_) return true;
  // Twice as much each time: the kernel moves pages instead of bytes, and gives none before it is
  // written to.
  const size_t capacity = std::min(std::max({size, capacity_ * 2, kLeastCapacity}), end());
  char* grown = static_cast<char*>(realloc(memory_.get(), capacity));
  if (grown == nullptr) return false;
  [[maybe_unused]] const char* moved = memory_.release();
  memory_.reset(grown);
  capacity_ = capacity;
  return true;
}

// There is no more memory: what there is has to do, half of it for the tail. Only called before the
// ring is full, so that whatever is behind the new head is in the order in which it arrived.
void HeadTail::KeepToMemory() {
  head_limit_ = std::min(head_limit_, capacity_ / 2);
  ring_size_ = capacity_ - head_limit_;
  tail_limit_ = std::min(tail_limit_, ring_size_);
}

std::span<char> HeadTail::Room(std::span<char> scratch) {
  if (at_ < kReadSize && !wrapped_) return scratch;
  if (!Reserve(std::min(at_ + kReadSize, end()))) return scratch;
  const size_t room = capacity_ - at_;
  if (room < kLeastRoom) return scratch;
  return {memory_.get() + at_, room};
}

void HeadTail::Append(std::string_view bytes) {
  total_ += bytes.size();
  while (!bytes.empty()) {
    if (!wrapped_ && !Reserve(std::min(at_ + bytes.size(), end()))) KeepToMemory();
    const size_t count = std::min(bytes.size(), end() - at_);
    char* const place = memory_.get() + at_;
    if (count > 0 && bytes.data() != place) memcpy(place, bytes.data(), count);
    bytes.remove_prefix(count);
    at_ += count;
    if (at_ < end()) continue;
    if (ring_size_ == 0) break;
    at_ = head_limit_;
    wrapped_ = true;
  }
}

KeptBytes HeadTail::Copy() const {
  KeptBytes kept;
  kept.total = total_;
  const bool is_whole = total_ <= head_limit_ + tail_limit_;
  const size_t size = is_whole ? static_cast<size_t>(total_) : head_limit_ + tail_limit_;
  if (size == 0) return kept;
  kept.memory = Allocate(size);
  if (kept.memory == nullptr) return kept;
  kept.size = size;
  // Until more was lost than the ring has room for, everything is where it arrived.
  if (is_whole) {
    kept.head_size = size;
    memcpy(kept.memory.get(), memory_.get(), size);
    return kept;
  }
  kept.head_size = head_limit_;
  memcpy(kept.memory.get(), memory_.get(), head_limit_);
  // The newest bytes end at at_; what is missing of them ends at the end of the ring.
  const size_t newest = std::min(tail_limit_, at_ - head_limit_);
  const size_t before = tail_limit_ - newest;
  char* const tail = kept.memory.get() + head_limit_;
  memcpy(tail, memory_.get() + end() - before, before);
  memcpy(tail + before, memory_.get() + at_ - newest, newest);
  return kept;
}

KeptBytes HeadTail::Take() {
  KeptBytes kept;
  if (total_ > head_limit_ + tail_limit_) {
    kept = Copy();
  } else if (total_ > 0) {
    kept.size = kept.head_size = static_cast<size_t>(total_);
    kept.total = total_;
    kept.memory = std::move(memory_);
    // The rest is given back; a smaller block cannot fail where the larger one was.
    if (char* fitted = static_cast<char*>(realloc(kept.memory.get(), kept.size))) {
      [[maybe_unused]] const char* moved = kept.memory.release();
      kept.memory.reset(fitted);
    }
  }
  memory_.reset();
  capacity_ = at_ = 0;
  wrapped_ = false;
  total_ = 0;
  head_limit_ = wanted_head_;
  tail_limit_ = wanted_tail_;
  ring_size_ = RingSize(wanted_tail_);
  return kept;
}

}  // namespace sandbox_run
