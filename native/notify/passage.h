#ifndef SANDBOX_RUN_NOTIFY_PASSAGE_H_
#define SANDBOX_RUN_NOTIFY_PASSAGE_H_

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "notify/endpoint.h"
#include "notify/flow.h"
#include "notify/held_connection.h"
#include "notify/network_gate.h"
#include "notify/request_reader.h"

namespace sandbox_run {

// The addresses of both ends of its connection that a command's socket sees.
struct ConnectionNames {
  SocketAddress peer;
  SocketAddress local;
};

// A connection that was begun on both sides.
struct BegunConnection {
  HeldConnection command;
  UniqueFd host;  // on its way to where the command wants to connect, or there
  Inside inside = Inside::kAnything;
  ino_t inode = 0;  // of the command's socket
  ConnectionNames names;
  Connection connection;
};

// Carries one connection, once what the command sends first names a host that is listed. Until then
// not a byte passes, either way. Never waits.
class Passage {
 public:
  using Clock = std::chrono::steady_clock;
  // May it be for this host? To be answered by Judge.
  using OnAsk = std::function<void(const std::string& host)>;
  // Called with the outcome of the connection: once, or once for each host that it asks for.
  using OnDecided = std::function<void(const Connection&)>;

  Passage(BegunConnection begun, OnAsk on_ask, OnDecided on_decided);

  enum class State { kWaits, kHasMore, kIsOver };
  // Goes on as far as it can.
  State Advance();
  // False: it is over.
  bool Judge(bool allowed, std::string rule);

  // The two sockets to watch for events.
  int host() const { return begun_.host.get(); }
  int command() const { return command_.valid() ? command_.get() : begun_.command.end(); }
  bool is_connected() const { return stage_ > Stage::kCompleting; }
  // Bytes that the command sent may still have to be forwarded. A hello alone need not be.
  bool has_undelivered() const {
    const bool is_known = begun_.inside == Inside::kHttp || stage_ >= Stage::kSecondHello;
    return is_connected() && is_known && !is_up_over_;
  }
  // When it is given up if nothing comes; nullopt: it may be quiet for as long as it likes.
  std::optional<Clock::time_point> until() const { return until_; }
  const Connection& connection() const { return begun_.connection; }
  const ConnectionNames& names() const { return begun_.names; }
  ino_t inode() const { return begun_.inode; }

 private:
  enum class Stage {
    kConnecting,    // to the host
    kCompleting,    // the command is told
    kLooking,       // whom it is for
    kAsking,        // whether it may be
    kServerStarts,  // of TLS: may there be another hello?
    kSecondHello,
    kFree,
  };
  enum class Looked { kMayPass, kNeedsMore, kIsOver };

  bool Connect();
  State Carry();
  // From the command to the host, in this process, as long as it is looked at. False: it is over.
  bool CarryUp();
  bool CarryDown();
  Looked Look();
  Looked LookAtHello();
  Looked LookAtRequest();
  Looked LookAtServer();
  Looked LookAtSecondHello();
  Looked Ask(const std::string& host);
  bool Refuse(const char* flaw);
  void Decide(bool allowed, int error);
  // Both sides notice.
  void Break();
  void Wait(std::chrono::seconds patience) { until_ = Clock::now() + patience; }

  BegunConnection begun_;
  const OnAsk on_ask_;
  const OnDecided on_decided_;
  RequestReader requests_;
  UniqueFd command_;
  Stage stage_ = Stage::kConnecting;
  std::string bytes_;      // from the command
  size_t passable_ = 0;    // so many of them
  std::string host_;       // that it is for
  std::string asked_;      // and that it may be for, if it may be reached;
  size_t asked_size_ = 0;  // then so many bytes may pass
  bool is_passing_ = false;
  bool has_ended_ = false;  // the command sends nothing more
  bool is_up_over_ = false;
  bool has_more_ = false;
  Flow up_, down_;
  std::optional<Clock::time_point> until_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_PASSAGE_H_
