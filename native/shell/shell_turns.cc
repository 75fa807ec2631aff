#include "shell/shell_turns.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "core/process_list.h"
#include "shell/shell_driver.h"

namespace sandbox_run {
namespace {

using std::chrono::milliseconds;

// A report holds the exported environment, which execve limits to about this.
constexpr size_t kMaxInbox = 4 * 1024 * 1024;
// Between two rounds of killing: programs that are killed may have started others meanwhile.
constexpr milliseconds kKillAgain{50};
// A shell that has closed its channel is about to end, or has lost its mind.
constexpr milliseconds kClosedGrace{250};

// Unguessable; empty if there is no randomness.
std::string MakeNonce() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes))) return "";
  constexpr char kDigits[] = "0123456789abcdef";
  std::string nonce = "T";
  for (const unsigned char byte : bytes) {
    nonce += kDigits[byte >> 4];
    nonce += kDigits[byte & 15];
  }
  return nonce;
}

}  // namespace

void ShellTurns::Begin(TurnSpec spec) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(spec));
}

void ShellTurns::Interrupt(uint32_t id) {
  const std::lock_guard lock(mutex_);
  interrupt_ = id;
}

Result<int> ShellTurns::Open() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Failure{"stdio", errno, "socket"};
  }
  mine_.reset(ends[0]);
  const UniqueFd theirs(ends[1]);
  if (fcntl(mine_.get(), F_SETFL, O_NONBLOCK) != 0) return Failure{"stdio", errno, "socket"};
  theirs_.reset(fcntl(theirs.get(), F_DUPFD_CLOEXEC, 3));
  if (!theirs_.valid()) return Failure{"stdio", errno, "socket"};
  outbox_ = ShellPreamble();
  return theirs_.get();
}

void ShellTurns::Started(pid_t shell) {
  theirs_.reset();
  shell_ = shell;
  if (shell <= 0) return;
  for (pid_t at = shell; at > 1 && around_.size() < 8;) {
    const std::optional<ListedProcess> process = LookAt(at);
    if (!process) break;
    at = process->parent;
    around_.push_back(at);
  }
}

void ShellTurns::AddTo(Watch& watch) {
  at_ = at_end_ ? -1
                : watch.Add(mine_.get(),
                            static_cast<short>(outbox_.empty() ? POLLIN : POLLIN | POLLOUT));
  if (turn_ && turn_->next) watch.Until(*turn_->next);
}

ShellTurns::Step ShellTurns::Handle(const Watch& watch, const Tree& tree) {
  Step step;
  if (watch.Ready(at_)) Receive();
  if (turn_) {
    NoteWhetherRead();
    step.end = TakeReport();
    if (!step.end && inbox_.size() > kMaxInbox) {
      step.end = EndOf(*turn_);
      step.end->broken = true;
      step.give_up = true;
    }
    if (step.end) {
      turn_.reset();
      inbox_.clear();
      searched_ = 0;
      return step;
    }
  } else {
    // No report was asked for.
    inbox_.clear();
  }

  step.begun = BeginNext();
  if (step.begun) step.streams = turn_->spec.stream_output;
  if (!turn_) return step;
  {
    const std::lock_guard lock(mutex_);
    if (interrupt_ == turn_->spec.id && turn_->stage == Stage::kRunning) {
      turn_->interrupted = true;
      turn_->next = Clock::now();
    }
  }
  const bool sent = Send();
  if (!sent) CloseChannel();
  const auto now = Clock::now();
  if (turn_->next && now >= *turn_->next && !Escalate(now, tree)) {
    step.give_up = true;
    turn_->next.reset();
  }
  if (turn_->to_ask && turn_->is_read && shell_ > 0) {
    turn_->to_ask = false;
    if (turn_->stage == Stage::kInterrupted) turn_->next = now + grace_;
    Ask(tree);
  }
  step.timed_out = turn_->timed_out;
  step.interrupted = turn_->interrupted;
  return step;
}

bool ShellTurns::BeginNext() {
  if (turn_) return false;
  TurnSpec spec;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return false;
    spec = std::move(waiting_.front());
    waiting_.pop_front();
  }
  Turn turn;
  turn.begun = Clock::now();
  turn.begun_ticks = ProcessClockNow();
  turn.nonce = MakeNonce();
  if (spec.timeout.count() > 0) turn.next = turn.begun + spec.timeout;
  if (turn.nonce.empty()) {
    // Without randomness any process could report: the turn is not begun, the shell is given up.
    turn.stage = Stage::kKilled;
    turn.next = turn.last_chance = turn.begun;
  } else {
    outbox_ += ShellTurn(spec.text, spec.assignments, turn.nonce, last_status_);
  }
  turn.spec = std::move(spec);
  turn.spec.text.clear();
  turn_ = std::move(turn);
  // Nothing more will be read or reported.
  if (at_end_) CloseChannel();
  return true;
}

void ShellTurns::Receive() {
  char buffer[16 * 1024];
  while (inbox_.size() <= kMaxInbox) {
    const ssize_t count = read(mine_.get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      CloseChannel();
      return;
    }
    inbox_.append(buffer, static_cast<size_t>(count));
  }
}

void ShellTurns::CloseChannel() {
  at_end_ = true;
  if (!turn_) return;
  turn_->stage = Stage::kKilled;
  turn_->next = turn_->last_chance = Clock::now() + kClosedGrace;
}

// False: the shell reads no more.
bool ShellTurns::Send() {
  if (at_end_) return true;
  while (!outbox_.empty()) {
    const ssize_t count = send(mine_.get(), outbox_.data(), outbox_.size(), MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN;
    }
    outbox_.erase(0, static_cast<size_t>(count));
  }
  return true;
}

// What was searched before cannot hold more than the beginning of the mark.
size_t ShellTurns::Unsearched(std::string_view mark) const {
  return searched_ < mark.size() ? 0 : searched_ - mark.size();
}

void ShellTurns::NoteWhetherRead() {
  if (turn_->is_read) return;
  const std::string mark = TurnIsRead(turn_->nonce);
  turn_->is_read = inbox_.find(mark, Unsearched(mark)) != std::string::npos;
}

std::optional<TurnEnd> ShellTurns::TakeReport() {
  const std::string end_mark = ReportEnd(turn_->nonce);
  const size_t end = inbox_.find(end_mark, Unsearched(end_mark));
  searched_ = inbox_.size();
  if (end == std::string::npos) return std::nullopt;
  const std::string begin_mark = ReportBegin(turn_->nonce);
  // The last beginning before the end: a report that an interrupt cut short is begun again.
  const size_t begin = inbox_.rfind(begin_mark, end);
  if (begin == std::string::npos || begin + begin_mark.size() > end) return std::nullopt;
  const size_t status_at = begin + begin_mark.size();
  const size_t state_at = inbox_.find('\0', status_at);
  if (state_at == std::string::npos || state_at >= end) return std::nullopt;
  const std::string digits = inbox_.substr(status_at, std::min<size_t>(state_at - status_at, 4));
  TurnEnd how = EndOf(*turn_);
  how.status = static_cast<int>(strtol(digits.c_str(), nullptr, 10)) & 255;
  how.state = inbox_.substr(state_at + 1, end - state_at - 1);
  last_status_ = how.status;
  return how;
}

TurnEnd ShellTurns::EndOf(const Turn& turn) const {
  TurnEnd how;
  how.id = turn.spec.id;
  how.timed_out = turn.timed_out;
  how.interrupted = turn.interrupted;
  how.duration_ms = std::chrono::duration<double, std::milli>(Clock::now() - turn.begun).count();
  return how;
}

bool ShellTurns::Escalate(Clock::time_point now, const Tree& tree) {
  switch (turn_->stage) {
    case Stage::kRunning:
      turn_->timed_out = !turn_->interrupted;
      turn_->stage = Stage::kInterrupted;
      turn_->next = now + grace_;
      turn_->to_ask = true;
      // A shell that is stopped reads nothing. One that has read it goes on when it is asked, not
      // before.
      if (shell_ > 0 && !turn_->is_read) kill(shell_, SIGCONT);
      return true;
    case Stage::kInterrupted:
      turn_->stage = Stage::kKilled;
      turn_->last_chance = now + std::max(grace_, kClosedGrace);
      [[fallthrough]];
    case Stage::kKilled:
      if (now >= turn_->last_chance) return false;
      KillPrograms(tree);
      turn_->next = std::min(now + kKillAgain, turn_->last_chance);
      return true;
  }
  return false;
}

// An interrupt for everybody, as Ctrl-C would be; before it the trap of the preamble for the shell,
// for programs that end by themselves at an interrupt: the shell would go on with its list. Only
// once: bash keeps it until the program in front has ended, and nested traps crash it.
void ShellTurns::Ask(const Tree& tree) {
  kill(shell_, SIGURG);
  kill(-shell_, SIGINT);
  kill(-shell_, SIGCONT);
  // Programs in other process groups.
  for (const pid_t pid : Programs(tree)) {
    if (getpgid(pid) == shell_) continue;
    kill(pid, SIGINT);
    kill(pid, SIGCONT);
  }
  // The interrupt may have hit the report itself.
  outbox_ += ShellReport(turn_->nonce);
  Send();
}

void ShellTurns::KillPrograms(const Tree& tree) {
  if (shell_ <= 0) return;
  kill(shell_, SIGCONT);
  for (const pid_t pid : Programs(tree)) kill(pid, SIGKILL);
  if (outbox_.empty()) outbox_ += ShellReport(turn_->nonce);
  Send();
}

// Not what earlier turns left in the background.
std::vector<pid_t> ShellTurns::Programs(const Tree& tree) const {
  std::vector<pid_t> programs;
  for (const pid_t pid : tree()) {
    const std::optional<ListedProcess> process = LookAt(pid);
    // Not a launcher either, which may have been started in the same moment.
    if (std::find(around_.begin(), around_.end(), pid) != around_.end()) continue;
    if (pid != shell_ && process && process->started >= turn_->begun_ticks) programs.push_back(pid);
  }
  return programs;
}

}  // namespace sandbox_run
