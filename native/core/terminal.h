#ifndef SANDBOX_RUN_CORE_TERMINAL_H_
#define SANDBOX_RUN_CORE_TERMINAL_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "core/watch.h"

namespace sandbox_run {

// In characters; 0 means unknown.
struct TerminalSize {
  uint16_t columns = 0;
  uint16_t rows = 0;
};

// A pseudo-terminal. The holder of the master reads what the command writes and types what it
// reads.
struct Terminal {
  UniqueFd master;  // non-blocking
  UniqueFd slave;
};

// Makes a pseudo-terminal of the instance that the command sees: the one at dev/pts beneath
// `view_root`, or the host's if there is none.
Result<Terminal> OpenTerminal(std::optional<int> view_root, TerminalSize size);

// Tells the processes on the terminal, by SIGWINCH, if the size is another one.
Status ResizeTerminal(int master, TerminalSize size);

// What is typed into a terminal: a text, then what comes from a pipe, then, once, the character
// that means the end of the input. (A terminal has no other end of its input.)
class TerminalInput {
 public:
  TerminalInput() = default;
  // `source` may be invalid; else it is non-blocking.
  TerminalInput(std::string text, UniqueFd source)
      : pending_(std::move(text)), source_(std::move(source)), over_(false) {}

  // To wait for: a descriptor that can be read, or -1.
  int source() const { return written_ == pending_.size() ? source_.get() : -1; }
  // Whether to wait until the terminal can be written.
  bool wants_terminal() const { return written_ < pending_.size(); }
  bool over() const { return over_; }

  // Moves on as far as possible without waiting.
  void Feed(int master);

 private:
  bool Take();
  bool WriteTo(int master);
  void End(int master);

  std::string pending_;
  size_t written_ = 0;
  char last_ = '\n';
  UniqueFd source_;
  bool ended_ = false;  // the end is in pending_
  bool over_ = true;
};

// The pseudo-terminal of one command, for the command's thread. Only Resize() may be called from
// others, and at any time.
class CommandTerminal {
 public:
  explicit CommandTerminal(TerminalSize size) : size_(size) {}

  Status Open(std::optional<int> view_root, TerminalInput input);
  // The command's end, until CommandIsOver(). As long as this process holds it too, a command that
  // closes all of its own and opens /dev/tty again has not ended the output.
  int slave() const { return slave_.get(); }
  // A descriptor from which to read what the command writes. EIO is the end: no process
  // is left that could write.
  Result<UniqueFd> Output() const;

  // One round of the command's thread: types what there is to type.
  void AddTo(Watch& watch);
  void Handle(const Watch& watch);
  void Feed();

  void Resize(TerminalSize size);

  // The command has ended, and reads no more.
  void CommandIsOver();
  // Hangs up: a process that is still on the terminal gets SIGHUP.
  void Close();

 private:
  UniqueFd slave_;
  TerminalInput input_;
  int input_at_ = -1;  // in the current round

  std::mutex mutex_;  // guards what follows; the command's thread alone changes master_
  TerminalSize size_;
  UniqueFd master_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_TERMINAL_H_
