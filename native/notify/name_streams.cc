#include "notify/name_streams.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>

#include "notify/socket_state.h"

namespace sandbox_run {
namespace {

// Streams of one command at a time.
constexpr size_t kMostStreams = 32;
// Unanswered questions of one stream; beyond it, nothing more is read until an answer is sent.
constexpr uint32_t kMostUnanswered = 8;
// A longer message is not taken as a question.
constexpr size_t kLargestQuery = 4096;
constexpr size_t kReadBytes = 4096;
// Bytes of answers that the program has not read.
constexpr size_t kMostHeldUp = 256 * 1024;
constexpr int kMostReads = 16;
constexpr int kMostEvents = 32;
constexpr int kConnectMs = 1000;
constexpr size_t kLengthBytes = 2;

// A socket that listens at an address of the loopback interface which nobody else uses at the time.
int Listen(bool only_v6, UniqueFd& made, SocketAddress& at) {
  const int family = only_v6 ? AF_INET6 : AF_INET;
  Endpoint endpoint;
  uint8_t lot[3];
  if (getrandom(lot, sizeof(lot), 0) != sizeof(lot)) return EAGAIN;
  if (only_v6) {
    endpoint.address[15] = 1;
  } else {
    endpoint.address = LoopbackAddress(static_cast<uint8_t>(1 + lot[0] % 254), lot[1],
                                       static_cast<uint8_t>(1 + lot[2] % 254));
  }
  made.reset(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!made.valid()) return errno;
  at = SocketAddressOf(endpoint, family);
  if (bind(made.get(), at.get(), at.length) != 0 || listen(made.get(), 1) != 0) return errno;
  at.length = sizeof(at.storage);
  return getsockname(made.get(), reinterpret_cast<sockaddr*>(&at.storage), &at.length) == 0 ? 0
                                                                                            : errno;
}

bool IsSamePlace(const std::optional<Endpoint>& one, const std::optional<Endpoint>& other) {
  return one && other && one->address == other->address && one->port == other->port;
}

}  // namespace

int NameStreams::Connect(int socket, int family, const Endpoint& server) {
  if (streams_.size() >= kMostStreams) return EAGAIN;
  if (!epoll_.valid()) epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return errno;
  const bool only_v6 = IsOnlyV6(socket, family);
  const int end_family = only_v6 ? AF_INET6 : AF_INET;
  UniqueFd listening;
  SocketAddress at;
  if (const int error = Listen(only_v6, listening, at)) return error;
  const auto place = EndpointOf(at, end_family);
  const auto inode = InodeOf(socket);
  if (!place || !inode) return EAGAIN;
  const int error = ConnectNow(socket, SocketAddressOf(*place, family));
  if (error != 0 && error != EINPROGRESS) return error;
  // On the loopback interface that is at once, unless the machine has much to do.
  pollfd watched = {listening.get(), POLLIN, 0};
  if (poll(&watched, 1, kConnectMs) != 1) return ETIMEDOUT;
  Stream stream;
  stream.end.reset(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!stream.end.valid()) return errno;
  // Somebody else of this machine may have been first.
  if (!IsSamePlace(NameOf(stream.end.get(), end_family, getpeername),
                   NameOf(socket, family, getsockname)))
    return ECONNREFUSED;
  stream.inode = *inode;
  stream.server = SocketAddressOf(server, family);
  const uint32_t number = ++last_number_;
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u32 = number;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stream.end.get(), &event) != 0) return errno;
  streams_[number] = std::move(stream);
  return 0;
}

std::optional<SocketAddress> NameStreams::PeerOf(ino_t inode) const {
  for (const auto& [number, stream] : streams_) {
    if (stream.inode == inode) return stream.server;
  }
  return std::nullopt;
}

bool NameStreams::AnswerName(uint32_t question, const std::string& message) {
  const auto found = questions_.find(question);
  if (found == questions_.end()) return false;
  const uint32_t number = found->second;
  questions_.erase(found);
  const auto of = streams_.find(number);
  if (of == streams_.end()) return true;
  Stream& stream = of->second;
  --stream.unanswered;
  // What waited meanwhile is taken next.
  unfinished_.insert(number);
  if (message.empty() || message.size() > UINT16_MAX) return true;
  stream.out.push_back(static_cast<char>(message.size() >> 8));
  stream.out.push_back(static_cast<char>(message.size() & 0xff));
  stream.out += message;
  return true;
}

bool NameStreams::Flush(Stream& stream) {
  while (!stream.out.empty()) {
    const ssize_t sent =
        send(stream.end.get(), stream.out.data(), stream.out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN && stream.out.size() <= kMostHeldUp;
    stream.out.erase(0, static_cast<size_t>(sent));
  }
  return !stream.has_ended || stream.unanswered > 0;
}

bool NameStreams::Take(uint32_t number, Stream& stream) {
  for (int reads = 0; reads < kMostReads;) {
    if (stream.unanswered >= kMostUnanswered) return Flush(stream);
    if (stream.in.size() >= kLengthBytes) {
      const size_t size = static_cast<size_t>(static_cast<uint8_t>(stream.in[0])) << 8 |
                          static_cast<uint8_t>(stream.in[1]);
      if (size == 0 || size > kLargestQuery) return false;
      if (stream.in.size() >= kLengthBytes + size) {
        const uint32_t question = ask_(stream.in.substr(kLengthBytes, size));
        stream.in.erase(0, kLengthBytes + size);
        if (question == 0) return false;
        questions_[question] = number;
        ++stream.unanswered;
        continue;
      }
    }
    if (stream.has_ended) return Flush(stream);
    char bytes[kReadBytes];
    const ssize_t got = recv(stream.end.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got < 0 && errno != EINTR) return errno == EAGAIN && Flush(stream);
    ++reads;
    stream.has_ended = got == 0;
    if (got > 0) stream.in.append(bytes, static_cast<size_t>(got));
  }
  unfinished_.insert(number);
  return Flush(stream);
}

void NameStreams::Drop(uint32_t number) {
  streams_.erase(number);
  unfinished_.erase(number);
  std::erase_if(questions_, [number](const auto& entry) { return entry.second == number; });
}

void NameStreams::Advance() {
  if (!epoll_.valid()) return;
  std::set<uint32_t> touched = std::exchange(unfinished_, {});
  epoll_event events[kMostEvents];
  const int ready = epoll_wait(epoll_.get(), events, kMostEvents, 0);
  for (int at = 0; at < ready; ++at) touched.insert(events[at].data.u32);
  for (const uint32_t number : touched) {
    const auto found = streams_.find(number);
    if (found != streams_.end() && !Take(number, found->second)) Drop(number);
  }
}

void NameStreams::End() {
  streams_.clear();
  unfinished_.clear();
  questions_.clear();
}

}  // namespace sandbox_run
