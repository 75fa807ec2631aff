#include "core/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "check.h"
#include "support.h"

namespace sandbox_run {
namespace {

using test::RunToEnd;
using test::ShellCommand;
using test::TemporaryDirectory;

constexpr TerminalSize kSize = {90, 33};

// What can be read without waiting.
std::string ReadAll(int fd) {
  std::string all;
  char buffer[4096];
  for (;;) {
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count <= 0) return all;
    all.append(buffer, static_cast<size_t>(count));
  }
}

CommandSpec OnTerminal(const std::string& script, std::string input = "") {
  CommandSpec spec = ShellCommand(script);
  spec.streams.terminal = kSize;
  spec.streams.input = std::move(input);
  return spec;
}

Outcome Run(CommandSpec spec) {
  const TemporaryDirectory top;
  return RunToEnd(test::BareSpec(top.path()), std::move(spec));
}

TEST(TerminalOfTheHostHasItsSize) {
  Result<Terminal> terminal = OpenTerminal(std::nullopt, kSize);
  ASSERT_EQ(terminal.ok(), true);
  winsize size;
  ASSERT_EQ(ioctl(terminal.value().slave.get(), TIOCGWINSZ, &size), 0);
  EXPECT_EQ(size.ws_col, 90);
  EXPECT_EQ(size.ws_row, 33);
  EXPECT_TRUE(isatty(terminal.value().slave.get()) == 1);
  EXPECT_TRUE((fcntl(terminal.value().slave.get(), F_GETFD) & FD_CLOEXEC) != 0);
  EXPECT_TRUE((fcntl(terminal.value().master.get(), F_GETFD) & FD_CLOEXEC) != 0);
  EXPECT_TRUE((fcntl(terminal.value().master.get(), F_GETFL) & O_NONBLOCK) != 0);
}

TEST(TerminalIsNotOpenedWhereTheViewHasNone) {
  const TemporaryDirectory view;
  const UniqueFd root(open(view.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  Result<Terminal> none = OpenTerminal(root.get(), kSize);
  ASSERT_EQ(none.ok(), false);
  EXPECT_EQ(none.failure().error, ENOENT);
  // A directory that is no mount of terminals, whatever lies in it.
  ASSERT_EQ(mkdir((view / "dev").c_str(), 0755), 0);
  ASSERT_EQ(mkdir((view / "dev/pts").c_str(), 0755), 0);
  ASSERT_EQ(symlink("/dev/ptmx", (view / "dev/pts/ptmx").c_str()), 0);
  Result<Terminal> other = OpenTerminal(root.get(), kSize);
  ASSERT_EQ(other.ok(), false);
  EXPECT_EQ(other.failure().error, ENODEV);
}

TEST(TerminalIsNotOpenedBehindALink) {
  const TemporaryDirectory view;
  const UniqueFd root(open(view.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(symlink("/dev", (view / "dev").c_str()), 0);
  Result<Terminal> terminal = OpenTerminal(root.get(), kSize);
  ASSERT_EQ(terminal.ok(), false);
  EXPECT_TRUE(terminal.failure().error == ELOOP || terminal.failure().error == EXDEV);
}

TEST(TerminalInputEndsAfterATextOnce) {
  Result<Terminal> terminal = OpenTerminal(std::nullopt, kSize);
  ASSERT_EQ(terminal.ok(), true);
  TerminalInput input("line\nrest", UniqueFd());
  input.Feed(terminal.value().master.get());
  EXPECT_TRUE(input.over());
  char buffer[64];
  EXPECT_EQ(read(terminal.value().slave.get(), buffer, sizeof(buffer)), 5);
  EXPECT_EQ(read(terminal.value().slave.get(), buffer, sizeof(buffer)), 4);
  EXPECT_EQ(read(terminal.value().slave.get(), buffer, sizeof(buffer)), 0);
}

TEST(TerminalInputComesFromAPipe) {
  Result<Terminal> terminal = OpenTerminal(std::nullopt, kSize);
  ASSERT_EQ(terminal.ok(), true);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  UniqueFd writer(ends[1]);
  TerminalInput input("", UniqueFd(ends[0]));
  const int master = terminal.value().master.get();
  input.Feed(master);
  EXPECT_TRUE(!input.over() && !input.wants_terminal() && input.source() == ends[0]);
  EXPECT_EQ(write(writer.get(), "a\n", 2), 2);
  input.Feed(master);
  char buffer[64];
  EXPECT_EQ(read(terminal.value().slave.get(), buffer, sizeof(buffer)), 2);
  writer.reset();
  input.Feed(master);
  EXPECT_TRUE(input.over() && input.source() == -1);
  EXPECT_EQ(read(terminal.value().slave.get(), buffer, sizeof(buffer)), 0);
}

TEST(TerminalInputWaitsForATerminalThatIsFull) {
  Result<Terminal> terminal = OpenTerminal(std::nullopt, kSize);
  ASSERT_EQ(terminal.ok(), true);
  termios raw;
  ASSERT_EQ(tcgetattr(terminal.value().slave.get(), &raw), 0);
  cfmakeraw(&raw);
  ASSERT_EQ(tcsetattr(terminal.value().slave.get(), TCSANOW, &raw), 0);
  const std::string text(300'000, 'x');
  TerminalInput input(text, UniqueFd());
  ASSERT_EQ(fcntl(terminal.value().slave.get(), F_SETFL, O_NONBLOCK), 0);
  std::string got;
  for (int round = 0; round < 10'000 && got.size() < text.size(); ++round) {
    input.Feed(terminal.value().master.get());
    if (round == 0) EXPECT_TRUE(input.wants_terminal());
    got += ReadAll(terminal.value().slave.get());
  }
  EXPECT_TRUE(got.substr(0, text.size()) == text);
}

TEST(CommandOnATerminalHasItAsControllingTerminal) {
  const Outcome outcome = Run(OnTerminal("[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo x > /dev/tty"));
  EXPECT_TRUE(!outcome.failure);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.output[0].kept, "x\r\n");
}

TEST(CommandOnATerminalReadsWhatIsTyped) {
  const Outcome outcome =
      Run(OnTerminal("stty -echo; read a; echo \"[$a]\"; cat; exit 4", "one\ntwo\n"));
  EXPECT_EQ(outcome.exit_code, 4);
  const std::string shown(outcome.output[0].kept.view());
  EXPECT_TRUE(shown.find("[one]\r\n") != std::string::npos);
  EXPECT_TRUE(shown.ends_with("two\r\n"));
}

TEST(CommandOnATerminalInheritsNoOtherDescriptor) {
  EXPECT_EQ(Run(OnTerminal("ls /proc/self/fd | tr '\\n' ' '")).output[0].kept, "0 1 2 3 ");
}

TEST(CommandOnATerminalTakesInputFromPipesOnly) {
  CommandSpec spec = OnTerminal("true");
  spec.streams.stdio[0].mode = StdioSpec::Mode::kFd;
  spec.streams.stdio[0].fd.reset(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  const Outcome outcome = Run(std::move(spec));
  ASSERT_EQ(outcome.failure.has_value(), true);
  EXPECT_EQ(outcome.failure->error, EINVAL);
}

TEST(CommandOnATerminalLeavesNoDescriptorBehind) {
  const TemporaryDirectory top;
  // Once the threads are gone, with everything that they keep for the next command.
  const auto after = [&](int commands) {
    {
      const test::Threads threads(test::BareSpec(top.path()));
      RunToEnd(threads, OnTerminal("true"));
      const size_t first = test::CountDescriptors();
      for (int i = 1; i < commands; ++i) RunToEnd(threads, OnTerminal("echo x"));
      // The thread gives its last ones back a moment after the report.
      EXPECT_TRUE(test::Eventually([&] { return test::CountDescriptors() <= first; }));
    }
    return test::CountDescriptors();
  };
  const size_t before = after(1);
  EXPECT_EQ(after(20), before);
}

TEST(CommandsTerminalTakesANewSizeAtAnyTime) {
  const TemporaryDirectory top;
  const test::Threads threads(test::BareSpec(top.path()));
  test::Running running(
      threads,
      OnTerminal("trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.01; done"));
  // Also before it is there, and after it is gone.
  running.command().Resize({100, 50});
  running.WaitForLines(1);
  running.command().Resize({132, 43});
  const Outcome outcome = running.Wait();
  EXPECT_TRUE(outcome.output[0].kept.view().ends_with("43 132\r\n") ||
              outcome.output[0].kept.view().ends_with("50 100\r\n"));
  running.command().Resize({80, 24});
}

}  // namespace
}  // namespace sandbox_run
