#ifndef SANDBOX_RUN_NOTIFY_ENDPOINT_H_
#define SANDBOX_RUN_NOTIFY_ENDPOINT_H_

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>

namespace sandbox_run {

// An IPv6 address; an IPv4 one is one of ::ffff:0:0/96.
using Address = std::array<uint8_t, 16>;

// Where a connection goes or comes from.
struct Endpoint {
  Address address = {};
  uint16_t port = 0;
  uint32_t scope = 0;  // the interface of a link-local address

  bool IsV4() const;
  // 0.0.0.0 or ::
  bool IsAny() const;
  // 127.0.0.0/8 or ::1
  bool IsLoopback() const;
};

// Whether the first `bits` of two addresses are the same.
bool IsWithin(const Address& address, const Address& range, int bits);

// As a socket of `family` takes it.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// nullopt: it is no address that a socket of this family takes.
std::optional<Endpoint> EndpointOf(const SocketAddress& address, int family);
SocketAddress SocketAddressOf(const Endpoint& endpoint, int family);

// 127.A.B.C as an address of the whole range.
Address LoopbackAddress(uint8_t a, uint8_t b, uint8_t c);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_ENDPOINT_H_
