#include "process/launcher_link.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "check.h"
#include "process/warden.h"
#include "support.h"

// With env(1) in the place of a launcher: it gets what a launcher gets, and starts what it starts.

namespace sandbox_run {
namespace {

using std::chrono::milliseconds;
using test::Running;
using test::RunToEnd;
using test::ShellCommand;
using test::TemporaryDirectory;
using test::Threads;

ConfinementSpec LauncherSpecFor(const std::string& parent, const std::string& program) {
  ConfinementSpec spec = test::BareSpec(parent);
  spec.launcher.emplace();
  spec.launcher->program = program;
  // env(1) makes no namespace: everything of this user is in reach.
  spec.launcher->alone = false;
  // Nor does it shut `/`; see shut_root_test.cc.
  spec.launcher->checks_root = false;
  spec.launcher->env = std::string("PATH=/usr/bin:/bin") + '\0';
  return spec;
}

TEST(LauncherStartsTheCommandAndItsEndIsTheCommands) {
  TemporaryDirectory directory;
  Outcome outcome = RunToEnd(LauncherSpecFor(directory.path(), "/usr/bin/env"),
                             ShellCommand("echo \"$0 $PATH $(ulimit -n)\"; exit 7"));
  EXPECT_TRUE(!outcome.failure);
  EXPECT_EQ(outcome.exit_code, 7);
  outcome = RunToEnd(LauncherSpecFor(directory.path(), "/usr/bin/env"), ShellCommand("kill -9 $$"));
  EXPECT_EQ(outcome.signal, SIGKILL);
}

TEST(LauncherIsNotKeptFromGainingPrivilegesAndTheCommandIs) {
  TemporaryDirectory directory;
  TemporaryDirectory programs;
  const std::string script = programs / "launcher";
  test::WriteText(script,
                  "#!/bin/sh\ngrep NoNewPrivs /proc/self/status >&2\nfor last; do :; done\nexec "
                  "\"$last\"\n");
  chmod(script.c_str(), 0755);
  const Outcome outcome = RunToEnd(LauncherSpecFor(directory.path(), script),
                                   ShellCommand("grep NoNewPrivs /proc/self/status"));
  EXPECT_TRUE(!outcome.failure);
  // As this process is: in a container nobody may gain any.
  const bool kept_from_it = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
  EXPECT_EQ(outcome.output[1].kept,
            std::string(kept_from_it ? "NoNewPrivs:\t1\n" : "NoNewPrivs:\t0\n"));
  EXPECT_EQ(outcome.output[0].kept, std::string("NoNewPrivs:\t1\n"));
}

TEST(LauncherThatStartsNothingIsAFailureWhateverItsStatusIs) {
  TemporaryDirectory directory;
  for (const char* program : {"/bin/true", "/bin/false"}) {
    const Outcome outcome =
        RunToEnd(LauncherSpecFor(directory.path(), program), ShellCommand("exit 0"));
    EXPECT_TRUE(outcome.failure.has_value());
    EXPECT_EQ(std::string(outcome.failure->stage), std::string("launcher"));
  }
}

TEST(LauncherOfAProgramThatIsNotThereSaysSo) {
  TemporaryDirectory directory;
  CommandSpec command = ShellCommand("exit 0");
  command.program = "/nonexistent/program";
  const Outcome outcome =
      RunToEnd(LauncherSpecFor(directory.path(), "/usr/bin/env"), std::move(command));
  EXPECT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(std::string(outcome.failure->stage), std::string("exec"));
  EXPECT_EQ(outcome.failure->path, std::string("/nonexistent/program"));
}

TEST(LauncherWithAProcessThatTheCommandCouldTakeOverIsRefused) {
  TemporaryDirectory directory;
  const std::string ran = directory / "ran";
  ConfinementSpec spec = LauncherSpecFor(directory.path(), "/usr/bin/env");
  spec.launcher->alone = true;
  const Outcome outcome = RunToEnd(spec, ShellCommand("touch " + ran));
  EXPECT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(std::string(outcome.failure->stage), std::string("launcher.others"));
  EXPECT_TRUE(access(ran.c_str(), F_OK) != 0);
}

TEST(LauncherIsNotBelievedWhenWhoWaitsForTheCommandWasEnded) {
  TemporaryDirectory directory;
  TemporaryDirectory programs;
  const std::string script = programs / "launcher";
  // Says that all is well, whatever became of what it started.
  test::WriteText(script, "#!/bin/sh\nfor last; do :; done\n\"$last\"\nexit 0\n");
  chmod(script.c_str(), 0755);
  const ConfinementSpec spec = LauncherSpecFor(directory.path(), script);
  EXPECT_EQ(RunToEnd(spec, ShellCommand("exit 5")).exit_code, 5);
  const Outcome outcome = RunToEnd(spec, ShellCommand("echo $$; kill -9 $PPID; sleep 300"));
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(std::string(outcome.failure->stage), std::string("launcher.lost"));
  const std::string said = outcome.output[0].kept;
  const pid_t command = atoi(said.c_str());
  ASSERT_TRUE(command > 0);
  EXPECT_TRUE(test::Eventually([&] { return !test::IsRunning(command); }));
}

TEST(LauncherDoesNotGetTheSignalsOfItsCommand) {
  TemporaryDirectory directory;
  const Threads threads(LauncherSpecFor(directory.path(), "/usr/bin/env"));
  Running running(threads,
                  ShellCommand("trap 'exit 9' USR1; echo ready; while :; do sleep 0.02; done"));
  // Before it began, too: it waits for the command.
  running.command().Signal(SIGCONT);
  running.WaitForLines(1);
  running.command().Signal(SIGUSR1);
  EXPECT_EQ(running.Wait().exit_code, 9);
}

TEST(LauncherIsToldWhatIsThereWhenACommandStarts) {
  LauncherSpec spec;
  spec.settings = "always\n";
  spec.conditional = {{"/bin", "there\n"}, {"/nonexistent", "absent\n"}};
  spec.slot_setting = "slot ";
  spec.foreground_settings = "foreground\n";
  EXPECT_EQ(LauncherSettings(spec, "/s", false),
            std::string("always\nslot /s\nthere\nforeground\n"));
  EXPECT_EQ(LauncherSettings(spec, "/s", true), std::string("always\nslot /s\nthere\n"));
}

TEST(LauncherHasADeadlineBehindThatOfTheCommand) {
  LauncherSpec spec;
  spec.program = "/l";
  spec.deadline_option = "--timeout=";
  EXPECT_EQ(LauncherArguments(spec, milliseconds(3'600'000))[1], std::string("--timeout=01:00:30"));
  EXPECT_EQ(LauncherArguments(spec, milliseconds(0))[1], std::string("/proc/self/fd/5"));
}

}  // namespace
}  // namespace sandbox_run
