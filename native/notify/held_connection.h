#ifndef SANDBOX_RUN_NOTIFY_HELD_CONNECTION_H_
#define SANDBOX_RUN_NOTIFY_HELD_CONNECTION_H_

#include <utility>

#include "base/unique_fd.h"
#include "notify/endpoint.h"

namespace sandbox_run {

// A connection of a command's TCP socket to this process, held in the middle of being made until it
// is known whether what the command really wants to reach answers. To the command it looks like any
// connection on its way: it may wait, poll, or give up.
//
// A listening socket on the loopback interface whose queue is full ignores what the command's
// socket sends to begin with. Then another one at the same address connects to the command's socket
// in turn, and both are connected at once (simultaneous open, RFC 9293, 3.5). Nobody else can get
// in: nothing is ever accepted.
class HeldConnection {
 public:
  // For `socket` of `family`, which is to connect to `to` afterwards, and then is on its way. 0 or
  // the errno.
  int Prepare(int socket, int family, SocketAddress& to);
  // Begins to end the waiting. 0 or the errno. It is over when `end` can be written.
  int Complete();
  // Then: whether the two are connected to each other.
  bool IsComplete() const;
  // Or it fails: the command's socket gets an error, and never seems to be connected.
  void Fail();

  // Where the command's data arrives.
  int end() const { return end_.get(); }
  UniqueFd TakeEnd() { return std::move(end_); }

 private:
  UniqueFd swallower_;
  UniqueFd end_;
  UniqueFd socket_;  // the command's: it keeps its address for as long as this is here
  int family_ = 0;
  int end_family_ = 0;
  Endpoint own_;  // where it connects to
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_HELD_CONNECTION_H_
