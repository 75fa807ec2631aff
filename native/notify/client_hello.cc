#include "notify/client_hello.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace sandbox_run {
namespace {

// RFC 8446, 5.1 and 4.
constexpr uint8_t kAlert = 21, kHandshake = 22;
constexpr uint8_t kWarningLevel = 1;
constexpr uint8_t kMajorVersion = 3;
constexpr size_t kRecordHead = 5;
constexpr size_t kWarning = kRecordHead + 2;
constexpr size_t kLargestRecord = 1 << 14;
// An encrypted one has some bytes more (RFC 8446, 5.2; RFC 5246, 6.2.3).
constexpr size_t kLargestCipherRecord = kLargestRecord + 2048;
constexpr uint8_t kClientHelloType = 1, kServerHelloType = 2;
constexpr size_t kMessageHead = 4;
constexpr size_t kRandom = 32;
// RFC 6066, 3.
constexpr size_t kServerName = 0;
constexpr uint8_t kHostName = 0;
constexpr size_t kLargestName = 255;
// Names in cipher: RFC 9849, and its forerunner.
constexpr size_t kEncryptedHello = 0xfe0d, kEncryptedName = 0xffce;

// The random of a server that asks for another hello.
constexpr uint8_t kRetry[kRandom] = {
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};

uint8_t ByteAt(std::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

// Takes fields off the front. Once one is missing it stays failed.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  bool failed() const { return failed_; }
  bool empty() const { return rest_.empty(); }
  std::string_view Take(size_t size) {
    if (failed_ || rest_.size() < size) {
      failed_ = true;
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  size_t Number(size_t size) {
    size_t number = 0;
    for (const char byte : Take(size)) number = number << 8 | static_cast<uint8_t>(byte);
    return number;
  }
  // A field with its length, in so many bytes, before it.
  std::string_view Counted(size_t size_of_length) { return Take(Number(size_of_length)); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

constexpr char kMalformed[] = "a TLS hello that is malformed";
constexpr char kNotTls[] = "no TLS hello";
constexpr char kTooLong[] = "a TLS hello that is too long";

ClientHello Flaw(const char* flaw) {
  ClientHello hello;
  hello.flaw = flaw;
  return hello;
}

ClientHello Named(std::string_view extension) {
  Fields outer(extension);
  Fields list(outer.Counted(2));
  const size_t type = list.Number(1);
  const std::string_view name = list.Counted(2);
  if (outer.failed() || list.failed() || !outer.empty()) return Flaw(kMalformed);
  if (!list.empty()) return Flaw("a TLS hello with several server names");
  // No name of a host has other bytes; on the wire it is in ASCII.
  const bool is_text =
      std::all_of(name.begin(), name.end(), [](char byte) { return byte > 0x20 && byte < 0x7f; });
  if (type != kHostName || name.empty() || name.size() > kLargestName || !is_text)
    return Flaw("a TLS hello whose server name is none of a host");
  ClientHello hello;
  hello.name = name;
  return hello;
}

ClientHello ReadMessage(std::string_view message) {
  Fields fields(message);
  fields.Take(2);  // the version before TLS 1.3
  fields.Take(kRandom);
  const size_t session = fields.Counted(1).size();
  const size_t suites = fields.Counted(2).size();
  const size_t compressions = fields.Counted(1).size();
  if (fields.failed() || session > kRandom || suites < 2 || suites % 2 != 0 || compressions == 0)
    return Flaw(kMalformed);
  if (fields.empty()) return Flaw("a TLS hello without a server name");
  Fields extensions(fields.Counted(2));
  if (fields.failed() || !fields.empty()) return Flaw(kMalformed);
  std::optional<ClientHello> named;
  while (!extensions.empty()) {
    const size_t type = extensions.Number(2);
    const std::string_view extension = extensions.Counted(2);
    if (extensions.failed()) return Flaw(kMalformed);
    if (type == kEncryptedHello || type == kEncryptedName)
      return Flaw("a TLS hello that may hide another server name (ECH)");
    if (type != kServerName) continue;
    if (named) return Flaw("a TLS hello with several server names");
    named = Named(extension);
    if (named->flaw != nullptr) return *named;
  }
  return named ? *named : Flaw("a TLS hello without a server name");
}

// As ReadClientHello, however long it becomes.
ClientHello Assemble(std::string_view bytes) {
  std::string message;
  size_t at = 0;
  while (at < bytes.size()) {
    if (ByteAt(bytes, at) != kHandshake) return Flaw(kNotTls);
    if (bytes.size() < at + kRecordHead) {
      return bytes.size() > at + 1 && ByteAt(bytes, at + 1) != kMajorVersion ? Flaw(kNotTls)
                                                                             : ClientHello();
    }
    Fields head(bytes.substr(at, kRecordHead));
    head.Take(1);
    const size_t major = head.Number(1);
    head.Take(1);
    const size_t size = head.Number(2);
    if (major != kMajorVersion) return Flaw(kNotTls);
    if (size == 0 || size > kLargestRecord) return Flaw(kMalformed);
    message.append(bytes.substr(at + kRecordHead, size));
    const bool is_whole = bytes.size() >= at + kRecordHead + size;
    if (!message.empty() && ByteAt(message, 0) != kClientHelloType) return Flaw(kNotTls);
    at += kRecordHead + size;
    if (message.size() < kMessageHead) {
      if (!is_whole) return {};
      continue;
    }
    Fields fields(std::string_view(message).substr(1));
    const size_t length = fields.Number(3);
    if (length + kMessageHead > kLargestHello) return Flaw(kTooLong);
    if (message.size() > kMessageHead + length) return Flaw(kMalformed);
    if (!is_whole) return {};
    if (message.size() < kMessageHead + length) continue;
    ClientHello hello = ReadMessage(std::string_view(message).substr(kMessageHead));
    if (hello.flaw == nullptr) hello.size = at;
    return hello;
  }
  return {};
}

}  // namespace

ClientHello ReadClientHello(std::string_view bytes) {
  ClientHello hello = Assemble(bytes);
  const bool is_open = hello.flaw == nullptr && hello.size == 0;
  return is_open && bytes.size() >= kLargestHello ? Flaw(kTooLong) : hello;
}

ServerStart ReadServerStart(std::string_view bytes) {
  // A warning alert may come first: the server does not know the name (RFC 6066, 3) and goes on.
  if (!bytes.empty() && ByteAt(bytes, 0) == kAlert) {
    if (bytes.size() < kWarning) return ServerStart::kMoreBytes;
    if (ByteAt(bytes, kRecordHead) != kWarningLevel) return ServerStart::kAnotherHello;
    bytes.remove_prefix(kWarning);
  }
  if (!bytes.empty() && ByteAt(bytes, 0) != kHandshake) return ServerStart::kAnotherHello;
  // Record, message, version; then the random.
  constexpr size_t kAt = kRecordHead + kMessageHead + 2;
  if (bytes.size() < kAt + kRandom) return ServerStart::kMoreBytes;
  const bool is_retry =
      std::equal(kRetry, kRetry + kRandom, bytes.begin() + kAt,
                 [](uint8_t one, char other) { return one == static_cast<uint8_t>(other); });
  const bool is_usual = ByteAt(bytes, kRecordHead) == kServerHelloType && !is_retry;
  return is_usual ? ServerStart::kUsual : ServerStart::kAnotherHello;
}

size_t SkipToHandshake(std::string_view bytes, bool& is_next) {
  size_t at = 0;
  is_next = false;
  while (at < bytes.size()) {
    if (ByteAt(bytes, at) == kHandshake) {
      is_next = true;
      return at;
    }
    if (bytes.size() < at + kRecordHead) return at;
    const size_t size = size_t{ByteAt(bytes, at + 3)} << 8 | ByteAt(bytes, at + 4);
    if (size > kLargestCipherRecord || bytes.size() < at + kRecordHead + size) return at;
    at += kRecordHead + size;
  }
  return at;
}

}  // namespace sandbox_run
