#ifndef SANDBOX_RUN_NOTIFY_SOCKET_STATE_H_
#define SANDBOX_RUN_NOTIFY_SOCKET_STATE_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <chrono>
#include <optional>

#include "notify/endpoint.h"

namespace sandbox_run {

// The four bits of a type beside which its flags stand.
inline constexpr int kSocketTypeMask = 0xf;

std::optional<ino_t> InodeOf(int fd);
bool IsNonBlocking(int fd);
// Whether a socket of `family` takes IPv6 alone.
bool IsOnlyV6(int fd, int family);
// Of itself (`ask`: getsockname) or of its peer (getpeername); nullopt: it has none.
std::optional<Endpoint> NameOf(int fd, int family, decltype(&getsockname) ask);
// How long the command wants to wait for a connection (SO_SNDTIMEO); nullopt: as long as it takes.
std::optional<std::chrono::milliseconds> PatienceOf(int fd);
// Connects without waiting, whatever the socket is set to. 0 or the errno.
int ConnectNow(int fd, const SocketAddress& address);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_SOCKET_STATE_H_
