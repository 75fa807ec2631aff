#ifndef SANDBOX_RUN_NOTIFY_CLIENT_HELLO_H_
#define SANDBOX_RUN_NOTIFY_CLIENT_HELLO_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace sandbox_run {

// What the first bytes of a TLS client say about the server that they are for.
struct ClientHello {
  const char* flaw = nullptr;  // why they may not pass, in a few words; nullptr: nothing is wrong
  size_t size = 0;             // of the records that the hello takes; 0: more bytes are needed
  std::string name;            // that it asks for; not empty if it is whole and nothing is wrong
};

// A hello that takes more bytes is refused.
constexpr size_t kLargestHello = 32 * 1024;

// Reads the hello at the front of `bytes`, however it is split into records. Ambiguous bytes are a
// flaw, and so is an encrypted name (ECH), because the server cannot be known.
ClientHello ReadClientHello(std::string_view bytes);

// What the first bytes of a server mean for what the client may send next. Another hello, which a
// server may ask for (HelloRetryRequest, RFC 8446, 4.1.4), may name another host. After anything
// but the usual answer nothing else is expected.
enum class ServerStart { kMoreBytes, kAnotherHello, kUsual };
constexpr size_t kServerStartBytes = 50;
ServerStart ReadServerStart(std::string_view bytes);

// How many bytes of complete records stand before the next record of a handshake; `is_next`: one
// follows them.
size_t SkipToHandshake(std::string_view bytes, bool& is_next);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_CLIENT_HELLO_H_
