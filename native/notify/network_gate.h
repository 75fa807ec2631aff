#ifndef SANDBOX_RUN_NOTIFY_NETWORK_GATE_H_
#define SANDBOX_RUN_NOTIFY_NETWORK_GATE_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "notify/endpoint.h"
#include "notify/network_table.h"
#include "notify/own_network.h"
#include "notify/unix_table.h"

namespace sandbox_run {

// What the commands of one sandbox have of the network.
struct NetworkGate {
  NetworkGate(std::vector<AddressRow> rows, std::vector<AddressRange> apart,
              std::shared_ptr<OwnNetwork> own_network, bool may_look_inside = false)
      : table(std::move(rows), std::move(apart)),
        looks_inside(may_look_inside),
        own(std::move(own_network)) {}

  NetworkTable table;
  const bool looks_inside;  // rows may say what connections have to be
  // Addresses that stand for names about which a person is asked; nullopt: nobody is asked.
  std::optional<AddressRange> placeholders;
  UnixTable sockets;
  const std::shared_ptr<OwnNetwork> own;
};

// A connection that a command asked for, or several alike.
struct Connection {
  pid_t process = 0;    // of the first one
  std::string program;  // as the process calls itself
  Endpoint endpoint;
  std::string path;  // of a unix socket, in place of the endpoint; @NAME: an abstract one
  bool is_udp = false;
  bool allowed = false;
  std::string rule;       // empty: none
  std::string name;       // of the host that it asked for; empty: it was not looked for, or is none
  const char* flaw = "";  // of what it sent instead of a name
  int error = 0;          // what the command was told; 0: connected, or on its way
  int64_t first_ms = 0;   // since the epoch
  uint64_t count = 0;
};

// Each kind of connection once, at most kMost, and how many more there were.
struct Connections {
  static constexpr size_t kMost = 256;
  std::vector<Connection> told;
  uint64_t untold = 0;
  // Counts a connection that equals a reported one, or for which there is no room. False: it has to
  // be added, with its process, which is expensive to find.
  bool IsCounted(const Connection& connection);
  void Add(Connection connection);
  void Add(Connections others);
  bool empty() const { return told.empty() && untold == 0; }
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_NETWORK_GATE_H_
