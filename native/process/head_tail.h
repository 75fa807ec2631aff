#ifndef SANDBOX_RUN_PROCESS_HEAD_TAIL_H_
#define SANDBOX_RUN_PROCESS_HEAD_TAIL_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>

namespace sandbox_run {

struct FreeMemory {
  void operator()(char* memory) const { free(memory); }
};
// Memory of malloc(), which can be grown in place and handed to whoever frees it.
using MallocMemory = std::unique_ptr<char[], FreeMemory>;

// What was kept of a stream: its head and its tail, one directly after the other.
struct KeptBytes {
  MallocMemory memory;
  size_t size = 0;
  size_t head_size = 0;  // where the gap is, if there is one; else equal to size
  uint64_t total = 0;    // bytes that the stream had; more than `size`: some are missing

  std::string_view view() const { return {memory.get(), size}; }
};

// The first and the last bytes of a stream of any length. Memory grows with what arrives and ends
// at both limits together (at 64 KiB for the tail, if that is more). Not thread-safe.
class HeadTail {
 public:
  HeadTail(size_t head_limit, size_t tail_limit);

  // Where the next bytes are best read to: memory of this object, so that Append() need not copy
  // them, or `scratch` while there is little. Never empty unless `scratch` is. Valid until the next
  // call.
  std::span<char> Room(std::span<char> scratch);
  // Adds bytes, which may lie at the beginning of what Room() returned.
  void Append(std::string_view bytes);

  uint64_t total() const { return total_; }

  // What is kept so far. Where memory for the copy is short, less of it is there.
  KeptBytes Copy() const;
  // The same, and begins anew.
  KeptBytes Take();

 private:
  bool Reserve(size_t size);
  void KeepToMemory();
  size_t end() const { return head_limit_ + ring_size_; }

  const size_t wanted_head_, wanted_tail_;
  // As wanted, until memory is short.
  size_t head_limit_, tail_limit_;
  size_t ring_size_;     // at least the tail's limit
  MallocMemory memory_;  // the head, and behind it the ring
  size_t capacity_ = 0;
  size_t at_ = 0;         // where the next byte belongs
  bool wrapped_ = false;  // the ring is full: what is behind at_ is older than what is before it
  uint64_t total_ = 0;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PROCESS_HEAD_TAIL_H_
