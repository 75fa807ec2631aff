#ifndef SANDBOX_RUN_NOTIFY_NETWORK_FILTER_H_
#define SANDBOX_RUN_NOTIFY_NETWORK_FILTER_H_

#include <linux/filter.h>

#include <vector>

namespace sandbox_run {

// The beginning of a filter that asks about all that makes a socket of the network, or names where
// it is to lead; NetworkSupervisor answers. What it does not ask about goes on to what follows.
// Calls of foreign architectures, whose numbers mean other calls, are the command's own filter's.
std::vector<sock_filter> NetworkFilter();

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_NETWORK_FILTER_H_
