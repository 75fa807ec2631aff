#ifndef SANDBOX_RUN_CORE_LISTEN_H_
#define SANDBOX_RUN_CORE_LISTEN_H_

#include <linux/filter.h>

#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace sandbox_run {

// Stage of a failure: the kernel, or a filter that this process inherited, refuses a listener.
inline constexpr char kListenerStage[] = "exit_tracing";

// Installs a filter on this thread, which everything that it starts inherits, and returns the
// descriptor on which its questions arrive. Without capabilities the thread takes no_new_privs,
// which everything that is started here takes anyway. There is no way back.
Result<UniqueFd> Listen(const std::vector<sock_filter>& program);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_LISTEN_H_
