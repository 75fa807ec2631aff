#ifndef SANDBOX_RUN_PUBLISH_PUBLICATIONS_H_
#define SANDBOX_RUN_PUBLISH_PUBLICATIONS_H_

#include <sys/types.h>

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "core/machine.h"
#include "notify/endpoint.h"

namespace sandbox_run {

// Where the server of a published port is.
struct PublicationTarget {
  std::vector<Address> addresses;  // those of the sandbox's loopback interface
  bool is_outside = false;         // they are the host's, whatever namespace the machine has
};

// A port of this machine that leads to one of a sandbox.
struct PublicationWish {
  // Where it listens; empty: at 127.0.0.1 and, where there is IPv6, at ::1.
  std::vector<Address> addresses;
  uint16_t port = 0;     // 0: any that is free
  bool or_free = false;  // if it is taken, the next one that is free
  uint16_t inner = 0;    // where the server listens in the sandbox
  // The canonical path of a Unix socket, in place of addresses and a port; empty: there is none.
  std::string socket;
  bool operator==(const PublicationWish&) const = default;
};

struct HeldPublication {
  uint32_t id = 0;  // of this hold
  uint16_t port = 0;
  std::vector<Address> addresses;
};

// A Unix socket that is made at a path, and goes with this.
struct MadeSocket {
  UniqueFd directory;
  std::string name;
  ino_t inode = 0;

  MadeSocket() = default;
  MadeSocket(MadeSocket&&) = default;
  MadeSocket& operator=(MadeSocket&&) = default;
  ~MadeSocket();
};

// ::1
inline constexpr Address kLoopbackV6 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

// Stage of a failure: the port or the path is taken (EADDRINUSE), or there is no such address.
inline constexpr char kPublishBind[] = "publish.bind";
// Stage of a failure: the relay did not start.
inline constexpr char kPublishRelay[] = "publish.relay";

// The ports that the sandboxes of this process have outside, each with a relay of its own
// (relay_main.cc). Those who share a machine and want the same port share it. Thread-safe; a relay
// ends with the thread that held its port first, as the kernel sees a parent's death so
// (PR_SET_PDEATHSIG).
class Publications {
 public:
  static Publications& OfProcess();

  // Listens before it returns, until the last hold is released. `machine`: of the command.
  // `target`: of the command.
  Result<HeldPublication> Hold(const std::shared_ptr<Machine>& machine, const PublicationWish& wish,
                               PublicationTarget target);
  // The port is free when it returns, if this was the last hold. False: the relay had ended before.
  bool Release(uint32_t id);

  // The first port from `from` on that is free at all of the addresses; 0: none was found.
  static uint16_t FreePort(const std::vector<Address>& addresses, uint32_t from);

 private:
  struct Share {
    uint32_t id;
    PublicationTarget target;
  };
  struct Publication {
    std::shared_ptr<Machine> machine;
    PublicationWish wish;
    HeldPublication held;
    MadeSocket socket;
    std::vector<Share> holds;
    UniqueFd channel, pidfd;
    pid_t pid = -1;
  };

  static Status Start(Publication& publication, std::vector<UniqueFd> listeners);
  static bool TellTargets(const Publication& publication);
  static bool End(Publication& publication);

  std::mutex mutex_;  // guards what follows
  uint32_t last_id_ = 0;
  std::list<Publication> all_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PUBLISH_PUBLICATIONS_H_
