#include "notify/held_connection.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <optional>

#include "notify/socket_state.h"

namespace sandbox_run {
namespace {

constexpr int kFillMs = 1000;

// Both are at one address, which nobody else of this machine uses at the time.
int MakeEnd(int family, UniqueFd& made) {
  made.reset(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  const int on = 1;
  if (!made.valid()) return errno;
  return setsockopt(made.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0 ? 0 : errno;
}

// Fills the only place in the queue of a listening socket: it answers nobody any more (listen(2)
// calls that ignoring the request). 0 or the errno.
int Fill(int listening, const SocketAddress& at) {
  const UniqueFd filler(
      socket(at.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!filler.valid()) return errno;
  if (connect(filler.get(), at.get(), at.length) != 0 && errno != EINPROGRESS) return errno;
  // On the loopback interface that is at once, unless the machine has much to do.
  pollfd watched = {listening, POLLIN, 0};
  return poll(&watched, 1, kFillMs) == 1 ? 0 : EAGAIN;
}

}  // namespace

int HeldConnection::Prepare(int socket, int family, SocketAddress& to) {
  Endpoint endpoint;
  end_family_ = AF_INET;
  if (IsOnlyV6(socket, family)) {
    end_family_ = AF_INET6;
    endpoint.address[15] = 1;
  } else {
    // A random loopback address: each has its own ports, so they do not run out.
    uint8_t lot[3];
    if (getrandom(lot, sizeof(lot), 0) != sizeof(lot)) return EAGAIN;
    endpoint.address = LoopbackAddress(static_cast<uint8_t>(1 + lot[0] % 254), lot[1],
                                       static_cast<uint8_t>(1 + lot[2] % 254));
  }
  if (const int error = MakeEnd(end_family_, swallower_)) return error;
  if (const int error = MakeEnd(end_family_, end_)) return error;
  SocketAddress at = SocketAddressOf(endpoint, end_family_);
  if (bind(swallower_.get(), at.get(), at.length) != 0) return errno;
  const auto own = NameOf(swallower_.get(), end_family_, getsockname);
  if (!own) return errno;
  at = SocketAddressOf(*own, end_family_);
  if (bind(end_.get(), at.get(), at.length) != 0 || listen(swallower_.get(), 0) != 0) return errno;
  if (const int error = Fill(swallower_.get(), at)) return error;
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
  // It keeps the last step of the handshake back for a moment (TCP_DEFER_ACCEPT), and sends a reset
  // instead: the command's socket has answered, but is not connected yet.
  const int on = 1;
  const linger at_once = {1, 0};
  const auto from = NameOf(socket_.get(), family_, getsockname);
  if (from && setsockopt(end_.get(), IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, sizeof(on)) == 0 &&
      setsockopt(end_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == 0) {
    const SocketAddress to = SocketAddressOf(*from, end_family_);
    [[maybe_unused]] const int ignored = connect(end_.get(), to.get(), to.length);
  }
  // At the latest the next time that the command's socket calls, it finds nobody.
  end_.reset();
  swallower_.reset();
  socket_.reset();
}

}  // namespace sandbox_run
