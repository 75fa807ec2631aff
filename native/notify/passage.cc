#include "notify/passage.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "notify/client_hello.h"

namespace sandbox_run {
namespace {

// How long a connection may send nothing, or only a part of its hello.
constexpr std::chrono::seconds kPatience{60};
// How long the other direction may be quiet once one has ended: the peer may be gone.
constexpr std::chrono::seconds kHalfPatience{300};
// Bytes that are read for an inspection: more than the longest hello, head, and record.
constexpr size_t kMostBytes = 64 * 1024;
constexpr size_t kReadBytes = 16 * 1024;

bool CanBeWritten(int fd) {
  pollfd watched = {fd, POLLOUT, 0};
  return poll(&watched, 1, 0) == 1;
}

// The other side gets a reset.
void CloseAtOnce(UniqueFd& fd) {
  const linger at_once = {1, 0};
  if (fd.valid()) {
    [[maybe_unused]] const int ignored =
        setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  }
  fd.reset();
}

}  // namespace

Passage::Passage(BegunConnection begun, OnAsk on_ask, OnDecided on_decided)
    : begun_(std::move(begun)),
      on_ask_(std::move(on_ask)),
      on_decided_(std::move(on_decided)),
      requests_(begun_.connection.endpoint.port) {}

Passage::State Passage::Advance() {
  if (!is_connected() && !Connect()) return State::kIsOver;
  return is_connected() ? Carry() : State::kWaits;
}

bool Passage::Connect() {
  if (stage_ == Stage::kConnecting) {
    if (!CanBeWritten(begun_.host.get())) return true;
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(begun_.host.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error != 0) {
      Decide(true, error);
      begun_.command.Fail();
      return false;
    }
    if (begun_.command.Complete() != 0) return false;
    stage_ = Stage::kCompleting;
  }
  if (!CanBeWritten(begun_.command.end())) return true;
  const bool is_complete = begun_.command.IsComplete();
  command_ = begun_.command.TakeEnd();
  begun_.command = {};
  if (!is_complete) {
    Break();
    return false;
  }
  if (begun_.inside == Inside::kAnything) {
    is_passing_ = true;
    stage_ = Stage::kFree;
    Decide(true, 0);
    return true;
  }
  stage_ = Stage::kLooking;
  Wait(kPatience);
  return true;
}

Passage::State Passage::Carry() {
  has_more_ = false;
  if (!CarryUp() || !CarryDown()) {
    Break();
    return State::kIsOver;
  }
  if (is_up_over_ && down_.is_over()) return State::kIsOver;
  if (is_up_over_ || down_.is_over()) Wait(kHalfPatience);
  return has_more_ ? State::kHasMore : State::kWaits;
}

bool Passage::CarryUp() {
  while (stage_ != Stage::kFree || !bytes_.empty()) {
    if (stage_ == Stage::kFree) passable_ = bytes_.size();
    if (passable_ > 0) {
      const ssize_t sent =
          send(begun_.host.get(), bytes_.data(), passable_, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0) {
        // A host may take its time.
        until_.reset();
        return errno == EAGAIN || errno == EINTR;
      }
      bytes_.erase(0, static_cast<size_t>(sent));
      passable_ -= static_cast<size_t>(sent);
      continue;
    }
    const Looked looked = Look();
    if (looked == Looked::kIsOver) return false;
    if (looked == Looked::kMayPass) continue;
    if (stage_ == Stage::kAsking || stage_ == Stage::kServerStarts || is_up_over_) return true;
    if (has_ended_) {
      // What is not whole by now never is.
      if (!bytes_.empty() || !is_passing_) return false;
      is_up_over_ = true;
      return shutdown(begun_.host.get(), SHUT_WR) == 0 || errno == ENOTCONN;
    }
    if (bytes_.size() >= kMostBytes) return Refuse("more than is looked at");
    const size_t before = bytes_.size();
    bytes_.resize(before + kReadBytes);
    const ssize_t got = recv(command_.get(), bytes_.data() + before, kReadBytes, MSG_DONTWAIT);
    bytes_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    has_ended_ = got == 0;
    if (before == 0 && got > 0) Wait(kPatience);
  }
  const Flow::Moved moved = up_.Move(command_.get(), begun_.host.get());
  has_more_ |= moved == Flow::Moved::kSome;
  is_up_over_ = up_.is_over();
  return moved != Flow::Moved::kBroken;
}

bool Passage::CarryDown() {
  if (!is_passing_ || stage_ == Stage::kServerStarts) {
    char byte;
    const ssize_t got = recv(begun_.host.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    // A host that goes away is not waited for.
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
  }
  const Flow::Moved moved = down_.Move(begun_.host.get(), command_.get());
  has_more_ |= moved == Flow::Moved::kSome;
  return moved != Flow::Moved::kBroken;
}

Passage::Looked Passage::Look() {
  switch (stage_) {
    case Stage::kLooking:
      return begun_.inside == Inside::kTls ? LookAtHello() : LookAtRequest();
    case Stage::kServerStarts:
      return LookAtServer();
    case Stage::kSecondHello:
      return LookAtSecondHello();
    default:
      return Looked::kNeedsMore;
  }
}

Passage::Looked Passage::LookAtHello() {
  const ClientHello hello = ReadClientHello(bytes_);
  if (hello.flaw != nullptr) return Refuse(hello.flaw), Looked::kIsOver;
  if (hello.size == 0) return Looked::kNeedsMore;
  asked_size_ = hello.size;
  return Ask(hello.name);
}

Passage::Looked Passage::LookAtRequest() {
  if (bytes_.empty()) {
    // Between two requests it may be quiet.
    if (is_passing_) until_.reset();
    return Looked::kNeedsMore;
  }
  const RequestReader::Step step = requests_.Next(bytes_);
  if (step.flaw != nullptr) return Refuse(step.flaw), Looked::kIsOver;
  if (step.size == 0) return Looked::kNeedsMore;
  asked_size_ = step.size;
  if (!step.host.empty() && step.host != host_) return Ask(step.host);
  passable_ = step.size;
  return Looked::kMayPass;
}

Passage::Looked Passage::LookAtServer() {
  char start[kServerStartBytes];
  const ssize_t got = recv(begun_.host.get(), start, sizeof(start), MSG_PEEK | MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Looked::kNeedsMore;
  if (got <= 0) return Looked::kIsOver;
  const ServerStart read = ReadServerStart({start, static_cast<size_t>(got)});
  if (read == ServerStart::kMoreBytes) return Looked::kNeedsMore;
  stage_ = read == ServerStart::kAnotherHello ? Stage::kSecondHello : Stage::kFree;
  if (stage_ == Stage::kSecondHello) Wait(kPatience);
  return Looked::kMayPass;
}

Passage::Looked Passage::LookAtSecondHello() {
  bool is_next = false;
  passable_ = SkipToHandshake(bytes_, is_next);
  if (passable_ > 0) return Looked::kMayPass;
  if (!is_next) return Looked::kNeedsMore;
  const ClientHello hello = ReadClientHello(bytes_);
  if (hello.flaw != nullptr) return Refuse(hello.flaw), Looked::kIsOver;
  if (hello.size == 0) return Looked::kNeedsMore;
  // The second hello must be the same except for what the server wants (RFC 8446, 4.1.2).
  begun_.connection.name = hello.name;
  if (hello.name != host_)
    return Refuse("a second TLS hello with another server name"), Looked::kIsOver;
  stage_ = Stage::kFree;
  until_.reset();
  return Looked::kMayPass;
}

Passage::Looked Passage::Ask(const std::string& host) {
  asked_ = host;
  stage_ = Stage::kAsking;
  on_ask_(host);
  return Looked::kNeedsMore;
}

bool Passage::Judge(bool allowed, std::string rule) {
  if (stage_ != Stage::kAsking) return true;
  begun_.connection.name = asked_;
  begun_.connection.rule = std::move(rule);
  Decide(allowed, allowed ? 0 : ECONNRESET);
  if (!allowed) {
    Break();
    return false;
  }
  host_ = std::move(asked_);
  passable_ = asked_size_;
  is_passing_ = true;
  stage_ = begun_.inside == Inside::kTls ? Stage::kServerStarts : Stage::kLooking;
  // It is the host's turn.
  until_.reset();
  return true;
}

bool Passage::Refuse(const char* flaw) {
  begun_.connection.flaw = flaw;
  begun_.connection.rule.clear();
  Decide(false, ECONNRESET);
  return false;
}

void Passage::Decide(bool allowed, int error) {
  begun_.connection.allowed = allowed;
  begun_.connection.error = error;
  on_decided_(begun_.connection);
}

void Passage::Break() {
  CloseAtOnce(command_);
  CloseAtOnce(begun_.host);
}

}  // namespace sandbox_run
