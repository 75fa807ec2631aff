#include "begin/launcher_link.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "check.h"
#include "core/warden.h"
#include "hosted.h"
#include "support.h"

// With env(1) in the place of a launcher: it gets what a launcher gets, and starts what it starts.

namespace sandbox_run {
namespace {

using std::chrono::milliseconds;
using test::Hosted;
using test::Running;
using test::ShellCommand;
using test::TemporaryDirectory;

LauncherSpec LauncherSpecFor(const std::string& program) {
  LauncherSpec spec;
  spec.program = program;
  // env(1) makes no namespace: everything of this user is in reach.
  spec.alone = false;
  // Nor does it shut `/`; see below.
  spec.checks_root = false;
  spec.env = std::string("PATH=/usr/bin:/bin") + '\0';
  return spec;
}

GuestSpec GuestsWith(LauncherSpec launcher) {
  GuestSpec guests;
  guests.launcher = std::move(launcher);
  return guests;
}

// Commands that a launcher starts, with their private directories in a place of its own.
class Launched {
 public:
  explicit Launched(LauncherSpec launcher)
      : hosted_(test::BareSpec(place_.path()), GuestsWith(std::move(launcher))) {}
  explicit Launched(const std::string& program) : Launched(LauncherSpecFor(program)) {}

  const Hosted& operator*() const { return hosted_; }
  Outcome Run(const std::string& script) const { return hosted_.Run(script); }

 private:
  const TemporaryDirectory place_;
  const Hosted hosted_;
};

TEST(LauncherStartsTheCommandAndItsEndIsTheCommands) {
  const Launched launched("/usr/bin/env");
  Outcome outcome = launched.Run("echo \"$0 $PATH $(ulimit -n)\"; exit 7");
  EXPECT_TRUE(!outcome.failure);
  EXPECT_EQ(outcome.exit_code, 7);
  outcome = launched.Run("kill -9 $$");
  EXPECT_EQ(outcome.signal, SIGKILL);
}

TEST(LauncherIsNotKeptFromGainingPrivilegesAndTheCommandIs) {
  TemporaryDirectory programs;
  const std::string script = programs / "launcher";
  test::WriteText(script,
                  "#!/bin/sh\ngrep NoNewPrivs /proc/self/status >&2\nfor last; do :; done\nexec "
                  "\"$last\"\n");
  chmod(script.c_str(), 0755);
  const Outcome outcome = Launched(script).Run("grep NoNewPrivs /proc/self/status");
  EXPECT_TRUE(!outcome.failure);
  // As this process is: in a container nobody may gain any.
  const bool kept_from_it = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
  EXPECT_EQ(outcome.output[1].kept,
            std::string(kept_from_it ? "NoNewPrivs:\t1\n" : "NoNewPrivs:\t0\n"));
  EXPECT_EQ(outcome.output[0].kept, std::string("NoNewPrivs:\t1\n"));
}

TEST(LauncherThatStartsNothingIsAFailureWhateverItsStatusIs) {
  for (const char* program : {"/bin/true", "/bin/false"}) {
    const Outcome outcome = Launched(program).Run("exit 0");
    EXPECT_TRUE(outcome.failure.has_value());
    EXPECT_EQ(std::string(outcome.failure->stage), std::string("launcher"));
  }
}

TEST(LauncherOfAProgramThatIsNotThereSaysSo) {
  CommandSpec command = ShellCommand("exit 0");
  command.program = "/nonexistent/program";
  const Outcome outcome = (*Launched("/usr/bin/env")).Run(std::move(command));
  EXPECT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(std::string(outcome.failure->stage), std::string("exec"));
  EXPECT_EQ(outcome.failure->path, std::string("/nonexistent/program"));
}

TEST(LauncherWithAProcessThatTheCommandCouldTakeOverIsRefused) {
  TemporaryDirectory directory;
  const std::string ran = directory / "ran";
  LauncherSpec spec = LauncherSpecFor("/usr/bin/env");
  spec.alone = true;
  const Outcome outcome = Launched(spec).Run("touch " + ran);
  EXPECT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(std::string(outcome.failure->stage), std::string("launcher.others"));
  EXPECT_TRUE(access(ran.c_str(), F_OK) != 0);
}

TEST(LauncherIsNotBelievedWhenWhoWaitsForTheCommandWasEnded) {
  TemporaryDirectory programs;
  const std::string script = programs / "launcher";
  // Says that all is well, whatever became of what it started.
  test::WriteText(script, "#!/bin/sh\nfor last; do :; done\n\"$last\"\nexit 0\n");
  chmod(script.c_str(), 0755);
  const Launched launched(script);
  EXPECT_EQ(launched.Run("exit 5").exit_code, 5);
  const Outcome outcome = launched.Run("echo $$; kill -9 $PPID; sleep 300");
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(std::string(outcome.failure->stage), std::string("launcher.lost"));
  const std::string said = outcome.output[0].kept;
  const pid_t command = atoi(said.c_str());
  ASSERT_TRUE(command > 0);
  EXPECT_TRUE(test::Eventually([&] { return !test::IsRunning(command); }));
}

TEST(LauncherDoesNotGetTheSignalsOfItsCommand) {
  const Launched launched("/usr/bin/env");
  GuestObserver nobody;
  CommandSpec command =
      ShellCommand("trap 'exit 9' USR1; echo ready; while :; do sleep 0.02; done");
  Running running((*launched).threads(), (*launched).With(std::move(command), nobody));
  // Before it began, too: it waits for the command.
  running.command().Signal(SIGCONT);
  running.WaitForLines(1);
  running.command().Signal(SIGUSR1);
  EXPECT_EQ(running.Wait().exit_code, 9);
}

TEST(LauncherWithARootThatTheCommandCouldChangeIsRefused) {
  if (access("/", W_OK) != 0) NOT_RUN("this user cannot change what is in /");
  TemporaryDirectory directory;
  LauncherSpec spec;
  spec.program = "/usr/bin/env";
  spec.alone = false;
  const Outcome open = Launched(spec).Run("touch " + (directory / "ran"));
  EXPECT_TRUE(open.failure.has_value());
  EXPECT_EQ(std::string(open.failure ? open.failure->stage : ""), std::string("root.open"));
  EXPECT_TRUE(!test::Exists(directory / "ran"));
  if (!test::MayMount()) NOT_RUN("no mount namespace can be made here");
  spec.kept_open = test::DirectoriesInRoot();
  const Outcome shut = Launched(spec).Run("touch " + (directory / "ran") + " /x || exit 5");
  EXPECT_TRUE(!shut.failure);
  EXPECT_EQ(shut.exit_code, 5);
  EXPECT_TRUE(test::Exists(directory / "ran"));
  EXPECT_TRUE(!test::Exists("/x"));
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
