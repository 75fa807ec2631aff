#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

#include "check.h"
#include "core/cgroup.h"
#include "core/cgroup_removal.h"
#include "core/command.h"
#include "core/process_usage.h"
#include "core/tree_kill.h"
#include "core/tree_sampler.h"
#include "support.h"

namespace sandbox_run {
namespace {

using std::chrono::milliseconds;
using test::BareSpec;
using test::RunToEnd;
using test::ShellCommand;
using test::TemporaryDirectory;

TEST(ProcessCountsAreThoseOfTheProcess) {
  const auto self = ReadProcessCounts(getpid());
  ASSERT_TRUE(self.has_value());
  EXPECT_TRUE(self->threads >= 1);
  EXPECT_TRUE(self->start_time > 0);
  const clock_t begin = clock();
  while (clock() - begin < CLOCKS_PER_SEC / 10) {
  }
  EXPECT_TRUE(ReadProcessCounts(getpid())->own_cpu_ms >= self->own_cpu_ms + 90);
  EXPECT_TRUE(!ReadProcessCounts(0x7ffffff0).has_value());
}

// What is mounted on it keeps a directory busy, as a process that has not ended keeps a group.
TEST(AGroupThatWasBusyIsRemovedLater) {
  const TemporaryDirectory place;
  const std::string group = place.path() + "/group";
  ASSERT_EQ(mkdir(group.c_str(), 0755), 0);
  if (mount("none", group.c_str(), "tmpfs", 0, nullptr) != 0)
    NOT_RUN("nothing can be mounted here");
  const int directory = open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  RemoveGroup(directory, group);
  RemoveLeftGroups();
  EXPECT_EQ(access(group.c_str(), F_OK), 0);
  close(directory);
  EXPECT_EQ(umount2(group.c_str(), MNT_DETACH), 0);
  RemoveLeftGroups();
  EXPECT_EQ(access(group.c_str(), F_OK), -1);
}

TEST(ProcessMemoryIsWhatIsWritten) {
  const uint64_t before = ReadMemoryAtMost(getpid()).value_or(0);
  constexpr size_t kSize = 50'000'000;
  // Filled by the kernel: a sanitizer has memory of its own for what the program writes.
  void* const memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_TRUE(memory != MAP_FAILED);
  const uint64_t after = ReadMemoryAtMost(getpid()).value_or(0);
  EXPECT_TRUE(after >= before + kSize * 9 / 10 && after <= before + kSize * 2);
  const auto share = ReadMemoryShare(getpid());
  ASSERT_TRUE(share.has_value());
  EXPECT_TRUE(*share >= kSize && *share <= after + kSize);
  munmap(memory, kSize);
}

TEST(LimitsOfProcessesBeyondWhatAKernelHasAreWhatItHas) {
  EXPECT_EQ(CountForPidsMax(0), 0u);
  EXPECT_EQ(CountForPidsMax(200), 200u);
  EXPECT_EQ(CountForPidsMax(4'194'304), 4'194'304u);
  // The kernel refuses these (kernel/cgroup/pids.c).
  EXPECT_EQ(CountForPidsMax(4'194'305), 4'194'304u);
  EXPECT_EQ(CountForPidsMax(uint64_t{1} << 62), 4'194'304u);
}

TEST(SamplerWithoutLimitsNeverLooks) {
  TreeSampler sampler(TreeLimits(), {});
  sampler.Begin(Clock::now(), 0);
  EXPECT_TRUE(!sampler.next().has_value());
}

LONG_TEST(SamplerKeepsTheTimeOfProcessesThatAreGone) {
  TreeLimits limits;
  limits.cpu_ms = 250;
  TreeSampler sampler(limits, {});
  sampler.Begin(Clock::now() - milliseconds(100), 0);
  std::optional<LimitExcess> excess;
  std::vector<pid_t> members;
  const TreeSampler::Members tree = {[&] { return members; }, [](pid_t, size_t) { return 0; }};
  // None of them uses as much as is allowed; together they do.
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(!excess.has_value());
    const pid_t pid = fork();
    if (pid == 0) {
      // As the kernel counts it, in hundredths of a second.
      while (ReadProcessCounts(getpid())->own_cpu_ms < 120) {
      }
      pause();
      _exit(0);
    }
    members = {pid};
    EXPECT_TRUE(test::Eventually([&] { return ReadProcessCounts(pid)->own_cpu_ms >= 120; }));
    EXPECT_TRUE(test::Eventually([&] { return Clock::now() >= *sampler.next(); }));
    excess = sampler.Look(tree, nullptr).value();
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  ASSERT_TRUE(excess.has_value());
  EXPECT_TRUE(excess->name == LimitName::kCpu);
  EXPECT_TRUE(excess->used.value_or(0) >= 300);
}

LONG_TEST(SamplerLooksSeldomUntilTheHostHasLessMemory) {
  TreeLimits limits;
  limits.memory = uint64_t{64} << 30;
  TreeSampler sampler(limits, {});
  int looks = 0;
  const TreeSampler::Members tree = {[&] {
                                       ++looks;
                                       // So dear that a calm tree is left alone for as long as it
                                       // can be.
                                       std::this_thread::sleep_for(milliseconds(5));
                                       return std::vector<pid_t>{getpid()};
                                     },
                                     [](pid_t, size_t) { return 0; }};
  sampler.Begin(Clock::now(), 0);
  // At the next time that it names; true: it only glanced.
  const auto passes = [&] {
    std::this_thread::sleep_until(*sampler.next());
    const int before = looks;
    EXPECT_TRUE(!sampler.Look(tree, nullptr).value().has_value());
    return looks == before;
  };
  // Others on this machine take and give memory, too.
  EXPECT_TRUE(test::Eventually(passes));
  EXPECT_TRUE(test::Eventually([&] {
    while (passes()) {
    }
    // That look was due. The next four glances pass, unless there is less memory.
    constexpr size_t kSize = size_t{600} << 20;
    std::vector<char> taken(kSize, 'x');
    return !passes();
  }));
}

TEST(CommandThatIsSilentIsEnded) {
  const TemporaryDirectory top;
  ConfinementSpec spec = BareSpec(top.path());
  spec.idle_timeout = milliseconds(100);
  // Before the other one, and after it: with a limit of its own, which is none.
  const test::Gate gate;
  const test::Threads threads(spec);
  CommandSpec own = ShellCommand("echo; " + gate.wait());
  own.idle_timeout = milliseconds(0);
  test::Running unlimited(threads, std::move(own));
  unlimited.WaitForLines(1);
  const Outcome silent = test::RunUntilReady(
      spec, ShellCommand("echo ready; exec sleep 300"),
      [](CommandSpec& command, milliseconds time) { command.idle_timeout = time; });
  ASSERT_TRUE(silent.limit.has_value());
  EXPECT_TRUE(silent.limit->name == LimitName::kIdle);
  EXPECT_TRUE(!silent.timed_out && !silent.canceled);
  EXPECT_EQ(silent.output[0].kept, "ready\n");
  EXPECT_EQ(silent.signal, SIGTERM);
  // The limit of the sandbox.
  EXPECT_TRUE(RunToEnd(spec, ShellCommand("exec sleep 300")).limit.has_value());
  gate.Open();
  EXPECT_TRUE(!unlimited.Wait().limit.has_value());
}

TEST(CommandsOwnTimeOutIsNoLimit) {
  const TemporaryDirectory top;
  ConfinementSpec spec = BareSpec(top.path());
  spec.idle_timeout = milliseconds(200);
  CommandSpec command = ShellCommand("trap '' TERM; while :; do sleep 1; done");
  command.timeout = milliseconds(100);
  command.kill_grace = milliseconds(400);
  const Outcome outcome = RunToEnd(spec, std::move(command));
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_TRUE(!outcome.limit.has_value());
}

TEST(CommandThatFillsItsDirectoryIsEnded) {
  const TemporaryDirectory top;
  ConfinementSpec spec = BareSpec(top.path());
  spec.slot_directories = {"slot:tmp"};
  spec.slot_variables = {{"TMPDIR", "slot:tmp"}};
  spec.tree_limits.tmp_bytes = 1'000'000;
  const Outcome outcome =
      RunToEnd(spec, ShellCommand("head -c 3000000 /dev/zero > $TMPDIR/x; sleep 300"));
  ASSERT_TRUE(outcome.limit.has_value());
  EXPECT_TRUE(outcome.limit->name == LimitName::kTmp);
  EXPECT_TRUE(outcome.limit->used.value_or(0) >= 3'000'000);
  EXPECT_EQ(outcome.signal, SIGKILL);
}

TEST(CommandWithTooManyProcessesIsEnded) {
  const TemporaryDirectory top;
  ConfinementSpec spec = test::PermissiveSpec(top.path());
  spec.tree_limits.processes = 10;
  const std::string script = "for i in 1 2 3 4 5 6 7 8; do sleep 300 & done; ";
  // It is looked at now and then: longer and longer, until somebody looked while all of them were
  // there.
  uint64_t most = 0;
  for (int tenths = 2; most < 10 && tenths < 1000; tenths *= 2) {
    const std::string time = std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
    const Outcome few = RunToEnd(spec, ShellCommand(script + "sleep " + time));
    EXPECT_TRUE(!few.limit.has_value());
    most = few.tree_usage.peak_processes.value_or(0);
  }
  EXPECT_EQ(most, 10u);
  const Outcome many = RunToEnd(spec, ShellCommand(script + script + "wait"));
  ASSERT_TRUE(many.limit.has_value());
  EXPECT_TRUE(many.limit->name == LimitName::kProcesses);
}

// A control group as the kernel makes it, in a directory where it does not: what the kernel answers
// is what the files hold.
std::string group_parent;
struct Fakes {
  explicit Fakes(const TemporaryDirectory& top) { group_parent = top.path(); }
  ~Fakes() { group_parent.clear(); }
};

TEST(AGroupThatIsGoneIsNoGroupWithoutExcess) {
  const TemporaryDirectory top;
  const Fakes fakes(top);
  const auto made = Cgroup::Make(top.path(), {1 << 30, 10, 1000, 0});
  ASSERT_TRUE(made.ok());
  const Cgroup& group = *made.value();
  const std::string place = top / test::Entries(top.path()).front() + "/";
  EXPECT_EQ(test::ReadText(place + "pids.max"), "10");
  EXPECT_EQ(test::ReadText(place + "memory.swap.max"), "0");
  ASSERT_TRUE(group.Excess().ok());
  EXPECT_TRUE(!group.Excess().value());
  EXPECT_EQ(group.CpuMs().value(), 7u);
  test::WriteText(place + "pids.events", "max 3\n");
  ASSERT_TRUE(group.Excess().ok() && group.Excess().value());
  EXPECT_TRUE(group.Excess().value()->name == LimitName::kProcesses);
  // What is read of a group that was removed: nothing (ENODEV).
  test::WriteText(place + "pids.events", "");
  test::WriteText(place + "cpu.stat", "");
  ASSERT_TRUE(!group.Excess().ok() && !group.CpuMs().ok());
  EXPECT_EQ(std::string(group.Excess().failure().stage), kCgroupLost);
}

TEST(AGroupThatTakesNoLimitOfSwapIsNoGroup) {
  const TemporaryDirectory top;
  const Fakes fakes(top);
  setenv("SANDBOX_RUN_TEST_NO_SWAP_LIMIT", "1", 1);
  const auto made = Cgroup::Make(top.path(), {1 << 30, 0, 0, 0});
  EXPECT_TRUE(!made.ok());
  // Without a limit of memory there is none of swap.
  EXPECT_TRUE(Cgroup::Make(top.path(), {0, 10, 0, 0}).ok());
  unsetenv("SANDBOX_RUN_TEST_NO_SWAP_LIMIT");
}

TEST(ACommandWhoseGroupIsRemovedEndsAndSaysSo) {
  ConfinementSpec spec;
  for (const bool scope : {false, true}) {
    if (scope && !SignalScopeIsProven()) continue;
    const TemporaryDirectory top, groups;
    const Fakes fakes(groups);
    spec = scope ? test::PermissiveSpec(top.path()) : BareSpec(top.path());
    spec.cgroup_parent = groups.path();
    spec.tree_limits.cpu_ms = 60'000;
    const test::Threads threads(spec);
    // The positive control: with its group it runs, and is in it.
    EXPECT_EQ(RunToEnd(threads, ShellCommand("exit 3")).exit_code, 3);
    const std::string first = groups / test::Entries(groups.path()).front() + "/";
    EXPECT_EQ(test::ReadText(first + "cgroup.procs"), "0");
    test::Running running(threads, ShellCommand("echo ready; exec sleep 300"));
    running.WaitForLines(1);
    for (const std::string& name : test::Entries(groups.path())) {
      test::WriteText(groups / name + "/cpu.stat", "");
    }
    const Outcome outcome = running.Wait();
    ASSERT_TRUE(outcome.failure.has_value());
    EXPECT_EQ(std::string(outcome.failure->stage), kCgroupLost);
    EXPECT_TRUE(outcome.tree_ended);
  }
}

TEST(ACommandThatCannotEnterItsGroupDoesNotRun) {
  const TemporaryDirectory top, groups;
  const Fakes fakes(groups);
  setenv("SANDBOX_RUN_TEST_FULL_GROUP", "1", 1);
  ConfinementSpec spec = BareSpec(top.path());
  spec.cgroup_parent = groups.path();
  spec.tree_limits.processes = 100;
  const std::string ran = top / "ran";
  const Outcome outcome = RunToEnd(spec, ShellCommand("touch " + ran));
  unsetenv("SANDBOX_RUN_TEST_FULL_GROUP");
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(std::string(outcome.failure->stage), "cgroup.enter");
  EXPECT_EQ(outcome.failure->error, ENOSPC);
  EXPECT_TRUE(!test::Exists(ran));
}

}  // namespace
}  // namespace sandbox_run

// In place of libc's, for the whole program.
extern "C" int mkdir(const char* path, mode_t mode) noexcept {
  if (syscall(SYS_mkdirat, AT_FDCWD, path, mode) != 0) return -1;
  using sandbox_run::group_parent, sandbox_run::test::WriteText;
  if (group_parent.empty() || !std::string(path).starts_with(group_parent + "/")) return 0;
  const std::string place = std::string(path) + "/";
  for (const char* name : {"memory.max", "pids.max", "memory.oom.group"})
    WriteText(place + name, "");
  WriteText(place + "pids.events", "max 0\n");
  WriteText(place + "memory.events", "oom 0\noom_kill 0\n");
  WriteText(place + "cpu.stat", "usage_usec 7000\n");
  WriteText(place + "cgroup.events", "populated 1\n");
  const std::string swap = place + "memory.swap.max", procs = place + "cgroup.procs";
  if (getenv("SANDBOX_RUN_TEST_NO_SWAP_LIMIT") != nullptr) {
    syscall(SYS_mkdirat, AT_FDCWD, swap.c_str(), mode);
  } else {
    WriteText(swap, "");
  }
  if (getenv("SANDBOX_RUN_TEST_FULL_GROUP") != nullptr) return symlink("/dev/full", procs.c_str());
  WriteText(procs, "");
  return 0;
}
