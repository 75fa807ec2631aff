#ifndef SANDBOX_RUN_INDEX_SAVED_TREE_H_
#define SANDBOX_RUN_INDEX_SAVED_TREE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace sandbox_run {

// Shows a later process whether times on disk still mean what they meant when an index was saved.
struct SavedMoment {
  // Identifies the kernel's boot and the loaded addon: device numbers change with a boot, and what
  // is noted with the code. Empty: unknown.
  std::string of;
  int64_t real_ns = 0;     // FileClockNow()
  int64_t counted_ns = 0;  // of a clock that is never set, with one start for all processes

  static SavedMoment Now();
  // Times of changes since `saved` are later than those before it.
  bool Follows(const SavedMoment& saved) const;
};

// Builds what is saved. Of this machine only: numbers are as in memory.
class SavedWriter {
 public:
  template <typename T>
  void Put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Put(std::string_view text) {
    Put(static_cast<uint64_t>(text.size()));
    bytes_ += text;
  }
  // With a checksum.
  std::string Take() &&;

 private:
  std::string bytes_;
};

// Reads it back. Nothing that is read makes it reach beyond the bytes.
class SavedReader {
 public:
  // Damaged bytes are as good as none.
  explicit SavedReader(std::string_view bytes);

  template <typename T>
  std::optional<T> Take() {
    static_assert(std::is_trivially_copyable_v<T>);
    if (rest_.size() < sizeof(T)) return std::nullopt;
    T value;
    memcpy(&value, rest_.data(), sizeof(value));
    rest_.remove_prefix(sizeof(value));
    return value;
  }
  // Valid as long as the bytes are.
  std::optional<std::string_view> TakeText();
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_INDEX_SAVED_TREE_H_
