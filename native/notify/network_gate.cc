#include "notify/network_gate.h"

#include <string_view>

namespace sandbox_run {

bool Connections::IsCounted(const Connection& connection) {
  const std::string_view flaw = connection.flaw;
  for (Connection& known : told) {
    if (known.endpoint.address == connection.endpoint.address &&
        known.endpoint.port == connection.endpoint.port && known.allowed == connection.allowed &&
        known.path == connection.path && known.is_udp == connection.is_udp &&
        known.error == connection.error && known.name == connection.name && flaw == known.flaw) {
      known.count += connection.count;
      return true;
    }
  }
  if (told.size() < kMost) return false;
  ++untold;
  return true;
}

void Connections::Add(Connection connection) {
  if (!IsCounted(connection)) told.push_back(std::move(connection));
}

void Connections::Add(Connections others) {
  for (Connection& one : others.told) Add(std::move(one));
  untold += others.untold;
}

}  // namespace sandbox_run
