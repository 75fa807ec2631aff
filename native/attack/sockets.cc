// Moves against the network and local sockets. Each sends a word to a server of doctor's own, which
// tells whether it came.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "attack/attack.h"

namespace sandbox_run {
namespace {

constexpr int kMptcp = 262;

sockaddr_in Loopback(const char* port) {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(atoi(port)));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return to;
}

long Say(int fd, const char* word) { return send(fd, word, strlen(word), MSG_NOSIGNAL); }

long ConnectAndSay(int protocol, char** a) {
  const sockaddr_in to = Loopback(a[0]);
  const int fd = socket(AF_INET, SOCK_STREAM, protocol);
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) < 0) return -1;
  return Say(fd, a[1]);
}

long Tcp(char** a) { return ConnectAndSay(0, a); }
long Mptcp(char** a) { return ConnectAndSay(kMptcp, a); }

long TcpMapped(char** a) {
  sockaddr_in6 to = {};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(static_cast<uint16_t>(atoi(a[0])));
  inet_pton(AF_INET6, "::ffff:127.0.0.1", &to.sin6_addr);
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) < 0) return -1;
  return Say(fd, a[1]);
}

// Connects by sending, past connect().
long SendTo(int type, int flags, char** a) {
  const sockaddr_in to = Loopback(a[0]);
  const int fd = socket(AF_INET, type, 0);
  if (fd < 0) return -1;
  return sendto(fd, a[1], strlen(a[1]), flags | MSG_NOSIGNAL,
                reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

long FastOpen(char** a) { return SendTo(SOCK_STREAM, MSG_FASTOPEN, a); }
long Udp(char** a) { return SendTo(SOCK_DGRAM, 0, a); }

long Local(int type, char** a) {
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  const size_t length = strlen(a[0]);
  if (length >= sizeof to.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(to.sun_path, a[0], length);
  const bool abstract = a[0][0] == '@';
  if (abstract) to.sun_path[0] = 0;
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length + (abstract ? 0 : 1));
  const int fd = socket(AF_UNIX, type, 0);
  if (fd < 0) return -1;
  if (type == SOCK_DGRAM) {
    return sendto(fd, a[1], strlen(a[1]), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to),
                  size);
  }
  return connect(fd, reinterpret_cast<const sockaddr*>(&to), size) < 0 ? -1 : Say(fd, a[1]);
}

long LocalStream(char** a) { return Local(SOCK_STREAM, a); }
long LocalDatagram(char** a) { return Local(SOCK_DGRAM, a); }

long AskForSocket(char** a) { return socket(atoi(a[0]), atoi(a[1]), atoi(a[2])); }

}  // namespace

const Attack kSocketAttacks[] = {
    {"tcp", 2, Tcp},
    {"tcp-mapped", 2, TcpMapped},
    {"mptcp", 2, Mptcp},
    {"fast-open", 2, FastOpen},
    {"udp", 2, Udp},
    {"local-stream", 2, LocalStream},
    {"local-datagram", 2, LocalDatagram},
    {"ask-for-socket", 3, AskForSocket},
    {nullptr, 0, nullptr},
};

}  // namespace sandbox_run
