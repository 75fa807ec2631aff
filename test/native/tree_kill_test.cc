#include "process/tree_kill.h"

#include <signal.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "landlock/ruleset.h"
#include "support.h"

// Whatever goes wrong here must not reach the machine: scripts/test-native.mjs runs all of this in
// a process namespace of its own where it can.

namespace sandbox_run {
namespace {

using test::Bystander;
using test::IsRunning;
using test::TemporaryDirectory;

constexpr int kFirstAbiWithSignalScope = 6;

// Daemons in sessions of their own, orphaned, with every name and trick that a group kill misses.
constexpr char kDaemons[] = R"(
  for i in 1 2 3 4 5; do
    setsid sh -c 'trap "" TERM HUP INT; sleep 300 & echo $! $$; wait' &
  done
  setsid setsid nohup sleep 301 > /dev/null 2>&1 &
  echo $!
  sleep 0.3
)";

std::vector<pid_t> Numbers(const std::string& text) {
  std::vector<pid_t> numbers;
  std::istringstream stream(text);
  for (pid_t number; stream >> number;) numbers.push_back(number);
  return numbers;
}

bool WaitUntilGone(pid_t pid) {
  for (int round = 0; round < 200; ++round) {
    if (!IsRunning(pid)) return true;
    usleep(10'000);
  }
  return false;
}

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
  usleep(20'000);
  EXPECT_TRUE(bystander.alive());
}

TEST(KillAllOnAnotherThreadThanTheOneThatEnteredSendsNothing) {
  if (!test::InOwnPidNamespace()) NOT_RUN("needs a process namespace, in case it sends something");
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  const Bystander bystander;
  SignalScope scope;
  std::thread([&scope] { scope.Enter(-1); }).join();
  EXPECT_TRUE(scope.entered());
  // This thread is in no scope: only the check right before the call is left to notice.
  EXPECT_TRUE(!scope.KillAll(SIGKILL));
  usleep(20'000);
  EXPECT_TRUE(bystander.alive());
}

TEST(KillAllOfAnEmptyScopeReachesNobody) {
  if (!test::InOwnPidNamespace()) NOT_RUN("needs a process namespace, in case it sends too much");
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  const Bystander bystander;
  bool sent = false;
  std::thread([&sent] {
    SignalScope scope;
    scope.Enter(-1);
    sent = scope.KillAll(SIGKILL);
  }).join();
  EXPECT_TRUE(sent);
  usleep(20'000);
  EXPECT_TRUE(bystander.alive());
}

TEST(ACommandTakesItsWholeTreeWithItAndNobodyElse) {
  if (!test::InOwnPidNamespace()) NOT_RUN("needs a process namespace, in case it sends too much");
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  const TemporaryDirectory top;
  const Bystander before;
  const test::Threads threads(test::PermissiveSpec(top.path()));
  test::Running other(threads, test::ShellCommand("echo $$; sleep 300"));
  const Outcome outcome = test::RunToEnd(threads, test::ShellCommand(kDaemons));
  const std::vector<pid_t> tree = Numbers(outcome.output[0].kept);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.tree_ended);
  EXPECT_EQ(tree.size(), 11u);
  for (const pid_t pid : tree) EXPECT_TRUE(WaitUntilGone(pid));
  EXPECT_TRUE(before.alive());
  // The other command of the same sandbox is a tree of its own.
  other.command().Signal(SIGUSR1);
  EXPECT_EQ(other.Wait().signal, SIGUSR1);
}

TEST(AForkStormEnds) {
  if (!test::InOwnPidNamespace()) NOT_RUN("needs a process namespace, in case it sends too much");
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  const TemporaryDirectory top;
  const Bystander bystander;
  CommandSpec spec = test::ShellCommand(
      "storm() { while :; do setsid sh -c 'sleep 300' & sleep 0.01; done; }; storm & storm & wait");
  spec.timeout = std::chrono::milliseconds(300);
  const Outcome outcome = test::RunToEnd(test::PermissiveSpec(top.path()), std::move(spec));
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_TRUE(outcome.tree_ended);
  usleep(200'000);
  int left = 0;
  for (const std::string& name : test::Entries("/proc")) {
    const std::string line = test::ReadText("/proc/" + name + "/cmdline");
    const std::string sleeper(
        "sleep\0"
        "300\0",
        10);
    if (line == sleeper && atoi(name.c_str()) != bystander.pid()) ++left;
  }
  EXPECT_EQ(left, 0);
  EXPECT_TRUE(bystander.alive());
}

TEST(WithoutADomainTheGroupEndsAndTheTreeIsNotClaimedToHaveEnded) {
  const TemporaryDirectory top;
  const Bystander bystander;
  const Outcome outcome = test::RunToEnd(
      test::BareSpec(top.path()),
      test::ShellCommand("sleep 300 & echo $!; setsid sleep 300 & sleep 0.2; echo $!"));
  const std::vector<pid_t> pids = Numbers(outcome.output[0].kept);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(!outcome.tree_ended);
  ASSERT_EQ(pids.size(), 2u);
  EXPECT_TRUE(WaitUntilGone(pids[0]));
  EXPECT_TRUE(IsRunning(pids[1]));
  // It still held the pipe; the result did not wait for it.
  EXPECT_TRUE(outcome.duration_ms < 5'000);
  kill(pids[1], SIGKILL);
  EXPECT_TRUE(bystander.alive());
}

}  // namespace
}  // namespace sandbox_run
