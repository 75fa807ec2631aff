#include "core/tree_kill.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "check.h"
#include "core/ruleset.h"
#include "support.h"

// Whatever goes wrong here must not reach the machine: scripts/test-native.mjs runs all of this in
// a process namespace of its own where it can.

namespace sandbox_run {
namespace {

using test::Bystander;

constexpr int kFirstAbiWithSignalScope = 6;

TEST(SignalScopeIsProvenWhereTheKernelHasIt) {
  EXPECT_EQ(SignalScopeIsProven(), LandlockAbi() >= kFirstAbiWithSignalScope);
  EXPECT_EQ(SignalScopeIsProven(), SignalScopeIsProven());
}

TEST(KillAllOutsideAScopeSendsNothing) {
  if (!test::InOwnPidNamespace()) NOT_RUN("needs a process namespace, in case it sends something");
  const Bystander bystander;
  const SignalScope scope;
  EXPECT_TRUE(!scope.entered());
  EXPECT_TRUE(!scope.KillAll(SIGKILL));
  EXPECT_TRUE(bystander.alive());
}

TEST(KillAllOnAnotherThreadThanTheOneThatEnteredSendsNothing) {
  if (!test::InOwnPidNamespace()) NOT_RUN("needs a process namespace, in case it sends something");
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  const Bystander bystander;
  SignalScope scope;
  std::thread([&scope] { EXPECT_TRUE(scope.Enter(std::nullopt).ok()); }).join();
  EXPECT_TRUE(scope.entered());
  // This thread is in no scope: only the check right before the call is left to notice.
  EXPECT_TRUE(!scope.KillAll(SIGKILL));
  EXPECT_TRUE(bystander.alive());
}

TEST(KillAllOfAnEmptyScopeReachesNobody) {
  if (!test::InOwnPidNamespace()) NOT_RUN("needs a process namespace, in case it sends too much");
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  const Bystander bystander;
  bool sent = false;
  std::thread([&sent] {
    SignalScope scope;
    EXPECT_TRUE(scope.Enter(std::nullopt).ok());
    sent = scope.KillAll(SIGKILL);
  }).join();
  EXPECT_TRUE(sent);
  EXPECT_TRUE(bystander.alive());
}

// A launcher that tries the scope, with a pipe as its standard output, and that is held where a
// process of its own has just come to be.
class HeldProbe {
 public:
  HeldProbe() {
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) return;
    output_.reset(output[0]);
    const UniqueFd their_input(input[0]), go(input[1]), their_output(output[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, their_input.get(), 0);
    posix_spawn_file_actions_adddup2(&actions, their_output.get(), 1);
    const char* const argv[] = {"/proc/self/exe", "--probe", nullptr};
    const int error = posix_spawn(&launcher_, argv[0], &actions, nullptr,
                                  const_cast<char* const*>(argv), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return;
    traced_ = ptrace(PTRACE_SEIZE, launcher_, 0,
                     PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK) == 0;
    if (traced_ && write(go.get(), "x", 1) == 1) witness_ = AwaitWitness();
  }
  ~HeldProbe() {
    for (const pid_t pid : {launcher_, witness_}) {
      if (pid > 0) kill(pid, SIGKILL);
    }
    KillLauncher();
  }

  bool traced() const { return traced_; }
  pid_t witness() const { return witness_; }
  void KillLauncher() {
    if (launcher_ <= 0) return;
    kill(launcher_, SIGKILL);
    // Its threads have to be waited for before it is done; the witness, which says that it is held,
    // comes in between.
    for (int status; launcher_ > 0;) {
      const pid_t pid = waitpid(-1, &status, __WALL);
      if (pid == witness_ && WIFSTOPPED(status)) witness_stopped_ = true;
      if (pid == launcher_ || pid < 0) launcher_ = -1;
    }
  }
  void LetWitnessGo() const {
    if (!witness_stopped_) waitpid(witness_, nullptr, __WALL);
    ptrace(PTRACE_DETACH, witness_, 0, 0);
  }
  // Nobody holds the launcher's standard output any more.
  bool OutputEnds(int within_ms) const {
    pollfd watched = {output_.get(), POLLIN, 0};
    return poll(&watched, 1, within_ms) == 1 && (watched.revents & POLLHUP) != 0;
  }

 private:
  pid_t AwaitWitness() {
    for (;;) {
      int status;
      const pid_t stopped = waitpid(-1, &status, __WALL);
      if (stopped < 0 || (stopped == launcher_ && !WIFSTOPPED(status))) return -1;
      if (!WIFSTOPPED(status)) continue;
      // Its own word may come before that of the thread that made it.
      if (IsNoThread(stopped)) {
        witness_stopped_ = true;
        return stopped;
      }
      const int event = status >> 16;
      unsigned long made = 0;
      const bool makes =
          event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK;
      if (makes && ptrace(PTRACE_GETEVENTMSG, stopped, 0, &made) == 0 &&
          IsNoThread(static_cast<pid_t>(made))) {
        return static_cast<pid_t>(made);
      }
      ptrace(PTRACE_CONT, stopped, 0, event == 0 ? WSTOPSIG(status) : 0);
    }
  }
  bool IsNoThread(pid_t pid) const {
    return !test::Exists("/proc/" + std::to_string(launcher_) + "/task/" + std::to_string(pid));
  }

  pid_t launcher_ = -1;
  pid_t witness_ = -1;
  bool witness_stopped_ = false;
  bool traced_ = false;
  UniqueFd output_;
};

TEST(TheWitnessHoldsNothingOfALauncherThatDiesDuringTheProbe) {
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  HeldProbe probe;
  if (!probe.traced()) NOT_RUN("nothing may be traced here");
  ASSERT_TRUE(probe.witness() > 0);
  // The positive control: as long as it is held, so is the pipe.
  probe.KillLauncher();
  EXPECT_TRUE(!probe.OutputEnds(0));
  probe.LetWitnessGo();
  EXPECT_TRUE(probe.OutputEnds(60'000));
  EXPECT_TRUE(test::Eventually([&] { return !test::IsRunning(probe.witness()); }));
}

}  // namespace
}  // namespace sandbox_run
