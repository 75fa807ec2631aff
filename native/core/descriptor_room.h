#ifndef SANDBOX_RUN_CORE_DESCRIPTOR_ROOM_H_
#define SANDBOX_RUN_CORE_DESCRIPTOR_ROOM_H_

#include <cstddef>
#include <optional>
#include <utility>

namespace sandbox_run {

// A share of the descriptors that this process may open, for one command. Commands beyond what the
// limit carries are not begun: in the middle they would fail for want of one.
class DescriptorRoom {
 public:
  // How long a command will need it.
  enum class Holder {
    kCommand,   // until its end, which comes by itself
    kLongLived  // a shell, a job, streams that others read: as long as the user likes
  };
  enum class Refusal {
    kWait,  // a command has a share that will be free
    kFull,  // nothing that has one ends by itself
  };
  // Room for starting a command with `own` descriptors of its own. Where no command runs there is
  // always some: it may be enough. nullopt and the refusal: none now.
  static std::optional<DescriptorRoom> Take(Holder holder, size_t own, Refusal& refusal);

  DescriptorRoom(DescriptorRoom&& other) noexcept
      : holder_(other.holder_), own_(other.own_), taken_(std::exchange(other.taken_, 0)) {}
  DescriptorRoom& operator=(DescriptorRoom&& other) noexcept {
    std::swap(holder_, other.holder_);
    std::swap(own_, other.own_);
    std::swap(taken_, other.taken_);
    return *this;
  }
  ~DescriptorRoom();

  // The command runs: what only the start needed is free.
  void Started();

 private:
  DescriptorRoom(Holder holder, size_t own, size_t taken)
      : holder_(holder), own_(own), taken_(taken) {}
  Holder holder_;
  size_t own_;
  size_t taken_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_DESCRIPTOR_ROOM_H_
