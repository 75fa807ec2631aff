#ifndef SANDBOX_RUN_NOTIFY_NETWORK_TABLE_H_
#define SANDBOX_RUN_NOTIFY_NETWORK_TABLE_H_

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "notify/endpoint.h"

namespace sandbox_run {

struct AddressRange {
  Address address = {};
  int bits = 0;
};

enum class Protocol : uint8_t { kTcp, kUdp };

// What a connection has to be, naming a host that is listed.
enum class Inside : uint8_t { kAnything, kTls, kHttp };

// Addresses that a rule speaks of, at a range of ports.
struct AddressRow {
  AddressRange range;
  uint16_t first_port = 0;
  uint16_t last_port = 0;
  Protocol protocol = Protocol::kTcp;
  bool allows = false;
  Inside inside = Inside::kAnything;
  std::string rule;  // what is told of it
};

// What the commands of one sandbox may connect to. Thread-safe.
class NetworkTable {
 public:
  struct Verdict {
    bool allowed = false;
    Inside inside = Inside::kAnything;
    bool is_exact = false;  // what allows speaks of this address alone
    std::string rule;       // empty: none speaks of it
  };

  // `apart`: ranges of which only rows that lie in them may allow something.
  NetworkTable(std::vector<AddressRow> rows, std::vector<AddressRange> apart)
      : rows_(std::move(rows)), apart_(std::move(apart)) {}

  // Further rows, for so long: what a name stands for. Those for the same take their place.
  void Add(std::vector<AddressRow> rows, std::chrono::milliseconds lifetime);

  // A row that denies is stronger than all that allow; of these, one that allows anything.
  Verdict Judge(const Endpoint& endpoint, Protocol protocol) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Leased {
    AddressRow row;
    Clock::time_point until;
  };

  const std::vector<AddressRow> rows_;
  const std::vector<AddressRange> apart_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<Leased> leased_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_NETWORK_TABLE_H_
