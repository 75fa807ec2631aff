#include "notify/network_supervisor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "notify/listener.h"
#include "notify/network_filter.h"
#include "notify/socket_state.h"

namespace sandbox_run {
namespace {

// Copies of sockets kept open for one command: a share of this process's descriptor limit, because
// other commands run beside it.
constexpr size_t kMostCopies = 256, kLeastCopies = 16, kShareOfDescriptors = 16;
constexpr std::chrono::milliseconds kLookInterval{100};
// What is known of sockets without a copy.
constexpr size_t kMostKnown = 1024;
// Unanswered questions of one command. Those that it has given up count until there is an answer.
constexpr size_t kMostAsked = 128;
// Held connections among them: each takes four descriptors. Further calls wait.
constexpr ptrdiff_t kMostHeld = 32;
// How often waiting calls are checked for a signal.
constexpr std::chrono::milliseconds kTendInterval{100};
// Indexes of the watched descriptors: the wake event, the listener, UDP, name servers, connections.
enum Watched : size_t { kWatchedWake, kWatchedListener, kWatchedUdp, kWatchedNames, kWatchedFirst };
constexpr uint16_t kDnsPort = 53;

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void TellWho(Connection& connection, const Target& target) {
  // If a person was asked about the connection, its process is known already.
  if (connection.process == 0) {
    connection.process = target.Process();
    connection.program = target.Name();
  }
  connection.first_ms = NowMs();
  connection.count = 1;
}

// What programs set before they connect.
void CopyOptions(int from, int to) {
  constexpr std::pair<int, int> kOptions[] = {
      {SOL_SOCKET, SO_KEEPALIVE}, {SOL_SOCKET, SO_REUSEADDR},     {SOL_SOCKET, SO_LINGER},
      {SOL_SOCKET, SO_SNDTIMEO},  {SOL_SOCKET, SO_RCVTIMEO},      {SOL_SOCKET, SO_OOBINLINE},
      {IPPROTO_TCP, TCP_NODELAY}, {IPPROTO_TCP, TCP_KEEPIDLE},    {IPPROTO_TCP, TCP_KEEPINTVL},
      {IPPROTO_TCP, TCP_KEEPCNT}, {IPPROTO_TCP, TCP_USER_TIMEOUT}};
  for (const auto& [level, name] : kOptions) {
    char value[32];
    socklen_t size = sizeof(value);
    if (getsockopt(from, level, name, value, &size) == 0) {
      [[maybe_unused]] const int ignored = setsockopt(to, level, name, value, size);
    }
  }
}

// As the kernel says of a connection from the loopback interface to elsewhere (EINVAL).
bool MayLeaveLoopback(const std::optional<SocketAddress>& bound, int family) {
  return !bound || EndpointOf(*bound, family).value_or(Endpoint()).IsAny();
}

}  // namespace

NetworkSupervisor::NetworkSupervisor(std::shared_ptr<NetworkGate> gate)
    : gate_(std::move(gate)),
      most_copies_(ShareOfDescriptors(kShareOfDescriptors, kLeastCopies, kMostCopies)),
      unix_(*gate_, [this](Connection connection,
                           Target& target) { Record(std::move(connection), target); }),
      udp_(
          *gate_,
          [this](Connection connection, Target& target) { Record(std::move(connection), target); },
          [this](std::string message) { return AskName(std::move(message)); },
          [this] { return HasRoom(); }),
      names_([this](std::string message) { return AskName(std::move(message)); }) {}

Result<std::unique_ptr<NetworkSupervisor>> NetworkSupervisor::Start(
    std::shared_ptr<NetworkGate> gate) {
  std::unique_ptr<NetworkSupervisor> made(new NetworkSupervisor(std::move(gate)));
  made->wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->wake_.valid()) return Failure{"network.event", errno, ""};
  // Signals are blocked: those of the calling thread are, whose mask it inherits.
  const int error = pthread_create(&made->thread_, nullptr, Main, made.get());
  if (error != 0) return Failure{"thread", error, ""};
  made->started_ = true;
  return made;
}

NetworkSupervisor::~NetworkSupervisor() {
  if (!started_) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  Wake();
  pthread_join(thread_, nullptr);
}

void NetworkSupervisor::Serve(UniqueFd listener, AnswerOther answer_other) {
  {
    const std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
    TakeTurns(listener_.get());
    answer_other_ = std::move(answer_other);
  }
  Wake();
}

void NetworkSupervisor::Begin(OnQuery on_query, OnAsked on_asked, Relay::OnAsk on_host) {
  const std::lock_guard lock(mutex_);
  on_query_ = std::move(on_query);
  on_asked_ = std::move(on_asked);
  on_host_ = std::move(on_host);
  connections_ = {};
}

Connections NetworkSupervisor::Take() {
  const std::lock_guard lock(mutex_);
  if (relay_ != nullptr) connections_.Add(relay_->Take());
  return std::exchange(connections_, {});
}

void NetworkSupervisor::AnswerHost(uint32_t question, bool allowed, std::string rule) {
  const std::lock_guard lock(mutex_);
  if (relay_ != nullptr) relay_->Answer(question, allowed, std::move(rule));
}

void NetworkSupervisor::End() {
  std::shared_ptr<Relay> relay;
  {
    const std::lock_guard lock(mutex_);
    relay = relay_;
  }
  // Not under the lock: what it still asks is answered.
  if (relay != nullptr) relay->Finish();
  const std::lock_guard lock(mutex_);
  if (relay != nullptr) connections_.Add(relay->Take());
  relay_ = nullptr;
  on_query_ = nullptr;
  on_asked_ = nullptr;
  for (Asked& asked : asked_) {
    RecordUnanswered(std::move(asked.connection));
    if (asked.has_call) Refuse(listener_.get(), asked.call.id, ECONNABORTED);
  }
  asked_.clear();
  on_host_ = nullptr;
  sockets_.clear();
  order_.clear();
  udp_.End(listener_.get());
  names_.End();
  for (const Waiting& waiting : waiting_) Refuse(listener_.get(), waiting.call, ECONNABORTED);
  waiting_.clear();
  for (const auto& call : std::exchange(postponed_, {}))
    Refuse(listener_.get(), call.id, ECONNABORTED);
  unix_.End(listener_.get());
  kept_.Set(CountKept());
  // Most commands make no call of the network: then nothing is watched that is gone.
  if (std::exchange(has_served_, false)) Wake();
}

void NetworkSupervisor::Answer(uint32_t query, const std::string& message) {
  const std::lock_guard lock(mutex_);
  // It may go on with what it has not taken yet.
  if (udp_.AnswerName(query, message) || names_.AnswerName(query, message)) Wake();
}

uint32_t NetworkSupervisor::AskName(std::string message) {
  if (on_query_ == nullptr) return 0;
  const uint32_t number = ++last_number_;
  on_query_(number, std::move(message));
  return number;
}

void NetworkSupervisor::AnswerConnection(uint32_t number, const std::optional<Address>& address,
                                         int error, Inside inside) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(asked_.begin(), asked_.end(),
                                  [number](const Asked& one) { return one.number == number; });
  if (found == asked_.end()) return;
  Asked asked = std::move(*found);
  asked_.erase(found);
  FinishAsked(std::move(asked), address, error, inside);
  // There may be something to watch.
  Wake();
}

void NetworkSupervisor::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void* NetworkSupervisor::Main(void* self) {
  static_cast<NetworkSupervisor*>(self)->Work();
  return nullptr;
}

void NetworkSupervisor::Work() {
  // Without poll() nobody can be answered: then every call fails, instead of waiting for ever.
  constexpr int kMostFailures = 16;
  int failures = 0;
  std::vector<pollfd> watched;
  for (;;) {
    int timeout = -1;
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      timeout = Watch(watched);
    }
    const int ready = poll(watched.data(), watched.size(), timeout);
    failures = ready >= 0 || errno == EINTR ? 0 : failures + 1;
    std::unique_lock lock(mutex_);
    if (stop_) return;
    if (failures >= kMostFailures) return listener_.reset();
    if (ready < 0) continue;
    if (watched[kWatchedWake].revents != 0) {
      uint64_t drained;
      [[maybe_unused]] const ssize_t ignored = read(wake_.get(), &drained, sizeof(drained));
    }
    FinishReady(watched);
    if (Clock::now() >= tend_again_) {
      tend_again_ = Clock::now() + kTendInterval;
      TendAsked();
      TendWaiting();
    }
    unix_.SweepIfEnded();
    if (unix_.HasWaiting()) unix_.Retry(listener_.get());
    udp_.Advance(listener_.get());
    names_.Advance();
    if (!postponed_.empty() && Clock::now() >= look_again_) TakePostponed();
    // One call per round, so that a program that calls without end does not hold up questions.
    abi::SeccompNotification call;
    if ((watched[kWatchedListener].revents & POLLIN) == 0 || !Receive(listener_.get(), call))
      continue;
    // Without the lock: it reads files, which can take long, and a thread that waits for the lock
    // may have to end.
    lock.unlock();
    if (answer_other_ != nullptr && answer_other_(listener_.get(), call)) continue;
    lock.lock();
    HandleCall(call);
    kept_.Set(CountKept());
  }
}

int NetworkSupervisor::Watch(std::vector<pollfd>& watched) {
  int timeout = udp_.TimeLeft();
  const auto at_most = [&timeout](int64_t ms) {
    const int bounded = static_cast<int>(std::clamp<int64_t>(ms, 0, 1'000'000));
    timeout = timeout == -1 ? bounded : std::min(timeout, bounded);
  };
  const auto until = [&, now = Clock::now()](Clock::time_point then) {
    at_most(std::chrono::duration_cast<std::chrono::milliseconds>(then - now).count() + 1);
  };
  watched.resize(kWatchedFirst);
  watched[kWatchedWake] = {wake_.get(), POLLIN, 0};
  watched[kWatchedListener] = {listener_.get(), POLLIN, 0};
  watched[kWatchedUdp] = {udp_.events(), POLLIN, 0};
  watched[kWatchedNames] = {names_.events(), POLLIN, 0};
  if (names_.has_more()) at_most(0);
  if (!postponed_.empty()) until(look_again_);
  for (const Waiting& waiting : waiting_) {
    const Socket* socket = FindSocket(waiting.inode);
    watched.push_back({socket != nullptr ? socket->copy.get() : -1, POLLOUT, 0});
    if (waiting.until) until(*waiting.until);
  }
  if (!asked_.empty() || !waiting_.empty()) at_most(kTendInterval.count());
  if (unix_.HasWaiting()) at_most(UnixSockets::kRetryInterval.count());
  return timeout;
}

void NetworkSupervisor::FinishReady(const std::vector<pollfd>& watched) {
  const auto now = Clock::now();
  std::vector<Waiting> still;
  size_t at = kWatchedFirst;
  for (Waiting& waiting : std::exchange(waiting_, {})) {
    // Connections that began after the poll() come last and have no event.
    const bool has_event = at < watched.size() && watched[at].revents != 0;
    ++at;
    const bool is_ready = FindSocket(waiting.inode) == nullptr || has_event;
    const bool is_late = waiting.until && now >= *waiting.until;
    if (is_ready || is_late) {
      FinishWaiting(waiting, !is_ready);
    } else {
      still.push_back(waiting);
    }
  }
  waiting_ = std::move(still);
}

void NetworkSupervisor::TakePostponed() {
  ForgetClosed();
  for (const auto& call : std::exchange(postponed_, {})) {
    if (NumberOf(call) == SYS_bind) {
      Bind(call, true);
    } else if (HasRoom()) {
      MakeSocket(call);
    } else {
      Refuse(listener_.get(), call.id, EMFILE);
    }
  }
}

void NetworkSupervisor::HandleCall(const abi::SeccompNotification& call) {
  has_served_ = true;
  if (unix_.Answer(listener_.get(), call) || udp_.Answer(listener_.get(), call)) return;
  switch (NumberOf(call)) {
    case SYS_socket:
      return MakeSocket(call);
    case SYS_connect:
      return Connect(call);
    case SYS_bind:
      return Bind(call, false);
    case SYS_listen:
      return Listen(call);
    case SYS_getsockname:
      return TellName(call);
    case SYS_getpeername:
      return TellPeer(call);
    case SYS_setsockopt:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
      // Not a UDP socket. No other socket that a command has takes its destination from a message,
      // and the filter refuses all socket options that set one.
      return Continue(listener_.get(), call.id);
    default:
      Refuse(listener_.get(), call.id, ENOSYS);
  }
}

NetworkSupervisor::Socket* NetworkSupervisor::FindSocket(ino_t inode) {
  const auto found = sockets_.find(inode);
  return found == sockets_.end() ? nullptr : &found->second;
}

bool NetworkSupervisor::HasRoom() {
  const size_t others = udp_.descriptors() + names_.descriptors();
  // Most have none any more, which is counted when it matters.
  if (most_with_copy_ + others >= most_copies_) {
    most_with_copy_ =
        static_cast<size_t>(std::count_if(sockets_.begin(), sockets_.end(), [](const auto& entry) {
          return entry.second.copy.valid();
        }));
  }
  return most_with_copy_ + others < most_copies_;
}

size_t NetworkSupervisor::CountKept() const {
  // A held connection is a copy, and three sockets at its other end.
  constexpr size_t kOfOneHeld = 4;
  const auto held = static_cast<size_t>(std::count_if(
      asked_.begin(), asked_.end(), [](const Asked& one) { return one.held.has_value(); }));
  const size_t carried = relay_ == nullptr ? 0 : relay_->descriptors();
  return std::min(sockets_.size(), most_copies_) + kOfOneHeld * held + carried +
         udp_.descriptors() + names_.descriptors() + unix_.descriptors();
}

void NetworkSupervisor::ForgetClosed() {
  look_again_ = Clock::now() + kLookInterval;
  const std::optional<std::set<ino_t>> open = OpenSockets();
  if (!open) return;
  std::erase_if(sockets_, [&](const auto& entry) { return !open->contains(entry.first); });
  std::erase_if(order_, [&](ino_t inode) { return !sockets_.contains(inode); });
  udp_.ForgetClosed(*open);
}

void NetworkSupervisor::MakeSocket(const abi::SeccompNotification& call) {
  const int family = ArgumentOf(call, 0);
  const int type = ArgumentOf(call, 1) & kSocketTypeMask;
  const int flags = ArgumentOf(call, 1) & ~kSocketTypeMask;
  const int protocol = ArgumentOf(call, 2);
  const bool close_on_exec = (flags & SOCK_CLOEXEC) != 0;
  if ((flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) != 0)
    return Refuse(listener_.get(), call.id, EINVAL);
  if (!HasRoom()) {
    // Some were closed by now, which nobody says. To look takes a while, and is not done at the
    // command's pleasure: who makes socket after socket waits for it.
    if (Clock::now() < look_again_) return postponed_.push_back(call);
    ForgetClosed();
    if (!HasRoom()) return Refuse(listener_.get(), call.id, EMFILE);
  }
  if (type == SOCK_DGRAM && (protocol == 0 || protocol == IPPROTO_UDP))
    return MakeUdpSocket(call, family, flags);
  // The filter of the command lets nothing else through; here it is not relied on.
  if (type != SOCK_STREAM || (protocol != 0 && protocol != IPPROTO_TCP))
    return Refuse(listener_.get(), call.id, EACCES);
  Socket made;
  made.family = family;
  made.copy.reset(
      socket(family, SOCK_STREAM | SOCK_CLOEXEC | (flags & SOCK_NONBLOCK), IPPROTO_TCP));
  const auto inode = made.copy.valid() ? InodeOf(made.copy.get()) : std::nullopt;
  if (!inode) return Refuse(listener_.get(), call.id, errno);
  const int error = HandOver(listener_.get(), call.id, made.copy.get(), close_on_exec);
  if (error != 0) return Refuse(listener_.get(), call.id, error);
  sockets_[*inode] = std::move(made);
  ++most_with_copy_;
  order_.push_back(*inode);
  while (order_.size() > kMostKnown) {
    sockets_.erase(order_.front());
    order_.pop_front();
  }
}

void NetworkSupervisor::MakeUdpSocket(const abi::SeccompNotification& call, int family, int flags) {
  UniqueFd given;
  if (const int error = udp_.Make(family, flags, given))
    return Refuse(listener_.get(), call.id, error);
  const int error = HandOver(listener_.get(), call.id, given.get(), (flags & SOCK_CLOEXEC) != 0);
  if (error != 0) return Refuse(listener_.get(), call.id, error);
  udp_.Keep(std::move(given));
}

void NetworkSupervisor::Connect(const abi::SeccompNotification& call) {
  Target target(static_cast<pid_t>(call.pid));
  const auto inode = target.SocketInode(ArgumentOf(call, 0));
  if (!inode) return Refuse(listener_.get(), call.id, EBADF);
  if (Socket* socket = FindSocket(*inode)) return ConnectSocket(call, target, *inode, *socket);
  // A socket that was not made here: one end of a pair, or what a server accepted.
  Refuse(listener_.get(), call.id, EISCONN);
}

void NetworkSupervisor::ConnectSocket(const abi::SeccompNotification& call, Target& target,
                                      ino_t inode, Socket& socket) {
  SocketAddress address;
  if (const int error = target.ReadAddress(PointerOf(call, 1), ArgumentOf(call, 2), address))
    return Refuse(listener_.get(), call.id, error);
  if (!IsWaiting(listener_.get(), call.id)) return;
  const auto waiting = std::find_if(waiting_.begin(), waiting_.end(),
                                    [inode](const Waiting& one) { return one.inode == inode; });
  if (waiting != waiting_.end()) {
    // A signal interrupted the call, and it was begun anew.
    if (!IsWaiting(listener_.get(), waiting->call)) {
      waiting->call = call.id;
      waiting->thread = static_cast<pid_t>(call.pid);
      return;
    }
    return Refuse(listener_.get(), call.id, EALREADY);
  }
  if (std::exchange(socket.was_interrupted, false)) {
    int error = 0;
    socklen_t size = sizeof(error);
    if (!socket.copy.valid()) return Return(listener_.get(), call.id, 0);
    if (getsockopt(socket.copy.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error != 0)
      return Refuse(listener_.get(), call.id, error);
  }
  if (!socket.copy.valid())
    return Refuse(listener_.get(), call.id, socket.connected ? EISCONN : EINVAL);
  if (address.length >= sizeof(sa_family_t) && address.get()->sa_family == AF_UNSPEC) {
    GiveUpHeld(inode);
    const int error = ConnectNow(socket.copy.get(), address);
    return error == 0 ? Return(listener_.get(), call.id, 0)
                      : Refuse(listener_.get(), call.id, error);
  }
  const std::optional<Endpoint> wanted = EndpointOf(address, socket.family);
  if (!wanted)
    return Refuse(listener_.get(), call.id,
                  address.length < sizeof(sockaddr_in) ? EINVAL : EAFNOSUPPORT);
  if (IsAsked(call, inode, *wanted)) return;
  if (IsNameServer(*wanted)) {
    const int error = names_.Connect(socket.copy.get(), socket.family, *wanted);
    if (error != 0) return Refuse(listener_.get(), call.id, error);
    socket.connected = true;
    socket.copy.reset();
    return Return(listener_.get(), call.id, 0);
  }
  Connection connection;
  int error = 0;
  Inside inside = Inside::kAnything;
  const std::optional<Endpoint> real = Judge(*wanted, connection, error, inside);
  if (!real && IsToBeAsked(connection))
    return Ask(call, target, inode, std::move(connection), error);
  if (real && inside != Inside::kAnything) {
    error = ConnectInside(target, inode, socket, *real, inside, connection);
    // The relay records the outcome.
    return FinishConnecting(call, target, inode, socket, error, std::move(connection),
                            error != EINPROGRESS);
  }
  if (real && socket.asked && real->address == wanted->address && !wanted->IsLoopback()) {
    // It was bound for the sandbox itself, from where nothing leads out.
    return ConnectAnother(call, target, inode, *real, std::move(connection));
  }
  if (real) error = ConnectNow(socket.copy.get(), SocketAddressOf(*real, socket.family));
  FinishConnecting(call, target, inode, socket, error, std::move(connection));
}

void NetworkSupervisor::FinishConnecting(const abi::SeccompNotification& call, Target& target,
                                         ino_t inode, Socket& socket, int error,
                                         Connection connection, bool is_told) {
  const bool on_its_way = error == EINPROGRESS;
  const bool is_own =
      gate_->own->loopback.Is(connection.endpoint) && connection.allowed && connection.rule.empty();
  connection.error = on_its_way ? 0 : error;
  // What a program reaches of its own is its own affair.
  if (!is_own && is_told) Record(std::move(connection), target);
  if (on_its_way && !IsNonBlocking(socket.copy.get())) {
    Waiting begun;
    begun.inode = inode;
    begun.call = call.id;
    begun.thread = static_cast<pid_t>(call.pid);
    if (const auto patience = PatienceOf(socket.copy.get())) begun.until = Clock::now() + *patience;
    waiting_.push_back(begun);
    return;
  }
  if (error == 0 || on_its_way) {
    socket.connected = true;
    socket.copy.reset();
  }
  return error == 0 ? Return(listener_.get(), call.id, 0) : Refuse(listener_.get(), call.id, error);
}

int NetworkSupervisor::ConnectInside(Target& target, ino_t inode, Socket& command,
                                     const Endpoint& real, Inside inside,
                                     const Connection& connection) {
  BegunConnection begun;
  int error = BeginOutside(target, inode, command, real, inside, connection, begun);
  if (error != 0) return error;
  SocketAddress to;
  error = begun.command.Prepare(command.copy.get(), command.family, to);
  if (error == 0) error = ConnectNow(command.copy.get(), to);
  if (error != EINPROGRESS) return error == 0 ? ECONNABORTED : error;
  relay_->Carry(std::move(begun));
  return EINPROGRESS;
}

int NetworkSupervisor::BeginOutside(Target& target, ino_t inode, const Socket& command,
                                    const Endpoint& real, Inside inside,
                                    const Connection& connection, BegunConnection& begun) {
  if (!MayLeaveLoopback(command.asked, command.family)) return EINVAL;
  if (relay_ == nullptr) {
    // No look, no connection.
    if (inside != Inside::kAnything && (!gate_->looks_inside || on_host_ == nullptr)) return EACCES;
    Result<std::unique_ptr<Relay>> started = Relay::Start(on_host_);
    if (!started.ok()) return started.failure().error;
    relay_ = std::move(started.value());
  }
  if (!relay_->HasRoom()) return EAGAIN;
  begun.inside = inside;
  begun.inode = inode;
  begun.host.reset(socket(command.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!begun.host.valid()) return errno;
  CopyOptions(command.copy.get(), begun.host.get());
  const int on = 1;
  if (setsockopt(begun.host.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0) return errno;
  begun.names.peer = SocketAddressOf(real, command.family);
  const int error = ConnectNow(begun.host.get(), begun.names.peer);
  if (error != 0 && error != EINPROGRESS) return error;
  SocketAddress& local = begun.names.local;
  local.length = sizeof(local.storage);
  if (getsockname(begun.host.get(), reinterpret_cast<sockaddr*>(&local.storage), &local.length) !=
      0)
    return errno;
  begun.connection = connection;
  TellWho(begun.connection, target);
  return 0;
}

void NetworkSupervisor::ConnectAnother(const abi::SeccompNotification& call, Target& target,
                                       ino_t inode, const Endpoint& real, Connection connection) {
  const Socket& bound = *FindSocket(inode);
  const Endpoint asked = EndpointOf(*bound.asked, bound.family).value_or(Endpoint());
  // As the kernel says of a connection from the loopback interface to elsewhere.
  if (!asked.IsAny()) return Refuse(listener_.get(), call.id, EINVAL);
  Socket made;
  made.family = bound.family;
  const int waits = IsNonBlocking(bound.copy.get()) ? SOCK_NONBLOCK : 0;
  made.copy.reset(socket(made.family, SOCK_STREAM | SOCK_CLOEXEC | waits, IPPROTO_TCP));
  if (!made.copy.valid()) return Refuse(listener_.get(), call.id, errno);
  CopyOptions(bound.copy.get(), made.copy.get());
  if (asked.port != 0 && bind(made.copy.get(), bound.asked->get(), bound.asked->length) != 0)
    return Refuse(listener_.get(), call.id, errno);
  const auto own = InodeOf(made.copy.get());
  const int number = ArgumentOf(call, 0);
  const int failed = !own ? errno
                          : PutInPlace(listener_.get(), call.id, made.copy.get(), number,
                                       target.ClosesOnExec(number));
  if (failed != 0) return Refuse(listener_.get(), call.id, failed);
  sockets_.erase(inode);
  std::erase(order_, inode);
  order_.push_back(*own);
  Socket& socket = sockets_[*own] = std::move(made);
  ++most_with_copy_;
  const int error = ConnectNow(socket.copy.get(), SocketAddressOf(real, socket.family));
  FinishConnecting(call, target, *own, socket, error, std::move(connection));
}

std::optional<Endpoint> NetworkSupervisor::Judge(const Endpoint& wanted, Connection& connection,
                                                 int& error, Inside& inside) {
  connection.endpoint = wanted;
  Endpoint real = wanted;
  if (gate_->own->loopback.Is(wanted)) {
    const std::lock_guard lock(gate_->own->mutex);
    if (gate_->own->loopback.FindServer(wanted, real.address)) {
      connection.allowed = true;
      return real;
    }
  }
  if (gate_->placeholders &&
      IsWithin(wanted.address, gate_->placeholders->address, gate_->placeholders->bits)) {
    error = EACCES;
    return std::nullopt;
  }
  // Linux takes them for the loopback interface, and so do rules.
  if (wanted.IsAny()) {
    real.address = wanted.IsV4() ? LoopbackAddress(0, 0, 1) : Address{};
    if (!wanted.IsV4()) real.address[15] = 1;
  }
  NetworkTable::Verdict verdict = gate_->table.Judge(real, Protocol::kTcp);
  connection.allowed = verdict.allowed;
  connection.rule = std::move(verdict.rule);
  inside = verdict.inside;
  if (verdict.allowed) return real;
  error = gate_->own->loopback.Is(wanted) ? ECONNREFUSED : EACCES;
  return std::nullopt;
}

bool NetworkSupervisor::IsNameServer(const Endpoint& wanted) const {
  if (wanted.port != kDnsPort) return false;
  {
    const std::lock_guard lock(gate_->own->mutex);
    Address own;
    if (gate_->own->loopback.Is(wanted) && gate_->own->loopback.FindServer(wanted, own))
      return false;
  }
  // As of UDP (UdpSockets): an entry for that one server leads there.
  const NetworkTable::Verdict verdict = gate_->table.Judge(wanted, Protocol::kTcp);
  return !(verdict.allowed && verdict.is_exact);
}

bool NetworkSupervisor::IsToBeAsked(const Connection& connection) const {
  return gate_->placeholders && on_asked_ != nullptr && connection.rule.empty();
}

void NetworkSupervisor::Ask(const abi::SeccompNotification& call, Target& target, ino_t inode,
                            Connection connection, int usual_error) {
  connection.process = target.Process();
  connection.program = target.Name();
  if (asked_.size() >= kMostAsked) {
    RecordUnanswered(std::move(connection));
    return Refuse(listener_.get(), call.id, ECONNREFUSED);
  }
  Asked asked;
  asked.number = ++last_number_;
  asked.inode = inode;
  asked.call = call;
  asked.usual_error = usual_error;
  asked.connection = connection;
  const uint32_t number = asked.number;
  Socket* socket = FindSocket(inode);
  if (socket != nullptr && IsNonBlocking(socket->copy.get()) && Hold(asked, *socket)) {
    asked.has_call = false;
    Refuse(listener_.get(), call.id, EINPROGRESS);
  }
  asked_.push_back(std::move(asked));
  on_asked_(number, std::move(connection));
}

bool NetworkSupervisor::IsAsked(const abi::SeccompNotification& call, ino_t inode,
                                const Endpoint& wanted) {
  const auto found = std::find_if(asked_.begin(), asked_.end(),
                                  [inode](const Asked& one) { return one.inode == inode; });
  if (found == asked_.end()) return false;
  const Socket* socket = FindSocket(inode);
  const bool has_call = found->has_call && IsWaiting(listener_.get(), found->call.id);
  const bool is_on_its_way = found->held && socket != nullptr && IsNonBlocking(socket->copy.get());
  if (has_call || is_on_its_way) {
    Refuse(listener_.get(), call.id, EALREADY);
    return true;
  }
  const Endpoint& asked = found->connection.endpoint;
  // One that is held is on its way to where it was to go first, as any other would be.
  if (!found->held && (asked.address != wanted.address || asked.port != wanted.port)) {
    RecordUnanswered(std::move(found->connection));
    asked_.erase(found);
    return false;
  }
  // A signal interrupted the call, and it was begun anew.
  found->call = call;
  found->has_call = true;
  return true;
}

bool NetworkSupervisor::Hold(Asked& asked, Socket& socket) {
  const auto held = std::count_if(asked_.begin(), asked_.end(),
                                  [](const Asked& one) { return one.held.has_value(); });
  if (held >= kMostHeld || !MayLeaveLoopback(socket.asked, socket.family)) return false;
  HeldConnection connection;
  SocketAddress to;
  if (connection.Prepare(socket.copy.get(), socket.family, to) != 0) return false;
  if (ConnectNow(socket.copy.get(), to) != EINPROGRESS) return false;
  asked.held = std::move(connection);
  return true;
}

void NetworkSupervisor::GiveUpHeld(ino_t inode) {
  const auto found = std::find_if(asked_.begin(), asked_.end(), [inode](const Asked& one) {
    return one.inode == inode && one.held.has_value();
  });
  if (found == asked_.end()) return;
  RecordUnanswered(std::move(found->connection));
  asked_.erase(found);
}

void NetworkSupervisor::TendAsked() {
  for (Asked& asked : asked_) {
    if (!asked.has_call || !Target(static_cast<pid_t>(asked.call.pid)).HasSignal()) continue;
    // A program that is told of the signal (EINTR) waits for the connection by other means.
    Socket* socket = FindSocket(asked.inode);
    if (!asked.held && socket != nullptr && socket->copy.valid()) Hold(asked, *socket);
    asked.has_call = false;
    Refuse(listener_.get(), asked.call.id, kRestartForSignal);
  }
}

void NetworkSupervisor::TendWaiting() {
  // The connection is being made nevertheless.
  for (const Waiting& waiting : waiting_) {
    if (IsWaiting(listener_.get(), waiting.call) && Target(waiting.thread).HasSignal())
      Refuse(listener_.get(), waiting.call, kRestartForSignal);
  }
}

void NetworkSupervisor::RecordUnanswered(Connection connection) {
  connection.allowed = false;
  connection.error = ECONNABORTED;
  connection.first_ms = NowMs();
  connection.count = 1;
  connections_.Add(std::move(connection));
}

void NetworkSupervisor::FinishAsked(Asked asked, const std::optional<Address>& address, int error,
                                    Inside inside) {
  const abi::SeccompNotification& call = asked.call;
  Socket* socket = FindSocket(asked.inode);
  const bool has_socket = socket != nullptr && socket->copy.valid();
  if (asked.held && has_socket)
    return FinishHeld(std::move(asked), *socket, address, error, inside);
  // The call has ended; a later one asks again.
  if (!asked.has_call || !IsWaiting(listener_.get(), call.id))
    return RecordUnanswered(std::move(asked.connection));
  if (!has_socket) {
    RecordUnanswered(std::move(asked.connection));
    return Refuse(listener_.get(), call.id, ECONNABORTED);
  }
  Target target(static_cast<pid_t>(call.pid));
  asked.connection.allowed = address.has_value();
  if (!address) {
    error = error != 0 ? error : asked.usual_error;
  } else {
    Endpoint real = asked.connection.endpoint;
    real.address = *address;
    // Before all ways to connect: cut to four bytes it would be another host.
    if (!real.IsV4() && socket->family == AF_INET)
      return FinishConnecting(call, target, asked.inode, *socket, ENETUNREACH,
                              std::move(asked.connection));
    if (inside != Inside::kAnything) {
      error = ConnectInside(target, asked.inode, *socket, real, inside, asked.connection);
      return FinishConnecting(call, target, asked.inode, *socket, error,
                              std::move(asked.connection), error != EINPROGRESS);
    }
    if (socket->asked && !real.IsLoopback())
      return ConnectAnother(call, target, asked.inode, real, std::move(asked.connection));
    error = ConnectNow(socket->copy.get(), SocketAddressOf(real, socket->family));
  }
  FinishConnecting(call, target, asked.inode, *socket, error, std::move(asked.connection));
}

void NetworkSupervisor::FinishHeld(Asked asked, Socket& socket,
                                   const std::optional<Address>& address, int error,
                                   Inside inside) {
  // If the command has closed it since, the connection that is begun ends at once.
  const abi::SeccompNotification& call = asked.call;
  Target target(static_cast<pid_t>(call.pid));
  Connection& connection = asked.connection;
  connection.allowed = address.has_value();
  error = error != 0 ? error : asked.usual_error;
  if (address) {
    Endpoint real = connection.endpoint;
    real.address = *address;
    BegunConnection begun;
    // Cut to four bytes it would be another host.
    error = !real.IsV4() && socket.family == AF_INET
                ? ENETUNREACH
                : BeginOutside(target, asked.inode, socket, real, inside, connection, begun);
    if (error == 0) {
      begun.command = std::move(*asked.held);
      relay_->Carry(std::move(begun));
      error = EINPROGRESS;
    }
  }
  if (error != EINPROGRESS) {
    connection.error = error;
    Record(std::move(connection), target);
    asked.held->Fail();
  }
  // The call waits on, or one begins anew. Otherwise the program sees to it itself.
  if (error == EINPROGRESS)
    return FinishConnecting(call, target, asked.inode, socket, error, {}, false);
  if (asked.has_call) return Refuse(listener_.get(), call.id, error);
  socket.was_interrupted = !IsNonBlocking(socket.copy.get());
  if (!socket.was_interrupted) socket.copy.reset();
}

void NetworkSupervisor::FinishWaiting(const Waiting& waiting, bool timed_out) {
  Socket* socket = FindSocket(waiting.inode);
  if (socket == nullptr || !socket->copy.valid())
    return Refuse(listener_.get(), waiting.call, ECONNABORTED);
  // A signal ended the call. The error, if there is one, is for the program to find, or for the
  // same call when it begins anew.
  if (!IsWaiting(listener_.get(), waiting.call)) {
    socket->was_interrupted = true;
    pollfd watched = {socket->copy.get(), POLLOUT, 0};
    socket->connected = poll(&watched, 1, 0) == 1 && (watched.revents & (POLLERR | POLLHUP)) == 0;
    if (socket->connected) socket->copy.reset();
    return;
  }
  // As the kernel says of a connection that takes longer than SO_SNDTIMEO.
  if (timed_out) return Refuse(listener_.get(), waiting.call, EINPROGRESS);
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(socket->copy.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  // What a carried connection met, its command's own socket cannot say.
  if (error != 0 && relay_ != nullptr) error = relay_->TakeFailure(waiting.inode).value_or(error);
  if (error != 0) return Refuse(listener_.get(), waiting.call, error);
  socket->connected = true;
  socket->copy.reset();
  Return(listener_.get(), waiting.call, 0);
}

// The wanted port may still be recorded for a socket that was closed meanwhile: programs look for a
// free port with bind(0), close that socket, and start the server on its port. So drop closed
// sockets first.
void NetworkSupervisor::BindOnceLooked(const abi::SeccompNotification& call) {
  if (Clock::now() < look_again_) return postponed_.push_back(call);
  ForgetClosed();
  Bind(call, true);
}

void NetworkSupervisor::Bind(const abi::SeccompNotification& call, bool has_looked) {
  const UdpSockets::Bound bound = udp_.Bind(listener_.get(), call, has_looked);
  if (bound == UdpSockets::Bound::kIsTaken) return BindOnceLooked(call);
  if (bound != UdpSockets::Bound::kNotOurs) return;
  Target target(static_cast<pid_t>(call.pid));
  const auto inode = target.SocketInode(ArgumentOf(call, 0));
  Socket* socket = inode ? FindSocket(*inode) : nullptr;
  if (socket == nullptr) return Refuse(listener_.get(), call.id, inode ? EINVAL : EBADF);
  SocketAddress address;
  if (const int error = target.ReadAddress(PointerOf(call, 1), ArgumentOf(call, 2), address))
    return Refuse(listener_.get(), call.id, error);
  if (!IsWaiting(listener_.get(), call.id)) return;
  const int error = BindSocket(*socket, address);
  if (error == EADDRINUSE && !has_looked) return BindOnceLooked(call);
  return error == 0 ? Return(listener_.get(), call.id, 0) : Refuse(listener_.get(), call.id, error);
}

int NetworkSupervisor::BindSocket(Socket& socket, const SocketAddress& wanted) {
  if (!socket.copy.valid() || socket.asked) return EINVAL;
  std::optional<Endpoint> endpoint = EndpointOf(wanted, socket.family);
  if (!endpoint) return EINVAL;
  // Servers are for the sandbox itself.
  if (!gate_->own->loopback.Is(*endpoint)) return EADDRNOTAVAIL;
  const std::lock_guard lock(gate_->own->mutex);
  if (gate_->own->loopback.IsTakenByHost(endpoint->port)) return EADDRINUSE;
  const int fd = socket.copy.get();
  int only_v6 = 0;
  if (socket.family == AF_INET6) {
    socklen_t size = sizeof(only_v6);
    if (getsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &only_v6, &size) != 0) return errno;
    const int off = 0;
    if (only_v6 != 0 && setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &off, sizeof(off)) != 0) return errno;
  }
  endpoint->address = gate_->own->loopback.ForServer(only_v6 != 0);
  endpoint->scope = 0;
  SocketAddress real = SocketAddressOf(*endpoint, socket.family);
  if (bind(fd, real.get(), real.length) != 0) return errno;
  real.length = sizeof(real.storage);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&real.storage), &real.length) != 0) return errno;
  socket.port = EndpointOf(real, socket.family).value_or(Endpoint()).port;
  socket.asked = wanted;
  return 0;
}

void NetworkSupervisor::Listen(const abi::SeccompNotification& call) {
  const Target target(static_cast<pid_t>(call.pid));
  const auto inode = target.SocketInode(ArgumentOf(call, 0));
  Socket* socket = inode ? FindSocket(*inode) : nullptr;
  if (socket == nullptr) return Refuse(listener_.get(), call.id, inode ? EINVAL : EBADF);
  if (socket->listens) return Return(listener_.get(), call.id, 0);
  if (!socket->copy.valid()) return Refuse(listener_.get(), call.id, EINVAL);
  int error = 0;
  if (!socket->asked) {
    // Otherwise it would listen at all addresses.
    Endpoint any;
    if (socket->family == AF_INET) any.address = LoopbackAddress(0, 0, 1);
    if (socket->family == AF_INET6) any.address[15] = 1;
    error = BindSocket(*socket, SocketAddressOf(any, socket->family));
  }
  if (error == 0 && listen(socket->copy.get(), ArgumentOf(call, 1)) != 0) error = errno;
  if (error != 0) return Refuse(listener_.get(), call.id, error);
  {
    const std::lock_guard lock(gate_->own->mutex);
    gate_->own->loopback.Listens(socket->port);
  }
  socket->listens = true;
  socket->copy.reset();
  Return(listener_.get(), call.id, 0);
}

void NetworkSupervisor::TellName(const abi::SeccompNotification& call) {
  Target target(static_cast<pid_t>(call.pid));
  const auto inode = target.SocketInode(ArgumentOf(call, 0));
  SocketAddress told;
  const Socket* socket = inode ? FindSocket(*inode) : nullptr;
  const auto names = inode && relay_ != nullptr ? relay_->NamesOf(*inode) : std::nullopt;
  if (names) {
    told = names->local;
  } else if (socket != nullptr && socket->asked) {
    // The address that it wanted, and the port that it got.
    Endpoint endpoint = EndpointOf(*socket->asked, socket->family).value_or(Endpoint());
    endpoint.port = socket->port;
    told = SocketAddressOf(endpoint, socket->family);
  } else {
    // It names nothing.
    return Continue(listener_.get(), call.id);
  }
  if (!IsWaiting(listener_.get(), call.id)) return;
  const int error = target.WriteAddress(told, PointerOf(call, 1), PointerOf(call, 2));
  return error == 0 ? Return(listener_.get(), call.id, 0) : Refuse(listener_.get(), call.id, error);
}

void NetworkSupervisor::TellPeer(const abi::SeccompNotification& call) {
  Target target(static_cast<pid_t>(call.pid));
  const auto inode = target.SocketInode(ArgumentOf(call, 0));
  const auto names = inode && relay_ != nullptr ? relay_->NamesOf(*inode) : std::nullopt;
  const Socket* socket = inode ? FindSocket(*inode) : nullptr;
  sockaddr_storage peer;
  socklen_t size = sizeof(peer);
  const bool is_under_way =
      socket != nullptr && socket->copy.valid() &&
      getpeername(socket->copy.get(), reinterpret_cast<sockaddr*>(&peer), &size) != 0;
  const auto server = inode ? names_.PeerOf(*inode) : std::nullopt;
  // It names nothing. Of a socket that is not connected yet the kernel says so.
  if ((!names && !server) || is_under_way) return Continue(listener_.get(), call.id);
  if (!IsWaiting(listener_.get(), call.id)) return;
  const int error =
      target.WriteAddress(names ? names->peer : *server, PointerOf(call, 1), PointerOf(call, 2));
  return error == 0 ? Return(listener_.get(), call.id, 0) : Refuse(listener_.get(), call.id, error);
}

void NetworkSupervisor::Record(Connection connection, Target& target) {
  connection.count = 1;
  if (connections_.IsCounted(connection)) return;
  TellWho(connection, target);
  connections_.Add(std::move(connection));
}

}  // namespace sandbox_run
