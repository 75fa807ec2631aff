#ifndef SANDBOX_RUN_BEGIN_LAUNCHER_LINK_H_
#define SANDBOX_RUN_BEGIN_LAUNCHER_LINK_H_

#include <linux/filter.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "core/child.h"

namespace sandbox_run {

// A set-uid program that confines what it starts. Nothing of a command is among its arguments and
// settings.
struct LauncherSpec {
  // In force if the path is there at the start of a command, whatever it is.
  struct Conditional {
    std::string path;
    std::string settings;
  };
  std::string program;                 // absolute
  std::vector<std::string> arguments;  // they name the file of settings, which is kSettingsFd
  std::string settings;                // lines that are the same for every command
  std::vector<Conditional> conditional;
  std::string slot_setting;         // to be followed by the directory of the slot
  std::string foreground_settings;  // if what a command leaves behind is to be ended
  std::string deadline_option;      // to be followed by the longest time, as hh:mm:ss
  std::string env;                  // NAME=VALUE, each ended by NUL
  // The command is refused if it could take over a process beside it, which would not have our
  // filter. Not so for a launcher without a namespace of processes, as in tests.
  bool alone = true;
  // It is refused as well if it could change what is in `/`. Not so in tests, like the above.
  bool checks_root = true;
  // These directories and files stay as they are while `/` is made read-only for the launcher;
  // none:
  // `/` is left to it.
  std::optional<std::vector<std::string>> kept_open;
};

// The connection to `sandbox-run-begin` (begin/handover.h), which the launcher starts and which
// starts the command: hands the command over and takes what is said of it.
class LauncherLink {
 public:
  // What is to be run; what it points to has to last until Make() returns.
  struct Command {
    const char* program = nullptr;
    char* const* argv = nullptr;
    char* const* envp = nullptr;
    const char* cwd = nullptr;
    const std::vector<ResourceLimit>& limits;
    const std::vector<sock_filter>& filter;
    int umask = -1;
    bool terminal = false;
    bool alone = true;  // see LauncherSpec
    bool checks_root = true;
    std::string settings;  // of the launcher
  };
  static Result<LauncherLink> Make(const Command& command);

  // For LauncherPlan::fds.
  void GiveTo(int (&fds)[kLauncherFds]) const;
  // The launcher has its copies.
  void ChildHasThem();

  // Readable if there is something to be taken; -1 when all has been said.
  int fd() const { return reports_.get(); }
  // Takes what was said so far.
  void Take();

  // The command's first process, as it is called here; -1 before it began.
  pid_t command() const { return command_; }
  struct End {
    int exit_code = 0;
    int signal = 0;
  };
  const std::optional<End>& end() const { return end_; }
  // Why there is no command.
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  UniqueFd handover_, program_, settings_, theirs_, reports_;
  uint64_t nonce_ = 0;
  pid_t command_ = -1;
  std::optional<End> end_;
  std::optional<Failure> failure_;
};

// The arguments of the launcher, the first its name and the last the program that it starts.
// `longest`: 0: a command may take as long as it likes.
std::vector<std::string> LauncherArguments(const LauncherSpec& spec,
                                           std::chrono::milliseconds longest);

// The settings for a command in the slot of this directory.
std::string LauncherSettings(const LauncherSpec& spec, const std::string& slot, bool background);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_BEGIN_LAUNCHER_LINK_H_
