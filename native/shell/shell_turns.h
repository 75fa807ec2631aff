#ifndef SANDBOX_RUN_SHELL_SHELL_TURNS_H_
#define SANDBOX_RUN_SHELL_SHELL_TURNS_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "core/effects.h"
#include "core/standard_streams.h"
#include "core/watch.h"

namespace sandbox_run {

// One text for a shell that goes on living afterwards.
struct TurnSpec {
  uint32_t id = 0;
  std::string text;                      // without NUL
  std::string assignments;               // in force while it runs, as the shell reads them
  std::chrono::milliseconds timeout{0};  // 0: none
  bool stream_output = false;
};

// How a turn ended. A turn whose shell has ended has none: the end of the command is its end.
struct TurnEnd {
  uint32_t id = 0;
  int status = 0;  // of the text, as the shell says
  bool timed_out = false;
  bool interrupted = false;
  bool broken = false;  // the shell wrote what is no report: it is being ended
  double duration_ms = 0;
  Effects effects;           // since the last turn
  std::string state;         // what the shell says of itself, NUL between the fields
  CapturedStream output[2];  // stdout, stderr
};

// The turns of a long-lived bash: its standard input is a socket through which it gets its lines
// (shell_driver.h) and gives its reports. A socket, because a program of the shell could open a
// pipe of the shell's through /proc and write reports or read lines there.
//
// The shell is not trusted: a report counts only with the nonce of its turn, which programs cannot
// learn before the turn has ended unless they read the shell's memory, everything else is passed
// over, and nothing is kept beyond a limit. What code in the shell itself reports is its own word.
class ShellTurns {
 public:
  // `grace`: between the steps by which a turn that hangs is ended.
  explicit ShellTurns(std::chrono::milliseconds grace) : grace_(grace) {}

  // From any thread; the command's thread has to be woken.
  void Begin(TurnSpec spec);
  void Interrupt(uint32_t id);

  // On the command's thread, in this order.
  Result<int> Open();         // the shell's end, valid until Started()
  void Started(pid_t shell);  // -1: it is not known yet; to be called again

  void AddTo(Watch& watch);
  struct Step {
    std::optional<TurnEnd> end;
    bool begun = false;    // a turn: its output is wanted from now on
    bool streams = false;  // that turn's output is to be streamed
    bool give_up = false;  // the shell is to be ended
    // Why the turn ends that the end of the shell would end now.
    bool timed_out = false;
    bool interrupted = false;
  };
  // `tree`: everything that the shell started and is alive, itself included.
  using Tree = std::function<std::vector<pid_t>()>;
  Step Handle(const Watch& watch, const Tree& tree);

 private:
  enum class Stage {
    kRunning,
    kInterrupted,  // was asked to stop
    kKilled,       // its programs are killed, the shell is still to report
  };
  struct Turn {
    TurnSpec spec;
    std::string nonce;
    Clock::time_point begun;
    uint64_t begun_ticks = 0;
    std::optional<Clock::time_point> next;  // when something has to be done about it
    Clock::time_point last_chance;          // kKilled: when the shell is given up
    Stage stage = Stage::kRunning;
    bool is_read = false;  // by the shell, which runs it from now on
    bool to_ask = false;   // to stop, once it is read
    bool timed_out = false;
    bool interrupted = false;
  };

  bool BeginNext();
  void Receive();
  // The shell has closed its end: it has a moment left to end by itself.
  void CloseChannel();
  bool Send();
  size_t Unsearched(std::string_view mark) const;
  void NoteWhetherRead();
  std::optional<TurnEnd> TakeReport();
  // False: nothing is left to be tried.
  bool Escalate(Clock::time_point now, const Tree& tree);
  void Ask(const Tree& tree);
  void KillPrograms(const Tree& tree);
  // What the turn has started.
  std::vector<pid_t> Programs(const Tree& tree) const;
  TurnEnd EndOf(const Turn& turn) const;

  const std::chrono::milliseconds grace_;
  UniqueFd mine_, theirs_;
  pid_t shell_ = -1;
  std::vector<pid_t> around_;  // processes above the shell
  bool at_end_ = false;        // the shell has closed its end
  std::string inbox_, outbox_;
  size_t searched_ = 0;  // of inbox_, for what is waited for
  int last_status_ = 0;
  std::optional<Turn> turn_;
  int at_ = -1;  // in the current round

  std::mutex mutex_;  // guards what follows
  std::deque<TurnSpec> waiting_;
  std::optional<uint32_t> interrupt_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_SHELL_SHELL_TURNS_H_
