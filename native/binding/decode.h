#ifndef SANDBOX_RUN_BINDING_DECODE_H_
#define SANDBOX_RUN_BINDING_DECODE_H_

#include <napi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/command.h"
#include "core/confinement.h"
#include "core/terminal.h"
#include "guests/guest_spec.h"

namespace sandbox_run {

// A number or a BigInt.
uint64_t Unsigned(const Napi::Value& value);

// A list of strings.
std::vector<std::string> Texts(const Napi::Value& value);

// The bytes of a path that EncodePath() or textOfPath() in src/base/path-text.ts made text of.
std::string DecodePath(const Napi::Value& value);
std::vector<std::string> DecodePaths(const Napi::Value& value);

// 16 bytes.
Address DecodeAddress(const Napi::Value& value);

// NativeAddressRow in contract.ts.
// What a connection has to be, by its name in contract.ts.
Inside DecodeInside(const Napi::Value& value);
std::vector<AddressRow> DecodeAddressRows(const Napi::Value& value);

// Two numbers from 0 to 65535.
TerminalSize DecodeTerminalSize(const Napi::Value& columns, const Napi::Value& rows);

// NativeIndexSpec in contract.ts. An exception may be pending afterwards.
IndexSpec DecodeIndex(const Napi::Object& object);

// NativeConfinementSpec in contract.ts. An exception may be pending afterwards.
ConfinementSpec DecodeConfinement(const Napi::Object& object);
// The parts of that object for the guests of commands. An exception may be pending afterwards.
GuestSpec DecodeGuests(const Napi::Object& object);

// The arguments of launch() in contract.ts but the first two. Nothing: an exception is pending.
// `is_supervised`: the network of the confinement is listed. `is_shell`: it is one, with turns.
std::optional<CommandSpec> DecodeCommand(const Napi::CallbackInfo& info, bool is_supervised,
                                         bool& is_shell);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_BINDING_DECODE_H_
