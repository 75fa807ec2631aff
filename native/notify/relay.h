#ifndef SANDBOX_RUN_NOTIFY_RELAY_H_
#define SANDBOX_RUN_NOTIFY_RELAY_H_

#include <pthread.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
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
#include "notify/passage.h"

namespace sandbox_run {

// Carries the connections of one command that are looked into, on a thread of its own, which is in
// no filter. It ends with the command.
class Relay {
 public:
  // May a connection to a port be for this host? To be answered by Answer, under the number. On the
  // relay's thread.
  using OnAsk = std::function<void(uint32_t, const std::string& host, uint16_t port)>;

  static Result<std::unique_ptr<Relay>> Start(OnAsk on_ask);
  // Nothing is left of its connections.
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Whether it carries fewer connections than it may.
  bool HasRoom() const;
  // How many descriptors are kept, at most.
  size_t descriptors() const;
  void Carry(BegunConnection begun);
  // From any thread. `rule`: the entry that decided; empty: none.
  void Answer(uint32_t question, bool allowed, std::string rule);

  // nullopt: the command's socket is not connected by this.
  std::optional<ConnectionNames> NamesOf(ino_t inode) const;

  // Why a command's socket was not connected; nullopt: it was not this that failed.
  std::optional<int> TakeFailure(ino_t inode);

  // The outcomes of connections since the last call.
  Connections Take();
  // The command has ended: forwards what it has sent, for a moment, and then closes everything.
  void Finish();

 private:
  using Clock = Passage::Clock;
  struct Verdict {
    uint32_t passage = 0;
    bool allowed = false;
    std::string rule;
  };

  explicit Relay(OnAsk on_ask) : on_ask_(std::move(on_ask)) {}

  static void* Main(void* self);
  void Work();
  void Wake();
  // What other threads handed in. False: that was all, and nothing more is to be done.
  bool TakeIn();
  void Begin(BegunConnection begun);
  void Advance(uint32_t number);
  void Drop(uint32_t number);
  void DropLate();
  // How long nothing needs to be done, in milliseconds; -1: until something happens.
  int TimeLeft() const;
  bool HasUndelivered() const;

  const OnAsk on_ask_;
  UniqueFd epoll_;
  UniqueFd wake_;
  pthread_t thread_ = {};
  bool started_ = false;

  // Used only by the relay's thread.
  std::map<uint32_t, Passage> passages_;
  std::vector<uint32_t> unfinished_;  // have more to do at once
  uint32_t last_number_ = 0;
  std::optional<Clock::time_point> end_;

  mutable std::mutex mutex_;  // guards what follows
  bool finishing_ = false;
  size_t carried_ = 0;
  std::vector<BegunConnection> begun_;
  std::vector<Verdict> verdicts_;
  std::map<ino_t, ConnectionNames> names_;
  std::map<ino_t, int> failures_;
  std::map<uint32_t, Connection> undecided_;
  Connections connections_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_RELAY_H_
