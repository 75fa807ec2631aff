#ifndef SANDBOX_RUN_NOTIFY_OWN_PROCESSES_H_
#define SANDBOX_RUN_NOTIFY_OWN_PROCESSES_H_

#include <linux/filter.h>

#include <vector>

#include "sys/kernel_abi.h"

namespace sandbox_run {

// Lets a command change scheduling, priorities and limits of its own threads and processes by their
// numbers, and of no other one.
//
// A filter cannot tell whose number it sees, and a number may be another process's by the time of
// the call. So the call goes on only if it names the thread that makes it, or its process: these
// keep their numbers for as long as the call waits. For any other thread or process of the command
// the call is made here, while a tracer keeps that one from being reaped.
class OwnProcesses {
 public:
  // The filter's part that asks about these calls, without an end of its own. Process groups and
  // users are the command's own filter's.
  static std::vector<sock_filter> Filter();
  // Answers one of those calls; false: it is another one. `scopes_signals`: the calling thread can
  // signal processes of the command, and none outside of it but those of this process.
  static bool Answer(int listener, const abi::SeccompNotification& call, bool scopes_signals);
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_OWN_PROCESSES_H_
