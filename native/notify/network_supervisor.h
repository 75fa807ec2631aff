#ifndef SANDBOX_RUN_NOTIFY_NETWORK_SUPERVISOR_H_
#define SANDBOX_RUN_NOTIFY_NETWORK_SUPERVISOR_H_

#include <pthread.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "notify/endpoint.h"
#include "notify/network_gate.h"
#include "notify/target.h"
#include "notify/unix_sockets.h"
#include "sys/kernel_abi.h"

namespace sandbox_run {

// Answers the calls of NetworkFilter for the commands of one thread, on a thread of its own, which
// is in no filter. Every TCP socket of a command is made here and handed in; what it is connected,
// bound and listening to is done here, on the copy that is kept until then. So no call that names
// where something leads ever goes on in the kernel, where another thread of the command could have
// changed what it names, or which socket it is about. In place of a UDP socket a command gets one
// end of a pair: whatever it sends there is a question about a name, wherever it is sent to.
class NetworkSupervisor {
 public:
  // Gets a question (a DNS message) with the number under which to answer it. On the supervisor's
  // thread.
  using OnQuery = std::function<void(uint32_t, std::string)>;
  // Answers what is not of the network.
  using AnswerOther = std::function<void(int listener, const abi::SeccompNotification&)>;

  // Starts the thread. To be called before the calling thread gets the filter.
  static Result<std::unique_ptr<NetworkSupervisor>> Start(std::shared_ptr<NetworkGate> gate);
  ~NetworkSupervisor();
  NetworkSupervisor(const NetworkSupervisor&) = delete;
  NetworkSupervisor& operator=(const NetworkSupervisor&) = delete;

  // Begins to answer.
  void Serve(UniqueFd listener, AnswerOther answer_other);

  // A command begins.
  void Begin(OnQuery on_query);
  // What was connected to since the last call.
  Connections Take();
  // It has ended: nothing is left of its sockets.
  void End();

  // The answer to a question, from any thread; empty: there is none. Each question gets one. One
  // that nobody waits for any more is dropped.
  void Answer(uint32_t query, const std::string& message);

 private:
  using Clock = std::chrono::steady_clock;

  // A socket of a command, by its inode.
  struct Socket {
    UniqueFd copy;  // until it is connected or listens: a copy would keep the connection open
    int family = 0;
    std::optional<SocketAddress> asked;  // where the command bound it
    uint16_t port = 0;                   // that it got
    bool listens = false;
    bool connected = false;
  };
  // In place of a UDP socket.
  struct StandIn {
    UniqueFd end;
    uint32_t number = 0;
    int family = 0;
    std::optional<SocketAddress> asked;
    std::optional<Endpoint> peer;
    pid_t process = 0;  // that connected it
    uint32_t unanswered = 0;
    std::optional<SocketAddress> local;
  };
  // A connection that the command waits for.
  struct Waiting {
    ino_t inode = 0;
    uint64_t call = 0;
    std::optional<Clock::time_point> until;
  };

  explicit NetworkSupervisor(std::shared_ptr<NetworkGate> gate)
      : gate_(std::move(gate)), unix_(*gate_, [this](Connection connection, Target& target) {
          Record(std::move(connection), target);
        }) {}

  static void* Main(void* self);
  void Work();
  void Wake();
  void HandleCalls();
  void HandleCall(const abi::SeccompNotification& call);

  void MakeSocket(const abi::SeccompNotification& call);
  void MakeStandIn(const abi::SeccompNotification& call, int family, bool close_on_exec, int flags);
  void Connect(const abi::SeccompNotification& call);
  void ConnectSocket(const abi::SeccompNotification& call, Target& target, ino_t inode,
                     Socket& socket);
  // Puts a fresh socket in the place of one that is bound, and connects that.
  void ConnectAnother(const abi::SeccompNotification& call, Target& target, ino_t inode,
                      const Endpoint& real, Connection connection);
  // Records what came of connecting, and answers, at once or when it is decided.
  void FinishConnecting(const abi::SeccompNotification& call, Target& target, ino_t inode,
                        Socket& socket, int error, Connection connection);
  void ConnectStandIn(const abi::SeccompNotification& call, Target& target, StandIn& stand_in);
  void Bind(const abi::SeccompNotification& call);
  int BindSocket(Socket& socket, const SocketAddress& wanted);
  void Listen(const abi::SeccompNotification& call);
  void TellName(const abi::SeccompNotification& call);
  void SetOption(const abi::SeccompNotification& call);
  void ReceiveMessage(const abi::SeccompNotification& call);

  // Where a connection leads: nothing if it is refused, and then `error` says how.
  std::optional<Endpoint> Judge(const Endpoint& wanted, Connection& connection, int& error);
  void Record(Connection connection, Target& target);
  void FinishWaiting(const Waiting& waiting, bool timed_out);
  // False: the command has no use for it any more.
  bool TakeQueries(StandIn& stand_in);
  Socket* FindSocket(ino_t inode);
  StandIn* FindStandIn(ino_t inode);
  // Makes room for a copy; false: the command has as many sockets as it may have.
  bool MakeRoom();

  const std::shared_ptr<NetworkGate> gate_;
  UniqueFd wake_;
  pthread_t thread_ = {};
  bool started_ = false;

  std::mutex mutex_;  // guards what follows
  bool stop_ = false;
  UniqueFd listener_;
  AnswerOther answer_other_;
  OnQuery on_query_;
  std::map<ino_t, Socket> sockets_;
  std::deque<ino_t> order_;  // of sockets_, the oldest first
  std::map<ino_t, StandIn> stand_ins_;
  std::vector<Waiting> waiting_;
  uint32_t last_number_ = 0;
  Clock::time_point look_again_{};
  Connections connections_;
  UnixSockets unix_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_NETWORK_SUPERVISOR_H_
