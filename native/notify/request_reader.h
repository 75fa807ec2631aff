#ifndef SANDBOX_RUN_NOTIFY_REQUEST_READER_H_
#define SANDBOX_RUN_NOTIFY_REQUEST_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sandbox_run {

// Follows the requests of an HTTP/1 client, one after the other, so that each is known by its host.
// Only what every server reads in the same way is let through: no body without one clear length, no
// line that another reader could end elsewhere, no host that is said twice.
class RequestReader {
 public:
  // `port`: that a host may name, being the one that is connected to.
  explicit RequestReader(uint16_t port) : port_(port) {}

  struct Step {
    const char* flaw = nullptr;  // why nothing more may pass, in a few words
    size_t size = 0;             // so many bytes may pass; 0: more are needed
    std::string host;            // not empty: if this host may be reached
  };

  // Looks at the next bytes, of which all that may pass have to be taken away before it is called
  // again.
  Step Next(std::string_view bytes);

 private:
  enum class Place { kHead, kBody, kChunkSize, kChunk, kChunkEnd, kLastEnd };

  Step ReadHead(std::string_view head);
  Step ReadChunkSize(std::string_view bytes);
  Step ReadEnd(std::string_view bytes, Place next);

  const uint16_t port_;
  Place place_ = Place::kHead;
  uint64_t left_ = 0;  // of the body, or of the chunk
};

// A request whose head takes more bytes is refused.
constexpr size_t kLargestHead = 32 * 1024;

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_REQUEST_READER_H_
