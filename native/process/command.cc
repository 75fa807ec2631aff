#include "process/command.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace sandbox_run {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kReadSize = 64 * 1024;
// Streamed output that the consumer has not taken yet; beyond it the pipe is left full.
constexpr size_t kMaxUnacknowledged = 1024 * 1024;
// How long somebody who outlived the command may hold its pipes open: a background process where
// the tree cannot be ended as a whole, or a process outside that was handed a pipe.
constexpr milliseconds kDrainGrace{250};

Result<UniqueFd> AboveStdio(int fd) {
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return Failure{"stdio", errno, ""};
  return UniqueFd(copy);
}

int MillisecondsUntil(Clock::time_point when) {
  const auto left = std::chrono::ceil<milliseconds>(when - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

}  // namespace

// What the child reads until it executes the program; it shares this memory.
struct CommandPlace::ChildMemory {
  ChildPlan plan;
  std::vector<char*> argv, envp;
  std::vector<NamespaceEntry> namespaces;
  alignas(16) char stack[32768];
};

CommandPlace::CommandPlace() = default;
CommandPlace::~CommandPlace() = default;

Command::Command(std::shared_ptr<Confinement> confinement, CommandSpec spec,
                 std::unique_ptr<CommandObserver> observer)
    : confinement_(std::move(confinement)),
      spec_(std::move(spec)),
      observer_(std::move(observer)) {}

Command::~Command() = default;

Result<std::shared_ptr<Command>> Command::Make(std::shared_ptr<Confinement> confinement,
                                               CommandSpec spec,
                                               std::unique_ptr<CommandObserver> observer) {
  std::shared_ptr<Command> command(
      new Command(std::move(confinement), std::move(spec), std::move(observer)));
  command->wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!command->wake_.valid()) return Failure{"event", errno, ""};
  return command;
}

void Command::Signal(int number) {
  const std::lock_guard lock(mutex_);
  if (running_) {
    SignalGroup(number);
  } else {
    pending_signals_.push_back(number);
  }
}

void Command::Cancel(bool now) {
  {
    const std::lock_guard lock(mutex_);
    cancel_requested_ = true;
    kill_requested_ = kill_requested_ || now;
  }
  Wake();
}

void Command::Acknowledge(size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    unacknowledged_ -= std::min(bytes, unacknowledged_);
  }
  Wake();
}

void Command::Wake() {
  const uint64_t one = 1;
  // Only fails when the counter is at its maximum, and then the thread wakes up anyway.
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void Command::SignalGroup(int number) {
  // The process is a session and group leader from its first moment that matters; it is not reaped
  // while running_ is set, so the number cannot name another group.
  if (kill(-pid_, number) != 0) kill(pid_, number);
}

Command::Afterwards Command::Run(CommandPlace& place, const std::function<bool()>& offer) {
  if (place.slot != nullptr && !confinement_->Refresh(*place.slot)) {
    // This thread's scope knows the root of the old view, and there is no way out of it.
    place.slot.reset();
    return Afterwards::kNeedsNewThread;
  }
  Outcome outcome = RunIn(place);
  const bool reusable = place.slot != nullptr && outcome.tree_ended && !place.slot->HasMoved();
  const bool kept = reusable && offer();
  observer_->OnEnd(std::move(outcome));
  // What follows costs the command's owner no time.
  if (kept) {
    confinement_->Clean(*place.slot);
  } else {
    place.slot.reset();
  }
  observer_->OnFinished();
  return kept ? Afterwards::kPlaceIsKept : Afterwards::kPlaceIsGone;
}

Outcome Command::RunIn(CommandPlace& place) {
  const auto begin = Clock::now();
  Outcome outcome;
  rusage own;
  if (getrusage(RUSAGE_SELF, &own) == 0) outcome.launcher_max_rss_kib = own.ru_maxrss;
  if (place.slot == nullptr) {
    Result<std::unique_ptr<Slot>> acquired = confinement_->Acquire();
    if (acquired.ok()) {
      place.slot = std::move(acquired.value());
    } else {
      outcome.failure = std::move(acquired.failure());
    }
  }
  bool canceled;
  {
    const std::lock_guard lock(mutex_);
    canceled = cancel_requested_;
  }
  if (outcome.failure || canceled) {
    outcome.canceled = !outcome.failure;
    outcome.tree_ended = true;
  } else if (Status launched = Launch(place); !launched.ok()) {
    outcome.failure = std::move(launched.failure());
    outcome.tree_ended = true;
  } else {
    Supervise(place.scope, outcome);
    if (std::optional<Failure> failure = StartFailure(place.child->plan)) {
      outcome.failure = std::move(failure);
      outcome.tree_ended = true;  // there never was one
    }
  }
  if (place.slot != nullptr) {
    outcome.changed_paths = place.slot->ChangedPaths(Slot::Paths::kEssential);
  }
  outcome.duration_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  return outcome;
}

void Command::GiveUp(Failure failure) {
  Outcome outcome;
  outcome.failure = std::move(failure);
  outcome.tree_ended = true;
  observer_->OnEnd(std::move(outcome));
  observer_->OnFinished();
}

Status Command::OpenStdio(int child_stdio[3], UniqueFd owned[3]) {
  for (int i = 0; i < 3; ++i) {
    StdioSpec& stdio = spec_.stdio[i];
    if (stdio.mode == StdioSpec::Mode::kNull) {
      const int flags = (i == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC;
      const UniqueFd null(open("/dev/null", flags));
      if (!null.valid()) return Failure{"stdio", errno, "/dev/null"};
      Result<UniqueFd> raised = AboveStdio(null.get());
      if (!raised.ok()) return raised.failure();
      owned[i] = std::move(raised.value());
    } else if (stdio.mode == StdioSpec::Mode::kFd) {
      // A directory of the host's would be a way around the mounts of the view.
      struct stat info;
      if (fstat(stdio.fd.get(), &info) != 0) return Failure{"stdio", errno, ""};
      if (S_ISDIR(info.st_mode)) return Failure{"stdio", EISDIR, ""};
      owned[i] = std::move(stdio.fd);
    } else {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) return Failure{"stdio", errno, "pipe"};
      UniqueFd mine(ends[i == 0 ? 1 : 0]);
      const UniqueFd theirs(ends[i == 0 ? 0 : 1]);
      if (fcntl(mine.get(), F_SETFL, O_NONBLOCK) != 0) return Failure{"stdio", errno, "pipe"};
      Result<UniqueFd> raised = AboveStdio(theirs.get());
      if (!raised.ok()) return raised.failure();
      owned[i] = std::move(raised.value());
      (i == 0 ? input_ : output_[i - 1]) = std::move(mine);
    }
    child_stdio[i] = owned[i].get();
  }
  return Status();
}

Status Command::Launch(CommandPlace& place) {
  const Slot& slot = *place.slot;
  if (place.child == nullptr) place.child = std::make_unique<CommandPlace::ChildMemory>();
  CommandPlace::ChildMemory& child = *place.child;
  child.plan = ChildPlan();
  ChildPlan& plan = child.plan;
  UniqueFd owned[3];  // the child has copies once clone() returns
  if (Status status = OpenStdio(plan.stdio, owned); !status.ok()) return status;

  child.argv.clear();
  for (std::string& argument : spec_.argv) child.argv.push_back(argument.data());
  child.argv.push_back(nullptr);
  if (!spec_.env.empty() && spec_.env.back() != '\0') spec_.env += '\0';
  for (const SlotVariable& variable : confinement_->spec().slot_variables) {
    spec_.env += variable.name + "=" + slot.HostPath(variable.path) + '\0';
  }
  child.envp.clear();
  for (size_t at = 0; at < spec_.env.size(); at += strlen(&spec_.env[at]) + 1) {
    child.envp.push_back(&spec_.env[at]);
  }
  child.envp.push_back(nullptr);
  child.namespaces = confinement_->NamespacesFor(slot);

  const ConfinementSpec& shared = confinement_->spec();
  plan.program = spec_.program.c_str();
  plan.argv = child.argv.data();
  plan.envp = child.envp.data();
  plan.cwd = spec_.cwd.c_str();
  plan.namespaces = child.namespaces.data();
  plan.namespace_count = child.namespaces.size();
  plan.ruleset_fd = slot.ruleset_fd();
  plan.filter = confinement_->filter();
  plan.limits = shared.limits.data();
  plan.limit_count = shared.limits.size();
  plan.umask = shared.umask;
  plan.parent_pid = getpid();

  // Before the clone, so that the child's domain is nested in this thread's scope. Without a domain
  // for the child, the child would share this thread's scope and could signal the launcher.
  if (plan.ruleset_fd >= 0) place.scope.Enter(slot.view_root_fd());

#if defined(__SANITIZE_ADDRESS__)
  // The last child left its frames by execve, with the marks around their variables.
  __asan_unpoison_memory_region(child.stack, sizeof(child.stack));
#endif

  // Not CLONE_VFORK: the thread goes straight to waiting for the end, is not woken for the execve
  // in between, and keeps its clock even if the child hangs before it (a dead file server under
  // cwd).
  int pidfd = -1;
  const pid_t pid = clone(RunChild, child.stack + sizeof(child.stack),
                          CLONE_VM | CLONE_PIDFD | SIGCHLD, &plan, &pidfd);
  if (pid < 0) return Failure{"clone", errno, ""};
  pidfd_.reset(pidfd);
  pid_ = pid;
  const std::lock_guard lock(mutex_);
  running_ = true;
  for (const int number : pending_signals_) SignalGroup(number);
  pending_signals_.clear();
  return Status();
}

// Valid once the child is gone.
std::optional<Failure> Command::StartFailure(const ChildPlan& plan) const {
  if (plan.failed_stage == nullptr) return std::nullopt;
  const std::string_view stage = plan.failed_stage;
  return Failure{plan.failed_stage, plan.failed_errno,
                 stage == "exec"  ? spec_.program
                 : stage == "cwd" ? spec_.cwd
                                  : ""};
}

bool Command::DrainInto(int index, Outcome& outcome) {
  UniqueFd& fd = output_[index];
  CapturedStream& stream = outcome.output[index];
  // On the stack: only what is read is ever touched.
  char buffer[kReadSize];
  // Bounded, so that one stream that never pauses cannot keep the clock from being read.
  for (int round = 0; round < 16; ++round) {
    const ssize_t count = read(fd.get(), buffer, sizeof(buffer));
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return true;
      fd.reset();
      return false;
    }
    if (count == 0) {
      fd.reset();
      return false;
    }
    const auto size = static_cast<size_t>(count);
    stream.total += size;
    if (spec_.stream_output) {
      {
        const std::lock_guard lock(mutex_);
        unacknowledged_ += size;
      }
      observer_->OnOutput(index + 1, std::string(buffer, size));
      return true;
    }
    if (stream.kept.size() < spec_.output_limit) {
      stream.kept.append(buffer, std::min(size, spec_.output_limit - stream.kept.size()));
    }
  }
  return true;
}

void Command::FeedInput() {
  while (input_written_ < spec_.input.size()) {
    // The thread has every signal blocked, so a closed pipe is EPIPE here and no SIGPIPE.
    const ssize_t count = write(input_.get(), spec_.input.data() + input_written_,
                                spec_.input.size() - input_written_);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return;
      break;
    }
    input_written_ += static_cast<size_t>(count);
  }
  input_.reset();
}

void Command::EndTree(const SignalScope& scope, Outcome& outcome) {
  outcome.tree_ended = scope.KillAll(SIGKILL);
  // The group at least, where no scope is to be had.
  if (!outcome.tree_ended) SignalGroup(SIGKILL);
}

void Command::Supervise(const SignalScope& scope, Outcome& outcome) {
  std::optional<Clock::time_point> deadline;
  if (spec_.timeout.count() > 0) deadline = Clock::now() + spec_.timeout;
  std::optional<Clock::time_point> kill_at;      // set once SIGTERM was sent
  std::optional<Clock::time_point> drain_until;  // set once the command has exited
  bool exited = false;

  if (input_.valid()) FeedInput();
  while (!exited || output_[0].valid() || output_[1].valid()) {
    bool may_read = true;
    bool canceled, kill_now;
    {
      const std::lock_guard lock(mutex_);
      may_read = unacknowledged_ < kMaxUnacknowledged;
      canceled = cancel_requested_;
      kill_now = kill_requested_;
    }
    const auto now = Clock::now();
    if (!exited) {
      const bool timed_out = deadline && now >= *deadline;
      if ((canceled || timed_out) && !kill_at) {
        outcome.canceled = canceled;
        outcome.timed_out = timed_out && !canceled;
        SignalGroup(SIGTERM);
        // A stopped process acts on SIGTERM only once it goes on.
        SignalGroup(SIGCONT);
        kill_at = now + spec_.kill_grace;
      }
      if (kill_at && (kill_now || now >= *kill_at)) EndTree(scope, outcome);
    } else if (!may_read) {
      // A consumer that takes its time loses nothing.
      drain_until = now + kDrainGrace;
      if (kill_now) break;
    } else if (kill_now || now >= *drain_until) {
      break;
    }

    pollfd watched[5];
    nfds_t count = 0;
    int pid_at = -1, input_at = -1, output_at[2] = {-1, -1};
    watched[count++] = {wake_.get(), POLLIN, 0};
    if (!exited) {
      pid_at = static_cast<int>(count);
      watched[count++] = {pidfd_.get(), POLLIN, 0};
    }
    if (input_.valid()) {
      input_at = static_cast<int>(count);
      watched[count++] = {input_.get(), POLLOUT, 0};
    }
    for (int i = 0; i < 2; ++i) {
      if (!output_[i].valid() || !may_read) continue;
      output_at[i] = static_cast<int>(count);
      watched[count++] = {output_[i].get(), POLLIN, 0};
    }
    int wait = -1;
    if (!exited) {
      if (kill_at) {
        wait = MillisecondsUntil(*kill_at);
        // Already killed: look again soon instead of spinning.
        if (wait == 0) wait = 10;
      } else if (deadline) {
        wait = MillisecondsUntil(*deadline);
      }
    } else if (drain_until) {
      wait = MillisecondsUntil(*drain_until);
    }
    // Without poll() the clock and the limits are lost: the command is ended, whatever it was
    // doing.
    const bool lost = poll(watched, count, wait) < 0 && errno != EINTR;
    if (lost && exited) break;

    if (watched[0].revents != 0) {
      uint64_t drained;
      [[maybe_unused]] const ssize_t ignored = read(wake_.get(), &drained, sizeof(drained));
    }
    if (input_at >= 0 && watched[input_at].revents != 0) FeedInput();
    for (int i = 0; i < 2; ++i) {
      if (output_at[i] < 0 || watched[output_at[i]].revents == 0) continue;
      // What the ended tree left in the pipe is finite; a survivor may write for ever.
      if (DrainInto(i, outcome) && exited && outcome.tree_ended) {
        drain_until = Clock::now() + kDrainGrace;
      }
    }
    if (pid_at >= 0 && (lost || watched[pid_at].revents != 0)) {
      exited = true;
      input_.reset();
      // What the command left behind ends with it, before the number is given back by the reaping.
      EndTree(scope, outcome);
      const std::lock_guard lock(mutex_);
      running_ = false;
      int status = 0;
      pid_t reaped;
      do {
        reaped = wait4(pid_, &status, 0, &outcome.usage);
      } while (reaped < 0 && errno == EINTR);
      if (reaped < 0) {
        // Somebody in this process waits for every child; the status is lost.
        outcome.failure = Failure{"wait", errno, ""};
      } else if (WIFSIGNALED(status)) {
        outcome.signal = WTERMSIG(status);
      } else {
        outcome.exit_code = WEXITSTATUS(status);
      }
      drain_until = Clock::now() + kDrainGrace;
    }
  }
}

}  // namespace sandbox_run
