#ifndef SANDBOX_RUN_CORE_WARDEN_CHILD_H_
#define SANDBOX_RUN_CORE_WARDEN_CHILD_H_

#include <sys/types.h>

#include "core/child.h"

namespace sandbox_run {

// What a new warden reads until it executes its program; it shares this memory.
struct WardenPlan {
  int channel = -1;               // its only descriptor afterwards; at least 3
  int program = -1;               // the program to execute; -1: none, the code of the addon is used
  pid_t launcher = -1;            // this process
  ChildPlan* command = nullptr;   // tier "subreaper": the command to start; otherwise nullptr
  char* command_stack = nullptr;  // the upper end
};

// The warden's body for clone(CLONE_VM): leaves everything of the launcher behind, starts the
// command if there is one, and keeps watch (core/keep_watch.h).
int RunWarden(void* plan);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_WARDEN_CHILD_H_
