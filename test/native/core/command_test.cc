#include "core/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check.h"
#include "support.h"

namespace sandbox_run {
namespace {

using std::chrono::milliseconds;
using test::BareSpec;
using test::CountDescriptors;
using test::Running;
using test::RunToEnd;
using test::ShellCommand;
using test::TemporaryDirectory;
using test::Threads;

Outcome Run(CommandSpec spec) {
  const TemporaryDirectory top;
  return RunToEnd(BareSpec(top.path()), std::move(spec));
}
Outcome Run(const std::string& script) { return Run(ShellCommand(script)); }

TEST(CommandReportsExitCodeAndOutput) {
  const Outcome outcome = Run("echo out; echo err >&2; exit 7");
  EXPECT_TRUE(!outcome.failure);
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.output[0].kept, "out\n");
  EXPECT_EQ(outcome.output[0].total, 4u);
  EXPECT_EQ(outcome.output[1].kept, "err\n");
  EXPECT_TRUE(!outcome.timed_out && !outcome.canceled);
  EXPECT_TRUE(outcome.duration_ms > 0);
  EXPECT_TRUE(outcome.usage.ru_maxrss > 0);
}

TEST(CommandReportsTheSignalThatEndedIt) {
  const Outcome outcome = Run("kill -USR2 $$");
  EXPECT_EQ(outcome.signal, SIGUSR2);
  EXPECT_EQ(outcome.exit_code, 0);
}

TEST(CommandCountsItsCpuTime) {
  const Outcome outcome = Run("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
  EXPECT_TRUE(outcome.usage.ru_utime.tv_sec > 0 || outcome.usage.ru_utime.tv_usec > 1000);
}

TEST(CommandStartsWithDefaultSignalsAndAnEmptyMask) {
  // This process ignores SIGPIPE, as Node does; its threads block everything.
  const Outcome outcome = Run("grep -E '^Sig(Blk|Ign)' /proc/self/status");
  EXPECT_EQ(outcome.output[0].kept, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(CommandLeadsASessionOfItsOwn) {
  const Outcome outcome = Run("cut -d' ' -f1,5,6 /proc/$$/stat; echo $$");
  int pid = 0, group = 0, session = 0, shell = 0;
  sscanf(std::string(outcome.output[0].kept).c_str(), "%d %d %d\n%d", &pid, &group, &session,
         &shell);
  EXPECT_TRUE(shell > 0);
  EXPECT_EQ(pid, shell);
  EXPECT_EQ(group, shell);
  EXPECT_EQ(session, shell);
}

TEST(CommandHasNoCapabilitiesAndNoNewPrivileges) {
  const Outcome outcome = Run("grep -E '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs)' /proc/self/status");
  const std::string none = ":\t0000000000000000\n";
  EXPECT_EQ(outcome.output[0].kept, "CapInh" + none + "CapPrm" + none + "CapEff" + none + "CapAmb" +
                                        none + "NoNewPrivs:\t1\n");
}

TEST(CommandInheritsNoDescriptor) {
  const UniqueFd low(open("/etc/passwd", O_RDONLY));
  const UniqueFd leaked(fcntl(low.get(), F_DUPFD, 57));
  ASSERT_EQ(fcntl(leaked.get(), F_GETFD), 0);
  const std::string path = "/proc/self/fd/" + std::to_string(leaked.get());
  EXPECT_EQ(Run("[ -e /proc/self/fd/1 ] && ! [ -e " + path + " ]").exit_code, 0);
  EXPECT_EQ(Run("ls /proc/self/fd").output[0].kept, "0\n1\n2\n3\n");
}

TEST(CommandGetsItsLimitsAndUmask) {
  const TemporaryDirectory top;
  ConfinementSpec spec = BareSpec(top.path());
  spec.limits = {{4 /* RLIMIT_CORE */, 0, 0}, {7 /* RLIMIT_NOFILE */, 40, 50}};
  spec.umask = 0137;
  const Outcome outcome =
      RunToEnd(std::move(spec), ShellCommand("ulimit -c; ulimit -Sn; ulimit -Hn; umask"));
  EXPECT_EQ(outcome.output[0].kept, "0\n40\n50\n0137\n");
}

TEST(CommandReadsItsInput) {
  std::string input(1'000'000, 'x');
  input += "end";
  CommandSpec spec = ShellCommand("cat");
  spec.streams.stdio[0].mode = StdioSpec::Mode::kCapture;
  spec.streams.input = input;
  const Outcome outcome = Run(std::move(spec));
  EXPECT_EQ(outcome.output[0].kept.size(), input.size());
  EXPECT_TRUE(outcome.output[0].kept == input);
}

// A descriptor of this process is of that pipe (`pipe:[1234]`).
bool IsHeldHere(const std::string& pipe) {
  for (const std::string& fd : test::Entries("/proc/self/fd")) {
    char link[64] = {};
    const std::string path = "/proc/self/fd/" + fd;
    if (readlink(path.c_str(), link, sizeof(link) - 1) > 0 && link == pipe) return true;
  }
  return false;
}

TEST(CommandNeedNotReadItsInput) {
  const TemporaryDirectory top;
  const test::Gate gate;
  const test::Threads threads(BareSpec(top.path()));
  CommandSpec spec = ShellCommand("readlink /proc/$$/fd/0; " + gate.wait() +
                                  "; exec <&-; echo; cat " + top.path() + "/fifo; exit 3");
  ASSERT_EQ(mkfifo((top / "fifo").c_str(), 0600), 0);
  spec.streams.stdio[0].mode = StdioSpec::Mode::kCapture;
  spec.streams.input = std::string(1'000'000, 'x');
  Running running(threads, std::move(spec));
  std::string pipe = running.WaitForLines(1);
  pipe.pop_back();
  // While somebody may read it, it is written to.
  EXPECT_TRUE(IsHeldHere(pipe));
  gate.Open();
  running.WaitForLines(2);
  // The rest is given up while the command runs.
  EXPECT_TRUE(test::Eventually([&] { return !IsHeldHere(pipe); }));
  test::WriteText(top / "fifo", "");
  EXPECT_EQ(running.Wait().exit_code, 3);
}

TEST(CommandHasEmptyInputByDefault) {
  EXPECT_EQ(Run("cat; echo end").output[0].kept, "end\n");
  CommandSpec spec = ShellCommand("cat; echo end");
  spec.streams.stdio[0].mode = StdioSpec::Mode::kCapture;
  EXPECT_EQ(Run(std::move(spec)).output[0].kept, "end\n");
}

TEST(CommandUsesADescriptorAsItIs) {
  const TemporaryDirectory top;
  CommandSpec spec = ShellCommand("echo hello");
  spec.streams.stdio[1].mode = StdioSpec::Mode::kFd;
  spec.streams.stdio[1].fd.reset(open((top / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_EQ(Run(std::move(spec)).exit_code, 0);
  EXPECT_EQ(test::ReadText(top / "out"), "hello\n");
}

TEST(CommandRefusesADirectoryAsAStandardStream) {
  CommandSpec spec = ShellCommand("true");
  spec.streams.stdio[0].mode = StdioSpec::Mode::kFd;
  spec.streams.stdio[0].fd.reset(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Outcome outcome = Run(std::move(spec));
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->stage, std::string("stdio"));
  EXPECT_EQ(outcome.failure->error, EISDIR);
}

TEST(CommandKeepsTheHeadAndTheTailOfOutputAndCountsTheRest) {
  CommandSpec spec = ShellCommand("echo begin; head -c 3000000 /dev/zero; echo end; seq 3 >&2");
  spec.streams.output_limit = 1001;
  Outcome outcome = Run(std::move(spec));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.output[0].total, 3'000'010u);
  EXPECT_EQ(outcome.output[0].head_size, 501u);
  EXPECT_TRUE(outcome.output[0].kept ==
              "begin\n" + std::string(501 - 6, '\0') + std::string(500 - 4, '\0') + "end\n");
  EXPECT_EQ(outcome.output[1].kept, "1\n2\n3\n");

  spec = ShellCommand("printf abcdefgh");
  spec.streams.output_limit = 5;
  spec.streams.head_limit = 1;
  EXPECT_EQ(Run(std::move(spec)).output[0].kept, "aefgh");
}

TEST(CommandHasBothOutputsInOnePipeInTheOrderOfTheWrites) {
  CommandSpec spec = ShellCommand("for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done");
  spec.streams.combined = true;
  const Outcome outcome = Run(std::move(spec));
  EXPECT_EQ(outcome.output[0].kept, "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n");
  EXPECT_EQ(outcome.output[1].total, 0u);
}

TEST(AConsumerThatTakesNothingKeepsNoBackgroundProcessAlive) {
  const TemporaryDirectory top;
  const Threads threads(BareSpec(top.path()));
  CommandSpec spec = ShellCommand("yes & echo $! > " + (top / "pid") + "; exit 4");
  spec.streams.stream_output = true;
  Running running(threads, std::move(spec));
  EXPECT_TRUE(test::Eventually([&] {
    const int pid = atoi(test::ReadText(top / "pid").c_str());
    return pid > 0 && !test::IsRunning(pid);
  }));
  // What is in the pipe is waited for, until somebody has no time for that.
  running.command().Cancel(true);
  const Outcome outcome = running.Wait();
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_TRUE(outcome.output_held);
  EXPECT_TRUE(outcome.tree_ended);
}

TEST(AConsumerThatTakesItsTimeGetsEverythingAndHoldsNothing) {
  const TemporaryDirectory top;
  const Threads threads(BareSpec(top.path()));
  CommandSpec spec =
      ShellCommand("echo $$ > " + (top / "pid") + "; exec head -c 1100000 /dev/zero");
  spec.streams.stream_output = true;
  Running running(threads, std::move(spec));
  EXPECT_TRUE(test::Eventually([&] {
    const int pid = atoi(test::ReadText(top / "pid").c_str());
    return pid > 0 && !test::IsRunning(pid);
  }));
  test::OutliveTheHoldingOfOutput();
  running.command().Acknowledge(1'100'000);
  const Outcome outcome = running.Wait();
  EXPECT_EQ(outcome.output[0].total, 1'100'000u);
  EXPECT_TRUE(!outcome.output_held);
}

CommandSpec SpillingCommand(const std::string& script, const std::string& path) {
  CommandSpec spec = ShellCommand(script);
  spec.streams.spill[0].reset(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  spec.streams.spill_limit = UINT64_MAX;
  return spec;
}

TEST(CommandSpillsEverythingThatIsReadOrSaysWhyNot) {
  const TemporaryDirectory top;
  CommandSpec spec = SpillingCommand("seq 100000", top / "all");
  spec.streams.output_limit = 10;
  const Outcome all = Run(std::move(spec));
  ASSERT_TRUE(all.spilled[0].has_value());
  EXPECT_TRUE(!all.spilled[1].has_value());
  EXPECT_TRUE(all.spilled[0]->is_whole);
  EXPECT_EQ(all.spilled[0]->written, 588'895u);
  EXPECT_EQ(test::ReadText(top / "all").size(), 588'895u);
  EXPECT_TRUE(test::ReadText(top / "all").ends_with("\n99999\n100000\n"));

  spec = SpillingCommand("seq 100000", top / "some");
  spec.streams.spill_limit = 1000;
  const Outcome some = Run(std::move(spec));
  EXPECT_TRUE(!some.spilled[0]->is_whole);
  EXPECT_EQ(some.spilled[0]->error, 0);
  EXPECT_EQ(test::ReadText(top / "some").size(), 1000u);

  // A disk without room: the command goes on.
  const Outcome full = Run(SpillingCommand("seq 100000; exit 3", "/dev/full"));
  EXPECT_EQ(full.exit_code, 3);
  EXPECT_EQ(full.output[0].total, 588'895u);
  EXPECT_TRUE(!full.spilled[0]->is_whole);
  EXPECT_EQ(full.spilled[0]->error, ENOSPC);
  EXPECT_EQ(full.spilled[0]->written, 0u);
}

TEST(CommandShowsItsOutputSoFarFromAnyThread) {
  const TemporaryDirectory top;
  const test::Threads threads(BareSpec(top.path()));
  const test::Gate gate;
  Running running(threads, ShellCommand("seq 300000; echo last; " + gate.wait()));
  uint64_t before = 0;
  EXPECT_TRUE(test::Eventually([&] {
    const CapturedStream so_far = running.command().OutputSoFar(0);
    EXPECT_TRUE(so_far.total >= before);
    before = so_far.total;
    if (so_far.total > 0) EXPECT_TRUE(so_far.kept.view().starts_with("1\n2\n"));
    return so_far.kept.view().ends_with("\nlast\n");
  }));
  gate.Open();
  EXPECT_EQ(running.Wait().output[0].total, before);
}

TEST(CommandReportsWhatWasKeptToAConsumerThatComesLate) {
  const TemporaryDirectory top;
  const test::Threads threads(BareSpec(top.path()));
  const test::Gate first, second;
  Running running(threads, ShellCommand("echo before; " + first.wait() + "; echo after; " +
                                        second.wait() + "; seq 100000"));
  running.WaitForLines(1);
  running.command().Stream(true);
  EXPECT_EQ(running.WaitForOutput(7, milliseconds(0)), 7u);
  first.Open();
  EXPECT_EQ(running.WaitForOutput(13, milliseconds(0)), 13u);
  // And one that leaves holds nothing back.
  running.command().Stream(false);
  second.Open();
  EXPECT_EQ(running.Wait().output[0].total, 588'908u);
}

TEST(CommandStreamsNoFasterThanItIsConsumed) {
  constexpr size_t kTotal = 8'000'000;
  constexpr size_t kWindow = 1024 * 1024;
  constexpr size_t kLargestChunk = 64 * 1024;
  CommandSpec spec = ShellCommand("head -c 8000000 /dev/zero");
  spec.streams.stream_output = true;
  const TemporaryDirectory top;
  const test::Threads threads(BareSpec(top.path()));
  Running running(threads, std::move(spec));
  const size_t first = running.WaitForOutput(kWindow, milliseconds(50));
  EXPECT_TRUE(first >= kWindow && first <= kWindow + kLargestChunk);
  running.command().Acknowledge(kTotal);  // more than there was: counts as everything so far
  const size_t second = running.WaitForOutput(first + kWindow, milliseconds(50));
  EXPECT_TRUE(second <= first + kWindow + kLargestChunk);
  for (size_t seen = second; seen < kTotal;) {
    running.command().Acknowledge(kTotal);
    seen = running.WaitForOutput(seen + 1, milliseconds(5));
  }
  running.command().Acknowledge(kTotal);
  const Outcome outcome = running.Wait();
  EXPECT_EQ(outcome.output[0].total, kTotal);
  EXPECT_EQ(outcome.output[0].kept.size(), 1024u * 1024);
  EXPECT_EQ(outcome.exit_code, 0);
}

TEST(CommandTimesOut) {
  CommandSpec spec = ShellCommand("sleep 300");
  spec.timeout = milliseconds(50);
  const Outcome outcome = Run(std::move(spec));
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_TRUE(!outcome.canceled);
  EXPECT_EQ(outcome.signal, SIGTERM);
  EXPECT_TRUE(outcome.duration_ms >= 50);
}

void TimeOutAfter(CommandSpec& spec, milliseconds time) { spec.timeout = time; }

TEST(CommandThatIgnoresSigtermIsKilled) {
  const TemporaryDirectory top;
  CommandSpec spec = ShellCommand("trap '' TERM; echo ready; sleep 300; sleep 300; sleep 300");
  spec.kill_grace = milliseconds(100);
  const Outcome outcome = test::RunUntilReady(BareSpec(top.path()), spec, TimeOutAfter);
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_TRUE(outcome.duration_ms >= 200);
}

TEST(CommandMayEndInGoodOrderAfterATimeOut) {
  const TemporaryDirectory top;
  CommandSpec spec = ShellCommand("trap 'echo bye; exit 5' TERM; echo ready; sleep 300 & wait");
  spec.kill_grace = std::chrono::minutes(1);
  const Outcome outcome = test::RunUntilReady(BareSpec(top.path()), spec, TimeOutAfter);
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_EQ(outcome.output[0].kept, "ready\nbye\n");
}

TEST(CommandThatIsStoppedTimesOutToo) {
  CommandSpec spec = ShellCommand("kill -STOP $$");
  spec.timeout = milliseconds(100);
  spec.kill_grace = std::chrono::minutes(1);
  const Outcome outcome = Run(std::move(spec));
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.signal, SIGTERM);
}

TEST(CommandIsCanceledGently) {
  const TemporaryDirectory top;
  const test::Threads threads(BareSpec(top.path()));
  Running running(threads, ShellCommand("echo ready; exec sleep 300"));
  running.WaitForLines(1);
  running.command().Cancel(false);
  const Outcome outcome = running.Wait();
  EXPECT_TRUE(outcome.canceled);
  EXPECT_TRUE(!outcome.timed_out);
  EXPECT_EQ(outcome.signal, SIGTERM);
}

TEST(CommandIsCanceledAtOnce) {
  const TemporaryDirectory top;
  CommandSpec spec = ShellCommand("trap '' TERM; echo ready; sleep 300");
  spec.kill_grace = std::chrono::minutes(10);
  const test::Threads threads(BareSpec(top.path()));
  Running running(threads, std::move(spec));
  running.WaitForLines(1);
  running.command().Cancel(true);
  const Outcome outcome = running.Wait();
  EXPECT_TRUE(outcome.canceled);
  EXPECT_EQ(outcome.signal, SIGKILL);
  // It was not given the time that it has otherwise.
  EXPECT_TRUE(outcome.duration_ms < 10 * 60'000);
}

TEST(CommandCanceledAtTheStartDoesNothing) {
  const TemporaryDirectory top;
  for (int round = 0; round < 20; ++round) {
    const test::Threads threads(BareSpec(top.path()));
    Running running(threads, ShellCommand("sleep 300"));
    running.command().Cancel(true);
    const Outcome outcome = running.Wait();
    EXPECT_TRUE(outcome.canceled);
    EXPECT_TRUE(!outcome.failure);
  }
}

TEST(CommandGetsSignalsSentAtAnyTime) {
  const TemporaryDirectory top;
  const test::Threads threads(BareSpec(top.path()));
  for (const bool runs : {false, true}) {
    Running running(threads, ShellCommand("echo ready; exec sleep 300"));
    if (runs) running.WaitForLines(1);
    running.command().Signal(SIGUSR1);
    EXPECT_EQ(running.Wait().signal, SIGUSR1);
    running.command().Signal(SIGUSR1);  // ended: nothing happens
    running.command().Cancel(true);
    running.command().Acknowledge(1);
  }
}

TEST(CommandFailureNamesStageErrnoAndPath) {
  struct Case {
    const char* stage;
    int error;
    const char* path;
    void (*change)(CommandSpec&);
  };
  for (const Case& expected : std::vector<Case>{
           {"exec", ENOENT, "/missing", [](CommandSpec& spec) { spec.program = "/missing"; }},
           {"exec", EACCES, "/etc/passwd", [](CommandSpec& spec) { spec.program = "/etc/passwd"; }},
           {"cwd", ENOENT, "/missing", [](CommandSpec& spec) { spec.cwd = "/missing"; }},
       }) {
    CommandSpec spec = ShellCommand("true");
    expected.change(spec);
    const Outcome outcome = Run(std::move(spec));
    ASSERT_TRUE(outcome.failure.has_value());
    EXPECT_EQ(outcome.failure->stage, std::string(expected.stage));
    EXPECT_EQ(outcome.failure->error, expected.error);
    EXPECT_EQ(outcome.failure->path, std::string(expected.path));
    EXPECT_TRUE(outcome.tree_ended);
  }
}

TEST(CommandWithoutASlotDoesNotStart) {
  const Outcome outcome = RunToEnd(BareSpec("/missing"), ShellCommand("true"));
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->stage, std::string("private_directory"));
  EXPECT_EQ(outcome.failure->path, std::string("/missing"));
  EXPECT_TRUE(outcome.tree_ended);
}

TEST(CommandThatCannotBeWatchedAnyLongerIsEnded) {
  const TemporaryDirectory top;
  const test::Threads threads(BareSpec(top.path()));
  CommandSpec spec = ShellCommand("echo started; exec sleep 300");
  spec.streams.stream_output = true;
  Running running(threads, std::move(spec));
  EXPECT_TRUE(running.WaitForOutput(8, std::chrono::milliseconds(0)) >= 8);
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none = {1, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);  // poll() takes no more descriptors than that
  running.command().Acknowledge(1);
  const Outcome outcome = running.Wait();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(outcome.signal, SIGKILL);
}

LONG_TEST(ShortageOfDescriptorsAtAnyMomentIsAFailureOrNothing) {
  const TemporaryDirectory top;
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  for (const ConfinementSpec& spec : {BareSpec(top.path()), test::PermissiveSpec(top.path())}) {
    for (useconds_t delay = 0; delay < 6000; delay += 100) {
      const test::Threads threads(spec);
      Running running(threads, ShellCommand("sleep 0.01; exit 3"));
      usleep(delay);
      const rlimit none = {1, before.rlim_max};
      setrlimit(RLIMIT_NOFILE, &none);
      usleep(1000);
      setrlimit(RLIMIT_NOFILE, &before);
      const Outcome outcome = running.Wait();
      EXPECT_TRUE(outcome.failure || outcome.exit_code == 3 || outcome.signal == SIGKILL);
    }
  }
  EXPECT_EQ(test::Entries(top.path()).size(), 0u);
}

TEST(CommandsLeaveNoDescriptorAndNoZombie) {
  const TemporaryDirectory top;
  std::optional<test::Threads> threads;
  const auto run = [&] {
    CommandSpec good = ShellCommand("true");
    good.program = "/bin/true";
    good.streams.stdio[0].mode = StdioSpec::Mode::kCapture;
    EXPECT_EQ(RunToEnd(*threads, std::move(good)).exit_code, 0);
  };
  const auto fail = [&] {
    CommandSpec bad = ShellCommand("true");
    bad.program = "/missing";
    EXPECT_TRUE(RunToEnd(*threads, std::move(bad)).failure.has_value());
  };
  // With the threads everything goes that they keep for the next command.
  threads.emplace(test::PermissiveSpec(top.path()));
  run();
  threads.reset();
  const size_t before = test::CountDescriptors();
  threads.emplace(test::PermissiveSpec(top.path()));
  run();
  fail();
  const size_t first = test::CountDescriptors();
  for (int i = 0; i < 150; ++i) run();
  for (int i = 0; i < 50; ++i) fail();
  // A command's thread gives up its last descriptors after the end was reported.
  EXPECT_TRUE(test::Eventually([&] { return test::CountDescriptors() <= first; }));
  // A warden may be there, but nobody who has ended.
  EXPECT_TRUE(waitpid(-1, nullptr, WNOHANG) <= 0);
  threads.reset();
  EXPECT_EQ(test::CountDescriptors(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(CommandsLeaveFewIdleThreads) {
  const TemporaryDirectory top;
  const Threads threads(BareSpec(top.path()), std::chrono::milliseconds(200));
  const auto count = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  // As many at once, and how many threads there are by then.
  const auto run = [&](int commands) {
    const test::Gate gate;
    std::vector<std::unique_ptr<Running>> all;
    for (int i = 0; i < commands; ++i)
      all.push_back(std::make_unique<Running>(threads, ShellCommand("echo; " + gate.wait())));
    for (const auto& each : all) each->WaitForLines(1);
    const auto then = count();
    gate.Open();
    for (const auto& each : all) EXPECT_EQ(each->Wait().exit_code, 0);
    return then;
  };
  run(1);
  const auto one = count();
  EXPECT_TRUE(run(16) >= one + 15);
  test::Eventually([&] { return count() <= one + 3; });
  EXPECT_EQ(count(), one + 3);
  // Those that stay are of use, and so are new ones.
  run(8);
}

TEST(CommandsRunSideBySide) {
  const TemporaryDirectory top;
  const test::Threads threads(test::PermissiveSpec(top.path()));
  const test::Gate gate;
  std::vector<std::unique_ptr<Running>> all;
  for (int i = 0; i < 32; ++i) {
    const std::string number = std::to_string(i);
    all.push_back(std::make_unique<Running>(
        threads, ShellCommand("echo " + number + "; " + gate.wait() + "; exit " + number)));
  }
  // None ends before all of them run.
  for (const auto& each : all) each->WaitForLines(1);
  gate.Open();
  for (int i = 0; i < 32; ++i) {
    const Outcome outcome = all[static_cast<size_t>(i)]->Wait();
    EXPECT_EQ(outcome.exit_code, i);
    EXPECT_EQ(outcome.output[0].kept, std::to_string(i) + "\n");
  }
}

}  // namespace
}  // namespace sandbox_run
