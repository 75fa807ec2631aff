#ifndef SANDBOX_RUN_NOTIFY_OWN_LOOPBACK_H_
#define SANDBOX_RUN_NOTIFY_OWN_LOOPBACK_H_

#include <array>
#include <bitset>
#include <cstdint>

#include "base/result.h"
#include "notify/endpoint.h"

namespace sandbox_run {

// The loopback interface of a sandbox whose sockets are those of the host. It is one address of
// 127.0.0.0/8, drawn by lot, in place of 127.0.0.1, and another one in place of ::1: so its servers
// are out of the way of the host's, and the host's programs do not come upon them when they connect
// to localhost. Not thread-safe: its owner guards it.
class OwnLoopback {
 public:
  static Result<OwnLoopback> Draw();

  // Whether an address means the sandbox itself.
  bool Is(const Endpoint& endpoint) const;
  // Where a server is to be bound that wants any address, or one of the loopback interface.
  // `only_v6`: it wants no connections over IPv4.
  Address ForServer(bool only_v6) const { return only_v6 ? v6_ : v4_; }
  // All of its addresses.
  std::array<Address, 2> addresses() const { return {v4_, v6_}; }
  // Notes that a server of the sandbox listens at a port.
  void Listens(uint16_t port);
  // The server of the sandbox that a connection to its loopback interface at `port` would reach, if
  // there is one. It is looked for by its exact address: a server of the host that listens at all
  // addresses is none.
  bool FindServer(const Endpoint& wanted, Address& server) const;
  // Whether a server of the host listens at all addresses at `port`. One of the sandbox would take
  // its place for as long as it listens (SO_REUSEPORT), and connections would go on to it then.
  bool IsTakenByHost(uint16_t port) const;

 private:
  OwnLoopback(Address v4, Address v6) : v4_(v4), v6_(v6) {}

  Address v4_, v6_;
  // Where servers of the sandbox ever listened: elsewhere there is none to look for.
  std::bitset<65536> ports_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_OWN_LOOPBACK_H_
