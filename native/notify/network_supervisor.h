#ifndef SANDBOX_RUN_NOTIFY_NETWORK_SUPERVISOR_H_
#define SANDBOX_RUN_NOTIFY_NETWORK_SUPERVISOR_H_

#include <poll.h>
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
#include "core/kept_descriptors.h"
#include "notify/endpoint.h"
#include "notify/held_connection.h"
#include "notify/name_streams.h"
#include "notify/network_gate.h"
#include "notify/relay.h"
#include "notify/target.h"
#include "notify/udp_sockets.h"
#include "notify/unix_sockets.h"
#include "sys/kernel_abi.h"

namespace sandbox_run {

// Answers the calls of NetworkFilter for the commands of one thread, on a thread of its own, which
// is in no filter. Every TCP socket of a command is made here and handed in; what it is connected,
// bound and listening to is done here, on the copy that is kept until then. So no call that names
// where something leads ever goes on in the kernel, where another thread of the command could have
// changed what it names, or which socket it is about. Of UDP see UdpSockets.
class NetworkSupervisor {
 public:
  // Gets a question (a DNS message) with the number under which to answer it. On the supervisor's
  // thread.
  using OnQuery = std::function<void(uint32_t, std::string)>;
  // Gets a connection of which no rule speaks, with the number under which to answer it. The same.
  using OnAsked = std::function<void(uint32_t, Connection)>;
  // Answers what is not of the network; false: it is for somebody else.
  using AnswerOther = std::function<bool(int listener, const abi::SeccompNotification&)>;

  // Starts the thread. To be called before the calling thread gets the filter.
  static Result<std::unique_ptr<NetworkSupervisor>> Start(std::shared_ptr<NetworkGate> gate);
  ~NetworkSupervisor();
  NetworkSupervisor(const NetworkSupervisor&) = delete;
  NetworkSupervisor& operator=(const NetworkSupervisor&) = delete;

  // Begins to answer. `answer_other`: it is asked first, and takes the time that it needs.
  void Serve(UniqueFd listener, AnswerOther answer_other);

  // A command begins.
  void Begin(OnQuery on_query, OnAsked on_asked, Relay::OnAsk on_host);
  // What was connected to since the last call.
  Connections Take();
  // It has ended: nothing is left of its sockets. What is asked meanwhile still has to be answered.
  void End();

  // The answer to a question, from any thread; empty: there is none. Each question gets one. One
  // that nobody waits for any more is dropped.
  void Answer(uint32_t query, const std::string& message);
  // Answers a question about a connection, like Answer(): the address to connect to, or nullopt and
  // the errno of the refusal (0: the usual one). `inside`: the protocol that it must speak.
  void AnswerConnection(uint32_t number, const std::optional<Address>& address, int error,
                        Inside inside);
  // Answers a question about a host, like Answer().
  void AnswerHost(uint32_t question, bool allowed, std::string rule);

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
    bool was_interrupted = false;  // a signal ended the call that was to connect it
  };
  // A connection that the command waits for.
  struct Waiting {
    ino_t inode = 0;
    uint64_t call = 0;
    std::optional<Clock::time_point> until;
    pid_t thread = 0;
  };

  // A connection that somebody is asked about. The call of a socket that waits for connections
  // waits for the answer, too. One that does not wait, or whose call a signal ends, is held on its
  // way, as it would be to a host that takes its time; it cannot be sent elsewhere then without
  // looking for a moment as if it had failed, and so is carried if it may be. All other calls go
  // on.
  struct Asked {
    uint32_t number = 0;
    ino_t inode = 0;
    abi::SeccompNotification call;
    bool has_call = true;  // false: it is over, and the connection not
    std::optional<HeldConnection> held;
    Connection connection;
    int usual_error = 0;
  };

  explicit NetworkSupervisor(std::shared_ptr<NetworkGate> gate);

  static void* Main(void* self);
  void Work();
  void Wake();
  void HandleCall(const abi::SeccompNotification& call);

  void MakeSocket(const abi::SeccompNotification& call);
  void MakeUdpSocket(const abi::SeccompNotification& call, int family, int flags);
  void Connect(const abi::SeccompNotification& call);
  void ConnectSocket(const abi::SeccompNotification& call, Target& target, ino_t inode,
                     Socket& socket);
  // Puts a fresh socket in the place of one that is bound, and connects that.
  void ConnectAnother(const abi::SeccompNotification& call, Target& target, ino_t inode,
                      const Endpoint& real, Connection connection);
  // Begins a connection that is looked into. EINPROGRESS, or why it was not begun.
  int ConnectInside(Target& target, ino_t inode, Socket& command, const Endpoint& real,
                    Inside inside, const Connection& connection);
  // Begins the side of a connection that is carried which leads to the host. 0 or the errno.
  int BeginOutside(Target& target, ino_t inode, const Socket& command, const Endpoint& real,
                   Inside inside, const Connection& connection, BegunConnection& begun);
  // Records what came of connecting, if it `is_told`, and answers, at once or when it is decided.
  void FinishConnecting(const abi::SeccompNotification& call, Target& target, ino_t inode,
                        Socket& socket, int error, Connection connection, bool is_told = true);
  // `has_looked`: what the command has closed is dropped by now.
  void Bind(const abi::SeccompNotification& call, bool has_looked);
  void BindOnceLooked(const abi::SeccompNotification& call);
  int BindSocket(Socket& socket, const SocketAddress& wanted);
  void Listen(const abi::SeccompNotification& call);
  void TellName(const abi::SeccompNotification& call);
  void TellPeer(const abi::SeccompNotification& call);

  // Where a connection leads, and what it has to be: nothing if it is refused, and then `error`
  // says how.
  std::optional<Endpoint> Judge(const Endpoint& wanted, Connection& connection, int& error,
                                Inside& inside);
  // Whether a connection is one to a name server, and so answered here.
  bool IsNameServer(const Endpoint& wanted) const;
  // Whether somebody is asked what `Judge` has not allowed.
  bool IsToBeAsked(const Connection& connection) const;
  void Ask(const abi::SeccompNotification& call, Target& target, ino_t inode, Connection connection,
           int usual_error);
  // True: a call is about a connection that somebody is asked about, and was seen to.
  bool IsAsked(const abi::SeccompNotification& call, ino_t inode, const Endpoint& wanted);
  // Has the connection look as if it were on its way. False: not this one.
  bool Hold(Asked& asked, Socket& socket);
  // The command does not want it any more.
  void GiveUpHeld(ino_t inode);
  // Ends calls that a signal came for.
  void TendAsked();
  void TendWaiting();
  // Records a connection whose call ended before there was an answer.
  void RecordUnanswered(Connection connection);
  void FinishAsked(Asked asked, const std::optional<Address>& address, int error, Inside inside);
  // Finishes a held connection: carries it, or reports the failure to its program.
  void FinishHeld(Asked asked, Socket& socket, const std::optional<Address>& address, int error,
                  Inside inside);
  void Record(Connection connection, Target& target);
  void FinishWaiting(const Waiting& waiting, bool timed_out);
  Socket* FindSocket(ino_t inode);
  // For a copy of another socket.
  bool HasRoom();
  // Asks about a name. The number under which to answer; 0: nobody answers.
  uint32_t AskName(std::string message);
  // Looks again at calls that wait for what is closed by now.
  void TakePostponed();
  // Descriptors on which something is waited for, and how long at most. Each watched connection has
  // its place behind kWatchedFirst.
  int Watch(std::vector<pollfd>& watched);
  void FinishReady(const std::vector<pollfd>& watched);
  // How many descriptors are kept for the command, at most.
  size_t CountKept() const;
  // Forgets sockets that the command has closed, as far as that is known.
  void ForgetClosed();

  const std::shared_ptr<NetworkGate> gate_;
  const size_t most_copies_;
  KeptDescriptors kept_;
  UniqueFd wake_;
  pthread_t thread_ = {};
  bool started_ = false;

  std::mutex mutex_;  // guards what follows
  bool stop_ = false;
  bool has_served_ = false;  // a call of the network, since the last End()
  UniqueFd listener_;
  AnswerOther answer_other_;
  OnQuery on_query_;
  Relay::OnAsk on_host_;
  std::shared_ptr<Relay> relay_;  // from the first connection on that is looked into
  std::map<ino_t, Socket> sockets_;
  std::deque<ino_t> order_;    // of sockets_, the oldest first
  size_t most_with_copy_ = 0;  // of sockets_: so many at most have one
  std::vector<Waiting> waiting_;
  OnAsked on_asked_;
  std::vector<Asked> asked_;
  uint32_t last_number_ = 0;
  Clock::time_point look_again_{};
  Clock::time_point tend_again_{};
  std::vector<abi::SeccompNotification> postponed_;  // of socket() and bind(), until then
  Connections connections_;
  UnixSockets unix_;
  UdpSockets udp_;
  NameStreams names_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_NETWORK_SUPERVISOR_H_
