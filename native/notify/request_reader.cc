#include "notify/request_reader.h"

#include <algorithm>
#include <optional>

namespace sandbox_run {
namespace {

constexpr char kNotHttp[] = "no request of HTTP/1";
constexpr char kOddLength[] = "an HTTP request whose length is not clear";
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr size_t kMostDigits = 15;

RequestReader::Step Flaw(const char* flaw) {
  RequestReader::Step step;
  step.flaw = flaw;
  return step;
}

RequestReader::Step Pass(size_t size) {
  RequestReader::Step step;
  step.size = size;
  return step;
}

bool IsDigit(char byte) { return byte >= '0' && byte <= '9'; }
bool IsLetter(char byte) { return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z'; }

// RFC 9110, 5.6.2.
bool IsToken(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char byte) {
    return IsDigit(byte) || IsLetter(byte) || kMarks.find(byte) != std::string_view::npos;
  });
}

// Without control characters and, unless it `has_spaces`, without these.
bool IsVisible(std::string_view text, bool has_spaces) {
  return std::all_of(text.begin(), text.end(), [&](char byte) {
    const auto value = static_cast<uint8_t>(byte);
    if (byte == ' ' || byte == '\t') return has_spaces;
    return value > 0x20 && value != 0x7f;
  });
}

bool IsSame(std::string_view text, std::string_view small) {
  return std::equal(text.begin(), text.end(), small.begin(), small.end(), [](char one, char other) {
    return (IsLetter(one) ? one | 0x20 : one) == other;
  });
}

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<uint64_t> NumberOf(std::string_view digits, unsigned base) {
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  uint64_t number = 0;
  for (const char digit : digits) {
    const bool is_hex = base == 16 && (digit | 0x20) >= 'a' && (digit | 0x20) <= 'f';
    if (!IsDigit(digit) && !is_hex) return std::nullopt;
    number =
        number * base + static_cast<uint64_t>(is_hex ? (digit | 0x20) - 'a' + 10 : digit - '0');
  }
  return number;
}

// Whether a line ends otherwise than it should: another reader could end it there, or go on.
bool HasOddLine(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n' && (at == 0 || text[at - 1] != '\r')) return true;
    if (text[at] == '\r' && at + 1 < text.size() && text[at + 1] != '\n') return true;
  }
  return false;
}

// The method and, by `minor`, the version. nullptr, or what is wrong.
const char* ReadRequestLine(std::string_view line, std::string_view& method, char& minor) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  constexpr std::string_view kVersion = "HTTP/1.";
  if (first == std::string_view::npos || first == last) return kNotHttp;
  method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (version.size() != kVersion.size() + 1 || version.substr(0, kVersion.size()) != kVersion)
    return kNotHttp;
  minor = version.back();
  if ((minor != '0' && minor != '1') || !IsToken(method) || !IsVisible(target, false))
    return kNotHttp;
  // To a proxy: the target, and not the host, would say where it leads.
  if (method == "CONNECT") return "an HTTP request to a proxy";
  if (target == "*" && method == "OPTIONS") return nullptr;
  return !target.empty() && target.front() == '/' ? nullptr : "an HTTP request to a proxy";
}

// The name in the value of Host; empty: it is none.
std::string_view NameOfHost(std::string_view value, uint16_t port) {
  const size_t colon = value.find(':');
  if (colon == std::string_view::npos) return value;
  const auto named = NumberOf(value.substr(colon + 1), 10);
  return named == port ? value.substr(0, colon) : std::string_view();
}

}  // namespace

RequestReader::Step RequestReader::Next(std::string_view bytes) {
  switch (place_) {
    case Place::kHead: {
      const size_t end = bytes.find(kHeadEnd);
      if (end != std::string_view::npos) return ReadHead(bytes.substr(0, end + kHeadEnd.size()));
      if (bytes.size() > kLargestHead) return Flaw("an HTTP request whose head is too long");
      // What begins otherwise never becomes a request.
      const std::string_view method = bytes.substr(0, bytes.find(' '));
      if (!bytes.empty() && !IsToken(method)) return Flaw(kNotHttp);
      return HasOddLine(bytes) ? Flaw(kNotHttp) : Step();
    }
    case Place::kBody:
    case Place::kChunk: {
      const uint64_t size = std::min<uint64_t>(left_, bytes.size());
      left_ -= size;
      if (left_ == 0) place_ = place_ == Place::kBody ? Place::kHead : Place::kChunkEnd;
      return Pass(static_cast<size_t>(size));
    }
    case Place::kChunkSize:
      return ReadChunkSize(bytes);
    case Place::kChunkEnd:
      return ReadEnd(bytes, Place::kChunkSize);
    case Place::kLastEnd:
      return ReadEnd(bytes, Place::kHead);
  }
  return Flaw(kNotHttp);
}

RequestReader::Step RequestReader::ReadHead(std::string_view head) {
  const size_t size = head.size();
  if (size > kLargestHead) return Flaw("an HTTP request whose head is too long");
  head.remove_suffix(kLineEnd.size());
  std::optional<std::string_view> host;
  std::optional<uint64_t> length;
  bool is_chunked = false;
  char minor = '0';
  std::string_view method;
  for (bool is_first = true; !head.empty(); is_first = false) {
    const size_t end = head.find(kLineEnd);
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + kLineEnd.size());
    if (is_first) {
      if (const char* flaw = ReadRequestLine(line, method, minor)) return Flaw(flaw);
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon)) ||
        !IsVisible(line, true))
      return Flaw("an HTTP request with an odd header");
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = Trimmed(line.substr(colon + 1));
    if (IsSame(name, "host")) {
      if (host) return Flaw("an HTTP request with several hosts");
      host = value;
    } else if (IsSame(name, "content-length")) {
      const auto number = NumberOf(value, 10);
      if (!number || length) return Flaw(kOddLength);
      length = number;
    } else if (IsSame(name, "transfer-encoding")) {
      if (is_chunked || !IsSame(value, "chunked") || minor == '0') return Flaw(kOddLength);
      is_chunked = true;
    }
  }
  if (is_chunked && length) return Flaw(kOddLength);
  // Some servers expect no body here, and would take it for the next request.
  if ((is_chunked || length.value_or(0) > 0) && (method == "GET" || method == "HEAD"))
    return Flaw("an HTTP request of GET or HEAD with a body");
  if (!host) return Flaw("an HTTP request without a host");
  Step step;
  step.host = NameOfHost(*host, port_);
  if (step.host.empty() || !IsVisible(step.host, false))
    return Flaw("an HTTP request whose host is no name, or at another port");
  step.size = size;
  left_ = length.value_or(0);
  place_ = is_chunked ? Place::kChunkSize : left_ > 0 ? Place::kBody : Place::kHead;
  return step;
}

RequestReader::Step RequestReader::ReadChunkSize(std::string_view bytes) {
  const size_t end = bytes.find(kLineEnd);
  const std::string_view digits = bytes.substr(0, end);
  if (end == std::string_view::npos) {
    const bool may_end = !digits.empty() && digits.back() == '\r';
    const std::string_view so_far = digits.substr(0, digits.size() - (may_end ? 1 : 0));
    return so_far.empty() ? (may_end ? Flaw(kOddLength) : Step())
                          : (NumberOf(so_far, 16) ? Step() : Flaw(kOddLength));
  }
  const auto size = NumberOf(digits, 16);
  if (!size) return Flaw(kOddLength);
  left_ = *size;
  place_ = left_ == 0 ? Place::kLastEnd : Place::kChunk;
  return Pass(end + kLineEnd.size());
}

RequestReader::Step RequestReader::ReadEnd(std::string_view bytes, Place next) {
  const std::string_view end = bytes.substr(0, kLineEnd.size());
  if (end != kLineEnd.substr(0, end.size())) return Flaw(kOddLength);
  if (end.size() < kLineEnd.size()) return {};
  place_ = next;
  return Pass(kLineEnd.size());
}

}  // namespace sandbox_run
