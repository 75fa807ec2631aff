#include "core/process_tree.h"

#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "support.h"

// A command's tree as a whole, in both tiers. Like tree_kill_test.cc only ever in a process
// namespace of its own where signals to everybody are sent.

namespace sandbox_run {
namespace {

using std::chrono::milliseconds;
using test::Bystander;
using test::IsRunning;
using test::Running;
using test::ShellCommand;
using test::TemporaryDirectory;
using test::Threads;

// Daemons in sessions of their own, orphaned, with every name and trick that a group kill misses.
constexpr char kDaemons[] = R"(
  for i in 1 2 3 4 5; do
    setsid sh -c 'trap "" TERM HUP INT; sleep 300 & echo $! $$; wait' &
  done
  setsid setsid nohup sleep 301 > /dev/null 2>&1 &
  echo $!
  setsid sh -c 'echo $$; kill -STOP $$' &
)";
constexpr size_t kDaemonCount = 12, kDaemonLines = 7;

std::vector<pid_t> Numbers(const std::string& text) {
  std::vector<pid_t> numbers;
  std::istringstream stream(text);
  for (pid_t number; stream >> number;) numbers.push_back(number);
  return numbers;
}

bool WaitUntilGone(pid_t pid) {
  return test::Eventually([&] { return !IsRunning(pid); });
}

ConfinementSpec SpecOf(TreeTier tier, const TemporaryDirectory& top) {
  return tier == TreeTier::kSignalScope ? test::PermissiveSpec(top.path())
                                        : test::WardenSpec(top.path());
}

// Linux 6.15.
bool KernelKeepsStatus() {
  utsname name;
  int major = 0, minor = 0;
  return uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
         (major > 6 || (major == 6 && minor >= 15));
}

// The processes that this one started and that call themselves wardens.
std::vector<pid_t> Wardens() {
  std::vector<pid_t> found;
  const std::string parent = "PPid:\t" + std::to_string(getpid()) + "\n";
  for (const std::string& name : test::Entries("/proc")) {
    const std::string status = test::ReadText("/proc/" + name + "/status");
    if (status.starts_with("Name:\tsandbox-warden\n") && status.find(parent) != std::string::npos) {
      found.push_back(atoi(name.c_str()));
    }
  }
  return found;
}

// Once it has executed its program.
pid_t WaitForWarden() {
  std::vector<pid_t> found;
  return test::Eventually([&] { return !(found = Wardens()).empty(); }) ? found.front() : -1;
}

// Both tiers, or the one that the kernel has.
template <typename Body>
void ForEachTier(Body body) {
  body(TreeTier::kSubreaper);
  if (SignalScopeIsProven()) body(TreeTier::kSignalScope);
}

TEST(ACommandTakesItsWholeTreeWithItAndNobodyElse) {
  if (!test::InOwnPidNamespace()) NOT_RUN("needs a process namespace, in case it sends too much");
  ForEachTier([](TreeTier tier) {
    const TemporaryDirectory top;
    const Bystander before;
    const Threads threads(SpecOf(tier, top));
    Running other(threads, ShellCommand("echo $$; sleep 300"));
    const test::Gate gate;
    Running daemons(threads, ShellCommand(kDaemons + gate.wait()));
    daemons.WaitForLines(kDaemonLines);
    gate.Open();
    const Outcome outcome = daemons.Wait();
    const std::vector<pid_t> tree = Numbers(outcome.output[0].kept);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_TRUE(outcome.tree_ended);
    EXPECT_TRUE(outcome.tree_tier == tier);
    EXPECT_EQ(tree.size(), kDaemonCount);
    for (const pid_t pid : tree) EXPECT_TRUE(WaitUntilGone(pid));
    EXPECT_TRUE(before.alive());
    // The other command of the same sandbox is a tree of its own.
    other.command().Signal(SIGUSR1);
    EXPECT_EQ(other.Wait().signal, SIGUSR1);
  });
}

TEST(TheLaunchersOwnThreadsAreNotCountedAsTheTree) {
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  std::thread([] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    SignalScope scope;
    EXPECT_TRUE(scope.Enter(std::nullopt).ok() && scope.entered());
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 20; ++i) {
      threads.emplace_back([&] {
        while (!stop) usleep(10'000);
      });
    }
    // Of the tree: one that lives, and ten that have ended and that nobody took notice of.
    std::vector<pid_t> children;
    for (int i = 0; i < 11; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        while (i == 0) pause();
        _exit(0);
      }
      children.push_back(child);
    }
    for (size_t i = 1; i < children.size(); ++i) {
      siginfo_t ended;
      waitid(P_PID, static_cast<id_t>(children[i]), &ended, WEXITED | WNOWAIT);
    }
    EXPECT_EQ(ProcessTree().CountNewest(scope, children.back(), 1000), 1u);
    kill(children.front(), SIGKILL);
    for (const pid_t child : children) waitpid(child, nullptr, 0);
    stop = true;
    for (std::thread& thread : threads) thread.join();
  }).join();
}

TEST(AnEmbedderThatWaitsForEveryChildStealsNoStatus) {
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  const TemporaryDirectory top;
  const Threads threads(test::PermissiveSpec(top.path()));
  std::atomic<bool> stop = false;
  std::atomic<int> stolen = 0;
  std::thread thief([&] {
    while (!stop) {
      if (waitpid(-1, nullptr, 0) > 0) ++stolen;
      usleep(500);
    }
  });
  for (int round = 0; round < 20; ++round) {
    const Outcome outcome = test::RunToEnd(threads, ShellCommand("exit 6"));
    // Before Linux 6.15 nobody knows any more.
    if (outcome.failure) EXPECT_EQ(std::string(outcome.failure->stage), "wait");
    if (KernelKeepsStatus()) EXPECT_EQ(outcome.exit_code, 6);
  }
  stop = true;
  // Wakes it up; the warden of the scope stays for the next command.
  if (fork() == 0) _exit(0);
  thief.join();
  EXPECT_TRUE(stolen > 0);
}

TEST(ALauncherToWhichOrphansComeKeepsNoZombies) {
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  const TemporaryDirectory top;
  const Threads threads(test::PermissiveSpec(top.path()));
  EXPECT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const test::Gate gate;
  Running running(threads,
                  ShellCommand("for i in 1 2 3 4; do setsid sleep 300 > /dev/null 2>&1 & echo $!; "
                               "done; (setsid true & echo $!); " +
                               gate.wait()));
  const pid_t ended = Numbers(running.WaitForLines(5)).back();
  EXPECT_TRUE(test::Eventually([&] { return !IsRunning(ended); }));
  gate.Open();
  const Outcome outcome = running.Wait();
  EXPECT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
  const std::vector<pid_t> tree = Numbers(outcome.output[0].kept);
  EXPECT_EQ(tree.size(), 5u);
  for (const pid_t pid : tree) EXPECT_TRUE(kill(pid, 0) != 0 && errno == ESRCH);
}

TEST(AStoppedWardenOfAScopeEndsWithItsSandbox) {
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  const TemporaryDirectory top;
  pid_t warden = -1;
  {
    const Threads threads(test::PermissiveSpec(top.path()));
    EXPECT_EQ(test::RunToEnd(threads, ShellCommand("true")).exit_code, 0);
    warden = WaitForWarden();
    ASSERT_TRUE(warden > 0);
    kill(warden, SIGSTOP);
  }
  EXPECT_TRUE(kill(warden, 0) != 0 && errno == ESRCH);
}

TEST(WithoutADomainTheTreeEndsThroughItsWarden) {
  const TemporaryDirectory top;
  const Bystander bystander;
  const test::Gate gate;
  const Threads threads(test::BareSpec(top.path()));
  Running running(threads,
                  ShellCommand("sleep 300 & echo $!; setsid sleep 300 & echo $!; " + gate.wait()));
  const pid_t apart = Numbers(running.WaitForLines(2)).back();
  EXPECT_TRUE(test::Eventually([&] { return getsid(apart) == apart; }));
  gate.Open();
  const Outcome outcome = running.Wait();
  const std::vector<pid_t> pids = Numbers(outcome.output[0].kept);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.tree_ended);
  EXPECT_TRUE(outcome.tree_tier == TreeTier::kSubreaper);
  ASSERT_EQ(pids.size(), 2u);
  for (const pid_t pid : pids) EXPECT_TRUE(WaitUntilGone(pid));
  EXPECT_TRUE(bystander.alive());
}

LONG_TEST(AForkStormEnds) {
  if (!test::InOwnPidNamespace()) NOT_RUN("needs a process namespace, in case it sends too much");
  ForEachTier([](TreeTier tier) {
    const TemporaryDirectory top;
    const Bystander bystander;
    // A time of its own: what another test left behind, such as one that ends its warden, is not
    // of this storm.
    CommandSpec spec = ShellCommand(
        "storm() { while :; do setsid sh -c 'sleep 317' & sleep 0.01; done; }; storm & storm & "
        "wait");
    spec.timeout = milliseconds(300);
    const Outcome outcome = test::RunToEnd(SpecOf(tier, top), std::move(spec));
    EXPECT_TRUE(outcome.timed_out);
    EXPECT_TRUE(outcome.tree_ended);
    // By then a process that got away has become what it was to be.
    EXPECT_EQ(test::RunToEnd(SpecOf(tier, top), ShellCommand("true")).exit_code, 0);
    int left = 0;
    for (const std::string& name : test::Entries("/proc")) {
      const std::string line = test::ReadText("/proc/" + name + "/cmdline");
      const std::string sleeper(
          "sleep\0"
          "317\0",
          10);
      if (line == sleeper) ++left;
    }
    EXPECT_EQ(left, 0);
    EXPECT_TRUE(bystander.alive());
  });
}

TEST(WhoHoldsTheOutputHasAQuarterOfASecond) {
  ForEachTier([](TreeTier tier) {
    const TemporaryDirectory top;
    const Threads threads(SpecOf(tier, top));
    // Held for ever: ended, and said so.
    Outcome outcome = test::RunToEnd(threads, ShellCommand("setsid sleep 300 & echo $!"));
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_TRUE(outcome.output_held);
    EXPECT_TRUE(outcome.tree_ended);
    EXPECT_TRUE(outcome.duration_ms >= 240);
    const std::vector<pid_t> held = Numbers(outcome.output[0].kept);
    ASSERT_EQ(held.size(), 1u);
    EXPECT_TRUE(WaitUntilGone(held[0]));
    // What is written in that time is part of the output. A busy machine has more than one try.
    test::Eventually([&] {
      outcome = test::RunToEnd(threads, ShellCommand("(sleep 0.05; echo late) & echo early"));
      return !outcome.output_held;
    });
    EXPECT_EQ(outcome.output[0].kept, "early\nlate\n");
    EXPECT_TRUE(!outcome.output_held);
    // Nobody holds it: no waiting.
    outcome = test::RunToEnd(threads, ShellCommand("setsid sleep 300 > /dev/null 2>&1 &"));
    EXPECT_TRUE(!outcome.output_held);
    EXPECT_TRUE(outcome.tree_ended);
  });
}

TEST(TheMembersAreTheTreeAndNobodyElse) {
  ForEachTier([](TreeTier tier) {
    const TemporaryDirectory top;
    const Threads threads(SpecOf(tier, top));
    Running other(threads, ShellCommand("sleep 300"));
    CommandSpec spec = ShellCommand("setsid sleep 300 & sleep 300 & echo $$; exec sleep 300");
    spec.streams.stream_output = true;
    Running running(threads, std::move(spec));
    running.WaitForOutput(1, milliseconds(0));
    const std::vector<pid_t> members = running.Members();
    EXPECT_EQ(members.size(), 3u);
    for (const pid_t pid : members) EXPECT_TRUE(IsRunning(pid));
    const std::vector<pid_t> others = other.Members();
    EXPECT_TRUE(!others.empty());
    for (const pid_t pid : others) {
      EXPECT_EQ(std::count(members.begin(), members.end(), pid), 0);
    }
    running.command().Cancel(true);
    running.Wait();
    EXPECT_TRUE(running.Members().empty());
  });
}

TEST(InTheBackgroundTheTreeIsKeptUntilItIsEnded) {
  ForEachTier([](TreeTier tier) {
    const TemporaryDirectory top;
    const Threads threads(SpecOf(tier, top));
    CommandSpec spec = ShellCommand("setsid sh -c 'echo $$; exec sleep 300' & exit 3");
    spec.background = true;
    Running running(threads, std::move(spec));
    EXPECT_EQ(running.WaitForExit().exit_code, 3);
    running.WaitForLines(1);
    test::OutliveTheHoldingOfOutput();
    const std::vector<pid_t> members = running.Members();
    ASSERT_EQ(members.size(), 1u);
    running.command().Cancel(false);
    const Outcome outcome = running.Wait();
    EXPECT_TRUE(outcome.canceled);
    EXPECT_TRUE(outcome.tree_ended);
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_TRUE(Numbers(outcome.output[0].kept) == members);
    EXPECT_TRUE(WaitUntilGone(members[0]));
  });
}

TEST(InTheBackgroundTheTreeMayEndByItself) {
  ForEachTier([](TreeTier tier) {
    const TemporaryDirectory top;
    const Threads threads(SpecOf(tier, top));
    const test::Gate gate;
    CommandSpec spec = ShellCommand("setsid sh -c '" + gate.wait() + "; echo late' & exit 4");
    spec.background = true;
    Running running(threads, std::move(spec));
    EXPECT_EQ(running.WaitForExit().exit_code, 4);
    test::OutliveTheHoldingOfOutput();
    gate.Open();
    const Outcome outcome = running.Wait();
    EXPECT_EQ(outcome.exit_code, 4);
    EXPECT_EQ(outcome.output[0].kept, "late\n");
    EXPECT_TRUE(!outcome.canceled && !outcome.timed_out && !outcome.output_held);
    EXPECT_TRUE(outcome.tree_ended);
    // That of the tree, not of the command.
    EXPECT_TRUE(outcome.duration_ms >= 240);
  });
}

TEST(InTheBackgroundTheTimeOutIsThatOfTheTree) {
  ForEachTier([](TreeTier tier) {
    const TemporaryDirectory top;
    CommandSpec spec = ShellCommand(
        "setsid sh -c 'trap \"echo told; exit\" TERM; echo ready; while :; do sleep 0.02; done' & "
        "exit 0");
    spec.background = true;
    spec.kill_grace = std::chrono::minutes(10);
    const Outcome outcome = test::RunUntilReady(
        SpecOf(tier, top), spec,
        [](CommandSpec& limited, milliseconds time) { limited.timeout = time; });
    EXPECT_TRUE(outcome.timed_out);
    EXPECT_EQ(outcome.output[0].kept, "ready\ntold\n");
    EXPECT_TRUE(outcome.tree_ended);
    // It ended by itself, before the time that it had for that.
    EXPECT_TRUE(outcome.duration_ms < 10 * 60'000);
  });
}

TEST(TheWardenOfAScopeHoldsNothingAndEndsWithIt) {
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  const TemporaryDirectory top;
  setenv("SECRET_OF_THE_LAUNCHER", "7d1f", 1);
  {
    const Threads threads(test::PermissiveSpec(top.path()));
    EXPECT_EQ(test::RunToEnd(threads, ShellCommand("true")).exit_code, 0);
    const pid_t warden = WaitForWarden();
    ASSERT_TRUE(warden > 0);
    const std::string place = "/proc/" + std::to_string(warden) + "/";
    test::Eventually([&] { return test::ReadText(place + "environ").empty(); });
    // The connection, and a descriptor of the launcher's process.
    EXPECT_EQ(test::Entries(place + "fd").size(), 2u);
    EXPECT_EQ(test::ReadText(place + "environ"), "");
    EXPECT_EQ(test::ReadText(place + "cmdline"),
              "sandbox-warden" + std::string(1, '\0') + std::to_string(getpid()) + '\0');
    char directory[256] = {};
    EXPECT_EQ(readlink((place + "cwd").c_str(), directory, sizeof(directory) - 1), 1);
    // Its own session, so that no terminal's signal reaches it; and signals do nothing to it.
    EXPECT_EQ(getsid(warden), warden);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) kill(warden, number);
    // The second command has the same one.
    EXPECT_EQ(test::RunToEnd(threads, ShellCommand("true")).exit_code, 0);
    EXPECT_TRUE(IsRunning(warden));
    EXPECT_TRUE(Wardens() == std::vector<pid_t>{warden});
  }
  unsetenv("SECRET_OF_THE_LAUNCHER");
  EXPECT_TRUE(Wardens().empty());
}

TEST(TheTreeCannotReachTheWardenOfItsScope) {
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  const TemporaryDirectory top;
  const Threads threads(test::PermissiveSpec(top.path()));
  EXPECT_EQ(test::RunToEnd(threads, ShellCommand("true")).exit_code, 0);
  const pid_t warden = WaitForWarden();
  ASSERT_TRUE(warden > 0);
  const std::string pid = std::to_string(warden);
  const Outcome outcome = test::RunToEnd(
      threads, ShellCommand("kill -0 " + pid + " && echo signal; kill -9 " + pid +
                            " && echo killed; cat /proc/" + pid + "/maps && echo memory; true"));
  EXPECT_EQ(outcome.output[0].kept, "");
  EXPECT_TRUE(IsRunning(warden));
}

TEST(APlaceWhoseWardenWasEndedIsNotUsedAgain) {
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  const TemporaryDirectory top;
  const Threads threads(test::PermissiveSpec(top.path()));
  EXPECT_EQ(test::RunToEnd(threads, ShellCommand("true")).exit_code, 0);
  const pid_t first = WaitForWarden();
  ASSERT_TRUE(first > 0);
  // While nothing runs: the next command has nothing to do with it.
  kill(first, SIGKILL);
  EXPECT_TRUE(WaitUntilGone(first));
  const Outcome outcome = test::RunToEnd(threads, ShellCommand("exit 3"));
  EXPECT_TRUE(!outcome.failure);
  EXPECT_EQ(outcome.exit_code, 3);
  const pid_t second = WaitForWarden();
  EXPECT_TRUE(second > 0 && second != first);
}

// The warden of the one command that runs; of a scope, or the command's parent.
pid_t WardenOfTheOne() {
  std::vector<pid_t> found;
  return test::Eventually([&] { return (found = Wardens()).size() == 1; }) ? found.front() : -1;
}

TEST(ACommandWhoseWardenIsEndedEndsAndSaysSo) {
  ForEachTier([](TreeTier tier) {
    for (const bool background : {false, true}) {
      const TemporaryDirectory top;
      const Bystander bystander;
      const Threads threads(SpecOf(tier, top));
      CommandSpec spec = ShellCommand("setsid sh -c 'echo $$; exec sleep 300' & " +
                                      std::string(background ? "exit 0" : "echo $$; sleep 300"));
      spec.streams.stream_output = true;
      spec.background = background;
      Running running(threads, std::move(spec));
      running.WaitForLines(background ? 1 : 2);
      if (background) EXPECT_EQ(running.WaitForExit().exit_code, 0);
      const pid_t warden = WardenOfTheOne();
      ASSERT_TRUE(warden > 0);
      const size_t size = background ? 1 : 3;
      std::vector<pid_t> members;
      test::Eventually([&] { return (members = running.Members()).size() == size; });
      EXPECT_EQ(members.size(), size);
      kill(warden, SIGKILL);
      const Outcome outcome = running.Wait();
      ASSERT_TRUE(outcome.failure.has_value());
      EXPECT_EQ(std::string(outcome.failure->stage), "warden_lost");
      // Only a scope finds what the command started without its warden.
      EXPECT_EQ(outcome.tree_ended, tier == TreeTier::kSignalScope);
      for (const pid_t pid : members) {
        if (tier == TreeTier::kSignalScope) EXPECT_TRUE(WaitUntilGone(pid));
        kill(pid, SIGKILL);
      }
      EXPECT_TRUE(bystander.alive());
      // The next command has another one.
      EXPECT_EQ(test::RunToEnd(threads, ShellCommand("exit 4")).exit_code, 4);
    }
  });
}

LONG_TEST(ACommandThatIsEndedAnywayDoesNotLoseItsWarden) {
  ForEachTier([](TreeTier tier) {
    const TemporaryDirectory top;
    const Threads threads(SpecOf(tier, top));
    for (int round = 0; round < 20; ++round) {
      CommandSpec spec = ShellCommand("trap '' TERM; setsid sleep 300 & sleep 300");
      spec.timeout = milliseconds(20);
      spec.kill_grace = milliseconds(1);
      const Outcome outcome = test::RunToEnd(threads, std::move(spec));
      EXPECT_TRUE(!outcome.failure);
      EXPECT_TRUE(outcome.timed_out);
      EXPECT_TRUE(outcome.tree_ended);
    }
  });
}

TEST(WithoutItsProgramAWardenRunsInTheMemoryOfTheLauncher) {
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Warden warden;
  // This thread is in no scope, so the warden proves nothing and sends nothing: it leaves at once.
  EXPECT_TRUE(warden.KeepScope(-1).ok());
  EXPECT_TRUE(test::Eventually([&] { return !warden.alive(); }));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(ACommandThatEndsItsWardenEndsWithIt) {
  const TemporaryDirectory top;
  const Bystander bystander;
  // Its parent. In the bare confinement nothing keeps it from that, as before Landlock ABI 6. Right
  // away, while the launcher is still at it, and later.
  for (const bool later : {false, true}) {
    const test::Gate gate;
    const Threads threads(test::BareSpec(top.path()));
    Running running(threads, ShellCommand((later ? "echo; " + gate.wait() + "; " : "") +
                                          "kill -9 $PPID; sleep 300"));
    if (later) running.WaitForLines(1);
    gate.Open();
    const Outcome outcome = running.Wait();
    ASSERT_TRUE(outcome.failure.has_value());
    EXPECT_EQ(std::string(outcome.failure->stage), "warden_lost");
    EXPECT_TRUE(!outcome.tree_ended);
  }
  EXPECT_TRUE(bystander.alive());
}

TEST(ACommandThatStopsItsWardenGainsNothing) {
  const TemporaryDirectory top;
  const Outcome outcome = test::RunToEnd(
      test::BareSpec(top.path()),
      ShellCommand("kill -STOP $PPID; setsid sleep 300 > /dev/null 2>&1 & echo $!; exit 5"));
  EXPECT_TRUE(!outcome.failure);
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_TRUE(outcome.tree_ended);
  const std::vector<pid_t> pids = Numbers(outcome.output[0].kept);
  ASSERT_EQ(pids.size(), 1u);
  EXPECT_TRUE(WaitUntilGone(pids[0]));
}

// Everything that was launched from `directory`, and every warden.
std::vector<pid_t> LaunchedFrom(const std::string& directory) {
  std::vector<pid_t> found;
  for (const std::string& name : test::Entries("/proc")) {
    const pid_t pid = atoi(name.c_str());
    if (pid <= 0 || pid == getpid() || !IsRunning(pid)) continue;
    const std::string environment = test::ReadText("/proc/" + name + "/environ");
    const bool warden = test::ReadText("/proc/" + name + "/comm") == "sandbox-warden\n";
    if (warden || environment.find("MARK=" + directory) != std::string::npos) found.push_back(pid);
  }
  return found;
}

void KillLaunchersAtEveryMoment(TreeTier tier) {
  const TemporaryDirectory top;
  const Bystander bystander;
  const char* name = tier == TreeTier::kSignalScope ? "scope" : "warden";
  const char* const argv[] = {"/proc/self/exe", "--launch", name, top.path().c_str(), nullptr};
  const auto start = [&] {
    pid_t launcher = -1;
    EXPECT_EQ(
        posix_spawn(&launcher, argv[0], nullptr, nullptr, const_cast<char* const*>(argv), environ),
        0);
    return launcher;
  };
  const auto end = [](pid_t launcher, int how) {
    kill(launcher, how);
    while (waitpid(launcher, nullptr, 0) < 0 && errno == EINTR) {
    }
  };
  // How long it takes until there is something to be left; a sanitizer multiplies it.
  const auto begin = Clock::now();
  const pid_t first = start();
  size_t most = 0;
  while (most < 4 && Clock::now() - begin < std::chrono::minutes(1)) {
    most = std::max(most, LaunchedFrom(top.path()).size());
  }
  const auto span = std::min<Clock::duration>((Clock::now() - begin) * 2, std::chrono::seconds(2));
  end(first, SIGKILL);
  const int rounds = std::clamp(static_cast<int>(std::chrono::seconds(20) / span), 20, 150);
  for (int round = 0; round < rounds; ++round) {
    const pid_t launcher = start();
    // Not at random: every moment has its turn.
    std::this_thread::sleep_for(span * round / rounds);
    end(launcher, round % 3 == 0 ? SIGABRT : SIGKILL);
  }
  // The positive control: there was something to be left.
  EXPECT_TRUE(most >= 4);
  EXPECT_TRUE(test::Eventually([&] { return LaunchedFrom(top.path()).empty(); }));
  EXPECT_TRUE(bystander.alive());
}

LONG_TEST(ALauncherThatIsKilledAtAnyMomentLeavesNothingBesideAWarden) {
  if (!test::InOwnPidNamespace()) NOT_RUN("needs a process namespace, in case it sends too much");
  KillLaunchersAtEveryMoment(TreeTier::kSubreaper);
}

LONG_TEST(ALauncherThatIsKilledAtAnyMomentLeavesNothingInItsScope) {
  if (!test::InOwnPidNamespace()) NOT_RUN("needs a process namespace, in case it sends too much");
  if (!SignalScopeIsProven()) NOT_RUN("the kernel has no signal scope");
  KillLaunchersAtEveryMoment(TreeTier::kSignalScope);
}

TEST(APinnedProgramThatWasWrittenToIsNotExecuted) {
  const TemporaryDirectory top;
  const std::string path = top / "program";
  EXPECT_EQ(PinnedProgram(path).fd(), -1);
  test::WriteText(path, "one");
  const PinnedProgram program(path);
  EXPECT_TRUE(program.fd() >= 3);
  test::NextTick();
  test::WriteText(path, "two");
  EXPECT_EQ(program.fd(), -1);
}

}  // namespace
}  // namespace sandbox_run
