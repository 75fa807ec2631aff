#ifndef SANDBOX_RUN_NOTIFY_UDP_SOCKETS_H_
#define SANDBOX_RUN_NOTIFY_UDP_SOCKETS_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "notify/datagram_ports.h"
#include "notify/endpoint.h"
#include "notify/message_calls.h"
#include "notify/network_gate.h"
#include "notify/target.h"
#include "sys/kernel_abi.h"

namespace sandbox_run {

// The part of a NetworkSupervisor that answers for UDP sockets. A command never has one: it gets
// one end of a pair, on which the kernel takes no notice of where something is sent to. What
// arrives at the other end goes where the pair was connected to; calls that name another place are
// not let on, and what they send is read and sent here. Everything leaves by a socket of this
// process that is connected to one place, which was judged before. So a race about what a number or
// an address means changes at most which of the places that are allowed gets it.
class UdpSockets {
 public:
  using OnConnection = std::function<void(Connection, Target&)>;
  // Asks about a name (a DNS message), and says under which number it will be answered; 0: nobody
  // answers.
  using Ask = std::function<uint32_t(std::string)>;
  // Whether there is room for another descriptor.
  using HasRoom = std::function<bool()>;

  UdpSockets(NetworkGate& gate, OnConnection on_connection, Ask ask, HasRoom has_room)
      : gate_(gate),
        on_connection_(std::move(on_connection)),
        ask_(std::move(ask)),
        has_room_(std::move(has_room)) {}
  // What a call of socket() is answered with: the command's end, to be handed over, and then kept
  // by Keep. 0 or the errno.
  int Make(int family, int flags, UniqueFd& given);
  void Keep(UniqueFd given);

  // Answers a call that is about a socket that was made here; false: another one.
  bool Answer(int listener, const abi::SeccompNotification& call);
  // Answers bind(2). kIsTaken: another socket, perhaps closed by now, has the port, and the call
  // got no answer; with `is_last` it is refused instead.
  enum class Bound { kNotOurs, kAnswered, kIsTaken };
  Bound Bind(int listener, const abi::SeccompNotification& call, bool is_last);
  // Passes on the answer to a question. False: the question is not from one of these sockets.
  bool AnswerName(uint32_t question, const std::string& message);

  // Readable if there is something to do; -1: there is nothing yet.
  int events() const { return epoll_.get(); }
  void Advance(int listener);
  // How long nothing needs to be done, in milliseconds; -1: until something happens.
  int TimeLeft() const;

  // How many descriptors are kept here.
  size_t descriptors() const;
  // Drops what is kept of sockets that are not among these.
  void ForgetClosed(const std::set<ino_t>& open);
  // The command has ended.
  void End(int listener);

 private:
  using Clock = std::chrono::steady_clock;

  // What is sent to one place, and comes from there.
  struct Flow {
    UniqueFd socket;
    Endpoint to;
    uint32_t number = 0;
  };
  struct Socket {
    UniqueFd end;    // of the pair
    UniqueFd given;  // the command's end, while it may want to know where something comes from
    uint32_t number = 0;
    int family = 0;
    std::optional<SocketAddress> asked;  // where the command bound it
    std::optional<Endpoint> peer;        // what the command connected it to
    std::optional<SocketAddress> local;  // what it is told of itself
    pid_t process = 0;                   // that made or connected it
    std::shared_ptr<DatagramBox> box;    // of its port, if it has one
    uint16_t port = 0;
    std::deque<Flow> flows;  // the last one was used last
    // While it is not connected, what arrives is put into the pair one by one: `source` is where
    // that comes from which is there now.
    std::deque<Datagram> inbox;
    std::optional<Endpoint> source;
    uint32_t unanswered = 0;
  };
  struct Question {
    ino_t inode = 0;
    Endpoint server;
  };
  // A call that waits until something arrives.
  struct Waiting {
    abi::SeccompNotification call;
    ino_t inode = 0;
    std::optional<Clock::time_point> until;
  };
  struct Place {
    ino_t inode = 0;
    uint32_t flow = 0;
  };

  void Connect(int listener, const abi::SeccompNotification& call, Socket& socket);
  int ConnectTo(const SocketAddress& address, const Endpoint& wanted, Target& target,
                Socket& socket);
  void TellName(int listener, const abi::SeccompNotification& call, const Socket& socket);
  void TellPeer(int listener, const abi::SeccompNotification& call, const Socket& socket);
  void SendMessages(int listener, const abi::SeccompNotification& call, Socket& socket);
  void Receive(int listener, const abi::SeccompNotification& call, ino_t inode);
  // False: nothing is there, and the call may wait.
  bool TryReceive(int listener, const abi::SeccompNotification& call, Socket& socket);
  // For a socket whose other end is not here: writes the address before the kernel receives.
  void TellSource(int listener, const abi::SeccompNotification& call, const Socket& socket);

  // Takes what the command sent. False: it has closed its end.
  bool TakeSent(Socket& socket, ino_t inode);
  // Hands on what was written to a socket before nobody had it open any more: write() does not wait
  // for this thread, so a program may have ended by now.
  void HandOnRest(ino_t inode);
  // 0 or the errno; what is lost on the way has none.
  int Send(Socket& socket, ino_t inode, const Endpoint& to, std::string bytes, Target& target);
  int AskName(Socket& socket, ino_t inode, const Endpoint& server, std::string bytes);
  int SendOut(Flow& flow, const std::string& bytes);
  // Where UDP to there leads if that is allowed.
  std::optional<Endpoint> Judge(const Endpoint& to, Connection& connection, bool& is_exact) const;
  bool IsNameServer(const Endpoint& to) const;
  Flow* FindFlow(Socket& socket, const Endpoint& to);
  // nullptr and the errno: there is none.
  Flow* BeginFlow(Socket& socket, ino_t inode, const Endpoint& to, const Endpoint& real,
                  int& error);
  int GetPort(Socket& socket, uint16_t wanted);

  void TakeFrom(Socket& socket, uint32_t flow);
  void Arrive(Socket& socket, Datagram datagram);
  // Puts the next one into the pair, if the one before it was taken.
  void PutNext(Socket& socket);
  void ServeWaiting(int listener, ino_t inode);
  void TendWaiting(int listener);

  // For the first socket. 0 or the errno.
  int Start();
  Socket* Find(ino_t inode);
  uint32_t Watch(int fd, ino_t inode, bool is_flow);
  void Forget(ino_t inode);

  NetworkGate& gate_;
  const OnConnection on_connection_;
  const Ask ask_;
  const HasRoom has_room_;
  UniqueFd epoll_;
  std::shared_ptr<const UniqueFd> wake_;  // something arrived in a box
  std::optional<Socket> made_;            // until it is handed over
  std::map<ino_t, Socket> sockets_;
  std::map<uint32_t, Place> watched_;
  std::set<ino_t> unfinished_;  // have more to do at once
  std::map<uint32_t, Question> questions_;
  std::vector<Waiting> waiting_;
  uint32_t last_number_ = 0;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_UDP_SOCKETS_H_
