#ifndef SANDBOX_RUN_BEGIN_HANDOVER_H_
#define SANDBOX_RUN_BEGIN_HANDOVER_H_

#include <cstdint>

namespace sandbox_run {

// A set-uid launcher (Firejail) starts not the command but `sandbox-run-begin`, which takes what is
// to be run out of a memory file and starts it. So the launcher never sees the command's arguments
// and environment, neither bounds them nor takes them for its own, and it is known whether the
// command began and how it ended, whatever the launcher says.

// The descriptors that the launcher passes on, beside the standard ones.
inline constexpr int kHandoverFd = 3;      // the memory file
inline constexpr int kReportFd = 4;        // a SOCK_SEQPACKET socket, for BeginRecord
inline constexpr int kBeginProgramFd = 5;  // the program itself
// Read by the launcher itself: a file with its settings.
inline constexpr int kSettingsFd = 6;
inline constexpr int kAfterLauncherFds = 7;

// The beginning of the memory file. Everything else is an offset from there.
struct Handover {
  uint64_t size = 0;
  // Only the program knows it once the command runs: a record with another one is not from it.
  uint64_t nonce = 0;
  uint64_t program = 0;
  uint64_t cwd = 0;
  uint64_t argv = 0;    // of offsets, ended by 0
  uint64_t envp = 0;    // the same
  uint64_t limits = 0;  // of ResourceLimit
  uint64_t limit_count = 0;
  uint64_t filter = 0;  // of sock_filter
  uint64_t filter_length = 0;
  int32_t umask = -1;
  int32_t terminal = 0;      // standard input is the terminal of the session
  uint64_t alone = 1;        // there must be no process that the command could take over
  uint64_t checks_root = 1;  // nor may it be able to change what is in `/`
};

struct BeginRecord {
  enum Kind : uint32_t {
    kBegun = 1,  // sent by the process that becomes the command
    kFailed,     // there is no command
    kEnded,
  };
  uint64_t nonce = 0;
  uint32_t kind = 0;
  int32_t error = 0;    // kFailed
  int32_t code = 0;     // kEnded: as in siginfo_t
  int32_t status = 0;   // kEnded
  char stage[32] = {};  // kFailed
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_BEGIN_HANDOVER_H_
