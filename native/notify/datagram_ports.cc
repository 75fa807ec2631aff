#include "notify/datagram_ports.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace sandbox_run {
namespace {

// About as much as the kernel keeps of a socket (net.core.rmem_default).
constexpr size_t kMostBytes = 256 * 1024;
constexpr size_t kMostDatagrams = 256;
// The ephemeral ports, as the kernel has them by default (net.ipv4.ip_local_port_range).
constexpr uint16_t kFirstFree = 32768, kFreePorts = 28232;

}  // namespace

void DatagramBox::Put(Datagram datagram) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMostDatagrams || bytes_ + datagram.bytes.size() > kMostBytes) return;
    bytes_ += datagram.bytes.size();
    waiting_.push_back(std::move(datagram));
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_->get(), &one, sizeof(one));
}

std::deque<Datagram> DatagramBox::TakeAll() {
  const std::lock_guard lock(mutex_);
  bytes_ = 0;
  return std::exchange(waiting_, {});
}

int DatagramPorts::Take(uint16_t& port, const std::shared_ptr<DatagramBox>& box) {
  const std::lock_guard lock(mutex_);
  const auto is_free = [this](uint16_t wanted) {
    const auto found = boxes_.find(wanted);
    return found == boxes_.end() || found->second.expired();
  };
  if (port != 0) {
    if (!is_free(port)) return EADDRINUSE;
    boxes_[port] = box;
    return 0;
  }
  std::erase_if(boxes_, [](const auto& entry) { return entry.second.expired(); });
  for (uint16_t tried = 0; tried < kFreePorts; ++tried) {
    const auto any = static_cast<uint16_t>(kFirstFree + next_++ % kFreePorts);
    if (!is_free(any)) continue;
    boxes_[any] = box;
    port = any;
    return 0;
  }
  return EADDRINUSE;
}

std::shared_ptr<DatagramBox> DatagramPorts::Find(uint16_t port) {
  const std::lock_guard lock(mutex_);
  const auto found = boxes_.find(port);
  return found == boxes_.end() ? nullptr : found->second.lock();
}

}  // namespace sandbox_run
