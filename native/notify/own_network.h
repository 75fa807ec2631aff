#ifndef SANDBOX_RUN_NOTIFY_OWN_NETWORK_H_
#define SANDBOX_RUN_NOTIFY_OWN_NETWORK_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/result.h"
#include "notify/datagram_ports.h"
#include "notify/own_loopback.h"
#include "notify/unix_table.h"

namespace sandbox_run {

// The servers that commands whose sockets are those of the host run for each other. All sandboxes
// on one Machine share it, as they share a network namespace where the network is off.
struct OwnNetwork {
  // `private_parent`: where private directories are made.
  static Result<std::shared_ptr<OwnNetwork>> Make(std::string private_parent) {
    Result<OwnLoopback> drawn = OwnLoopback::Draw();
    if (!drawn.ok()) return drawn.failure();
    return std::make_shared<OwnNetwork>(drawn.value(), std::move(private_parent));
  }

  OwnNetwork(OwnLoopback drawn, std::string private_parent)
      : loopback(drawn), sockets(std::move(private_parent)) {}

  DatagramPorts datagrams;
  std::mutex mutex;  // guards what follows
  OwnLoopback loopback;
  OwnUnixSockets sockets;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_OWN_NETWORK_H_
