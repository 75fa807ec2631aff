#ifndef SANDBOX_RUN_NOTIFY_UNIX_SOCKETS_H_
#define SANDBOX_RUN_NOTIFY_UNIX_SOCKETS_H_

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "notify/endpoint.h"
#include "notify/network_gate.h"
#include "notify/target.h"
#include "sys/kernel_abi.h"

namespace sandbox_run {

// The part of a NetworkSupervisor that answers for unix sockets. Each is made here, and connected
// here to an object that is held: no call that names where it leads goes on in the kernel. bind
// with a path does, as it leads nowhere: so a command makes a socket where it may make files. When
// that is to listen, a socket that is bound elsewhere takes its place (UnixTable).
class UnixSockets {
 public:
  using OnConnection = std::function<void(Connection, Target&)>;
  static constexpr std::chrono::milliseconds kRetryInterval{5};

  UnixSockets(NetworkGate& gate, OnConnection on_connection)
      : gate_(gate), on_connection_(std::move(on_connection)) {}

  // Answers a call that makes a unix socket or is about one that was made here; false: another one.
  bool Answer(int listener, const abi::SeccompNotification& call);

  // Whether a command waits because a server has as many clients as it takes at a time. The kernel
  // does not say when it has room, so it is tried again.
  bool HasWaiting() const { return !waiting_.empty() || !postponed_.empty(); }
  void Retry(int listener);

  // How many descriptors are kept, at most: of a socket that listens, what leads to it.
  size_t descriptors() const { return sockets_.size(); }

  // The command has ended. From any thread.
  void End(int listener);
  // What a command that has ended left is given up. On a thread that no filter holds.
  void SweepIfEnded();

 private:
  using Clock = std::chrono::steady_clock;

  struct Socket {
    UniqueFd copy;  // until it listens: a copy would keep it open
    int type = 0;
    std::optional<SocketAddress> asked;  // the name that the command gave it, if it has another
  };
  struct Waiting {
    abi::SeccompNotification call;
    std::optional<Clock::time_point> until;
  };
  // What a command named, in one form: an abstract name, or an object.
  struct Wanted {
    std::string told;  // as people read it
    std::optional<std::string> abstract;
    UniqueFd object;
    int error = 0;  // why there is no object
  };

  void Make(int listener, const abi::SeccompNotification& call);
  void Connect(int listener, const abi::SeccompNotification& call,
               std::optional<Clock::time_point> until);
  void Bind(int listener, const abi::SeccompNotification& call, Socket& socket);
  int BindAbstract(Socket& socket, const SocketAddress& wanted);
  void Listen(int listener, const abi::SeccompNotification& call, ino_t inode);
  // Puts a socket that is bound elsewhere in the place of one that has a path. 0 or the errno.
  int ListenElsewhere(int listener, const abi::SeccompNotification& call, Target& target,
                      ino_t inode, const SocketAddress& name);
  void TellName(int listener, const abi::SeccompNotification& call, const Socket& socket);

  static Wanted Find(const Target& target, const SocketAddress& address);
  // Connects if it may be. 0 or the errno; what is to be told of it stands in `connection`, with no
  // path if there is nothing.
  int ConnectTo(const Wanted& wanted, const Socket& socket, Connection& connection);
  bool MakeRoom();

  NetworkGate& gate_;
  const OnConnection on_connection_;
  std::map<ino_t, Socket> sockets_;
  std::vector<Waiting> waiting_;
  std::vector<abi::SeccompNotification> postponed_;  // calls of socket(), until the next look
  bool sweep_ = false;  // servers of a command that has ended are to be forgotten
  Clock::time_point look_again_{};
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_UNIX_SOCKETS_H_
