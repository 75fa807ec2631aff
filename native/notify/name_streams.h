#ifndef SANDBOX_RUN_NOTIFY_NAME_STREAMS_H_
#define SANDBOX_RUN_NOTIFY_NAME_STREAMS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "notify/endpoint.h"

namespace sandbox_run {

// The part of a NetworkSupervisor that is every name server to which a command connects by TCP
// (RFC 7766). Such a socket leads to this process, and its questions are answered as those by UDP.
class NameStreams {
 public:
  // Asks about a name (a DNS message), and says under which number it will be answered; 0: nobody
  // answers.
  using Ask = std::function<uint32_t(std::string)>;

  explicit NameStreams(Ask ask) : ask_(std::move(ask)) {}

  // Connects a command's socket that is to lead to `server`. 0 or the errno.
  int Connect(int socket, int family, const Endpoint& server);
  // Where a command's socket seems to lead; nullopt: it is none of these.
  std::optional<SocketAddress> PeerOf(ino_t inode) const;
  // An answer to a question. False: it is none of these.
  bool AnswerName(uint32_t question, const std::string& message);

  // Readable if there is something to do; -1: there is nothing yet.
  int events() const { return epoll_.get(); }
  bool has_more() const { return !unfinished_.empty(); }
  void Advance();
  size_t descriptors() const { return streams_.size(); }
  // The command has ended.
  void End();

 private:
  struct Stream {
    UniqueFd end;
    ino_t inode = 0;  // of the command's socket
    SocketAddress server;
    std::string in, out;
    uint32_t unanswered = 0;
    bool has_ended = false;  // no more questions
  };

  // False: it is over.
  bool Take(uint32_t number, Stream& stream);
  static bool Flush(Stream& stream);
  void Drop(uint32_t number);

  const Ask ask_;
  UniqueFd epoll_;
  std::map<uint32_t, Stream> streams_;
  std::map<uint32_t, uint32_t> questions_;  // whose they are
  std::set<uint32_t> unfinished_;           // have more to do at once
  uint32_t last_number_ = 0;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_NAME_STREAMS_H_
