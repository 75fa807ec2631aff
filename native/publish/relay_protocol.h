#ifndef SANDBOX_RUN_PUBLISH_RELAY_PROTOCOL_H_
#define SANDBOX_RUN_PUBLISH_RELAY_PROTOCOL_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "notify/endpoint.h"

// What the launcher and the program `sandbox-run-relay` say to each other (SOCK_SEQPACKET). The
// relay has the channel as descriptor 0, the listening sockets from 1 on, and behind them the
// namespaces to enter. The end of the channel ends it.

namespace sandbox_run {

struct RelayOrder {
  enum Kind : int32_t {
    kBegin,    // the first one; answered by kRelayReady
    kTargets,  // where to connect to from now on
    kFinish,   // no more connections; answered by kRelayFinished
  };
  static constexpr size_t kMostTargets = 32;

  int32_t kind = kBegin;
  // kBegin
  int32_t launcher = 0;  // the number of the parent that it is started by
  int32_t listeners = 0;
  int32_t has_user = 0, has_network = 0;  // namespaces to enter
  // kTargets: tried in this order.
  uint32_t count = 0;
  uint16_t port = 0;
  std::array<Address, kMostTargets> targets = {};
};

// Accepts connections.
inline constexpr char kRelayReady = 'R';
// Has closed the listening sockets. It ends once what was sent has been handed on, at the latest
// after a second.
inline constexpr char kRelayFinished = 'F';

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PUBLISH_RELAY_PROTOCOL_H_
