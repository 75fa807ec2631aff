#include "process/tree_kill.h"

#include <signal.h>
#include <unistd.h>

#include <thread>

#include "check.h"
#include "landlock/ruleset.h"
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
  usleep(20'000);
  EXPECT_TRUE(bystander.alive());
}

TEST(KillAllOnAnotherThreadThanTheOneThatEnteredSendsNothing) {
  if (!test::InOwnPidNamespace()) NOT_RUN("needs a process namespace, in case it sends something");
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  const Bystander bystander;
  SignalScope scope;
  std::thread([&scope] { EXPECT_TRUE(scope.Enter(-1).ok()); }).join();
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
    EXPECT_TRUE(scope.Enter(-1).ok());
    sent = scope.KillAll(SIGKILL);
  }).join();
  EXPECT_TRUE(sent);
  usleep(20'000);
  EXPECT_TRUE(bystander.alive());
}

}  // namespace
}  // namespace sandbox_run
