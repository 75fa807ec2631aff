#ifndef SANDBOX_RUN_PUBLISH_RELAY_PROTOCOL_H_
#define SANDBOX_RUN_PUBLISH_RELAY_PROTOCOL_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "notify/endpoint.h"

// The protocol between the launcher and the program `sandbox-run-relay`, on a SOCK_SEQPACKET socket
// pair. The relay has the channel as descriptor 0, then the listening sockets from 1 on, then the
// namespaces to enter. It exits when the launcher closes the channel.

namespace sandbox_run {

struct RelayOrder {
  enum Kind : int32_t {
    kBegin,    // the first order; answered with kRelayReady
    kTargets,  // where to connect to from now on
    kFinish,   // accept no more connections; answered with kRelayFinished
  };
  static constexpr size_t kMostTargets = 32;

  int32_t kind = kBegin;
  // For kBegin.
  int32_t launcher = 0;                   // the process ID of the launcher, the relay's parent
  int32_t listeners = 0;                  // the number of listening sockets
  int32_t has_user = 0, has_network = 0;  // which namespaces to enter
  // For kTargets: the addresses, in the order in which to try them, and their port.
  uint32_t count = 0;
  uint16_t port = 0;
  std::array<Address, kMostTargets> targets = {};
};

// The relay accepts connections.
inline constexpr char kRelayReady = 'R';
// The relay has closed the listening sockets. It exits once the connections that it has are over,
// at the latest after a second.
inline constexpr char kRelayFinished = 'F';

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PUBLISH_RELAY_PROTOCOL_H_
