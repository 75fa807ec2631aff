#ifndef SANDBOX_RUN_NOTIFY_REFUSED_SOCKETS_H_
#define SANDBOX_RUN_NOTIFY_REFUSED_SOCKETS_H_

#include <linux/filter.h>

#include <vector>

#include "notify/call_observer.h"
#include "sys/kernel_abi.h"

namespace sandbox_run {

// Families of sockets that the command's own filter leaves to RefusedSockets.
struct SocketFamilies {
  bool inet = false;   // IPv4 and IPv6
  bool local = false;  // AF_UNIX
  bool any() const { return inet || local; }
};

// Refuses socket(2) for the given families and records the denial, which a filter alone could not
// do. The answer is always EACCES: no call is let through, so there is no race to win. If this
// process dies, the kernel refuses the call with ENOSYS.
class RefusedSockets {
 public:
  // The filter's part that asks about these sockets, without an end of its own.
  static std::vector<sock_filter> Filter(SocketFamilies families);
  // Refuses one of those calls, and has `calls` note it; false: it is another one.
  static bool Answer(int listener, const abi::SeccompNotification& call, CallObserver& calls);
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_REFUSED_SOCKETS_H_
