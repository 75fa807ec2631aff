#ifndef SANDBOX_RUN_CORE_KEEP_WATCH_H_
#define SANDBOX_RUN_CORE_KEEP_WATCH_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>

// What a warden does: a process of its own that outlives the launcher, however that ends, and then
// ends what the launcher's command started. The code is in the program `sandbox-run-warden`, and in
// the addon for hosts where that program cannot be executed; so it makes raw system calls only,
// allocates nothing and knows no libc. It may run beneath the filter of a listener: what that asks
// about it makes as OwnCall, as nobody answers once the launcher has died.
//
// Tier "signal-scope": one warden for each thread that runs commands, in the scope around that of
// the thread (tree_kill.h). It sleeps until the launcher is gone, and then signals everything
// within its scope at once.
// Tier "subreaper": one warden for each command, which is its parent. Orphans come to it, so that
// it finds every descendant, and without one it knows that no process is left.

namespace sandbox_run {

// What the warden of a command says to the launcher, one message each (SOCK_SEQPACKET).
struct WardenMessage {
  enum Kind : int32_t {
    kStarted,  // pid: the command
    kExited,   // code and status as in siginfo_t, usage; the process stays until it is released
    kEnded,    // no process is left
    kLeft,     // it could not end all of them in time
  };
  int32_t kind = kStarted;
  int32_t pid = 0;
  int32_t code = 0;
  int32_t status = 0;
  rusage usage = {};
};

// What the launcher says to the warden of a command.
struct WardenRequest {
  enum Kind : int32_t {
    kRelease,  // the exit was taken notice of, and the command's number may be given back
    kSignal,   // sends `number` to every descendant
    kEnd,      // ends every descendant, then itself; so does the end of the connection
  };
  int32_t kind = kRelease;
  int32_t number = 0;
};

// Tier "signal-scope": returns once the launcher has ended or anything came through `channel`, and
// what was in the scope was ended. `launcher`: the number of the parent that it was started by.
int KeepScope(int channel, pid_t launcher);

// Tier "subreaper": returns once the command's tree was ended, or, if `until_released`, once the
// command was released and its tree was not. `channel`: to the launcher. `command`: 0 if it has
// been released before.
enum class TreeEnd { kEnded, kReleased };
TreeEnd KeepTree(int channel, pid_t launcher, pid_t command, bool until_released);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_KEEP_WATCH_H_
