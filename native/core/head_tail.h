#ifndef SANDBOX_RUN_CORE_HEAD_TAIL_H_
#define SANDBOX_RUN_CORE_HEAD_TAIL_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace sandbox_run {

// Bytes in memory of malloc(), which can be grown in place and handed to the code that frees it.
class Bytes {
 public:
  Bytes() = default;
  // Empty if there is no memory.
  explicit Bytes(size_t size);
  // Takes the memory over.
  Bytes(char* memory, size_t size) : memory_(memory), size_(size) {}
  Bytes(Bytes&& other) noexcept
      : memory_(std::move(other.memory_)), size_(std::exchange(other.size_, 0)) {}
  Bytes& operator=(Bytes&& other) noexcept {
    memory_ = std::move(other.memory_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  char* data() { return memory_.get(); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::string_view view() const { return {memory_.get(), size_}; }
  operator std::string() const { return std::string(view()); }
  // To be freed by free().
  char* Release() {
    size_ = 0;
    return memory_.release();
  }

  friend bool operator==(const Bytes& one, std::string_view other) { return one.view() == other; }
  friend std::ostream& operator<<(std::ostream& to, const Bytes& bytes) {
    return to << bytes.view();
  }

 private:
  struct FreeMemory {
    void operator()(char* memory) const { free(memory); }
  };
  std::unique_ptr<char[], FreeMemory> memory_;
  size_t size_ = 0;
};

// What was captured of a stream.
struct CapturedStream {
  Bytes kept;             // its head and its tail, one directly after the other
  size_t head_size = 0;   // where the gap is, if there is one; else all of `kept`
  uint64_t total = 0;     // bytes that the stream had; more than `kept` has: some are missing
  bool is_short = false;  // less is kept than was asked for: there was no memory
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

  // A copy of what is kept so far; shorter if memory for the copy is short.
  CapturedStream Copy() const;
  // Like Copy(), and empties the buffer.
  CapturedStream Take();

 private:
  bool Reserve(size_t size);
  void KeepToMemory();
  size_t capacity() const { return memory_.size(); }
  size_t end() const { return head_limit_ + ring_size_; }

  const size_t wanted_head_, wanted_tail_;
  // As wanted, until memory is short.
  size_t head_limit_, tail_limit_;
  size_t ring_size_;      // at least the tail's limit
  Bytes memory_;          // the head, and behind it the ring
  size_t at_ = 0;         // where the next byte belongs
  bool wrapped_ = false;  // the ring is full: what is behind at_ is older than what is before it
  uint64_t total_ = 0;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_HEAD_TAIL_H_
