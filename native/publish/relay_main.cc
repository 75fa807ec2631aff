// The program `sandbox-run-relay`: carries connections to a published port into a sandbox. It
// listens on sockets that the launcher made outside, runs in the sandbox's network namespace (if it
// has one) and connects to the server there. It connects to nothing else and takes orders only from
// the launcher. A sandboxed command can only accept its connections: it cannot use them to get out.

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "notify/endpoint.h"
#include "publish/relay_protocol.h"

namespace sandbox_run {
namespace {

constexpr int kChannel = 0;
constexpr int kFirstListener = 1;
// Connections at a time. Others wait in the kernel's listen queue.
constexpr size_t kMostConnections = 1024;
// Descriptors of one connection: two sockets, and two pipes while its readers are slow.
constexpr size_t kDescriptorsOfOne = 6;
constexpr size_t kOtherDescriptors = 16;
constexpr int kMostEvents = 64;
constexpr int64_t kLongestFinishMs = 1000;
constexpr int kShortageMs = 100;

// Data of an epoll event: whether it is about the channel, a listening socket, or a socket of a
// connection. The generation tells events of an earlier connection in the same slot apart.
constexpr uint64_t kOfChannel = 0;
constexpr uint64_t kOfListener = 1;
constexpr uint64_t kOfConnection = 2;
constexpr uint64_t DataOf(uint32_t generation, size_t slot, bool is_inner) {
  return uint64_t{generation} << 32 | (slot << 3) | (is_inner ? 4 : 0) | kOfConnection;
}

// The system calls that the relay makes after its setup, including those that libc makes by itself.
constexpr int kCalls[] = {
    SYS_read,
    SYS_write,
    SYS_close,
    SYS_accept4,
    SYS_socket,
    SYS_connect,
    SYS_getpeername,
    SYS_getsockname,
    SYS_setsockopt,
    SYS_getsockopt,
    SYS_shutdown,
    SYS_recvfrom,
    SYS_sendto,
    SYS_splice,
    SYS_pipe2,
    SYS_fcntl,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_clock_gettime,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_brk,
    SYS_madvise,
    SYS_prctl,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigreturn,
    SYS_restart_syscall,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
#ifdef SANDBOX_RUN_SANITIZED
    // Calls of the sanitizers' run-time libraries, in builds for the C++ tests only.
    SYS_getpid,
    SYS_gettid,
    SYS_futex,
    SYS_sched_yield,
    SYS_sigaltstack,
    SYS_rt_sigprocmask,
#endif
};

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

bool RefuseOtherCalls() {
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const int call : kCalls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  const sock_fprog loaded = {static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &loaded) == 0;
}

bool DropCapabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capset, &header, none) == 0;
}

// How many connections the limit of open files allows, after raising it to the hard limit.
size_t Room() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return 1;
  files.rlim_cur = files.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &files) != 0 && getrlimit(RLIMIT_NOFILE, &files) != 0) return 1;
  const size_t most = files.rlim_cur == RLIM_INFINITY ? SIZE_MAX : files.rlim_cur;
  const size_t own = most > kOtherDescriptors ? most - kOtherDescriptors : 0;
  return std::clamp<size_t>(own / kDescriptorsOfOne, 1, kMostConnections);
}

int64_t NowMs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void SendAtOnce(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Without keep-alive a client on another machine that disappears would keep its slot for ever. The
// server cannot detect that, because its own peer is the relay.
void FindLostPeer(int socket) {
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

// Makes close() send a reset, so that the peer sees a broken connection and not a regular end.
void ResetAtClose(int socket) {
  const linger at_once = {1, 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

// Whether a socket is connected to itself. TCP allows that if the kernel happens to choose the
// target port, in the ephemeral range, as the local port.
bool IsToItself(int socket) {
  sockaddr_storage own = {}, peer = {};
  socklen_t own_length = sizeof(own), peer_length = sizeof(peer);
  return getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_length) == 0 &&
         getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_length) == 0 &&
         own_length == peer_length && memcmp(&own, &peer, own_length) == 0;
}

// For short messages: copying them takes fewer calls, and less time, than splicing through a pipe.
char buffer[32 * 1024];
constexpr int kPipeBytes = 256 * 1024;
// Steps of one connection before the others have their turn.
constexpr int kMostSteps = 16;
constexpr size_t kMostIdlePipes = 4;

struct Pipe {
  UniqueFd in, out;
};

// A pool of empty pipes. A connection borrows one for a long transfer; only a direction whose
// reader is slow keeps one for longer. Pipes are scarce: the kernel limits the pages in all pipes
// of a user (pipe(7)).
class Pipes {
 public:
  bool Take(Pipe& into) {
    if (into.in.valid()) return true;
    if (!idle_.empty()) {
      into = std::move(idle_.back());
      idle_.pop_back();
      return true;
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
    into.out.reset(ends[0]);
    into.in.reset(ends[1]);
    // May fail where the user has reached the limit of pages in pipes: a smaller pipe works, too.
    [[maybe_unused]] const int size = fcntl(into.in.get(), F_SETPIPE_SZ, kPipeBytes);
    return true;
  }
  void GiveBack(Pipe& pipe) {
    if (pipe.in.valid() && idle_.size() < kMostIdlePipes) idle_.push_back(std::move(pipe));
    pipe = Pipe();
  }

 private:
  std::vector<Pipe> idle_;
};

// One direction of a connection. Long transfers are spliced from socket to socket inside the
// kernel. A slow reader holds up only its own writer.
class Direction {
 public:
  enum class Moved {
    kAll,     // everything that can be moved for now
    kSome,    // there may be more to move at once
    kBroken,  // one of the two sockets has failed
  };
  // Moves bytes between two non-blocking sockets. At the end of `from` it shuts `to` down for
  // writing. `has_ended`: the kernel has reported the end of `from`, although there may still be
  // bytes to read before it.
  Moved Move(int from, int to, bool has_ended, Pipes& pipes) {
    for (int step = 0; step < kMostSteps; ++step) {
      ssize_t moved = 0;
      if (!rest_.empty()) {
        moved = send(to, rest_.data(), rest_.size(), MSG_NOSIGNAL);
        if (moved > 0) rest_.erase(rest_.begin(), rest_.begin() + moved);
      } else if (in_pipe_ > 0) {
        moved = splice(pipe_.out.get(), nullptr, to, nullptr, in_pipe_, kSplice);
        if (moved > 0) in_pipe_ -= static_cast<size_t>(moved);
      } else if (ended_) {
        over_ = true;
        pipes.GiveBack(pipe_);
        // ENOTCONN: `to` was reset. The other direction reports that.
        return shutdown(to, SHUT_WR) != 0 && errno != ENOTCONN ? Moved::kBroken : Moved::kAll;
      } else if (is_long_ && pipes.Take(pipe_)) {
        moved = splice(from, nullptr, pipe_.in.get(), nullptr, kPipeBytes, kSplice);
        if (moved > 0) in_pipe_ = static_cast<size_t>(moved);
        ended_ = moved == 0;
        if (moved < 0 && errno == EAGAIN) {
          is_long_ = false;
          pipes.GiveBack(pipe_);
          return Moved::kAll;
        }
      } else {
        moved = recv(from, buffer, sizeof(buffer), 0);
        ended_ = moved == 0;
        const size_t got = moved < 0 ? 0 : static_cast<size_t>(moved);
        const ssize_t sent = got == 0 ? 0 : send(to, buffer, got, MSG_NOSIGNAL);
        const size_t put = sent < 0 ? 0 : static_cast<size_t>(sent);
        if (sent < 0) moved = sent;
        if (put < got) {
          rest_.assign(buffer + put, buffer + got);
        } else if (got > 0 && got < sizeof(buffer) && !has_ended) {
          // A short read: `from` is empty, and epoll reports when more comes.
          return Moved::kAll;
        }
        is_long_ = got == sizeof(buffer);
      }
      if (moved < 0 && errno == EAGAIN) return Moved::kAll;
      if (moved < 0 && errno != EINTR) return Moved::kBroken;
    }
    return Moved::kSome;
  }
  bool is_over() const { return over_; }
  bool holds() const { return in_pipe_ > 0 || !rest_.empty(); }

 private:
  static constexpr unsigned kSplice = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;

  std::vector<char> rest_;  // the rest of a short message that `to` did not take yet
  Pipe pipe_;               // borrowed while it has content
  size_t in_pipe_ = 0;
  bool is_long_ = false, ended_ = false, over_ = false;
};

struct Connection {
  uint32_t generation = 0;
  UniqueFd outer, inner;
  Direction inward, outward;
  // The kernel has reported the end of that side; there may still be bytes to read before it.
  bool outer_ended = false, inner_ended = false;
  bool connected = false;
  size_t tried = 0;  // how many targets were tried
};

class PortRelay {
 public:
  bool Begin(int listeners) {
    epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_.valid() || !Watch(kChannel, kOfChannel, EPOLLIN)) return false;
    for (int at = 0; at < listeners; ++at) listeners_.emplace_back(kFirstListener + at);
    connections_.resize(Room());
    for (size_t slot = connections_.size(); slot > 0; --slot) free_.push_back(slot - 1);
    return Listen();
  }

  void Work() {
    epoll_event events[kMostEvents];
    while (!IsOver()) {
      const int ready = epoll_wait(epoll_.get(), events, kMostEvents, TimeLeft());
      const std::vector<uint64_t> unfinished = std::exchange(unfinished_, {});
      for (const uint64_t data : unfinished) Advance(data, 0);
      for (int at = 0; at < ready; ++at) {
        const uint64_t data = events[at].data.u64;
        if (data == kOfChannel) {
          TakeOrder();
        } else if (data == kOfListener) {
          accepts_ = true;
        } else {
          Advance(data, events[at].events);
        }
      }
      if (std::exchange(accepts_, false)) Accept();
      // Checked in every turn, so that busy connections do not delay it.
      if (IsShort() && NowMs() >= listen_again_ms_) Listen();
    }
  }

 private:
  bool Watch(int fd, uint64_t data, uint32_t what) {
    epoll_event event = {};
    event.events = what;
    event.data.u64 = data;
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  }

  // Watches the listening sockets. If memory is short, the loop tries again after kShortageMs.
  bool Listen() {
    listens_ = true;
    for (const UniqueFd& listener : listeners_) {
      // EEXIST: an earlier attempt failed halfway, and this socket is watched already.
      if (Watch(listener.get(), kOfListener, EPOLLIN) || errno == EEXIST) continue;
      listens_ = false;
      listen_again_ms_ = NowMs() + kShortageMs;
    }
    return listens_;
  }

  bool IsOver() const {
    return until_ms_ != 0 && (free_.size() == connections_.size() || NowMs() >= until_ms_);
  }

  // It does not listen although slots are free: descriptors or memory were short.
  bool IsShort() const { return !listens_ && !listeners_.empty() && !free_.empty(); }

  int TimeLeft() const {
    if (!unfinished_.empty()) return 0;
    if (IsShort()) return static_cast<int>(std::max<int64_t>(listen_again_ms_ - NowMs(), 0));
    return until_ms_ == 0 ? -1 : static_cast<int>(std::max<int64_t>(until_ms_ - NowMs(), 0));
  }

  void TakeOrder() {
    RelayOrder order;
    const ssize_t size = recv(kChannel, &order, sizeof(order), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    // End of the channel: the launcher has ended or has closed it.
    if (size != static_cast<ssize_t>(sizeof(order))) _exit(0);
    if (order.kind == RelayOrder::kTargets) {
      port_ = order.port;
      const size_t count = std::min<size_t>(order.count, RelayOrder::kMostTargets);
      targets_.assign(order.targets.begin(), order.targets.begin() + count);
    } else if (order.kind == RelayOrder::kFinish) {
      listeners_.clear();
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, kChannel, nullptr);
      // Bytes that the command has sent last are still carried, even if the launcher ends right
      // now.
      until_ms_ = NowMs() + kLongestFinishMs;
      prctl(PR_SET_PDEATHSIG, 0);
      send(kChannel, &kRelayFinished, 1, MSG_NOSIGNAL);
    }
  }

  void Accept() {
    for (const UniqueFd& listener : listeners_) {
      while (!free_.empty()) {
        UniqueFd outer(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!outer.valid() && errno == EAGAIN) break;
        // No descriptor or memory is left: the client waits, as it does when all slots are taken.
        if (!outer.valid() &&
            (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
          return StopListening();
        }
        if (!outer.valid() && errno == ECONNABORTED) continue;
        // Other errors concern this connection alone, such as a network error that accept() passes
        // on (accept(2)): go on with the next event.
        if (!outer.valid()) break;
        const size_t slot = free_.back();
        free_.pop_back();
        Connection& connection = connections_[slot];
        connection.outer = std::move(outer);
        SendAtOnce(connection.outer.get());
        FindLostPeer(connection.outer.get());
        Connect(slot);
      }
    }
    if (free_.empty()) StopListening();
  }

  void StopListening() {
    for (const UniqueFd& listener : listeners_)
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener.get(), nullptr);
    listens_ = false;
    listen_again_ms_ = NowMs() + kShortageMs;
  }

  // Connects to the first of the targets not tried yet that accepts; drops the connection if none
  // does.
  void Connect(size_t slot) {
    Connection& connection = connections_[slot];
    while (connection.tried < targets_.size()) {
      Endpoint target;
      target.address = targets_[connection.tried++];
      target.port = port_;
      const int family = target.IsV4() ? AF_INET : AF_INET6;
      connection.inner.reset(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      if (!connection.inner.valid()) continue;
      SendAtOnce(connection.inner.get());
      const SocketAddress address = SocketAddressOf(target, family);
      const int result = connect(connection.inner.get(), address.get(), address.length);
      if (result != 0 && errno != EINPROGRESS) continue;
      const uint64_t data = DataOf(connection.generation, slot, true);
      if (!Watch(connection.inner.get(), data, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)) continue;
      // On a loopback interface connect() has succeeded or failed by now; no event is needed.
      if (Settle(slot)) return;
    }
    Drop(slot, true);
  }

  // Starts carrying if the inner socket is connected. Returns false if connecting has failed; true
  // also while it is not decided yet.
  bool Settle(size_t slot) {
    Connection& connection = connections_[slot];
    int error = 0;
    socklen_t length = sizeof(error);
    if (getsockopt(connection.inner.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 ||
        error != 0)
      return false;
    sockaddr_storage peer;
    socklen_t peer_length = sizeof(peer);
    if (getpeername(connection.inner.get(), reinterpret_cast<sockaddr*>(&peer), &peer_length) != 0)
      return errno == ENOTCONN;
    if (IsToItself(connection.inner.get())) return false;
    connection.connected = true;
    const uint64_t data = DataOf(connection.generation, slot, false);
    if (!Watch(connection.outer.get(), data, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)) {
      Drop(slot, true);
      return true;
    }
    Advance(data, 0);
    return true;
  }

  void Advance(uint64_t data, uint32_t events) {
    const size_t slot = (data & UINT32_MAX) >> 3;
    Connection& connection = connections_[slot];
    if (connection.generation != data >> 32 || !connection.outer.valid()) return;
    if (!connection.connected) {
      if (!Settle(slot)) Connect(slot);
      return;
    }
    if ((events & EPOLLERR) != 0) return Drop(slot, true);
    const bool is_inner = (data & 4) != 0;
    if ((events & (EPOLLRDHUP | EPOLLHUP)) != 0)
      (is_inner ? connection.inner_ended : connection.outer_ended) = true;
    // Which directions the event allows to move; both, if there is no event (0).
    constexpr uint32_t kReads = EPOLLIN | EPOLLRDHUP | EPOLLHUP;
    const auto is_due = [&](const Direction& direction, bool from_inner) {
      if (direction.is_over()) return false;
      if (events == 0) return true;
      return is_inner == from_inner ? (events & kReads) != 0
                                    : (events & EPOLLOUT) != 0 && direction.holds();
    };
    Direction::Moved inward = Direction::Moved::kAll, outward = Direction::Moved::kAll;
    if (is_due(connection.inward, false)) {
      inward = connection.inward.Move(connection.outer.get(), connection.inner.get(),
                                      connection.outer_ended, pipes_);
    }
    if (is_due(connection.outward, true)) {
      outward = connection.outward.Move(connection.inner.get(), connection.outer.get(),
                                        connection.inner_ended, pipes_);
    }
    if (inward == Direction::Moved::kBroken || outward == Direction::Moved::kBroken)
      return Drop(slot, true);
    if (connection.inward.is_over() && connection.outward.is_over()) return Drop(slot, false);
    if (inward == Direction::Moved::kSome || outward == Direction::Moved::kSome)
      unfinished_.push_back(data);
  }

  void Drop(size_t slot, bool is_broken) {
    Connection& connection = connections_[slot];
    if (is_broken) {
      ResetAtClose(connection.outer.get());
      if (connection.inner.valid()) ResetAtClose(connection.inner.get());
    }
    const uint32_t generation = connection.generation + 1;
    connection = Connection();
    connection.generation = generation;
    free_.push_back(slot);
    if (!listens_ && !listeners_.empty()) Listen();
  }

  UniqueFd epoll_;
  std::vector<UniqueFd> listeners_;
  bool listens_ = false;
  bool accepts_ = false;
  std::vector<Address> targets_;
  uint16_t port_ = 0;
  std::vector<Connection> connections_;
  std::vector<size_t> free_;
  Pipes pipes_;
  std::vector<uint64_t> unfinished_;  // connections with more to move at once, as epoll data
  int64_t until_ms_ = 0;              // when to exit at the latest; 0: not told to finish
  int64_t listen_again_ms_ = 0;       // when to try again, while it does not listen
};

int Main() {
  // Only root can inspect the process (ptrace, /proc/PID/mem, descriptors).
  if (prctl(PR_SET_DUMPABLE, 0) != 0) return 1;
  // Before Linux 6.14 a program executed by descriptor is named after its number, such as "3".
  prctl(PR_SET_NAME, "sandbox-run-relay");
  signal(SIGPIPE, SIG_IGN);
  RelayOrder order;
  if (recv(kChannel, &order, sizeof(order), 0) != static_cast<ssize_t>(sizeof(order)) ||
      order.kind != RelayOrder::kBegin) {
    return 127;  // not started by the launcher
  }
  int next = kFirstListener + order.listeners;
  for (const auto& [has, type] :
       {std::pair{order.has_user, CLONE_NEWUSER}, std::pair{order.has_network, CLONE_NEWNET}}) {
    if (has == 0) continue;
    if (setns(next, type) != 0) return 2;
    close(next++);
  }
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != order.launcher) return 3;
  PortRelay relay;
  if (!relay.Begin(order.listeners)) return 4;
  if (!DropCapabilities() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !RefuseOtherCalls()) {
    return 5;
  }
  if (send(kChannel, &kRelayReady, 1, MSG_NOSIGNAL) != 1) return 6;
  relay.Work();
  return 0;
}

}  // namespace
}  // namespace sandbox_run

int main() { return sandbox_run::Main(); }
