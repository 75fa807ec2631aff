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

// Where the relay connects to for a published port.
struct PublicationTarget {
  std::vector<Address> addresses;  // those of the sandbox's loopback interface
  // The addresses are in the host's network namespace, even if the machine has its own.
  bool is_outside = false;
};

// What to publish: a port of this host, or a Unix socket, that leads to a port of a sandbox.
struct PublicationWish {
  // The addresses to listen at; empty: 127.0.0.1 and, where there is IPv6, ::1.
  std::vector<Address> addresses;
  uint16_t port = 0;     // 0: any free port
  bool or_free = false;  // if the port is taken, use the next free one
  uint16_t inner = 0;    // the port of the server in the sandbox
  // The canonical path of a Unix socket, instead of addresses and a port; empty: no Unix socket.
  std::string socket;
  bool operator==(const PublicationWish&) const = default;
};

// A published port as one caller of Publications::Hold() has it.
struct HeldPublication {
  uint32_t id = 0;  // for Publications::Release()
  uint16_t port = 0;
  std::vector<Address> addresses;
};

// A Unix socket at a path; the destructor removes the path if it still leads to this socket.
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

// Stage of a failure: listening failed, for example because the port or path is taken (EADDRINUSE)
// or this host does not have the address.
inline constexpr char kPublishBind[] = "publish.bind";
// Stage of a failure: the relay did not start.
inline constexpr char kPublishRelay[] = "publish.relay";

// The ports that this process publishes for its sandboxes, each with its own relay process
// (relay_main.cc). Sandboxes that share a machine and want the same port share the relay.
// Thread-safe. A relay ends with the thread that held its port first, because to the kernel
// (PR_SET_PDEATHSIG) that thread is the parent.
class Publications {
 public:
  static Publications& OfProcess();

  // Publishes a port for a command on `machine`, whose server is at `target`. The port listens when
  // this returns, until the last hold on it is released.
  Result<HeldPublication> Hold(const std::shared_ptr<Machine>& machine, const PublicationWish& wish,
                               PublicationTarget target);
  // Gives a hold back. If it was the last one, the port is free when this returns. Returns false if
  // the relay had ended before.
  bool Release(uint32_t id);

  // The first of the 1,000 ports from `from` on that is free at all of the addresses; 0: none is.
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

  std::mutex mutex_;  // guards the members below
  uint32_t last_id_ = 0;
  std::list<Publication> all_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PUBLISH_PUBLICATIONS_H_
