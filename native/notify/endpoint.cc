#include "notify/endpoint.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace sandbox_run {
namespace {

constexpr Address kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr int kMappedBits = 96;

bool IsZero(const Address& address, size_t from) {
  return std::all_of(address.begin() + static_cast<ptrdiff_t>(from), address.end(),
                     [](uint8_t byte) { return byte == 0; });
}

}  // namespace

bool IsWithin(const Address& address, const Address& range, int bits) {
  const size_t whole = static_cast<size_t>(bits) / 8;
  if (memcmp(address.data(), range.data(), whole) != 0) return false;
  const int rest = bits % 8;
  if (rest == 0) return true;
  return ((address[whole] ^ range[whole]) >> (8 - rest)) == 0;
}

bool Endpoint::IsV4() const { return IsWithin(address, kMapped, kMappedBits); }

bool Endpoint::IsAny() const { return IsV4() ? IsZero(address, 12) : IsZero(address, 0); }

bool Endpoint::IsLoopback() const {
  if (IsV4()) return address[12] == 127;
  return address[15] == 1 &&
         std::all_of(address.begin(), address.end() - 1, [](uint8_t byte) { return byte == 0; });
}

std::optional<Endpoint> EndpointOf(const SocketAddress& from, int family) {
  Endpoint endpoint;
  if (family == AF_INET) {
    sockaddr_in v4;
    if (from.length < sizeof(v4)) return std::nullopt;
    memcpy(&v4, &from.storage, sizeof(v4));
    // bind(2) takes AF_UNSPEC with no address for AF_INET.
    if (v4.sin_family != AF_INET) return std::nullopt;
    endpoint.address = kMapped;
    memcpy(endpoint.address.data() + 12, &v4.sin_addr, 4);
    endpoint.port = ntohs(v4.sin_port);
    return endpoint;
  }
  // SIN6_LEN_RFC2133: without the scope.
  sockaddr_in6 v6 = {};
  if (from.length < 24) return std::nullopt;
  memcpy(&v6, &from.storage, std::min<size_t>(from.length, sizeof(v6)));
  if (v6.sin6_family != AF_INET6) return std::nullopt;
  memcpy(endpoint.address.data(), &v6.sin6_addr, 16);
  endpoint.port = ntohs(v6.sin6_port);
  endpoint.scope = v6.sin6_scope_id;
  return endpoint;
}

SocketAddress SocketAddressOf(const Endpoint& endpoint, int family) {
  SocketAddress made;
  if (family == AF_INET) {
    sockaddr_in v4 = {};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    memcpy(&v4.sin_addr, endpoint.address.data() + 12, 4);
    memcpy(&made.storage, &v4, sizeof(v4));
    made.length = sizeof(v4);
    return made;
  }
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(endpoint.port);
  memcpy(&v6.sin6_addr, endpoint.address.data(), 16);
  v6.sin6_scope_id = endpoint.scope;
  memcpy(&made.storage, &v6, sizeof(v6));
  made.length = sizeof(v6);
  return made;
}

Address LoopbackAddress(uint8_t a, uint8_t b, uint8_t c) {
  Address address = kMapped;
  address[12] = 127;
  address[13] = a;
  address[14] = b;
  address[15] = c;
  return address;
}

}  // namespace sandbox_run
