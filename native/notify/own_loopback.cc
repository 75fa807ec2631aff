#include "notify/own_loopback.h"

#include <stdio.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>

#include "notify/socket_table.h"

namespace sandbox_run {
namespace {

constexpr unsigned kListening = 0x0a;  // TCP_LISTEN

struct FileCloser {
  void operator()(FILE* file) const { fclose(file); }
};

// The addresses in the tables are those of memory, word by word.
bool ParseAddress(const char* text, Address& address) {
  const size_t words = strlen(text) / 8;
  if (words != 1 && words != 4) return false;
  address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  for (size_t at = 0; at < words; ++at) {
    uint32_t word = 0;
    if (sscanf(text + 8 * at, "%8x", &word) != 1) return false;
    memcpy(address.data() + (words == 1 ? 12 : 4 * at), &word, 4);
  }
  return true;
}

// Calls `each` with every listening TCP socket of this network namespace, until it returns true.
bool AnyListener(const std::function<bool(const Endpoint&)>& each) {
  for (const char* table : {"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"}) {
    const std::unique_ptr<FILE, FileCloser> file(fopen(table, "re"));
    if (file == nullptr) continue;
    char line[512], address[40];
    unsigned port, state;
    // The first line names the columns. Those that listen come first (net/ipv4/tcp_ipv4.c).
    if (fgets(line, sizeof(line), file.get()) == nullptr) continue;
    while (fgets(line, sizeof(line), file.get()) != nullptr) {
      if (sscanf(line, " %*d: %32[0-9A-F]:%4x %*32[0-9A-F]:%*4x %2x", address, &port, &state) != 3)
        continue;
      if (state != kListening) break;
      Endpoint endpoint;
      endpoint.port = static_cast<uint16_t>(port);
      if (ParseAddress(address, endpoint.address) && each(endpoint)) return true;
    }
  }
  return false;
}

// The socket that a connection to an IPv4 address would reach, by its own address.
std::optional<Address> ListenerFor(const Address& address, uint16_t port) {
  Address found;
  const int error = SocketTable::Own().Find(address, port, false, found);
  if (error == 0) return found;
  if (error == ENOENT) return std::nullopt;
  // A kernel without sock_diag: in its tables, which takes longer.
  std::optional<Address> listed;
  AnyListener([&](const Endpoint& listener) {
    if (listener.port != port) return false;
    if (listener.address == address || listener.IsAny()) listed = listener.address;
    return listener.address == address;
  });
  return listed;
}

}  // namespace

Result<OwnLoopback> OwnLoopback::Draw() {
  uint8_t lot[3];
  if (getrandom(lot, sizeof(lot), 0) != static_cast<ssize_t>(sizeof(lot)))
    return Failure{"network.loopback", errno, ""};
  // Never 127.0.x.y, where a host has addresses of its own (systemd-resolved: 127.0.0.53).
  const uint8_t a = static_cast<uint8_t>(lot[0] | 0x40);
  const uint8_t c = static_cast<uint8_t>((lot[2] & 0xfc) | 0x01);
  return OwnLoopback(LoopbackAddress(a, lot[1], c),
                     LoopbackAddress(a, lot[1], static_cast<uint8_t>(c + 1)));
}

bool OwnLoopback::Is(const Endpoint& endpoint) const {
  return endpoint.IsLoopback() || endpoint.IsAny();
}

void OwnLoopback::Listens(uint16_t port) { ports_.set(port); }

bool OwnLoopback::FindServer(const Endpoint& wanted, Address& server) const {
  if (!ports_.test(wanted.port)) return false;
  const auto is_there = [&](const Address& address) {
    const std::optional<Address> found = ListenerFor(address, wanted.port);
    return found && *found == address;
  };
  // What is connected to by one of the two addresses themselves is what is meant.
  if (wanted.address == v6_ || (!wanted.IsV4() && wanted.address != v4_)) {
    if (is_there(v6_)) {
      server = v6_;
      return true;
    }
    if (wanted.address == v6_) return false;
  }
  if (!is_there(v4_)) return false;
  server = v4_;
  return true;
}

bool OwnLoopback::IsTakenByHost(uint16_t port) const {
  if (port == 0) return false;
  const std::optional<Address> found = ListenerFor(v4_, port);
  return found && *found != v4_;
}

}  // namespace sandbox_run
