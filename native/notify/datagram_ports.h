#ifndef SANDBOX_RUN_NOTIFY_DATAGRAM_PORTS_H_
#define SANDBOX_RUN_NOTIFY_DATAGRAM_PORTS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/unique_fd.h"
#include "notify/endpoint.h"

namespace sandbox_run {

// What somebody sent by UDP.
struct Datagram {
  Endpoint from;
  std::string bytes;
};

// Where datagrams for one port of a sandbox's own loopback interface arrive. Thread-safe.
class DatagramBox {
 public:
  // `wake`: an eventfd that is written to whenever something arrives.
  explicit DatagramBox(std::shared_ptr<const UniqueFd> wake) : wake_(std::move(wake)) {}

  // What does not fit is lost, as it may be on any network.
  void Put(Datagram datagram);
  std::deque<Datagram> TakeAll();

 private:
  const std::shared_ptr<const UniqueFd> wake_;
  std::mutex mutex_;  // guards what follows
  std::deque<Datagram> waiting_;
  size_t bytes_ = 0;
};

// The UDP ports of a sandbox's own loopback interface. What is sent there never leaves this
// process: no host program has a socket there, and none is sent to. Thread-safe.
class DatagramPorts {
 public:
  // Takes a port, for as long as the box lives; 0: any that is free. 0 or the errno.
  int Take(uint16_t& port, const std::shared_ptr<DatagramBox>& box);
  // nullptr: nobody has it.
  std::shared_ptr<DatagramBox> Find(uint16_t port);

 private:
  std::mutex mutex_;  // guards what follows
  std::map<uint16_t, std::weak_ptr<DatagramBox>> boxes_;
  uint16_t next_ = 0;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_DATAGRAM_PORTS_H_
