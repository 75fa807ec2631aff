#include "notify/socket_state.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <cerrno>

namespace sandbox_run {

std::optional<ino_t> InodeOf(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0) return std::nullopt;
  return info.st_ino;
}

bool IsNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags != -1 && (flags & O_NONBLOCK) != 0;
}

bool IsOnlyV6(int fd, int family) {
  int only = 0;
  socklen_t size = sizeof(only);
  return family == AF_INET6 && getsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &only, &size) == 0 &&
         only != 0;
}

std::optional<Endpoint> NameOf(int fd, int family, decltype(&getsockname) ask) {
  SocketAddress address;
  address.length = sizeof(address.storage);
  if (ask(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0)
    return std::nullopt;
  return EndpointOf(address, family);
}

std::optional<std::chrono::milliseconds> PatienceOf(int fd) {
  timeval time = {};
  socklen_t size = sizeof(time);
  if (getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, &size) != 0) return std::nullopt;
  const auto patience = std::chrono::milliseconds(time.tv_sec * 1000 + time.tv_usec / 1000);
  if (patience.count() == 0) return std::nullopt;
  return patience;
}

int ConnectNow(int fd, const SocketAddress& address) {
  const auto begin = [&] { return connect(fd, address.get(), address.length) == 0 ? 0 : errno; };
  const int flags = fcntl(fd, F_GETFL);
  if (flags == -1 || (flags & O_NONBLOCK) != 0) return begin();
  if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return errno;
  int error = begin();
  // A connection to this machine is made or refused at once: a second call returns the result, and
  // nothing has to wait for an event.
  if (error == EINPROGRESS) error = begin();
  if (error == EALREADY) error = EINPROGRESS;
  fcntl(fd, F_SETFL, flags);
  return error;
}

}  // namespace sandbox_run
