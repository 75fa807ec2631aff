#include "notify/udp_sockets.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "notify/listener.h"
#include "notify/socket_state.h"

namespace sandbox_run {
namespace {

constexpr uint16_t kDnsPort = 53;
// A question fits into a datagram (EDNS0 buffers are seldom larger).
constexpr size_t kLargestQuery = 4096;
// Unanswered questions of one socket; programs ask for two kinds of address at a time. Beyond the
// first number nothing more is read from the socket, beyond the second a question is lost.
constexpr uint32_t kMostUnanswered = 8, kMostAtAll = 64;
// Destinations of one socket at a time.
constexpr size_t kMostFlows = 16;
constexpr size_t kMostInbox = 256;
constexpr size_t kMostWaiting = 256;
// Datagrams of one socket before other sockets have their turn.
constexpr int kMostAtOnce = 32;
constexpr int kMostEvents = 64;
constexpr std::chrono::milliseconds kTendInterval{100};
// Data of the wake event; other events have the number of a watched descriptor.
constexpr uint32_t kWoken = 0;

// Linux takes them for the loopback interface, and so do rules.
Endpoint RealOf(const Endpoint& to) {
  if (!to.IsAny()) return to;
  Endpoint real = to;
  real.address = to.IsV4() ? LoopbackAddress(0, 0, 1) : Address{};
  if (!to.IsV4()) real.address[15] = 1;
  return real;
}

// As a socket of this family names it: one for IPv4 knows nothing else.
SocketAddress NameFor(int family, const Endpoint& endpoint) {
  if (family == AF_INET6 || endpoint.IsV4()) return SocketAddressOf(endpoint, family);
  Endpoint cut = endpoint;
  cut.address = LoopbackAddress(0, 0, endpoint.IsLoopback() ? 1 : 0);
  return SocketAddressOf(cut, family);
}

bool IsSame(const Endpoint& one, const Endpoint& other) {
  if (one.port != other.port) return false;
  return one.address == other.address ||
         ((one.IsLoopback() || one.IsAny()) && (other.IsLoopback() || other.IsAny()));
}

bool IsTheSame(const Endpoint& one, const Endpoint& other) {
  return one.port == other.port && one.address == other.address && one.scope == other.scope;
}

// Whether the command has shut its end of the pair for writing (POLLRDHUP) or closed it (POLLHUP).
short EndingOf(int end) {
  pollfd watched = {end, POLLRDHUP, 0};
  return poll(&watched, 1, 0) == 1 ? watched.revents : static_cast<short>(0);
}

bool IsUnspecified(const SocketAddress& address) {
  return address.length >= sizeof(sa_family_t) && address.get()->sa_family == AF_UNSPEC;
}

}  // namespace

int UdpSockets::Start() {
  if (epoll_.valid()) return 0;
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  wake_ = std::make_shared<const UniqueFd>(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u32 = kWoken;
  if (!epoll_.valid() || !wake_->valid() ||
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_->get(), &event) != 0) {
    const int error = errno;
    epoll_.reset();
    return error;
  }
  return 0;
}

UdpSockets::Socket* UdpSockets::Find(ino_t inode) {
  const auto found = sockets_.find(inode);
  return found == sockets_.end() ? nullptr : &found->second;
}

uint32_t UdpSockets::Watch(int fd, ino_t inode, bool is_flow) {
  const uint32_t number = ++last_number_ == kWoken ? ++last_number_ : last_number_;
  epoll_event event = {};
  // Edge-triggered: EPOLLOUT comes each time that the program has taken something out of the pair.
  event.events = is_flow ? EPOLLIN | EPOLLET : EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u32 = number;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return 0;
  watched_[number] = {inode, is_flow ? number : 0};
  return number;
}

void UdpSockets::Forget(ino_t inode) {
  const auto found = sockets_.find(inode);
  if (found == sockets_.end()) return;
  watched_.erase(found->second.number);
  for (const Flow& flow : found->second.flows) watched_.erase(flow.number);
  std::erase_if(questions_, [inode](const auto& entry) { return entry.second.inode == inode; });
  unfinished_.erase(inode);
  sockets_.erase(found);
}

int UdpSockets::Make(int family, int flags, UniqueFd& given) {
  if (const int error = Start()) return error;
  int ends[2];
  // A message arrives whole or not at all, and where it is sent to does not matter.
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (flags & SOCK_NONBLOCK), 0, ends) != 0)
    return errno;
  made_.emplace();
  made_->end.reset(ends[0]);
  made_->family = family;
  given.reset(ends[1]);
  return 0;
}

void UdpSockets::Keep(UniqueFd given) {
  const auto inode = InodeOf(given.get());
  if (!inode || !made_) return;
  made_->number = Watch(made_->end.get(), *inode, false);
  made_->given = std::move(given);
  if (made_->number != 0) sockets_[*inode] = std::move(*made_);
  made_.reset();
}

size_t UdpSockets::descriptors() const {
  size_t count = 0;
  for (const auto& [inode, socket] : sockets_)
    count += 1 + (socket.given.valid() ? 1 : 0) + socket.flows.size();
  return count;
}

void UdpSockets::ForgetClosed(const std::set<ino_t>& open) {
  std::vector<ino_t> closed;
  for (const auto& [inode, socket] : sockets_) {
    if (!open.contains(inode)) closed.push_back(inode);
  }
  for (const ino_t inode : closed) {
    HandOnRest(inode);
    Forget(inode);
  }
}

void UdpSockets::End(int listener) {
  for (const Waiting& waiting : std::exchange(waiting_, {}))
    Refuse(listener, waiting.call.id, ECONNABORTED);
  while (!sockets_.empty()) {
    const ino_t inode = sockets_.begin()->first;
    HandOnRest(inode);
    Forget(inode);
  }
  questions_.clear();
}

bool UdpSockets::Answer(int listener, const abi::SeccompNotification& call) {
  if (sockets_.empty()) return false;
  const Target target(static_cast<pid_t>(call.pid));
  const auto inode = target.SocketInode(ArgumentOf(call, 0));
  Socket* socket = inode ? Find(*inode) : nullptr;
  if (socket == nullptr) return false;
  switch (NumberOf(call)) {
    case SYS_connect:
      Connect(listener, call, *socket);
      return true;
    case SYS_listen:
      Refuse(listener, call.id, EOPNOTSUPP);
      return true;
    case SYS_getsockname:
      TellName(listener, call, *socket);
      return true;
    case SYS_getpeername:
      TellPeer(listener, call, *socket);
      return true;
    case SYS_setsockopt:
      // Options of IP and for shared ports succeed without effect: a socket pair does not have
      // them.
      Return(listener, call.id, 0);
      return true;
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
      SendMessages(listener, call, *socket);
      return true;
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
      Receive(listener, call, *inode);
      return true;
    default:
      return false;
  }
}

std::optional<Endpoint> UdpSockets::Judge(const Endpoint& to, Connection& connection,
                                          bool& is_exact) const {
  connection.endpoint = to;
  connection.is_udp = true;
  const bool is_placeholder =
      gate_.placeholders &&
      IsWithin(to.address, gate_.placeholders->address, gate_.placeholders->bits);
  const Endpoint real = RealOf(to);
  NetworkTable::Verdict verdict;
  if (!is_placeholder) verdict = gate_.table.Judge(real, Protocol::kUdp);
  is_exact = verdict.allowed && verdict.is_exact;
  connection.allowed = verdict.allowed;
  connection.rule = std::move(verdict.rule);
  if (verdict.allowed) return real;
  connection.error = gate_.own->loopback.Is(to) ? ECONNREFUSED : EACCES;
  return std::nullopt;
}

bool UdpSockets::IsNameServer(const Endpoint& to) const {
  // Unless an entry names that server itself: with an entry for a range or for everything,
  // questions would bypass our name server, and names would lead to addresses that we do not know.
  Connection unused;
  bool is_exact = false;
  Judge(to, unused, is_exact);
  return to.port == kDnsPort && !is_exact;
}

void UdpSockets::Connect(int listener, const abi::SeccompNotification& call, Socket& socket) {
  Target target(static_cast<pid_t>(call.pid));
  const ino_t inode = *target.SocketInode(ArgumentOf(call, 0));
  SocketAddress address;
  if (const int error = target.ReadAddress(PointerOf(call, 1), ArgumentOf(call, 2), address))
    return Refuse(listener, call.id, error);
  if (!IsWaiting(listener, call.id)) return;
  // What was sent before goes where it was to go then.
  if (!TakeSent(socket, inode)) return Refuse(listener, call.id, ECONNABORTED);
  if (IsUnspecified(address)) {
    socket.peer.reset();
    socket.local.reset();
    return Return(listener, call.id, 0);
  }
  const std::optional<Endpoint> wanted = EndpointOf(address, socket.family);
  if (!wanted) return Refuse(listener, call.id, EINVAL);
  const int error = ConnectTo(address, *wanted, target, socket);
  if (error != 0) return Refuse(listener, call.id, error);
  socket.peer = *wanted;
  socket.process = static_cast<pid_t>(call.pid);
  for (Datagram& datagram : std::exchange(socket.inbox, {})) Arrive(socket, std::move(datagram));
  Return(listener, call.id, 0);
}

int UdpSockets::ConnectTo(const SocketAddress& address, const Endpoint& wanted, Target& target,
                          Socket& socket) {
  if (FindFlow(socket, wanted) != nullptr) return 0;
  if (gate_.own->loopback.Is(wanted) && gate_.own->datagrams.Find(wanted.port) != nullptr)
    return GetPort(socket, 0);
  if (IsNameServer(wanted)) {
    // From now on its end is closed when the command closes it.
    socket.given.reset();
    return 0;
  }
  Connection connection;
  bool is_exact = false;
  if (const auto real = Judge(wanted, connection, is_exact)) {
    int error = 0;
    const ino_t inode = watched_[socket.number].inode;
    Flow* flow = BeginFlow(socket, inode, wanted, *real, error);
    if (flow == nullptr) return error;
    on_connection_(std::move(connection), target);
    return 0;
  }
  // Programs find out so which of several addresses are near (RFC 6724): nothing is sent.
  const UniqueFd probe(::socket(socket.family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe.valid()) return errno;
  if (connect(probe.get(), address.get(), address.length) != 0) return errno;
  SocketAddress local;
  local.length = sizeof(local.storage);
  if (getsockname(probe.get(), reinterpret_cast<sockaddr*>(&local.storage), &local.length) == 0)
    socket.local = local;
  socket.given.reset();
  return 0;
}

UdpSockets::Bound UdpSockets::Bind(int listener, const abi::SeccompNotification& call,
                                   bool is_last) {
  Target target(static_cast<pid_t>(call.pid));
  const auto inode = target.SocketInode(ArgumentOf(call, 0));
  Socket* socket = inode ? Find(*inode) : nullptr;
  if (socket == nullptr) return Bound::kNotOurs;
  SocketAddress address;
  int error = target.ReadAddress(PointerOf(call, 1), ArgumentOf(call, 2), address);
  if (!IsWaiting(listener, call.id)) return Bound::kAnswered;
  const std::optional<Endpoint> wanted = EndpointOf(address, socket->family);
  if (error == 0 && (!wanted || socket->asked)) error = EINVAL;
  // Servers are for the sandbox itself.
  if (error == 0 && !gate_.own->loopback.Is(*wanted)) error = EADDRNOTAVAIL;
  if (error == 0) error = GetPort(*socket, wanted->port);
  if (error == EADDRINUSE && !is_last) return Bound::kIsTaken;
  if (error != 0) {
    Refuse(listener, call.id, error);
    return Bound::kAnswered;
  }
  Endpoint own = *wanted;
  own.port = socket->port;
  socket->asked = SocketAddressOf(own, socket->family);
  Return(listener, call.id, 0);
  return Bound::kAnswered;
}

int UdpSockets::GetPort(Socket& socket, uint16_t wanted) {
  if (socket.box != nullptr) return wanted == 0 || wanted == socket.port ? 0 : EINVAL;
  auto box = std::make_shared<DatagramBox>(wake_);
  uint16_t port = wanted;
  if (const int error = gate_.own->datagrams.Take(port, box)) return error;
  socket.box = std::move(box);
  socket.port = port;
  return 0;
}

void UdpSockets::TellName(int listener, const abi::SeccompNotification& call,
                          const Socket& socket) {
  Endpoint own;
  if (socket.family == AF_INET) {
    own.address = LoopbackAddress(0, 0, 0);
    own.address[12] = 0;
  }
  SocketAddress told = SocketAddressOf(own, socket.family);
  if (socket.asked) {
    told = *socket.asked;
  } else if (socket.local) {
    told = *socket.local;
  } else if (socket.port != 0) {
    own.port = socket.port;
    if (socket.peer) own.address = RealOf(*socket.peer).address;
    told = NameFor(socket.family, own);
  }
  Target target(static_cast<pid_t>(call.pid));
  if (!IsWaiting(listener, call.id)) return;
  const int error = target.WriteAddress(told, PointerOf(call, 1), PointerOf(call, 2));
  return error == 0 ? Return(listener, call.id, 0) : Refuse(listener, call.id, error);
}

void UdpSockets::TellPeer(int listener, const abi::SeccompNotification& call,
                          const Socket& socket) {
  if (!socket.peer) return Refuse(listener, call.id, ENOTCONN);
  Target target(static_cast<pid_t>(call.pid));
  if (!IsWaiting(listener, call.id)) return;
  const SocketAddress told = NameFor(socket.family, RealOf(*socket.peer));
  const int error = target.WriteAddress(told, PointerOf(call, 1), PointerOf(call, 2));
  return error == 0 ? Return(listener, call.id, 0) : Refuse(listener, call.id, error);
}

void UdpSockets::SendMessages(int listener, const abi::SeccompNotification& call, Socket& socket) {
  Target target(static_cast<pid_t>(call.pid));
  const ino_t inode = *target.SocketInode(ArgumentOf(call, 0));
  const auto messages = MessagesOf(target, call);
  // What names no place goes into the pair, and from there where it is connected to. That it may
  // name one by now does not matter: the kernel does not read it there.
  const bool names_one =
      messages && std::any_of(messages->begin(), messages->end(),
                              [](const CallMessage& message) { return message.has_name(); });
  if (!messages || !names_one) return Continue(listener, call.id);
  if ((MessageFlagsOf(call) & (MSG_OOB | MSG_MORE)) != 0)
    return Refuse(listener, call.id, EOPNOTSUPP);
  const bool has_several = NumberOf(call) == SYS_sendmmsg;
  int64_t sent = 0;
  int error = TakeSent(socket, inode) ? 0 : EPIPE;
  for (const CallMessage& message : *messages) {
    if (error != 0) break;
    SocketAddress address;
    std::string bytes;
    std::optional<Endpoint> to = socket.peer;
    if (message.has_name()) {
      error = message.ReadAddress(target, address);
      to = EndpointOf(address, socket.family);
      if (error == 0 && !to) error = address.length < sizeof(sockaddr_in) ? EINVAL : EAFNOSUPPORT;
    }
    if (error == 0 && !to) error = EDESTADDRREQ;
    if (error == 0) error = message.ReadBytes(target, bytes);
    // A call that was given up is made again.
    if (!IsWaiting(listener, call.id)) return;
    const auto size = static_cast<uint32_t>(bytes.size());
    if (error == 0) error = Send(socket, inode, *to, std::move(bytes), target);
    if (error != 0) break;
    sent += has_several ? 1 : size;
    if (!message.WriteCount(target, size)) error = EFAULT;
  }
  // sendmmsg(2) returns how many messages were sent before the failure.
  if (error != 0 && !(has_several && sent > 0)) return Refuse(listener, call.id, error);
  Return(listener, call.id, sent);
}

int UdpSockets::Send(Socket& socket, ino_t inode, const Endpoint& to, std::string bytes,
                     Target& target) {
  if (to.port == 0) return EINVAL;
  if (bytes.size() > kLargestDatagram) return EMSGSIZE;
  // It was judged when it began, as a connection is.
  if (Flow* flow = FindFlow(socket, to)) return SendOut(*flow, bytes);
  if (gate_.own->loopback.Is(to)) {
    if (const auto box = gate_.own->datagrams.Find(to.port)) {
      if (const int error = GetPort(socket, 0)) return error;
      Endpoint from = RealOf(to);
      from.port = socket.port;
      box->Put({from, std::move(bytes)});
      return 0;
    }
  }
  Connection connection;
  bool is_exact = false;
  const auto real = Judge(to, connection, is_exact);
  if (to.port == kDnsPort && !is_exact) return AskName(socket, inode, to, std::move(bytes));
  int error = connection.error;
  Flow* flow = real ? BeginFlow(socket, inode, to, *real, error) : nullptr;
  connection.error = error;
  on_connection_(std::move(connection), target);
  return flow == nullptr ? error : SendOut(*flow, bytes);
}

int UdpSockets::AskName(Socket& socket, ino_t inode, const Endpoint& server, std::string bytes) {
  if (bytes.size() > kLargestQuery || socket.unanswered >= kMostAtAll) return 0;
  const uint32_t question = ask_(std::move(bytes));
  if (question == 0) return 0;
  ++socket.unanswered;
  questions_[question] = {inode, server};
  return 0;
}

bool UdpSockets::AnswerName(uint32_t question, const std::string& message) {
  const auto found = questions_.find(question);
  if (found == questions_.end()) return false;
  const Question asked = found->second;
  questions_.erase(found);
  Socket* socket = Find(asked.inode);
  if (socket == nullptr) return true;
  // It may have waited with further ones.
  if (socket->unanswered-- == kMostUnanswered) unfinished_.insert(asked.inode);
  if (!message.empty()) Arrive(*socket, {asked.server, message});
  return true;
}

UdpSockets::Flow* UdpSockets::FindFlow(Socket& socket, const Endpoint& to) {
  const auto found = std::find_if(socket.flows.begin(), socket.flows.end(),
                                  [&to](const Flow& flow) { return IsTheSame(flow.to, to); });
  if (found == socket.flows.end()) return nullptr;
  if (found + 1 != socket.flows.end()) {
    Flow used = std::move(*found);
    socket.flows.erase(found);
    socket.flows.push_back(std::move(used));
  }
  return &socket.flows.back();
}

UdpSockets::Flow* UdpSockets::BeginFlow(Socket& socket, ino_t inode, const Endpoint& to,
                                        const Endpoint& real, int& error) {
  while (!socket.flows.empty() && (socket.flows.size() >= kMostFlows || !has_room_())) {
    watched_.erase(socket.flows.front().number);
    socket.flows.pop_front();
  }
  if (!has_room_()) {
    error = ENOBUFS;
    return nullptr;
  }
  const int family = real.IsV4() ? AF_INET : AF_INET6;
  Flow flow;
  flow.to = to;
  flow.socket.reset(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP));
  const SocketAddress address = SocketAddressOf(real, family);
  error = 0;
  if (!flow.socket.valid() || connect(flow.socket.get(), address.get(), address.length) != 0 ||
      (flow.number = Watch(flow.socket.get(), inode, true)) == 0) {
    error = errno;
    return nullptr;
  }
  SocketAddress local;
  local.length = sizeof(local.storage);
  if (getsockname(flow.socket.get(), reinterpret_cast<sockaddr*>(&local.storage), &local.length) ==
      0) {
    if (const auto own = EndpointOf(local, family)) socket.local = NameFor(socket.family, *own);
  }
  socket.flows.push_back(std::move(flow));
  return &socket.flows.back();
}

int UdpSockets::SendOut(Flow& flow, const std::string& bytes) {
  const auto attempt = [&] {
    return send(flow.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0
               ? errno
               : 0;
  };
  int error = attempt();
  // ECONNREFUSED belongs to an earlier datagram.
  if (error == ECONNREFUSED) error = attempt();
  return error == EAGAIN ? 0 : error;
}

void UdpSockets::HandOnRest(ino_t inode) {
  // More than the kernel keeps of a pair whose end is not read (net.unix.max_dgram_qlen).
  constexpr int kMostRounds = 64;
  Socket* socket = Find(inode);
  for (int round = 0; socket != nullptr && round < kMostRounds; ++round) {
    unfinished_.erase(inode);
    if (!TakeSent(*socket, inode) || !unfinished_.contains(inode)) break;
  }
  unfinished_.erase(inode);
}

bool UdpSockets::TakeSent(Socket& socket, ino_t inode) {
  std::string bytes(kLargestDatagram + 1, '\0');
  for (int taken = 0; taken < kMostAtOnce; ++taken) {
    // A program that asks faster than it gets answers waits, so that others get theirs.
    if (socket.unanswered >= kMostUnanswered) return true;
    const ssize_t size =
        recv(socket.end.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    if (size == 0) {
      const short ending = EndingOf(socket.end.get());
      if ((ending & POLLHUP) != 0) return false;
      if ((ending & POLLRDHUP) != 0) return true;
    }
    if (static_cast<size_t>(size) > kLargestDatagram) continue;
    Target target(socket.process);
    std::string sent = bytes.substr(0, static_cast<size_t>(size));
    if (!socket.peer) {
      // The process cannot be inspected for the destination, so this can only be a DNS question.
      Endpoint server;
      server.address = LoopbackAddress(0, 0, 1);
      server.port = kDnsPort;
      AskName(socket, inode, server, std::move(sent));
      continue;
    }
    const int error = Send(socket, inode, *socket.peer, std::move(sent), target);
    // The sender sees at once that there is nobody.
    if (error == EACCES || (error == ECONNREFUSED && FindFlow(socket, *socket.peer) == nullptr))
      return false;
  }
  unfinished_.insert(inode);
  return true;
}

void UdpSockets::TakeFrom(Socket& socket, uint32_t number) {
  std::string bytes(kLargestDatagram + 1, '\0');
  const auto flow = std::find_if(socket.flows.begin(), socket.flows.end(),
                                 [number](const Flow& one) { return one.number == number; });
  if (flow == socket.flows.end()) return;
  for (int errors = 0; errors < kMostAtOnce;) {
    const ssize_t size = recv(flow->socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EAGAIN) return;
    // Nobody listened there: the program sees that no answer comes.
    if (size < 0) ++errors;
    if (size >= 0) Arrive(socket, {RealOf(flow->to), bytes.substr(0, static_cast<size_t>(size))});
  }
}

void UdpSockets::Arrive(Socket& socket, Datagram datagram) {
  if (socket.peer) {
    if (!IsSame(datagram.from, *socket.peer)) return;
    // A reader that is too slow loses it, as always.
    [[maybe_unused]] const ssize_t sent = send(socket.end.get(), datagram.bytes.data(),
                                               datagram.bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return;
  }
  if (socket.inbox.size() < kMostInbox) socket.inbox.push_back(std::move(datagram));
  PutNext(socket);
}

void UdpSockets::PutNext(Socket& socket) {
  if (socket.peer) return;
  int there = 0;
  // Memory of what was sent and not taken yet.
  if (ioctl(socket.end.get(), SIOCOUTQ, &there) != 0 || there > 0) return;
  socket.source.reset();
  if (socket.inbox.empty()) return;
  const Datagram next = std::move(socket.inbox.front());
  socket.inbox.pop_front();
  if (send(socket.end.get(), next.bytes.data(), next.bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >=
      0)
    socket.source = next.from;
}

void UdpSockets::Receive(int listener, const abi::SeccompNotification& call, ino_t inode) {
  Socket& socket = *Find(inode);
  if (!socket.given.valid()) return TellSource(listener, call, socket);
  if (TryReceive(listener, call, socket)) return;
  if (waiting_.size() >= kMostWaiting) return Refuse(listener, call.id, ENOBUFS);
  Waiting waiting;
  waiting.call = call;
  waiting.inode = inode;
  timeval time = {};
  socklen_t size = sizeof(time);
  if (getsockopt(socket.given.get(), SOL_SOCKET, SO_RCVTIMEO, &time, &size) == 0 &&
      (time.tv_sec != 0 || time.tv_usec != 0))
    waiting.until =
        Clock::now() + std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  waiting_.push_back(waiting);
}

bool UdpSockets::TryReceive(int listener, const abi::SeccompNotification& call, Socket& socket) {
  Target target(static_cast<pid_t>(call.pid));
  const auto messages = MessagesOf(target, call);
  const bool wants_one =
      messages && std::any_of(messages->begin(), messages->end(),
                              [](const CallMessage& message) { return message.has_name(); });
  if (!wants_one) return Continue(listener, call.id), true;
  const int flags = MessageFlagsOf(call);
  // Nothing is reported there.
  if ((flags & (MSG_ERRQUEUE | MSG_OOB)) != 0) return Refuse(listener, call.id, EAGAIN), true;
  const bool has_several = NumberOf(call) == SYS_recvmmsg;
  if (!IsWaiting(listener, call.id)) return true;
  int64_t result = 0;
  std::string bytes(kLargestDatagram + 1, '\0');
  for (const CallMessage& message : *messages) {
    bytes.resize(kLargestDatagram + 1);
    const ssize_t size =
        recv(socket.given.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | (flags & MSG_PEEK));
    if (size < 0 && has_several && result > 0) break;
    if (size < 0 && errno != EAGAIN) return Refuse(listener, call.id, errno), true;
    if (size < 0) {
      if ((flags & MSG_DONTWAIT) == 0 && !IsNonBlocking(socket.given.get())) return false;
      return Refuse(listener, call.id, EAGAIN), true;
    }
    bytes.resize(static_cast<size_t>(size));
    Endpoint from = socket.source.value_or(Endpoint());
    if (socket.peer) from = RealOf(*socket.peer);
    const int64_t written = message.WriteReceived(target, bytes, NameFor(socket.family, from));
    if ((flags & MSG_PEEK) == 0) PutNext(socket);
    if (written < 0) return Refuse(listener, call.id, static_cast<int>(-written)), true;
    const int64_t told = (flags & MSG_TRUNC) != 0 ? size : written;
    if (!message.WriteCount(target, static_cast<uint32_t>(told)))
      return Refuse(listener, call.id, EFAULT), true;
    result = has_several ? result + 1 : told;
  }
  Return(listener, call.id, result);
  return true;
}

void UdpSockets::TellSource(int listener, const abi::SeccompNotification& call,
                            const Socket& socket) {
  // A pair has no address, so the kernel leaves what is written here.
  Target target(static_cast<pid_t>(call.pid));
  Endpoint server = socket.peer.value_or(Endpoint());
  if (!socket.peer) {
    server.address = LoopbackAddress(0, 0, 1);
    server.port = kDnsPort;
  }
  const auto messages = MessagesOf(target, call);
  if (messages && IsWaiting(listener, call.id)) {
    for (const CallMessage& message : *messages)
      message.WriteName(target, NameFor(socket.family, server));
  }
  Continue(listener, call.id);
}

void UdpSockets::ServeWaiting(int listener, ino_t inode) {
  std::vector<Waiting> still;
  for (const Waiting& waiting : std::exchange(waiting_, {})) {
    Socket* socket = Find(waiting.inode);
    if (socket == nullptr) {
      Refuse(listener, waiting.call.id, ECONNABORTED);
    } else if (waiting.inode != inode || !TryReceive(listener, waiting.call, *socket)) {
      still.push_back(waiting);
    }
  }
  waiting_ = std::move(still);
}

void UdpSockets::TendWaiting(int listener) {
  const auto now = Clock::now();
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    const uint64_t id = waiting.call.id;
    if (!IsWaiting(listener, id)) return true;
    if (Find(waiting.inode) == nullptr) return Refuse(listener, id, ECONNABORTED), true;
    if (waiting.until && now >= *waiting.until) return Refuse(listener, id, EAGAIN), true;
    if (!Target(static_cast<pid_t>(waiting.call.pid)).HasSignal()) return false;
    // As the kernel has it: one that has a limit is not begun anew.
    return Refuse(listener, id, waiting.until ? EINTR : kRestartForSignal), true;
  });
}

int UdpSockets::TimeLeft() const {
  if (!unfinished_.empty()) return 0;
  if (waiting_.empty()) return -1;
  int least = static_cast<int>(kTendInterval.count());
  const auto now = Clock::now();
  for (const Waiting& waiting : waiting_) {
    if (!waiting.until) continue;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(*waiting.until - now).count() + 1;
    least = static_cast<int>(std::clamp<int64_t>(left, 0, least));
  }
  return least;
}

void UdpSockets::Advance(int listener) {
  if (!epoll_.valid()) return;
  std::set<ino_t> touched = std::exchange(unfinished_, {});
  epoll_event events[kMostEvents];
  const int ready = epoll_wait(epoll_.get(), events, kMostEvents, 0);
  for (int at = 0; at < ready; ++at) {
    if (events[at].data.u32 == kWoken) {
      uint64_t drained;
      [[maybe_unused]] const ssize_t ignored = read(wake_->get(), &drained, sizeof(drained));
      for (auto& [inode, socket] : sockets_) {
        if (socket.box == nullptr) continue;
        for (Datagram& one : socket.box->TakeAll()) Arrive(socket, std::move(one));
        touched.insert(inode);
      }
      continue;
    }
    const auto found = watched_.find(events[at].data.u32);
    if (found == watched_.end()) continue;
    const Place place = found->second;
    Socket* socket = Find(place.inode);
    if (socket == nullptr) continue;
    if (place.flow != 0) TakeFrom(*socket, place.flow);
    touched.insert(place.inode);
  }
  for (const ino_t inode : touched) {
    Socket* socket = Find(inode);
    if (socket == nullptr) continue;
    const bool is_open = TakeSent(*socket, inode);
    PutNext(*socket);
    if (!waiting_.empty()) ServeWaiting(listener, inode);
    if (!is_open) Forget(inode);
  }
  TendWaiting(listener);
}

}  // namespace sandbox_run
