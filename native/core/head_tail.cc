#include "core/head_tail.h"

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

// Makes memory larger or smaller; false: it is as it was.
bool Resize(Bytes& memory, size_t size) {
  char* resized = static_cast<char*>(realloc(memory.data(), size));
  if (resized == nullptr) return false;
  [[maybe_unused]] const char* moved = memory.Release();
  memory = Bytes(resized, size);
  return true;
}

}  // namespace

Bytes::Bytes(size_t size) : memory_(static_cast<char*>(malloc(size))) {
  if (memory_ != nullptr) size_ = size;
}

HeadTail::HeadTail(size_t head_limit, size_t tail_limit)
    : wanted_head_(Bounded(head_limit)),
      wanted_tail_(Bounded(tail_limit)),
      head_limit_(wanted_head_),
      tail_limit_(wanted_tail_),
      ring_size_(RingSize(wanted_tail_)) {}

bool HeadTail::Reserve(size_t size) {
  if (size <= capacity()) return true;
  // Twice as much each time: the kernel moves pages instead of bytes, and gives none before it is
  // written to.
  return Resize(memory_, std::min(std::max({size, capacity() * 2, kLeastCapacity}), end()));
}

// There is no more memory: what there is has to do, half of it for the tail. Only called before the
// ring is full, so that whatever is behind the new head is in the order in which it arrived.
void HeadTail::KeepToMemory() {
  head_limit_ = std::min(head_limit_, capacity() / 2);
  ring_size_ = capacity() - head_limit_;
  tail_limit_ = std::min(tail_limit_, ring_size_);
}

std::span<char> HeadTail::Room(std::span<char> scratch) {
  if (at_ < kReadSize && !wrapped_) return scratch;
  if (!Reserve(std::min(at_ + kReadSize, end()))) return scratch;
  const size_t room = capacity() - at_;
  if (room < kLeastRoom) return scratch;
  return {memory_.data() + at_, room};
}

void HeadTail::Append(std::string_view bytes) {
  total_ += bytes.size();
  while (!bytes.empty()) {
    if (!wrapped_ && !Reserve(std::min(at_ + bytes.size(), end()))) KeepToMemory();
    const size_t count = std::min(bytes.size(), end() - at_);
    char* const place = memory_.data() + at_;
    if (count > 0 && bytes.data() != place) memcpy(place, bytes.data(), count);
    bytes.remove_prefix(count);
    at_ += count;
    if (at_ < end()) continue;
    if (ring_size_ == 0) break;
    at_ = head_limit_;
    wrapped_ = true;
  }
}

CapturedStream HeadTail::Copy() const {
  CapturedStream copy;
  copy.total = total_;
  copy.is_short = head_limit_ != wanted_head_ || tail_limit_ != wanted_tail_;
  const bool is_whole = total_ <= head_limit_ + tail_limit_;
  const size_t size = is_whole ? static_cast<size_t>(total_) : head_limit_ + tail_limit_;
  if (size == 0) return copy;
  copy.kept = Bytes(size);
  if (copy.kept.empty()) {
    copy.is_short = true;
    return copy;
  }
  copy.head_size = is_whole ? size : head_limit_;
  const char* const from = memory_.view().data();
  char* const tail = copy.kept.data() + copy.head_size;
  memcpy(copy.kept.data(), from, copy.head_size);
  if (is_whole) return copy;
  // The newest bytes end at at_; what the tail has besides them ends at the end of the ring.
  const size_t newest = std::min(tail_limit_, at_ - head_limit_);
  const size_t older = tail_limit_ - newest;
  if (older > 0) memcpy(tail, from + end() - older, older);
  memcpy(tail + older, from + at_ - newest, newest);
  return copy;
}

CapturedStream HeadTail::Take() {
  CapturedStream taken;
  if (total_ > head_limit_ + tail_limit_) {
    taken = Copy();
  } else if (total_ > 0) {
    taken.total = total_;
    taken.head_size = static_cast<size_t>(total_);
    taken.kept = std::move(memory_);
    // Gives the rest back.
    Resize(taken.kept, taken.head_size);
  }
  memory_ = Bytes();
  at_ = 0;
  wrapped_ = false;
  total_ = 0;
  head_limit_ = wanted_head_;
  tail_limit_ = wanted_tail_;
  ring_size_ = RingSize(wanted_tail_);
  return taken;
}

}  // namespace sandbox_run
