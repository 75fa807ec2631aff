#include "notify/held_connection.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <optional>

namespace sandbox_run {
namespace {

// Both are at one address, which nobody else of this machine uses at the time.
int MakeEnd(int family, UniqueFd& made) {
  made.reset(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  const int on = 1;
  if (!made.valid()) return errno;
  return setsockopt(made.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0 ? 0 : errno;
}

// Nothing arrives at it.
bool Swallow(int socket) {
  sock_filter drop[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program = {1, drop};
  return setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

bool IsOnlyV6(int socket, int family) {
  int only = 0;
  socklen_t size = sizeof(only);
  return family == AF_INET6 && getsockopt(socket, SOL_IPV6, IPV6_V6ONLY, &only, &size) == 0 &&
         only != 0;
}

std::optional<Endpoint> NameOf(int socket, int family, decltype(&getsockname) ask) {
  SocketAddress address;
  address.length = sizeof(address.storage);
  auto* raw = reinterpret_cast<sockaddr*>(&address.storage);
  if (ask(socket, raw, &address.length) != 0) return std::nullopt;
  return EndpointOf(address, family);
}

}  // namespace

int HeldConnection::Prepare(int socket, int family, SocketAddress& to) {
  Endpoint endpoint;
  end_family_ = AF_INET;
  if (IsOnlyV6(socket, family)) {
    end_family_ = AF_INET6;
    endpoint.address[15] = 1;
  } else {
    // Of a range with many addresses, each with ports of its own.
    uint8_t lot[3];
    if (getrandom(lot, sizeof(lot), 0) != sizeof(lot)) return EAGAIN;
    endpoint.address = LoopbackAddress(static_cast<uint8_t>(1 + lot[0] % 254), lot[1],
                                       static_cast<uint8_t>(1 + lot[2] % 254));
  }
  if (const int error = MakeEnd(end_family_, swallower_)) return error;
  if (const int error = MakeEnd(end_family_, end_)) return error;
  SocketAddress at = SocketAddressOf(endpoint, end_family_);
  if (!Swallow(swallower_.get()) || bind(swallower_.get(), at.get(), at.length) != 0) return errno;
  const auto own = NameOf(swallower_.get(), end_family_, getsockname);
  if (!own) return errno;
  at = SocketAddressOf(*own, end_family_);
  if (bind(end_.get(), at.get(), at.length) != 0 || listen(swallower_.get(), 1) != 0) return errno;
  socket_.reset(fcntl(socket, F_DUPFD_CLOEXEC, 0));
  if (!socket_.valid()) return errno;
  family_ = family;
  own_ = *own;
  to = SocketAddressOf(own_, family);
  return 0;
}

int HeldConnection::Complete() {
  const auto from = NameOf(socket_.get(), family_, getsockname);
  if (!from) return errno;
  const SocketAddress to = SocketAddressOf(*from, end_family_);
  return connect(end_.get(), to.get(), to.length) == 0 || errno == EINPROGRESS ? 0 : errno;
}

bool HeldConnection::IsComplete() const {
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(end_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return false;
  // Had the command's socket given up its address in between, somebody else could have answered.
  const auto peer = NameOf(socket_.get(), family_, getpeername);
  return peer && peer->address == own_.address && peer->port == own_.port;
}

void HeldConnection::Fail() {
  // The command's socket is brought to answer somebody who does not hear it. To the next one who
  // calls from the same address it says so, which is no answer to that: it gets a reset.
  const SocketAddress at = SocketAddressOf(own_, end_family_);
  UniqueFd next;
  const bool is_made =
      MakeEnd(end_family_, next) == 0 && bind(next.get(), at.get(), at.length) == 0;
  const auto from = NameOf(socket_.get(), family_, getsockname);
  if (is_made && from && Swallow(end_.get())) {
    const SocketAddress to = SocketAddressOf(*from, end_family_);
    [[maybe_unused]] int ignored = connect(end_.get(), to.get(), to.length);
    end_.reset();
    swallower_.reset();
    ignored = connect(next.get(), to.get(), to.length);
  }
  // At the latest the next time that the command's socket calls, it finds nobody.
  end_.reset();
  swallower_.reset();
  socket_.reset();
}

}  // namespace sandbox_run
