#include "notify/network_table.h"

#include <algorithm>
#include <utility>

namespace sandbox_run {
namespace {

// Addresses given to names; a command that looks up more names loses the first ones.
constexpr size_t kMostLeased = 4096;

constexpr int kEveryBit = 128;

bool Speaks(const AddressRow& row, const Endpoint& endpoint, Protocol protocol) {
  return row.protocol == protocol && row.first_port <= endpoint.port &&
         endpoint.port <= row.last_port &&
         IsWithin(endpoint.address, row.range.address, row.range.bits);
}

bool IsSame(const AddressRow& one, const AddressRow& other) {
  return one.range.address == other.range.address && one.range.bits == other.range.bits &&
         one.first_port == other.first_port && one.last_port == other.last_port &&
         one.protocol == other.protocol && one.inside == other.inside && one.rule == other.rule;
}

}  // namespace

void NetworkTable::Add(std::vector<AddressRow> rows, std::chrono::milliseconds lifetime) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  std::erase_if(leased_, [now](const Leased& leased) { return leased.until < now; });
  for (AddressRow& row : rows) {
    const auto known = std::find_if(leased_.begin(), leased_.end(),
                                    [&](const Leased& leased) { return IsSame(leased.row, row); });
    if (known != leased_.end()) {
      known->until = std::max(known->until, now + lifetime);
      continue;
    }
    if (leased_.size() >= kMostLeased) leased_.erase(leased_.begin());
    leased_.push_back({std::move(row), now + lifetime});
  }
}

NetworkTable::Verdict NetworkTable::Judge(const Endpoint& endpoint, Protocol protocol) const {
  int least_bits = 0;
  for (const AddressRange& range : apart_) {
    if (IsWithin(endpoint.address, range.address, range.bits)) {
      least_bits = std::max(least_bits, range.bits);
    }
  }
  const auto allow = [](const AddressRow& row) {
    return Verdict{true, row.inside, row.range.bits == kEveryBit, row.rule};
  };
  const AddressRow* allowing = nullptr;
  for (const AddressRow& row : rows_) {
    if (!Speaks(row, endpoint, protocol)) continue;
    if (!row.allows) return {false, Inside::kAnything, false, row.rule};
    const bool is_stronger = allowing == nullptr || (allowing->inside != Inside::kAnything &&
                                                     row.inside == Inside::kAnything);
    if (is_stronger && row.range.bits >= least_bits) allowing = &row;
  }
  if (allowing != nullptr && allowing->inside == Inside::kAnything) return allow(*allowing);
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  for (const Leased& leased : leased_) {
    if (leased.until < now || !Speaks(leased.row, endpoint, protocol)) continue;
    if (leased.row.inside == Inside::kAnything) return allow(leased.row);
    if (allowing == nullptr) allowing = &leased.row;
  }
  return allowing == nullptr ? Verdict() : allow(*allowing);
}

}  // namespace sandbox_run
