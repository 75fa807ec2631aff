#include "core/process_tree.h"

#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/clone_child.h"
#include "core/process_list.h"
#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

// The warden says at once how the command ended, unless it was stopped or ended from outside.
constexpr std::chrono::milliseconds kExitPatience{5000};
// A debugger that is notified of its program's end reaps it at once.
constexpr std::chrono::milliseconds kTracerPatience{500};
// How long orphans that were killed may take to come to this process and to end: next to nothing,
// unless the machine has more to do than it can.
constexpr int kReapRounds = 400;
constexpr useconds_t kReapPauseUs = 500;

bool StatusOfReaped(int pidfd, int* status) {
  abi::PidfdInfo info;
  info.mask = abi::kPidfdInfoExit;
  if (ioctl(pidfd, abi::kPidfdGetInfo, &info) != 0) return false;
  *status = info.exit_code;
  return (info.mask & abi::kPidfdInfoExit) != 0;
}

bool InheritsOrphans() {
  int subreaper = 0;
  return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0 && subreaper != 0);
}

// The processes of this thread's scope, zombies included. Signal 0 is sent nowhere: it asks whether
// one could be.
std::vector<pid_t> WithinReach() {
  std::vector<pid_t> found = ListPids();
  std::erase_if(found, [self = getpid()](pid_t pid) { return pid == self || kill(pid, 0) != 0; });
  return found;
}

// After everything in the scope was killed. By number, and only what is within reach, so that no
// child of the embedder's is ever touched. `first` is given back elsewhere.
void ReapOrphans(pid_t first) {
  std::vector<pid_t> killed = WithinReach();
  std::erase(killed, first);
  for (int round = 0; round < kReapRounds && !killed.empty(); ++round) {
    if (round > 0) usleep(kReapPauseUs);
    // Not ended yet, or its parent has not.
    std::erase_if(
        killed, [](pid_t pid) { return kill(pid, 0) != 0 || waitpid(pid, nullptr, WNOHANG) > 0; });
  }
}

}  // namespace

Status ProcessTree::Start(ChildPlan& plan, std::span<char> stack, const SignalScope& scope,
                          std::optional<int> group_directory) {
  char* const stack_end = stack.data() + stack.size();
  if (scope.entered()) {
    plan.parent_pid = getpid();
    // Not CLONE_VFORK: the thread goes straight to waiting for the end, is not woken for the execve
    // in between, and keeps its clock even if the child hangs before it (a dead file server under
    // cwd).
    int pidfd = -1;
    const pid_t pid =
        group_directory
            ? CloneIntoCgroup(RunChild, stack.data(), stack.size(), &plan, *group_directory, &pidfd)
            : clone(RunChild, stack_end, CLONE_VM | CLONE_PIDFD | SIGCHLD, &plan, &pidfd);
    if (pid < 0) return Failure{"clone", errno, ""};
    Started(pid, UniqueFd(pidfd));
    return Status();
  }
  warden_ = std::make_unique<Warden>();
  const Result<pid_t> pid = warden_->KeepCommand(plan, stack_end);
  if (!pid.ok()) {
    Finish();
    return pid.failure();
  }
  const long opened = RawSyscall(abi::kSysPidfdOpen, pid.value(), 0);
  UniqueFd pidfd(static_cast<int>(opened));
  // The number has not been given back, as the warden waits for a word of this thread before,
  // unless the command has ended its warden already: then it may be another process's.
  if (opened < 0 || !warden_->alive()) {
    const bool lost = !warden_->alive();
    const bool gone = warden_->EndAll();
    Finish();
    if (lost || !gone) return Failure{kWardenLost, 0, ""};
    // It may have begun, so that this is another failure than one of the start.
    return Failure{"supervision", static_cast<int>(-opened), ""};
  }
  Started(pid.value(), std::move(pidfd));
  return Status();
}

void ProcessTree::Started(pid_t pid, UniqueFd pidfd) {
  pidfd_ = std::move(pidfd);
  const std::lock_guard lock(mutex_);
  pid_ = pid;
  running_ = true;
  if (expects_command_) return;
  for (const int number : pending_signals_) SignalGroup(number);
  pending_signals_.clear();
}

void ProcessTree::Signal(int number) {
  const std::lock_guard lock(mutex_);
  if (running_ && command_ > 0) {
    SignalCommand(number);
  } else if (running_ && !expects_command_) {
    SignalGroup(number);
  } else if (running_ || pid_ < 0) {
    pending_signals_.push_back(number);
  }
}

void ProcessTree::CommandBegan(pid_t command) {
  const std::lock_guard lock(mutex_);
  command_ = command;
  for (const int number : pending_signals_) SignalCommand(number);
  pending_signals_.clear();
}

void ProcessTree::SignalCommand(int number) {
  // A launcher would take a signal for an order to end everything at once. The command's number is
  // its own until its end was reported, but for a moment.
  if (!command_ended_ && kill(-command_, number) != 0) kill(command_, number);
}

void ProcessTree::CommandEnded() {
  const std::lock_guard lock(mutex_);
  command_ended_ = true;
}

void ProcessTree::SignalGroup(int number) {
  // The process is a session and group leader from its first moment that matters; it is not reaped
  // while running_ is set, so the number cannot name another group.
  if (kill(-pid_, number) != 0) kill(pid_, number);
}

int ProcessTree::warden_fd(const SignalScope& scope) const {
  return warden_ ? warden_->lost_fd() : scope.lost_fd();
}

void ProcessTree::SignalAll(int number, const SignalScope& scope) {
  if (warden_) {
    warden_->SignalAll(number);
  } else {
    scope.KillAll(number);
  }
}

bool ProcessTree::End(const SignalScope& scope) {
  if (warden_) {
    // From now on it is the warden who gives the number back.
    {
      const std::lock_guard lock(mutex_);
      if (running_) SignalGroup(SIGKILL);
      running_ = false;
    }
    return warden_->EndAll();
  }
  if (scope.KillAll(SIGKILL)) {
    // Where orphans come to this process, no other process reaps them.
    if (InheritsOrphans()) ReapOrphans(pid_);
    return true;
  }
  Signal(SIGKILL);
  return false;
}

bool ProcessTree::IsReapable() {
  const auto until = std::chrono::steady_clock::now() + kTracerPatience;
  if (warden_) return warden_->TakeExit(kTracerPatience).has_value();
  for (;;) {
    siginfo_t info = {};
    const int result = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    // Other code in this process waited for it: Reap() will not find it, and say so.
    if (result != 0 && errno != EINTR) return true;
    if (result == 0 && info.si_pid == pid_) return true;
    if (std::chrono::steady_clock::now() >= until) return false;
    usleep(kReapPauseUs);
  }
}

Result<ProcessEnd> ProcessTree::Reap() {
  if (warden_) return ReapByWarden();
  ProcessEnd end;
  int status = 0;
  pid_t reaped;
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
    do {
      reaped = wait4(pid_, &status, 0, &end.usage);
    } while (reaped < 0 && errno == EINTR);
  }
  const int error = errno;
  // Other code in this process waits for every child. The kernel may still give the status by the
  // pidfd; otherwise it is lost.
  const bool known = reaped >= 0 || StatusOfReaped(pidfd_.get(), &status);
  pidfd_.reset();
  if (!known) return Failure{"wait", error, ""};
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  return end;
}

Result<ProcessEnd> ProcessTree::ReapByWarden() {
  const std::optional<WardenMessage> exited = warden_->TakeExit(kExitPatience);
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
  }
  warden_->ReleaseCommand();
  pidfd_.reset();
  // The warden was ended from outside, and the command with it.
  if (!exited) return Failure{kWardenLost, 0, ""};
  ProcessEnd end;
  end.usage = exited->usage;
  (exited->code == CLD_EXITED ? end.exit_code : end.signal) = exited->status;
  return end;
}

std::vector<pid_t> ProcessTree::Members(const SignalScope& scope) const {
  if (warden_) return DescendantsOf(warden_->pid());
  std::vector<pid_t> members;
  if (!scope.entered()) return members;
  for (const pid_t pid : WithinReach()) {
    if (const std::optional<ListedProcess> process = LookAt(pid); process && process->alive) {
      members.push_back(pid);
    }
  }
  return members;
}

size_t ProcessTree::CountNewest(const SignalScope& scope, pid_t newest, size_t enough) const {
  // Others have numbers in between. What is not reached is counted with the next regular look.
  constexpr size_t kMaxPerMember = 4;
  constexpr size_t kMinNumbers = 4096;
  if (!scope.entered()) return 0;
  const pid_t self = getpid();
  size_t found = 0;
  const size_t numbers = std::max(kMinNumbers, enough * kMaxPerMember);
  for (size_t i = 0; i < numbers && newest > 1 && found <= enough; ++i, --newest) {
    // Threads of this process are within reach from everywhere in it; what has ended uses nothing,
    // and may wait for long until it is reaped.
    if (kill(newest, 0) != 0 || RawSyscall(SYS_tgkill, self, newest, 0) == 0) continue;
    if (const std::optional<ListedProcess> one = LookAt(newest); one && one->alive) ++found;
  }
  return found;
}

void ProcessTree::Finish() { warden_.reset(); }

}  // namespace sandbox_run
