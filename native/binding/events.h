#ifndef SANDBOX_RUN_BINDING_EVENTS_H_
#define SANDBOX_RUN_BINDING_EVENTS_H_

#include <napi.h>

#include <cstdint>
#include <string>
#include <variant>

#include "core/command.h"
#include "guests/guest_spec.h"

namespace sandbox_run {

// The events of a command's thread for its handler: NativeEvent in contract.ts. Streams are 1
// and 2.
struct Chunk {
  int stream;
  std::string bytes;
};
struct Gap {
  int stream;
  uint64_t missing;
};
struct Exit {
  ProcessEnd end;
  double duration_ms;
};
struct Query {
  uint32_t number;
  std::string message;
};
struct AskedConnection {
  uint32_t number;
  Connection connection;
};
struct HostQuestion {
  uint32_t number;
  std::string host;
  uint16_t port;
};
struct EndedTurn {
  TurnEnd turn;
  GuestEffects effects;
};
struct Ended {
  Outcome outcome;
  GuestEffects effects;
};
using Event =
    std::variant<Chunk, Gap, Exit, Query, AskedConnection, HostQuestion, EndedTurn, Ended>;

// Takes the bytes out of the event.
Napi::Object EncodeEvent(Napi::Env env, Event& event);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_BINDING_EVENTS_H_
