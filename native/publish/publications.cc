#include "publish/publications.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/clone_child.h"
#include "core/outside.h"
#include "core/warden.h"
#include "notify/unix_table.h"
#include "publish/relay_child.h"
#include "publish/relay_protocol.h"
#include "sys/files.h"
#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

constexpr int kStartPatienceMs = 5000;
// A relay answers kFinish at once, unless somebody has suspended it.
constexpr int kFinishPatienceMs = 200;
// Most relays have no bytes left to carry and end at once; for others a thread waits.
constexpr int kEndPatienceMs = 20;
constexpr int kTriesOfAnyPort = 32;
constexpr uint32_t kTriesOfNextPort = 1000;
constexpr int kHighestPort = 65535;
// Descriptors for the relay are first copied to numbers from here on, so that moving them to 0, 1,
// … in the child overwrites none of them.
constexpr int kAboveRelays = 16;

std::vector<Address> AddressesOf(const PublicationWish& wish) {
  if (!wish.addresses.empty()) return wish.addresses;
  return {LoopbackAddress(0, 0, 1), kLoopbackV6};
}

// Listens at an address. `port` 0 becomes the port that the kernel chose. Returns 0 or the errno.
int ListenAt(const Address& address, uint16_t& port, UniqueFd& into) {
  Endpoint endpoint;
  endpoint.address = address;
  endpoint.port = port;
  const int family = endpoint.IsV4() ? AF_INET : AF_INET6;
  into.reset(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!into.valid()) return errno;
  const int on = 1;
  // Without this, earlier connections in TIME_WAIT would make the port seem taken.
  setsockopt(into.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (family == AF_INET6) setsockopt(into.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  SocketAddress bound = SocketAddressOf(endpoint, family);
  if (bind(into.get(), bound.get(), bound.length) != 0 || listen(into.get(), SOMAXCONN) != 0 ||
      getsockname(into.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.length) != 0)
    return errno;
  const std::optional<Endpoint> actual = EndpointOf(bound, family);
  if (actual) port = actual->port;
  return 0;
}

struct Listeners {
  std::vector<UniqueFd> sockets;
  std::vector<Address> addresses;
  uint16_t port = 0;
};

// Listens at all of the addresses. Returns 0 or the errno of the first failure. An address that
// this host does not have is skipped, except the first: without IPv6, ::1 is one.
int ListenAtAll(const std::vector<Address>& addresses, uint16_t port, Listeners& into) {
  for (int tries = 1;; ++tries) {
    into = Listeners();
    into.port = port;
    int error = 0;
    for (const Address& address : addresses) {
      UniqueFd socket;
      error = ListenAt(address, into.port, socket);
      const bool is_absent = error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
      if (is_absent && address != addresses.front()) {
        error = 0;
        continue;
      }
      if (error != 0) break;
      into.sockets.push_back(std::move(socket));
      into.addresses.push_back(address);
    }
    // A port that the kernel chose at the first address may be taken at the next: try another one.
    if (error != EADDRINUSE || port != 0 || tries == kTriesOfAnyPort) return error;
  }
}

// Makes a Unix socket and listens at it. Returns 0 or the errno.
int ListenAtPath(const std::string& path, Listeners& into, MadeSocket& made) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return EINVAL;
  Result<UniqueFd> directory = OpenPath(slash == 0 ? "/" : path.substr(0, slash), kPublishBind);
  if (!directory.ok()) return directory.failure().error;
  const int in = directory.value().get();
  const std::string name = path.substr(slash + 1);
  const SocketAddress address =
      AddressOfPath(("/proc/self/fd/" + std::to_string(in) + "/" + name).c_str());
  struct stat found;
  // A launcher that was killed leaves its socket: replace it if it is the user's and nobody
  // listens.
  if (fstatat(in, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!S_ISSOCK(found.st_mode) || found.st_uid != geteuid() || IsBound(address))
      return EADDRINUSE;
    if (unlinkat(in, name.c_str(), 0) != 0) return errno;
  }
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return errno;
  if (bind(socket.get(), address.get(), address.length) != 0) return errno;
  if (fstatat(in, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  made.directory = std::move(directory.value());
  made.name = name;
  made.inode = found.st_ino;
  // The mode may be set after bind(), because nobody can connect before listen().
  if (fchmodat(in, name.c_str(), S_IRUSR | S_IWUSR, 0) != 0) return errno;
  if (listen(socket.get(), SOMAXCONN) != 0) return errno;
  into.sockets.push_back(std::move(socket));
  return 0;
}

bool IsReadable(int fd, int patience_ms) {
  pollfd watched = {fd, POLLIN, 0};
  int ready;
  do {
    ready = poll(&watched, 1, patience_ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

bool Answers(int channel, char expected, int patience_ms) {
  char answer = 0;
  return IsReadable(channel, patience_ms) && recv(channel, &answer, 1, MSG_DONTWAIT) == 1 &&
         answer == expected;
}

bool Send(int channel, const RelayOrder& order) {
  return send(channel, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof(order));
}

void* ReapOne(void* pid) {
  [[maybe_unused]] const int status = Reap(static_cast<pid_t>(reinterpret_cast<intptr_t>(pid)));
  return nullptr;
}

// Reaps a relay: at once if it ends soon, else in a thread of its own.
void ReapLater(pid_t pid, int pidfd) {
  if (IsReadable(pidfd, kEndPatienceMs) ||
      StartDetached(ReapOne, reinterpret_cast<void*>(static_cast<intptr_t>(pid))) != 0) {
    [[maybe_unused]] const int status = Reap(pid);
  }
}

}  // namespace

MadeSocket::~MadeSocket() {
  struct stat found;
  if (directory.valid() &&
      fstatat(directory.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISSOCK(found.st_mode) && found.st_ino == inode) {
    unlinkat(directory.get(), name.c_str(), 0);
  }
}

Publications& Publications::OfProcess() {
  // Never destroyed: workers may outlive static objects.
  static auto* const all = new Publications();
  return *all;
}

Result<HeldPublication> Publications::Hold(const std::shared_ptr<Machine>& machine,
                                           const PublicationWish& wish, PublicationTarget target) {
  const std::lock_guard lock(mutex_);
  const uint32_t id = ++last_id_;
  for (Publication& one : all_) {
    if (one.machine != machine || !(one.wish == wish) ||
        one.holds.front().target.is_outside != target.is_outside ||
        // The relay was killed from outside. The entry stays until its holders learn that from
        // Release(); a new holder gets a new relay.
        IsReadable(one.pidfd.get(), 0)) {
      continue;
    }
    one.holds.push_back({id, target});
    if (!TellTargets(one)) {
      // It is about to end: its channel goes before it can be waited for.
      one.holds.pop_back();
      continue;
    }
    HeldPublication held = one.held;
    held.id = id;
    return held;
  }
  Publication made;
  Listeners listeners;
  const std::vector<Address> addresses = AddressesOf(wish);
  int error = wish.socket.empty() ? ListenAtAll(addresses, wish.port, listeners)
                                  : ListenAtPath(wish.socket, listeners, made.socket);
  for (uint32_t port = wish.port + 1u; error == EADDRINUSE && wish.or_free; ++port) {
    if (port > kHighestPort || port > wish.port + kTriesOfNextPort) break;
    error = ListenAtAll(addresses, static_cast<uint16_t>(port), listeners);
  }
  if (error != 0) return Failure{kPublishBind, error, ""};
  made.machine = machine;
  made.wish = wish;
  made.held = {id, listeners.port, std::move(listeners.addresses)};
  made.holds.push_back({id, std::move(target)});
  if (Status started = Start(made, std::move(listeners.sockets)); !started.ok())
    return started.failure();
  all_.push_back(std::move(made));
  return all_.back().held;
}

bool Publications::Release(uint32_t id) {
  const std::lock_guard lock(mutex_);
  for (auto one = all_.begin(); one != all_.end(); ++one) {
    const auto hold = std::find_if(one->holds.begin(), one->holds.end(),
                                   [id](const Share& share) { return share.id == id; });
    if (hold == one->holds.end()) continue;
    one->holds.erase(hold);
    if (!one->holds.empty()) return TellTargets(*one);
    const bool was_there = End(*one);
    all_.erase(one);
    return was_there;
  }
  return true;
}

uint16_t Publications::FreePort(const std::vector<Address>& addresses, uint32_t from) {
  PublicationWish wish;
  wish.addresses = addresses;
  Listeners listeners;
  for (uint32_t port = from; port <= kHighestPort && port < from + kTriesOfNextPort; ++port) {
    if (ListenAtAll(AddressesOf(wish), static_cast<uint16_t>(port), listeners) == 0)
      return static_cast<uint16_t>(port);
  }
  return 0;
}

Status Publications::Start(Publication& publication, std::vector<UniqueFd> listeners) {
  const int program = RelayProgram();
  if (program < 0) return Failure{kPublishRelay, ENOENT, "sandbox-run-relay"};
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return Failure{kPublishRelay, errno, ""};
  publication.channel.reset(ends[0]);
  const UniqueFd theirs(ends[1]);

  RelayOrder begin;
  begin.kind = RelayOrder::kBegin;
  begin.launcher = getpid();
  begin.listeners = static_cast<int32_t>(listeners.size());
  std::vector<int> given = {theirs.get()};
  for (const UniqueFd& listener : listeners) given.push_back(listener.get());
  const bool is_outside = publication.holds.front().target.is_outside;
  const int network = is_outside ? -1 : publication.machine->network_fd();
  // To enter a network namespace the relay needs the capabilities of the owning user namespace.
  const int user = network < 0 ? -1 : publication.machine->user_fd();
  begin.has_user = user >= 0;
  begin.has_network = network >= 0;
  if (user >= 0) given.push_back(user);
  if (network >= 0) given.push_back(network);
  // Queued before the relay starts, so that its first reads find both orders.
  if (!Send(publication.channel.get(), begin) || !TellTargets(publication))
    return Failure{kPublishRelay, errno, ""};

  std::vector<UniqueFd> raised;
  std::vector<int> fds;
  for (const int fd : given) {
    raised.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, kAboveRelays));
    if (!raised.back().valid()) return Failure{kPublishRelay, errno, ""};
    fds.push_back(raised.back().get());
  }
  raised.emplace_back(fcntl(program, F_DUPFD_CLOEXEC, kAboveRelays));
  if (!raised.back().valid()) return Failure{kPublishRelay, errno, ""};
  RelayPlan plan;
  plan.program = raised.back().get();
  plan.fds = fds.data();
  plan.fd_count = fds.size();
  int pidfd = -1;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  publication.pid = CloneChild(RunRelay, &plan, CLONE_PIDFD, &pidfd);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (publication.pid < 0) return Failure{kPublishRelay, error, ""};
  publication.pidfd.reset(pidfd);
  if (plan.error == 0 && Answers(publication.channel.get(), kRelayReady, kStartPatienceMs))
    return Status();
  if (pidfd >= 0) RawSyscall(abi::kSysPidfdSendSignal, pidfd, SIGKILL, 0, 0);
  const int status = Reap(publication.pid);
  return Failure{kPublishRelay, plan.error, plan.error == 0 ? DescribeEnd(status) : ""};
}

bool Publications::TellTargets(const Publication& publication) {
  RelayOrder order;
  order.kind = RelayOrder::kTargets;
  order.port = publication.wish.inner;
  // The target of the newest command is tried first.
  for (auto share = publication.holds.rbegin(); share != publication.holds.rend(); ++share) {
    for (const Address& target : share->target.addresses) {
      const auto end = order.targets.begin() + order.count;
      const bool is_told = std::find(order.targets.begin(), end, target) != end;
      if (is_told || order.count == RelayOrder::kMostTargets) continue;
      order.targets[order.count++] = target;
    }
  }
  return Send(publication.channel.get(), order);
}

bool Publications::End(Publication& publication) {
  RelayOrder finish;
  finish.kind = RelayOrder::kFinish;
  const bool was_there = Send(publication.channel.get(), finish) &&
                         Answers(publication.channel.get(), kRelayFinished, kFinishPatienceMs);
  // By pidfd: if the embedding program reaps all children, another process may have this PID by
  // now.
  if (!was_there) RawSyscall(abi::kSysPidfdSendSignal, publication.pidfd.get(), SIGKILL, 0, 0);
  ReapLater(publication.pid, publication.pidfd.get());
  return was_there;
}

}  // namespace sandbox_run
